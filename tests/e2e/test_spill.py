"""The spill drill: five times what the dedicated lane can do, for a minute, and nobody notices.

The model sleeps for `SERVICE_S`, so its lane can do SLOTS / SERVICE_S = 5 requests/s whatever the host is, and the
burst is 25/s: little enough for two cores to carry it through the emulated cloud (gateway, two functions, runtime and
two model servers a request), so that the drill measures the spill and not the host. A shorter sleep makes the host the
bottleneck; the test fails by that name when the generator falls behind. About 21 requests are in flight at a time, each
in a function instance of its own that sees none of the others; what is spilled is told by the model server's own queue
(`docs/admission.md`).

Serverless is warm before the burst begins; so are the function's instances.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import urllib3

from tests.e2e.drills import SERVERLESS_FIRST, Drill, drill
from workbench.stack.cloud import Cloud
from workbench.stack.layout import Layout
from workbench.traffic import Answer, Call, Client

SLOTS = 4
SERVICE_S = 0.8
CAPACITY_PER_S = SLOTS / SERVICE_S
BURST_S = 60.0
BURST_PER_S = 5 * CAPACITY_PER_S
REQUESTS = round(BURST_S * BURST_PER_S)
DEADLINE_S = 10.0
WARM = 26
"""Serverless containers and function instances that are up before the burst: a quarter more than it needs."""
WARM_PER_S = 4.5
"""Each takes most of a second of CPU to start; all at once, the authorizer would run into its own time limit."""
WARM_SLEEP_S = 6.0
"""As long as it takes to start them all, so that they overlap; well below the deadline, or the router would learn that
serverless cannot keep it."""
WISHES = {"X-Inferlane-Deadline-Ms": str(round(DEADLINE_S * 1000))}


@pytest.fixture(scope="module")
def spill(
    cloud: Cloud, layout: Layout, client: Callable[[str], Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Drill]:
    """A drill stack with four dedicated slots, and serverless concurrency enough for the rest."""
    folder = tmp_path_factory.mktemp("spill")
    lanes: dict[str, dict[str, object]] = {
        "dedicated": {"slots_per_instance": SLOTS},
        "serverless": {"max_concurrency": WARM + SLOTS},
    }
    with drill("spill", folder, cloud, layout, client, **lanes) as made:
        yield made


@pytest.mark.drill
async def test_five_times_the_capacity_for_a_minute(spill: Drill, client: Callable[[str], Any]) -> None:
    """99.9 % are answered 200 in time, dedicated works at 90 % of its capacity or more, and all demand is counted."""
    async with Client(spill.deployed.url, spill.headers) as callers:
        sent = await warm(callers, spill)
        counted = settled(client, spill, "Requests", lambda count: count >= sent)
        before = samples(client, spill, "Demand")
        since_ms = round(time.time() * 1000)
        began = time.perf_counter()
        answers = await callers.open(
            (Call(spill.path, {"sleep_s": SERVICE_S, "n": n}, WISHES) for n in range(REQUESTS)), per_s=BURST_PER_S
        )
        took = time.perf_counter() - began
    assert took < BURST_S + DEADLINE_S, "the generator fell behind: the host is the bottleneck, not the lanes"
    assert len(answers) == REQUESTS
    in_time = [a for a in answers if a.ok and a.latency_ms <= DEADLINE_S * 1000]
    failed = Counter((a.status, a.error, a.body[:120]) for a in answers if a not in in_time)
    assert len(in_time) >= 0.999 * REQUESTS, failed
    assert len({json.loads(a.body)["n"] for a in in_time}) == len(in_time)
    assert dedicated_per_s(answers) >= 0.9 * CAPACITY_PER_S
    assert all(len(set(a.attempts)) == len(a.attempts) for a in answers)
    # The demand of every arrival is published, whichever lane served it.
    assert settled(client, spill, "Requests", lambda count: count >= counted + REQUESTS) == counted + REQUESTS
    assert settled(client, spill, "Demand", lambda count: count >= before + REQUESTS) == before + REQUESTS
    assert spilled_because(client, spill, since_ms) == {"busy"}


def dedicated_per_s(answers: list[Answer]) -> float:
    """What dedicated answered per second, between the first request and the burst's end."""
    first = min(a.at_s for a in answers)
    done = [a for a in answers if a.lane == "dedicated" and a.at_s + a.latency_ms / 1000 <= first + BURST_S]
    return len(done) / BURST_S


async def warm(callers: Client, spill: Drill, limit_s: float = 60.0) -> int:
    """Start the function's instances and serverless's containers, and wait until the router knows the service time.

    Returns the number of requests it took.
    """
    answers = await callers.closed([Call(spill.path, {"sleep_s": SERVICE_S})] * SLOTS, callers=SLOTS)
    overlapping = [Call(spill.path, {"sleep_s": WARM_SLEEP_S}, SERVERLESS_FIRST)] * WARM
    answers += await callers.open(overlapping, per_s=WARM_PER_S)
    assert not (failed := [(a.status, a.error, a.body) for a in answers if not a.ok]), failed
    assert {a.lane for a in answers[SLOTS:]} == {"serverless"}
    deadline = time.monotonic() + limit_s
    while "model_latency_p50_ms" not in lanes(spill)["dedicated"]["metrics"]:
        assert time.monotonic() < deadline, lanes(spill)
        await asyncio.sleep(0.5)
    return len(answers)


def lanes(spill: Drill) -> Any:
    """What the router believes of the model's lanes."""
    response = urllib3.request("GET", f"{spill.deployed.url}/v1/lanes", headers=dict(spill.headers))
    return response.json()["models"][spill.model]["lanes"]


def samples(client: Callable[[str], Any], spill: Drill, metric: str) -> int:
    """How many values of the router's metric there are for the model, over all time."""
    now = datetime.now(UTC)
    points = client("cloudwatch").get_metric_statistics(
        Namespace="Inferlane",
        MetricName=metric,
        Dimensions=[{"Name": "stack", "Value": spill.deployed.stack}, {"Name": "model", "Value": spill.model}],
        StartTime=now - timedelta(hours=1),
        EndTime=now + timedelta(minutes=1),
        Period=60,
        Statistics=["SampleCount"],
    )["Datapoints"]
    return sum(int(point["SampleCount"]) for point in points)


def settled(
    client: Callable[[str], Any], spill: Drill, metric: str, enough: Callable[[int], bool], limit_s: float = 20.0
) -> int:
    """The metric's count once it is enough (the bridge polls each second), or what it is after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while not enough(count := samples(client, spill, metric)) and time.monotonic() < deadline:
        time.sleep(0.5)
    return count


def spilled_because(client: Callable[[str], Any], spill: Drill, since_ms: int) -> set[str]:
    """The outcomes of attempts that were followed by another one, from the receipts."""
    group = f"/aws/lambda/inferlane-{spill.deployed.stack}-route"
    pages = client("logs").get_paginator("filter_log_events").paginate(logGroupName=group, startTime=since_ms)
    lines = (event["message"] for page in pages for event in page["events"] if '"receipt"' in event["message"])
    receipts = [json.loads(line[line.index("{") :])["receipt"] for line in lines]
    assert len(receipts) == REQUESTS
    return {attempt["outcome"] for receipt in receipts for attempt in receipt["attempts"][:-1]}

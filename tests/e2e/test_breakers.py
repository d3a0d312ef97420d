"""Breakers and hedges over HTTP: a failing lane is left alone and taken back, poison shuts none, a slow one is raced.

Requests go one after the other, so one instance of the router serves them and what it learns can be told to the last
request. The thresholds are the breaker's own (`functions.core.breaker.RULES`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import urllib3

from functions.core.breaker import RULES
from functions.core.budgets import HEDGE_SHARE
from tests.e2e.drills import HEDGED, Drill, drill
from tests.e2e.test_faults_matrix import healthy, send
from tests.e2e.test_front_door import HTTP, post
from workbench.stack.cloud import Cloud
from workbench.stack.faults import Faults
from workbench.stack.layout import Layout
from workbench.traffic import attempts_in

BOTH = ("dedicated", "serverless")
MARGIN_S = 0.3
"""For what lies between the router's clock and ours."""
SLOW_S = 4.0
METRIC_LIMIT_S = 30.0


@pytest.fixture(scope="module")
def broken(
    cloud: Cloud, layout: Layout, client: Callable[[str], Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Drill]:
    """A drill stack whose lanes are about to break."""
    folder = tmp_path_factory.mktemp("breakers")
    with drill("breakers", folder, cloud, layout, client, dedicated={}, serverless={}) as made:
        yield made


def lanes_tried(answer: urllib3.BaseHTTPResponse) -> tuple[str, ...]:
    return attempts_in(answer.headers["server-timing"])


def breakers(broken: Drill) -> dict[str, str]:
    """What the router itself says of its lanes."""
    answer = HTTP.request("GET", broken.deployed.url + "/v1/lanes", headers=dict(broken.headers))
    return {name: lane["breaker"] for name, lane in answer.json()["models"][broken.model]["lanes"].items()}


def wait_until(at: float) -> None:
    time.sleep(max(0.0, at - time.monotonic()))


def test_a_failing_lane_is_left_alone_until_its_probe_is_answered(
    broken: Drill, faults: Faults, client: Callable[[str], Any]
) -> None:
    """Five failures open it; while open nobody tries it; one probe a time; a failed one doubles the wait; an answer
    closes it. No caller notices any of it, and the metrics tell it."""
    healthy(broken)
    faults.inject(broken.endpoint("dedicated"), "platform", {"status": 500})
    for _ in range(RULES.failures):
        answer = send(broken, "dedicated")
        assert (answer.status, lanes_tried(answer)) == (200, BOTH)
    opened = time.monotonic()
    assert breakers(broken) == {"dedicated": "open", "serverless": "closed"}

    spilled = 0
    while time.monotonic() < opened + RULES.open_s - 1:
        answer = send(broken, "dedicated")
        assert (answer.status, lanes_tried(answer)) == (200, ("serverless",))
        spilled += 1
        time.sleep(0.2)
    assert spilled >= 3

    wait_until(opened + RULES.open_s + MARGIN_S)
    assert breakers(broken)["dedicated"] == "half_open"
    probe, opened_again = send(broken, "dedicated"), time.monotonic()
    assert (probe.status, lanes_tried(probe)) == (200, BOTH)
    assert lanes_tried(send(broken, "dedicated")) == ("serverless",)

    faults.clear()
    wait_until(opened_again + RULES.open_s + MARGIN_S)
    assert lanes_tried(send(broken, "dedicated")) == ("serverless",), "a failed probe doubles the wait"
    wait_until(opened_again + 2 * RULES.open_s + MARGIN_S)
    probe = send(broken, "dedicated")
    assert (probe.status, lanes_tried(probe)) == (200, ("dedicated",))
    assert breakers(broken) == {"dedicated": "closed", "serverless": "closed"}
    assert lanes_tried(send(broken, "dedicated")) == ("dedicated",)

    # Not closed for the decisions while open, the two probes' and the one between; before and after, it was.
    told = metric(client, broken, "BreakerOpenDedicated", enough=spilled + 4)
    assert told["Sum"] == spilled + 4
    assert told["SampleCount"] > told["Sum"]
    assert metric(client, broken, "BreakerOpenServerless")["Sum"] == 0
    assert metric(client, broken, "SnapshotAge", by_model=False)["SampleCount"] > 0


def test_poison_shuts_no_lane(broken: Drill, faults: Faults) -> None:
    """Requests on which every container fails are answered 502 and change nothing for the others."""
    healthy(broken)
    for lane in BOTH:
        faults.inject(broken.endpoint(lane), "errors", {"percent": 100, "status": 500})
    for _ in range(3 * RULES.failures):
        answer = send(broken, "dedicated")
        assert (answer.status, lanes_tried(answer)) == (502, BOTH)
    assert breakers(broken) == {"dedicated": "closed", "serverless": "closed"}
    faults.clear()
    assert lanes_tried(send(broken, "dedicated")) == ("dedicated",)


def test_a_model_that_fails_on_one_lane_only_opens_it(broken: Drill, faults: Faults) -> None:
    """The same failure counts where the other lane shows that the requests are good."""
    healthy(broken)
    faults.inject(broken.endpoint("dedicated"), "errors", {"percent": 100, "status": 500})
    for _ in range(RULES.failures):
        answer = send(broken, "dedicated")
        assert (answer.status, lanes_tried(answer)) == (200, BOTH)
    assert breakers(broken) == {"dedicated": "open", "serverless": "closed"}
    assert lanes_tried(send(broken, "dedicated")) == ("serverless",)


def test_a_hedge_wins_while_the_first_lane_is_slow(broken: Drill, faults: Faults) -> None:
    """After the lane's P95 a second try starts on the next lane, and its answer is the caller's; one in twenty."""
    healthy(broken)
    requests = hedges = 0
    while HEDGE_SHARE * (requests + 1) - hedges < 1:  # what a P95 needs, and the budget of one hedge
        requests += 1
        hedges += lanes_tried(hedged(broken)[0]) == BOTH  # one in twenty is slower than the P95
        assert requests < 200
    faults.inject(broken.endpoint("dedicated"), "slow", {"ms": 1000 * SLOW_S})
    answer, took_s = hedged(broken)
    assert (answer.status, answer.headers["x-inferlane-lane"]) == (200, "serverless")
    assert lanes_tried(answer) == BOTH
    assert took_s < SLOW_S / 2
    answer, took_s = hedged(broken)
    assert (answer.status, lanes_tried(answer)) == (200, ("dedicated",)), "the budget is spent"
    assert took_s >= SLOW_S


def hedged(broken: Drill) -> tuple[urllib3.BaseHTTPResponse, float]:
    """One request that may be hedged, and how long it took."""
    began = time.monotonic()
    headers = {**broken.headers, **HEDGED, "X-Inferlane-Deadline-Ms": "20000"}
    answer = post(broken.deployed.url + broken.path, {"sleep_s": 0.0}, headers)
    return answer, time.monotonic() - began


def metric(
    client: Callable[[str], Any], broken: Drill, name: str, *, by_model: bool = True, enough: float = 0
) -> dict[str, float]:
    """The router's metric of the last hour, once its sum is enough (the bridge polls each second)."""
    deadline = time.monotonic() + METRIC_LIMIT_S
    model = [{"Name": "model", "Value": broken.model}] if by_model else []
    while True:
        now = datetime.now(UTC)
        points = client("cloudwatch").get_metric_statistics(
            Namespace="Inferlane",
            MetricName=name,
            Dimensions=[{"Name": "stack", "Value": broken.deployed.stack}, *model],
            StartTime=now - timedelta(hours=1),
            EndTime=now + timedelta(minutes=1),
            Period=60,
            Statistics=["Sum", "SampleCount"],
        )["Datapoints"]
        found = {key: sum(point[key] for point in points) for key in ("Sum", "SampleCount")}
        if (found["SampleCount"] and found["Sum"] >= enough) or time.monotonic() > deadline:
            return found
        time.sleep(0.5)

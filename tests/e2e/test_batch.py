"""The batch lane end to end: what may wait is accepted, run in transform jobs or promoted in time, and told once."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import urllib3

from tests.e2e.batches import JSON_TYPE, Asked, Batches, Caller, batches, bulky, good, image, poison, secret
from workbench.stack.cloud import Cloud
from workbench.stack.layout import Layout

STARTUP_S = 5
TIGHT_S = 28
"""Less than a minute's tick and a start-up: batch cannot make it, so the deadline guard has to."""


@pytest.fixture(scope="module")
def lane(
    cloud: Cloud, layout: Layout, client: Callable[[str], Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Batches]:
    """A stack with a batch lane whose runs start soon."""
    folder = tmp_path_factory.mktemp("batches")
    with batches(
        "batches",
        folder,
        cloud,
        layout,
        client,
        batch={"startup_s": STARTUP_S, "max_jobs": 3, "target_records": 20_000, "max_wait_s": 5},
    ) as made:
        yield made


def mixed(count: int) -> list[Asked]:
    """Half JSON, a third PNG, a tenth poison, a twentieth due within seconds; every twentieth with a key of its own."""
    made: list[Asked] = []
    for n in range(count):
        keyed = {"Idempotency-Key": f"key-{n}"} if n % 20 == 3 else {}
        if n % 10 == 9:
            made.append(poison(n // 10))
        elif n % 20 == 5:
            made.append(good(n, **{"X-Inferlane-Deadline-Ms": str(TIGHT_S * 1000)}))
        elif n % 3 == 0:
            made.append(image(n, **keyed))
        else:
            made.append(good(n, **keyed))
    return made


async def conserved(lane: Batches, count: int, limit_s: float) -> None:
    """Send `count` mixed requests and hold every one of them to its end."""
    asked = mixed(count)
    began = time.time()
    async with Caller(lane, "red") as red:
        with lane.collecting():
            ids = await asyncio.gather(*(red.submit(one) for one in asked))
            again = [(n, one) for n, one in enumerate(asked) if "Idempotency-Key" in one.headers]
            for (n, _), id_ in zip(again, await asyncio.gather(*(red.submit(one) for _, one in again)), strict=True):
                assert id_ == ids[n], "a key that was sent again made another job"
            assert len(set(ids)) == count
            jobs = await red.ended(ids, limit_s)
        listed = Counter(job["id"] for job in await red.jobs())
    assert [listed[id_] for id_ in ids] == [1] * count
    wrong = [(one.body[:60], job) for one, job in zip(asked, jobs, strict=True) if not as_asked(one, job)]
    assert not wrong, (len(wrong), wrong[:3])
    statuses = Counter(job["status"] for job in jobs)
    assert statuses["done"] + statuses["failed"] == count, statuses
    tight = [job for one, job in zip(asked, jobs, strict=True) if "X-Inferlane-Deadline-Ms" in one.headers]
    assert {job["lane"] for job in tight} == {"serverless"}
    assert not [job["id"] for job in tight if job.get("late")]
    lanes = Counter(job.get("lane") for job in jobs if job["status"] == "done")
    assert lanes["batch"] > 0.8 * count, lanes
    assert_silent(lane, began, range(count))


def as_asked(one: Asked, job: dict[str, Any]) -> bool:
    """Whether the job ended as its request had to."""
    if one.expected is None:
        return job["status"] == "failed" and job["error"]["status"] == one.status and "result" not in job
    return job["status"] == "done" and job["result"] == one.expected and "error" not in job


def assert_silent(lane: Batches, since: float, numbers: Sequence[int]) -> None:
    """No function of the stack has written a payload into its log."""
    logs = lane.client("logs")
    marks = {secret(n) for n in numbers}
    read = 0
    prefix = f"/aws/lambda/inferlane-{lane.stack}-"
    for group in logs.describe_log_groups(logGroupNamePrefix=prefix)["logGroups"]:
        pages = logs.get_paginator("filter_log_events").paginate(
            logGroupName=group["logGroupName"], startTime=int(since * 1000)
        )
        for event in itertools.chain.from_iterable(page["events"] for page in pages):
            read += 1
            found = next((mark for mark in marks if mark in event["message"]), None)
            assert found is None, (group["logGroupName"], event["message"][:300])
    assert read > 0, "no log was read: the check proves nothing"


async def test_what_may_wait_ends_once_with_its_own_answer(lane: Batches) -> None:
    """300 mixed requests: each ends done with its own answer or failed with its own reason; poison stays alone."""
    await conserved(lane, 300, limit_s=150)


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_five_thousand(lane: Batches) -> None:
    """5,000 mixed requests: the same, and the audit's count of the records adds up to them."""
    before = lane.invoke("audit")
    await conserved(lane, 5000, limit_s=600)
    after = lane.invoke("audit")
    assert after["open"] == 0
    assert sum(after.values()) - sum(before.values()) == 5000


async def test_a_job_is_its_tenants_own(lane: Batches) -> None:
    """Another tenant's job is as unknown as one that never was, to read, to cancel and to list."""
    async with Caller(lane, "red") as red, Caller(lane, "blue") as blue:
        id_ = await red.submit(good(1))
        absent = "0" * len(id_)
        for method in ("GET", "DELETE"):
            theirs = await blue.call(method, f"/v1/jobs/{id_}")
            never = await blue.call(method, f"/v1/jobs/{absent}")
            assert (theirs[0], never[0]) == (404, 404)
            assert json.loads(theirs[2])["detail"] == json.loads(never[2])["detail"].replace(absent, id_)
        assert id_ not in {job["id"] for job in await blue.jobs()}
        assert (await red.job(id_))["status"] == "queued"
        status, _, _ = await red.call("DELETE", f"/v1/jobs/{id_}")
        assert status == 200
        assert (await red.job(id_))["status"] == "cancelled"
        again, _, _ = await red.call("DELETE", f"/v1/jobs/{id_}")
        assert again == 200


async def test_a_key_with_another_body_is_refused(lane: Batches) -> None:
    """The same key with something else asked is a mistake that the caller is told of."""
    async with Caller(lane, "red") as red:
        key = {"Idempotency-Key": "twice"}
        await red.submit(good(1, **key))
        status, headers, body = await red.call(
            "POST", lane.path, good(2).body, {"Content-Type": JSON_TYPE, "Prefer": "respond-async", **key}
        )
        assert (status, headers["Content-Type"]) == (422, "application/problem+json")
        assert secret(2) not in body.decode()


async def test_a_large_result_is_read_through_a_link_that_ends(lane: Batches) -> None:
    """What is too large to be told inline lies behind a link to it alone, which says when it ends."""
    asked = bulky(7, 200_000)
    async with Caller(lane, "red") as red:
        id_ = await red.submit(asked)
        with lane.collecting():
            await red.ended([id_], 90)
        job = await red.job(id_)
    assert "result" not in job
    assert 0 < datetime.fromisoformat(job["result_url_expires_at"]).timestamp() - time.time() <= 900
    assert await follow(job["result_url"]) == (200, asked.expected)
    assert int(parse_qs(urlsplit(job["result_url"]).query)["X-Amz-Expires"][0]) <= 900
    async with Caller(lane, "red") as red:
        with setting(lane, "jobs", "INFERLANE_LINK_S", "3"):
            soon = await red.job(id_)
    ends = datetime.fromisoformat(soon["result_url_expires_at"]).timestamp()
    assert await follow(soon["result_url"]) == (200, asked.expected)
    later = soon["result_url"].replace("X-Amz-Expires=3", "X-Amz-Expires=900")
    assert later != soon["result_url"]
    assert (await follow(later))[0] == 403, "the link's end is not covered by its signature"
    await asyncio.sleep(ends - time.time() + 1.5)  # both ends are told in whole seconds
    assert (await follow(soon["result_url"]))[0] == 403, "the link outlives the end it told"
    assert await follow(job["result_url"]) == (200, asked.expected)


async def follow(link: str) -> tuple[int, object]:
    """The status that a link is answered with, and the JSON it leads to."""
    read = await asyncio.to_thread(urllib3.request, "GET", link)
    return read.status, json.loads(read.data) if read.status == 200 else None


@contextmanager
def setting(lane: Batches, function: str, name: str, value: str) -> Iterator[None]:
    """Let a function run with a variable changed, as who operates the stack could, until the block ends."""
    client, named = lane.client("lambda"), {"FunctionName": f"inferlane-{lane.stack}-{function}"}
    variables = client.get_function_configuration(**named)["Environment"]["Variables"]
    before = client.get_alias(**named, Name="live")["FunctionVersion"]
    client.update_function_configuration(**named, Environment={"Variables": {**variables, name: value}})
    try:
        client.update_alias(**named, Name="live", FunctionVersion=client.publish_version(**named)["Version"])
        yield
    finally:
        client.update_function_configuration(**named, Environment={"Variables": variables})
        client.update_alias(**named, Name="live", FunctionVersion=before)

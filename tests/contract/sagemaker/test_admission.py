"""Admission at the source, over real processes: a full queue is told at once, and the workers never run dry."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.contract.sagemaker.emulator import HTTP, Emulator
from workbench.stack.sagemaker.model.container import BUSY_HEADER

SLEEP_S = 0.3
BODY = b'{"sleep_s": 0.3}'
WORKERS = 2
LIMIT_S = 0.2


@pytest.fixture(scope="module")
def bounded(running: Emulator) -> Iterator[Emulator]:
    """The emulator with one-instance endpoints: `bounded` (two workers, 200 ms of queue) and `unbounded`."""
    running.model("bounded", SAGEMAKER_MODEL_SERVER_WORKERS=str(WORKERS), INFERLANE_MAX_QUEUE_MS="200")
    running.model("unbounded", SAGEMAKER_MODEL_SERVER_WORKERS=str(WORKERS))
    for name in ("bounded", "unbounded"):
        running.endpoint(name, running.config(name, name))
    for name in ("bounded", "unbounded"):
        assert running.settled(name)["EndpointStatus"] == "InService"
        running.invoke(name, BODY)  # it has seen one answer
    yield running
    for name in ("bounded", "unbounded"):
        running.sagemaker.delete_endpoint(EndpointName=name)


def outcome(emulator: Emulator, endpoint: str) -> tuple[int, float]:
    """The model's status for one request, and the seconds until it was known."""
    began = time.monotonic()
    try:
        emulator.invoke(endpoint, BODY)
        status = 200
    except ClientError as error:
        response: Any = error.response
        assert response["Error"]["Code"] == "ModelError"
        assert response["OriginalMessage"] == "the queue is full"
        status = response["OriginalStatusCode"]
    return status, time.monotonic() - began


def test_a_full_queue_is_told_at_once(bounded: Emulator) -> None:
    """Of a burst the workers' share is served and what would wait longer than 200 ms is 503, within milliseconds."""
    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda _: outcome(bounded, "bounded"), range(12)))
    statuses = [status for status, _ in answers]
    assert set(statuses) == {200, 503}
    # Both workers have just begun, so the first free one is 300 ms away: nobody may wait.
    assert statuses.count(200) == WORKERS
    assert max(took for status, took in answers if status == 503) < SLEEP_S
    assert max(took for status, took in answers if status == 200) < SLEEP_S + LIMIT_S + 0.3


def test_under_overload_the_workers_stay_busy(bounded: Emulator) -> None:
    """At five times the capacity, for three seconds, the workers answer at least nine tenths of what they can."""
    span_s, rate = 3.0, 5 * WORKERS / SLEEP_S
    began = time.monotonic()

    def arrival(number: int) -> int:
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
        return outcome(bounded, "bounded")[0]

    with ThreadPoolExecutor(32) as threads:
        statuses = list(threads.map(arrival, range(int(span_s * rate))))
    assert statuses.count(200) >= 0.9 * span_s * WORKERS / SLEEP_S
    assert statuses.count(200) + statuses.count(503) == len(statuses)


def test_without_a_limit_everything_waits(bounded: Emulator) -> None:
    """By default the queue has no bound: the same burst is served in full, one after another."""
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: outcome(bounded, "unbounded"), range(8)))
    assert {status for status, _ in answers} == {200}
    assert max(took for _, took in answers) > SLEEP_S * 8 / WORKERS - 0.1


def test_the_container_says_that_it_is_busy(bounded: Emulator) -> None:
    """The model server itself marks the refusal with a header, which SageMaker does not pass on."""
    pid = bounded.shown("bounded")["replicas"][0]["pid"]
    port = next(c.laddr.port for c in _process(bounded, pid).net_connections("tcp") if c.status == "LISTEN")
    url = f"http://127.0.0.1:{port}/invocations"

    def post(_: int) -> Any:
        return HTTP.request("POST", url, body=BODY, headers={"Content-Type": "application/json"})

    with ThreadPoolExecutor(8) as threads:
        responses = list(threads.map(post, range(8)))
    refused = [r for r in responses if r.status == 503]
    assert refused
    assert {r.headers.get(BUSY_HEADER) for r in refused} == {"1"}
    assert {r.headers.get(BUSY_HEADER) for r in responses if r.status == 200} == {None}


def test_a_limit_that_is_no_time_stops_the_server(running: Emulator) -> None:
    """A wrong setting fails the endpoint by name instead of meaning something else."""
    running.model("misset", INFERLANE_MAX_QUEUE_MS="soon")
    running.endpoint("misset", running.config("misset", "misset"))
    seen = running.settled("misset")
    assert seen["EndpointStatus"] == "Failed"
    assert "INFERLANE_MAX_QUEUE_MS must be milliseconds" in seen["FailureReason"]
    running.sagemaker.delete_endpoint(EndpointName="misset")


def _process(emulator: Emulator, pid: int) -> Any:
    return next(p for p in emulator.children() if p.pid == pid)

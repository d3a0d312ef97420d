"""Every fault on every lane, over HTTP: who answers, with what, after which attempts, how soon.

`EXPECTED` is the specification. What was seen is written to `build/outcomes.md`, and `docs/outcomes.md` must be the
same text. To renew it after a change that is meant:

    pytest tests/e2e/test_faults_matrix.py; cp build/outcomes.md docs/outcomes.md

The lane at fault is the one that is tried first: the policy's default order, or the reverse by a header. After each
case the lanes are healthy and answer again, so that no breaker opens and no case leans on the one before it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import urllib3

from tests.e2e.drills import SERVERLESS_FIRST, Drill, drill
from tests.e2e.test_front_door import post
from workbench.stack.cloud import Cloud
from workbench.stack.faults import Faults
from workbench.stack.layout import Layout, project_root
from workbench.traffic import attempts_in

LANES = ("dedicated", "serverless")
DEADLINE_S = 6.0
AT_ONCE_S = 3.0
"""A fallback that does not wait for the deadline. Itself it takes milliseconds; a busy host gets the rest."""
WRITTEN = project_root() / "build/outcomes.md"
KEPT = project_root() / "docs/outcomes.md"


@dataclass(frozen=True)
class Fault:
    """What is injected, and in words."""

    words: str
    kind: str
    params: dict[str, float]
    waits: bool = False
    """Whether only time tells: the attempt's share of the deadline passes first."""


@dataclass(frozen=True)
class Outcome:
    """The caller's status, and which of the tried lanes, by place in the order, answered; None: nobody did."""

    status: int
    by: int | None
    attempts: int


NEXT_LANE = Outcome(200, by=1, attempts=2)
FIRST_LANE = Outcome(200, by=0, attempts=1)
PASSED_ON = Outcome(422, by=0, attempts=1)


def nobody(status: int) -> Outcome:
    """Both lanes were tried, once each, and the caller is told why."""
    return Outcome(status, by=None, attempts=2)


FAULTS = {
    "throttled": Fault("throttled: 400 `ThrottlingException`, message null", "throttle", {}),
    "not-ready": Fault("not ready: 429 `ModelNotReadyException`", "platform", {"status": 429}),
    "denied": Fault("access denied: 403 `AccessDeniedException`", "platform", {"status": 403}),
    "500": Fault("500 `InternalFailure`", "platform", {"status": 500}),
    "503": Fault("503 `ServiceUnavailable`", "platform", {"status": 503}),
    "530": Fault("530 `InternalDependencyException`", "platform", {"status": 530}),
    "model-4xx": Fault("`ModelError`: the model answered 422", "errors", {"percent": 100, "status": 422}),
    "model-5xx": Fault("`ModelError`: the model answered 500", "errors", {"percent": 100, "status": 500}),
    "busy": Fault("`ModelError`: the model's queue is full (503)", "errors", {"percent": 100, "status": 503}),
    "reset": Fault("connection reset after the request was sent", "reset", {}),
    "slow": Fault("300 ms slower", "slow", {"ms": 300}),
    "hang": Fault("no answer (SageMaker's own limit: 60 s)", "hang", {}, waits=True),
}
EXPECTED = {
    "throttled": (NEXT_LANE, nobody(429)),
    "not-ready": (NEXT_LANE, nobody(503)),
    "denied": (NEXT_LANE, nobody(502)),
    "500": (NEXT_LANE, nobody(502)),
    "503": (NEXT_LANE, nobody(503)),
    "530": (NEXT_LANE, nobody(502)),
    "model-4xx": (PASSED_ON, PASSED_ON),
    "model-5xx": (NEXT_LANE, nobody(502)),
    "busy": (NEXT_LANE, nobody(429)),
    "reset": (NEXT_LANE, nobody(503)),
    "slow": (FIRST_LANE, FIRST_LANE),
    "hang": (NEXT_LANE, nobody(504)),
}
"""Fault -> (on the first lane, on both lanes)."""
PLACES = {"dedicated": ("dedicated",), "serverless": ("serverless",), "both": LANES}
# The hanging ones last: SageMaker works on them for a minute after their callers have left.
CASES = [(fault, place) for fault in FAULTS for place in PLACES]


@dataclass
class Seen:
    """One case as it went."""

    status: int
    by: str | None
    attempts: tuple[str, ...]
    within: str


@pytest.fixture(scope="module")
def matrix(
    cloud: Cloud, layout: Layout, client: Callable[[str], Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Drill]:
    """A drill stack whose lanes have both answered."""
    folder = tmp_path_factory.mktemp("matrix")
    with drill("matrix", folder, cloud, layout, client, dedicated={}, serverless={}) as made:
        yield made


@pytest.fixture(scope="module")
def seen() -> Iterator[dict[tuple[str, str], Seen]]:
    """What the cases saw; written down when all have run."""
    table: dict[tuple[str, str], Seen] = {}
    yield table
    if set(table) == set(CASES):
        WRITTEN.parent.mkdir(exist_ok=True)
        WRITTEN.write_text(document(table))


def send(matrix: Drill, first: str, deadline_s: float = DEADLINE_S) -> urllib3.BaseHTTPResponse:
    """One request that tries `first` first."""
    order = SERVERLESS_FIRST if first == "serverless" else {}
    wishes = {"X-Inferlane-Deadline-Ms": str(round(deadline_s * 1000))}
    return post(matrix.deployed.url + matrix.path, {"sleep_s": 0.0}, {**matrix.headers, **order, **wishes})


def healthy(matrix: Drill, limit_s: float = 60.0) -> None:
    """Until each lane, tried first, has answered twice in a row: no breaker is open, nothing is starting."""
    deadline = time.monotonic() + limit_s
    for lane in LANES:
        streak = 0
        while streak < 2:
            answer = send(matrix, lane, 25.0)
            good = answer.status == 200 and attempts_in(answer.headers["server-timing"]) == (lane,)
            streak = streak + 1 if good else 0
            if not good:
                assert time.monotonic() < deadline, (lane, answer.status, answer.data, dict(answer.headers))
                time.sleep(0.3)


@pytest.mark.parametrize(("fault", "place"), CASES)
def test_each_fault_has_its_outcome(
    matrix: Drill, faults: Faults, seen: dict[tuple[str, str], Seen], fault: str, place: str
) -> None:
    """With a healthy lane left every request is answered 200 by it; without one, the status says what is wrong."""
    healthy(matrix)
    at_fault, what = PLACES[place], FAULTS[fault]
    for lane in at_fault:
        faults.inject(matrix.endpoint(lane), what.kind, what.params)
    order = at_fault + tuple(lane for lane in LANES if lane not in at_fault)
    began = time.monotonic()
    answer = send(matrix, order[0])
    took = time.monotonic() - began
    expected = EXPECTED[fault][place == "both"]
    attempts = attempts_in(answer.headers["server-timing"])
    by = answer.headers.get("x-inferlane-lane")
    assert (answer.status, by) == (expected.status, None if expected.by is None else order[expected.by]), answer.data
    assert attempts == order[: expected.attempts]
    assert took < (DEADLINE_S if what.waits else AT_ONCE_S)
    if expected.by is None:
        problem = answer.json()
        assert [attempt["lane"] for attempt in problem["attempts"]] == list(attempts)
        assert matrix.endpoint("dedicated") not in answer.data.decode()
        assert (answer.status not in (429, 503)) or int(answer.headers["retry-after"]) >= 1
    seen[fault, place] = Seen(answer.status, by, attempts, "the deadline" if what.waits else "at once")


def test_the_documented_outcomes_are_those_that_were_seen(seen: dict[tuple[str, str], Seen]) -> None:
    """docs/outcomes.md is what this run saw, to the letter."""
    if set(seen) != set(CASES):
        pytest.skip("not every case has run")
    assert KEPT.read_text() == document(seen)


def document(table: dict[tuple[str, str], Seen]) -> str:
    """The outcomes as a page for people."""
    rows = []
    for fault, place in CASES:
        case = table[fault, place]
        tried = " → ".join(case.attempts)
        rows.append(
            f"| {FAULTS[fault].words} | {place} | {case.status} | {case.by or 'nobody'} | {tried} | {case.within} |"
        )
    return _HEAD + "\n".join(rows) + "\n"


_HEAD = """\
# What a caller sees when a lane fails

Written by `tests/e2e/test_faults_matrix.py` from what it saw over HTTP; do not edit. One request a row, sent while the
fault is in force, with the lane at fault first in the order and the other one behind it. No lane is tried twice: what
may have run is never repeated. Each attempt gets only its share of the deadline, so that the fallback can still answer.

"At once": the failure is known when it happens, nothing waits. "The deadline": only time tells, and the answer still
comes before it.

| fault | lane at fault | status | answered by | lanes tried | known |
|---|---|---|---|---|---|
"""

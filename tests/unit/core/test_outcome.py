"""Outcomes: what goes to the next lane, and what the caller gets when all have failed."""

from __future__ import annotations

import json

import pytest

from functions.core.outcome import FINAL, RAN, Failure, Kind, classify_container_error, failure_of
from functions.core.pricing import busy_cost_usd, counterfactual_usd, record_cost_usd
from functions.core.problem import Problem
from functions.core.receipt import Attempt
from tests.unit.core.builders import BATCH, DEDICATED, MODEL, SERVERLESS, topology

ANSWERS = {
    413: Failure(413, "too-large", "The body is larger than every lane that serves this model accepts.", None),
    429: Failure(429, "throttled", "Every lane that serves this model is at its limit.", 1),
    502: Failure(502, "upstream-error", "Every lane that serves this model failed.", None),
    503: Failure(503, "unavailable", "No lane that serves this model is available.", 1),
    504: Failure(504, "timeout", "No lane answered before the deadline.", None),
}


@pytest.mark.parametrize(
    ("kinds", "status"),
    [
        ([], 504),
        ([Kind.THROTTLED, Kind.THROTTLED], 429),
        ([Kind.BUSY, Kind.THROTTLED], 429),
        ([Kind.TOO_LARGE, Kind.THROTTLED], 429),
        ([Kind.TOO_LARGE], 413),
        ([Kind.UNREACHABLE, Kind.UNREACHABLE], 503),
        ([Kind.UNREACHABLE, Kind.THROTTLED], 503),
        ([Kind.UPSTREAM_ERROR, Kind.UNREACHABLE], 503),
        ([Kind.NOT_READY], 503),
        ([Kind.LOST], 503),
        ([Kind.LOST, Kind.BUSY], 503),
        ([Kind.LOST, Kind.TOO_LARGE], 502),
        ([Kind.NOT_READY, Kind.TIMEOUT], 503),
        ([Kind.TOO_LARGE, Kind.TIMEOUT], 504),
        ([Kind.TOO_LARGE, Kind.TOO_LARGE], 413),
        ([Kind.BUSY, Kind.THROTTLED, Kind.TOO_LARGE], 429),
        ([Kind.LOST, Kind.BUSY, Kind.THROTTLED], 503),
        ([Kind.TIMEOUT, Kind.UPSTREAM_ERROR], 504),
        ([Kind.TIMEOUT], 504),
        ([Kind.UPSTREAM_ERROR, Kind.UPSTREAM_ERROR], 502),
        ([Kind.UPSTREAM_ERROR, Kind.THROTTLED], 502),
        ([Kind.MODEL_ERROR, Kind.MODEL_ERROR], 502),
        ([Kind.MODEL_ERROR, Kind.TIMEOUT], 504),
    ],
)
def test_the_answer_after_these_failures(kinds: list[Kind], status: int) -> None:
    """One row a mixture; what the caller reads goes with the status."""
    assert failure_of(kinds) == ANSWERS[status]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (399, Kind.UPSTREAM_ERROR),
        (400, Kind.CALLER_ERROR),
        (415, Kind.CALLER_ERROR),
        (499, Kind.CALLER_ERROR),
        (429, Kind.BUSY),
        (503, Kind.BUSY),
        (500, Kind.MODEL_ERROR),
        (599, Kind.MODEL_ERROR),
        (600, Kind.UPSTREAM_ERROR),
        (0, Kind.UPSTREAM_ERROR),
    ],
)
def test_a_containers_status(status: int, kind: Kind) -> None:
    """Its 4xx is the caller's, but 429 and 503 say that its queue is full."""
    assert classify_container_error(status) is kind


def test_what_cannot_have_run_is_not_charged() -> None:
    """Throttled, not ready, busy, too large and unreachable never ran."""
    assert set(Kind) - RAN == {Kind.THROTTLED, Kind.NOT_READY, Kind.BUSY, Kind.TOO_LARGE, Kind.UNREACHABLE}
    assert {Kind.OK, Kind.CALLER_ERROR} == FINAL


def test_a_dedicated_attempt_costs_its_share_of_the_instance() -> None:
    """One of four slots for an hour is a quarter of the hour's price; serverless bills its seconds."""
    lanes = topology().sync_lanes(MODEL)
    assert busy_cost_usd(lanes["dedicated"], 3600) == pytest.approx(1.408 / 4)
    assert busy_cost_usd(lanes["serverless"], 2) == pytest.approx(0.00016)
    assert counterfactual_usd(lanes, "dedicated", 2) == {"serverless": pytest.approx(0.00016)}


def test_without_a_price_there_is_no_cost() -> None:
    """Unknown is not zero."""
    lanes = topology(dedicated={**DEDICATED, "usd_per_instance_hour": None}).sync_lanes(MODEL)
    assert busy_cost_usd(lanes["dedicated"], 1) is None


def test_a_problem_lists_its_attempts_and_nothing_of_their_inside() -> None:
    """Lane, outcome and duration; never the detail."""
    attempt = Attempt("dedicated", Kind.UNREACHABLE, None, 0.0, 0.0123, 1.0, 0.0, "Endpoint inferlane-x of account 1")
    document = json.loads(Problem(503, "No lane.", attempts=[attempt]).body("r-1"))
    assert document == {
        "type": "urn:inferlane:problem:unavailable",
        "title": "Service Unavailable",
        "status": 503,
        "detail": "No lane.",
        "request_id": "r-1",
        "attempts": [{"lane": "dedicated", "outcome": "unreachable", "duration_ms": 12.3}],
    }


@pytest.mark.parametrize(
    ("status", "slug", "title"),
    [
        (400, "bad-request", "Bad Request"),
        (401, "unauthenticated", "Unauthorized"),
        (403, "forbidden", "Forbidden"),
        (404, "not-found", "Not Found"),
        (405, "method-not-allowed", "Method Not Allowed"),
        (429, "shed", "Too Many Requests"),
        (500, "internal", "Internal Server Error"),
        (502, "upstream-error", "Bad Gateway"),
        (504, "timeout", "Gateway Timeout"),
        (418, "error", "I'm a Teapot"),
    ],
)
def test_a_problems_type_follows_from_its_status_unless_it_has_its_own(status: int, slug: str, title: str) -> None:
    """And its title is HTTP's."""
    document = json.loads(Problem(status, "d").body("r"))
    assert (document["type"], document["title"]) == (f"urn:inferlane:problem:{slug}", title)
    assert json.loads(Problem(status, "d", "own").body("r"))["type"] == "urn:inferlane:problem:own"


def test_a_problem_is_one_line_as_small_as_it_goes() -> None:
    """No blanks; durations in milliseconds with three decimals."""
    attempt = Attempt("dedicated", Kind.LOST, None, 0.0, 0.0123456, 1.0, None)
    assert Problem(404, "no").body("r-1") == (
        b'{"type":"urn:inferlane:problem:not-found","title":"Not Found","status":404,"detail":"no","request_id":"r-1",'
        b'"attempts":[]}'
    )
    assert b'"duration_ms":12.346}' in Problem(404, "no", attempts=[attempt]).body("r-1")


def test_a_batch_record_is_charged_its_seconds_on_the_instance() -> None:
    """Alone: an instance of a job works on one at a time."""
    lane = topology(batch=BATCH).serving_lanes(MODEL)["batch"]
    assert busy_cost_usd(lane, 3600) == pytest.approx(0.204)


def test_without_a_price_serverless_has_no_cost_either() -> None:
    """And the counterfactual says so, for every lane but the one that served."""
    lanes = topology(dedicated=DEDICATED, serverless={**SERVERLESS, "usd_per_s": None}).sync_lanes(MODEL)
    assert busy_cost_usd(lanes["serverless"], 1) is None
    assert counterfactual_usd(lanes, None, 3600) == {"dedicated": pytest.approx(1.408 / 4), "serverless": None}


def test_a_records_share_of_a_transform_job_is_what_its_instances_billed() -> None:
    """From start to end, start-up included, on every instance; equal shares; unknown without a price."""
    lane = topology(batch={**BATCH, "instance_count": 2, "model_name": "m"}).batch_lane(MODEL)
    assert lane is not None
    assert record_cost_usd(lane, 1800.0, 100) == pytest.approx(0.204 * 2 * 0.5 / 100)
    assert record_cost_usd(lane, 3600.0, 0) == pytest.approx(0.204 * 2)
    assert record_cost_usd(lane, 3600.0, 1) == pytest.approx(0.204 * 2)
    free = topology(batch={**BATCH, "model_name": "m", "usd_per_instance_hour": None}).batch_lane(MODEL)
    assert free is not None
    assert record_cost_usd(free, 1800.0, 100) is None

"""Requests that become jobs: what is promised, what is queued, and what happens when it cannot be."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.batch_ports import BusyError, UnavailableError
from functions.bootstrap import RouteParts
from functions.core.deferral import urgent
from functions.core.job import PROMOTED, End, JobKey, JobState, fingerprint, keyed_id
from functions.core.outcome import Kind
from functions.core.policy import Policy
from functions.core.topology import Topology
from functions.defer import Deferral
from functions.router import Router
from tests.unit.core.builders import BATCH, DEDICATED, IDLE, MODEL, NOW, SERVERLESS, policy, rules, topology
from tests.unit.handlers.acceptances import FakeAcceptance
from tests.unit.handlers.events import IAM, event
from tests.unit.handlers.fakes import (
    Behaviour,
    FakeClock,
    FakeContext,
    FakeInvoker,
    FakeLog,
    FakePolicies,
    FakeRace,
    FakeSignals,
    FakeTelemetry,
    failing,
    hanging,
    healthy,
)
from tests.unit.handlers.test_route import Front, headers, problem

STARTABLE = {**BATCH, "model_name": "m", "instance_type": "ml.c5.xlarge"}
ALL = topology(dedicated=DEDICATED, serverless=SERVERLESS, batch=STARTABLE)
BATCH_FIRST = policy(rules=rules(({}, ["batch", "serverless"])))
BATCH_LAST = policy(rules=rules(({}, ["dedicated", "serverless", "batch"])))


def front(
    acceptance: FakeAcceptance,
    dedicated: Behaviour | None = None,
    serverless: Behaviour | None = None,
    *,
    by: Policy = BATCH_FIRST,
    on: Topology = ALL,
) -> Front:
    clock = FakeClock(NOW)
    invoker = FakeInvoker(clock, {"dedicated": dedicated or healthy(), "serverless": serverless or healthy(0.3)})
    telemetry, log, policies = FakeTelemetry(), FakeLog(), FakePolicies(by)
    numbers = count(1)
    deferral = Deferral(acceptance, clock, lambda: f"{next(numbers):032x}", log)
    router = Router(
        on, policies, FakeSignals(IDLE), invoker, clock, race=lambda: FakeRace(clock), deferral=lambda: deferral
    )
    return Front(RouteParts(router, telemetry, log), invoker, clock, telemetry, log, policies)


def promised(response: dict[str, object]) -> dict[str, object]:
    assert response["statusCode"] == 202, response["body"]
    document = json.loads(str(response["body"]))
    assert isinstance(document, dict)
    assert headers(response)["location"] == f"/v1/jobs/{document['id']}"
    return document


def test_where_batch_is_first_the_request_becomes_a_job() -> None:
    """202 with its place, its status and when it is due; nothing is asked of a lane."""
    acceptance = FakeAcceptance()
    made = front(acceptance)
    response = made.call(event())
    assert promised(response) == {"id": f"{1:032x}", "status": "queued", "deadline": "2026-11-30T02:00:00Z"}
    assert headers(response)["x-inferlane-rule"] == "r0"
    assert "preference-applied" not in headers(response)
    assert made.invoker.seen == []


def test_the_queue_gets_all_that_it_takes_and_the_record_no_payload() -> None:
    """Model, types, times, the lanes that may still answer it, and the bytes; the record knows their fingerprint."""
    acceptance = FakeAcceptance()
    made = front(acceptance)
    raw = bytes(range(256))
    made.call(event(body=base64.b64encode(raw).decode(), base64=True, headers={"content-type": "image/png"}))
    (work,) = acceptance.queue
    assert work.key == JobKey("demo", f"{1:032x}")
    assert (work.model, work.content_type, work.body) == (MODEL, "image/png", raw)
    assert (work.accept, work.object, work.dataset) == ("application/json, */*;q=0.1", None, None)
    assert (work.accepted_at, work.due_at, work.lanes) == (NOW, NOW + 3600, ("serverless",))
    job = acceptance.records[work.key]
    assert job.fingerprint == work.fingerprint == fingerprint(MODEL, "image/png", work.accept, raw)
    assert (job.accepted_at, job.due_at, job.run, job.end) == (NOW, NOW + 3600, None, None)


def slow_to_start(startup_s: float) -> Topology:
    """A batch lane whose jobs take so long to start."""
    return topology(dedicated=DEDICATED, serverless=SERVERLESS, batch={**STARTABLE, "startup_s": startup_s})


def test_what_batch_would_answer_too_late_is_promoted_as_it_is_accepted() -> None:
    """Its record says so, promotion's queue gets it, and it is counted; its key finds it again with the same answer."""
    acceptance = FakeAcceptance()
    made = front(acceptance, on=slow_to_start(10))
    urgent = {"x-inferlane-deadline-ms": "28000", "idempotency-key": "k"}
    first = promised(made.call(event(headers=urgent)))
    assert first["status"] == "running", "nobody can stop what was promoted"
    (work,) = acceptance.promotions
    assert (work.due_at, work.lanes) == (NOW + 28, ("serverless",))
    assert acceptance.records[work.key].run == PROMOTED
    assert promised(made.call(event(headers=urgent))) == first
    assert (len(acceptance.promotions), acceptance.queue) == (1, [])
    assert [(receipt.recorded, receipt.promoted) for receipt in made.telemetry.receipts] == [
        (True, True),
        (False, False),
    ]


def test_what_batch_alone_may_answer_waits_for_it() -> None:
    """A body that no other lane takes, however near its deadline is."""
    acceptance = FakeAcceptance()
    others = {"dedicated": {**DEDICATED, "max_bytes": 4}, "serverless": {**SERVERLESS, "max_bytes": 4}}
    on = topology(batch={**STARTABLE, "startup_s": 10}, **others)
    promised(front(acceptance, on=on).call(event(headers={"x-inferlane-deadline-ms": "28000"})))
    (work,) = acceptance.queue
    assert work.lanes == ()
    assert acceptance.records[work.key].run is None


@given(asked_ms=st.integers(1, 900_000), startup_s=st.floats(0, 300), batch_last=st.booleans())
def test_each_queue_gets_what_is_its_own(asked_ms: int, startup_s: float, batch_last: bool) -> None:
    """Nothing urgent waits for the collector, and nothing else is paid for as if it were; the record agrees."""
    acceptance = FakeAcceptance()
    by, down = (BATCH_LAST, failing(Kind.THROTTLED)) if batch_last else (BATCH_FIRST, None)
    on = slow_to_start(startup_s)
    made = front(acceptance, down, down, by=by, on=on)
    made.call(event(headers={"x-inferlane-deadline-ms": str(asked_ms)}))
    lane = on.batch_lane(MODEL)
    for work in acceptance.queue:
        assert not urgent(work.due_at, lane, work.lanes, work.accepted_at)
        assert acceptance.records[work.key].run is None
    for work in acceptance.promotions:
        assert urgent(work.due_at, lane, work.lanes, work.accepted_at)
        assert acceptance.records[work.key].run == PROMOTED


def test_a_preference_that_was_followed_is_said_to_be() -> None:
    """RFC 7240: `Preference-Applied`."""
    made = front(FakeAcceptance(), by=policy())
    response = made.call(event(headers={"prefer": "respond-async"}))
    promised(response)
    assert headers(response)["preference-applied"] == "respond-async"


@pytest.mark.parametrize(("asked_ms", "due_s"), [("600000", 600.0), ("7200000", 3600.0), ("1000000000001", 3600.0)])
def test_a_deadline_can_only_shorten_what_the_policy_grants(asked_ms: str, due_s: float) -> None:
    """In milliseconds from now, as for a caller who waits."""
    acceptance = FakeAcceptance()
    front(acceptance).call(event(headers={"x-inferlane-deadline-ms": asked_ms}))
    assert acceptance.queue[0].due_at == NOW + due_s


def test_a_deadline_that_batch_cannot_keep_leads_to_a_lane_that_can() -> None:
    """The decision drops batch; nothing is queued."""
    acceptance = FakeAcceptance()
    response = front(acceptance).call(event(headers={"x-inferlane-deadline-ms": "20000"}))
    assert (response["statusCode"], headers(response)["x-inferlane-lane"]) == (200, "serverless")
    assert acceptance.queue == []


def test_the_same_key_is_the_same_job() -> None:
    """Its id follows from tenant and key; nothing is queued twice, and a job that has ended says how."""
    acceptance = FakeAcceptance()
    made = front(acceptance)
    first = promised(made.call(event(headers={"idempotency-key": "order-7"})))
    made.clock.advance(30)
    assert promised(made.call(event(headers={"idempotency-key": "order-7"}))) == first
    assert first["id"] == keyed_id("demo", "order-7")
    assert len(acceptance.queue) == 1
    key = JobKey("demo", str(first["id"]))
    acceptance.records[key] = replace(acceptance.records[key], end=End(JobState.FAILED, NOW))
    assert promised(made.call(event(headers={"idempotency-key": "order-7"})))["status"] == "failed"
    assert [receipt.recorded for receipt in made.telemetry.receipts] == [True, False, False]
    assert [receipt.job for receipt in made.telemetry.receipts] == [first["id"]] * 3


@pytest.mark.parametrize("change", ["body", "type"])
def test_a_key_that_was_used_for_something_else_is_refused(change: str) -> None:
    """422, and the first job is not told of it."""
    acceptance = FakeAcceptance()
    made = front(acceptance)
    made.call(event(headers={"idempotency-key": "k"}))
    other = {"content-type": "text/plain"} if change == "type" else {}
    body = '{"text":"ho"}' if change == "body" else '{"text":"hi"}'
    response = made.call(event(body=body, headers={"idempotency-key": "k", **other}))
    assert response["statusCode"] == 422
    assert problem(response)["type"] == "urn:inferlane:problem:idempotency-key-reused"
    assert (len(acceptance.queue), len(acceptance.records)) == (1, 1)
    assert made.telemetry.receipts[-1].job is None


def test_a_race_for_one_key_has_one_winner() -> None:
    """Where another record appears between looking and writing, it decides, as if it had been there before."""
    acceptance = FakeAcceptance()
    made = front(acceptance)
    won = promised(made.call(event(headers={"idempotency-key": "k"})))
    hidden = acceptance.find
    acceptance.find = lambda key, timeout_s: None  # type: ignore[method-assign]
    assert promised(made.call(event(headers={"idempotency-key": "k"}))) == won
    assert made.call(event(body='{"text":"ho"}', headers={"idempotency-key": "k"}))["statusCode"] == 422
    acceptance.find = hidden  # type: ignore[method-assign]
    assert len(acceptance.records) == 1


def test_tenants_have_keys_of_their_own() -> None:
    """The same key of two tenants names two jobs; so it does of two callers whom the policy does not list."""
    acceptance = FakeAcceptance()
    made = front(acceptance)
    callers: list[dict[str, object]] = [
        {"lambda": {"key_id": "vip-1"}},
        {"lambda": {"key_id": "demo-1"}},
        {"lambda": {"key_id": "x-1"}},
        {"lambda": {"key_id": "x-2"}},
    ]
    ids = [promised(made.call(event(authorizer=who, headers={"idempotency-key": "k"})))["id"] for who in callers]
    assert len(set(ids)) == 4
    tenants = [work.key.tenant for work in acceptance.queue]
    assert tenants[:2] == ["vip", "demo"]
    assert all(tenant.startswith("anonymous~") for tenant in tenants[2:])


def test_sessions_of_one_role_are_one_caller() -> None:
    """A session's name is the caller's to choose, and gives it no other jobs."""
    acceptance = FakeAcceptance()
    made = front(acceptance, by=policy(tenants=[], rules=rules(({}, ["batch"]))))
    for session in ("a", "b"):
        arn = f"arn:aws:sts::123456789012:assumed-role/ops-night/{session}"
        made.call(event(authorizer={"iam": {**IAM["iam"], "userArn": arn}}))
    assert len({work.key.tenant for work in acceptance.queue}) == 1


@pytest.mark.parametrize("error", [BusyError("throttled"), UnavailableError("no answer")])
def test_what_cannot_be_accepted_is_said_to_be_so(error: BusyError | UnavailableError) -> None:
    """503 with a time to come back, and no job."""
    made = front(FakeAcceptance(broken=error))
    response = made.call(event())
    assert (response["statusCode"], headers(response)["retry-after"]) == (503, "5")
    assert problem(response)["type"] == "urn:inferlane:problem:not-accepted"
    assert "location" not in headers(response)
    receipt = made.telemetry.receipts[0]
    assert (receipt.job, receipt.recorded, receipt.status) == (None, False, 503)
    (line,) = made.log.lines
    assert line == ("warning", "a job was not accepted", {"request_id": receipt.request_id, "cause": str(error)})


def test_a_record_whose_answer_was_lost_is_found_by_its_key() -> None:
    """The caller was told 503, comes back with its key, and gets the job that there is."""
    acceptance = FakeAcceptance(lost=True)
    made = front(acceptance)
    assert made.call(event(headers={"idempotency-key": "k"}))["statusCode"] == 503
    acceptance.lost = False
    promised(made.call(event(headers={"idempotency-key": "k"})))
    assert len(acceptance.queue) == len(acceptance.records) == 1


def test_nothing_is_promised_to_a_caller_who_is_gone() -> None:
    """Without time to accept it, the work is not even queued."""
    acceptance = FakeAcceptance()
    response = front(acceptance).call(event(), FakeContext(remaining_ms=510))
    assert response["statusCode"] == 503
    assert acceptance.queue == []


def test_work_that_may_wait_needs_a_body() -> None:
    """A transform job cannot ask a model nothing."""
    response = front(FakeAcceptance()).call(event(body=None))
    assert (response["statusCode"], problem(response)["type"]) == (400, "urn:inferlane:problem:empty-body")


def test_a_body_beyond_the_lane_is_413() -> None:
    """Batch has a limit like every lane."""
    small = topology(dedicated=DEDICATED, batch={**BATCH, "max_bytes": 4})
    made = front(FakeAcceptance(), by=policy(rules=rules(({}, ["batch"]))), on=small)
    assert made.call(event())["statusCode"] == 413


@pytest.mark.parametrize(
    ("dedicated", "serverless"),
    [
        (failing(Kind.THROTTLED), failing(Kind.BUSY)),
        (failing(Kind.UNREACHABLE), failing(Kind.MODEL_ERROR)),
        (hanging(), hanging()),
    ],
    ids=["full", "broken", "hanging"],
)
def test_where_batch_comes_last_it_takes_what_the_others_could_not(dedicated: Behaviour, serverless: Behaviour) -> None:
    """Every lane before it was tried; the caller gets 202 within its deadline rather than a failure."""
    acceptance = FakeAcceptance()
    made = front(acceptance, dedicated, serverless, by=BATCH_LAST)
    promised(made.call(event()))
    assert len(made.invoker.seen) == 2
    assert acceptance.queue[0].lanes == ("dedicated", "serverless")
    receipt = made.telemetry.receipts[0]
    assert (len(receipt.attempts), receipt.status, receipt.recorded) == (2, 202, True)
    assert receipt.latency_s < 25 - 0.9


@pytest.mark.parametrize("kind", [Kind.OK, Kind.CALLER_ERROR])
def test_an_answer_is_final(kind: Kind) -> None:
    """Neither success nor a model's refusal of the request is tried again in batch."""
    acceptance = FakeAcceptance()
    made = front(acceptance, failing(kind, status=200 if kind is Kind.OK else 400), by=BATCH_LAST)
    assert made.call(event())["statusCode"] in (200, 400)
    assert acceptance.queue == []


def test_without_a_job_the_caller_is_told_of_the_lanes_that_failed() -> None:
    """Not of the queue that failed after them; nor does an empty body become a job."""
    for acceptance, body in ((FakeAcceptance(broken=BusyError("busy")), "{}"), (FakeAcceptance(), None)):
        made = front(acceptance, failing(Kind.THROTTLED), failing(Kind.THROTTLED), by=BATCH_LAST)
        response = made.call(event(body=body))
        assert (response["statusCode"], problem(response)["type"]) == (429, "urn:inferlane:problem:throttled")
        assert acceptance.queue == []


def test_a_stack_without_a_batch_lane_does_as_before() -> None:
    """Neither time is kept back nor is a job made, whatever the policy names."""
    acceptance = FakeAcceptance()
    two = topology(dedicated=DEDICATED, serverless=SERVERLESS)
    made = front(acceptance, failing(Kind.THROTTLED), failing(Kind.THROTTLED), by=BATCH_LAST, on=two)
    assert made.call(event(headers={"prefer": "respond-async"}))["statusCode"] == 429
    assert acceptance.queue == []


def test_nobody_waits_long_to_be_told_that_nothing_is_accepted() -> None:
    """Looking and writing have five seconds at most."""
    acceptance = FakeAcceptance()
    front(acceptance).call(event(headers={"idempotency-key": "k"}))
    assert acceptance.timeouts == [5.0, 5.0]

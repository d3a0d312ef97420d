"""Capture on the way of a request: which are kept, what it may cost the caller, and that it never fails one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from functions.bootstrap import RouteParts
from functions.capture import Capturer
from functions.core.outcome import Kind, Outcome
from functions.core.policy import Policy
from functions.router import Router
from tests.unit.core.builders import IDLE, MODEL, NOW, policy, topology
from tests.unit.handlers.events import event
from tests.unit.handlers.fakes import (
    Behaviour,
    FakeClock,
    FakeInvoker,
    FakeLog,
    FakePolicies,
    FakeRace,
    FakeSignals,
    FakeTelemetry,
    failing,
    healthy,
)
from tests.unit.handlers.test_route import Front

SECRET = "ann@example.org"
BODY = json.dumps({"text": "hi", "user": {"email": SECRET}})


@dataclass
class FakeSink:
    """Keeps lines, and how long each might take; fails when told to."""

    clock: FakeClock
    lines: list[bytes] = field(default_factory=list)
    timeouts: list[float] = field(default_factory=list)
    broken: bool = False

    def put(self, record: bytes, timeout_s: float) -> None:
        self.timeouts.append(timeout_s)
        if self.broken:
            self.clock.advance(timeout_s)
            raise TimeoutError(f"no answer to {record!r}")
        self.lines.append(record)


def capturing(share: str = "100%", order: Sequence[str] = ("dedicated", "serverless"), **capture: object) -> Policy:
    route = {"path": "/ask/{name}", "model": MODEL, "capture": {"share": share, **capture}}
    return policy(routes=[route, {"path": "/quiet", "model": MODEL}], defaults={"order": order})


def front(by: Policy, dedicated: Behaviour | None = None) -> tuple[Front, FakeSink]:
    clock = FakeClock(NOW)
    invoker = FakeInvoker(clock, {"dedicated": dedicated or healthy(), "serverless": healthy(0.3)})
    telemetry, log, policies = FakeTelemetry(), FakeLog(), FakePolicies(by)
    sink = FakeSink(clock)
    capturer = Capturer(sink, clock, log)
    router = Router(
        topology(),
        policies,
        FakeSignals(IDLE),
        invoker,
        clock,
        race=lambda: FakeRace(clock),
        capturer=lambda: capturer,
    )
    return Front(RouteParts(router, telemetry, log), invoker, clock, telemetry, log, policies), sink


def test_an_answered_request_is_kept_as_its_route_asks() -> None:
    """Both bodies, without what is redacted; the caller sees nothing of it."""
    made, sink = front(capturing(redact=["/user/email"]))
    response = made.call(event("/ask/ann", body=BODY))
    assert response["statusCode"] == 200
    line = json.loads(sink.lines[0])
    assert (line["request_id"], line["route"], line["lane"]) == ("JKJaXmPLvHcESHA=", "/ask/{name}", "dedicated")
    assert (line["at"], line["model"], line["rule"], line["cost_center"]) == (NOW, MODEL, "default", None)
    assert json.loads(line["input"]["body"]) == {"text": "hi", "user": {"email": None}}
    assert line["output"]["body"] == '{"label":"ok"}'
    assert b"ann" not in sink.lines[0]
    assert made.telemetry.receipts[0].captured is True


@pytest.mark.parametrize("path", ["/quiet", f"/v1/models/{MODEL}/invocations"])
def test_a_route_that_does_not_ask_is_not_kept(path: str) -> None:
    """Opt-in, route by route."""
    made, sink = front(capturing())
    made.call(event(path))
    assert sink.timeouts == []
    assert made.telemetry.receipts[0].captured is None


@pytest.mark.parametrize(
    "outcome", [failing(Kind.CALLER_ERROR, status=400), failing(Kind.MODEL_ERROR, status=500)], ids=["4xx", "5xx"]
)
def test_only_what_was_answered_well_is_kept(outcome: Behaviour) -> None:
    """A refusal of the model's says nothing that could be checked again; what the fallback answered does."""
    made, sink = front(capturing(), outcome)
    response = made.call(event("/ask/x"))
    kept = response["statusCode"] == 200
    assert [json.loads(line)["lane"] for line in sink.lines] == (["serverless"] if kept else [])
    assert made.telemetry.receipts[0].captured is (True if kept else None)


def test_a_share_takes_its_part_and_the_same_requests_again() -> None:
    """By the request's idempotency key, or its id."""
    made, sink = front(capturing("25%"))
    keys = [f"order-{n}" for n in range(256)]
    taken = []
    for _ in range(2):
        before = len(sink.lines)
        kept = []
        for key in keys:
            made.call(event("/ask/x", headers={"idempotency-key": key}))
            if len(sink.lines) > before:
                kept.append(key)
                before = len(sink.lines)
        taken.append(kept)
    assert taken[0] == taken[1]
    assert len(taken[0]) == 64
    assert [receipt.captured for receipt in made.telemetry.receipts].count(None) == 2 * 192


def test_a_stream_that_fails_fails_no_request() -> None:
    """The answer goes out after a quarter of a second; the loss is counted, and told once without what was lost."""
    made, sink = front(capturing())
    sink.broken = True
    for _ in range(3):
        response = made.call(event("/ask/x", body=BODY))
        assert (response["statusCode"], response["body"]) == (200, '{"label":"ok"}')
    assert sink.timeouts == [0.25] * 3
    receipt = made.telemetry.receipts[0]
    assert receipt.captured is False
    assert receipt.latency_s == pytest.approx(0.3)
    assert made.log.lines == [("warning", "a request was not captured", {"cause": "TimeoutError"})]
    made.clock.advance(61)
    made.call(event("/ask/x", body=BODY))
    assert len(made.log.lines) == 2


@pytest.mark.parametrize(("took_s", "timeouts"), [(0.9, [pytest.approx(0.1)]), (0.94, [pytest.approx(0.06)])])
def test_keeping_never_makes_a_caller_late(took_s: float, timeouts: list[float]) -> None:
    """It has what the deadline leaves."""
    made, sink = front(capturing(order=["dedicated"]), healthy(took_s))
    made.call(event("/ask/x", headers={"x-inferlane-deadline-ms": "1000"}))
    assert sink.timeouts == timeouts


def test_without_time_nothing_is_begun() -> None:
    """And that is a failure to capture like any other."""
    made, sink = front(capturing(order=["dedicated"]), healthy(0.089))
    made.call(event("/ask/x", headers={"x-inferlane-deadline-ms": "100"}))
    assert sink.timeouts == []
    assert made.telemetry.receipts[0].captured is False


def test_the_models_bytes_are_kept_too() -> None:
    """An image in Base64, as it came."""
    made, sink = front(capturing(), healthy(0.01, Outcome(Kind.OK, 200, b"\x89PNG", "image/png")))
    made.call(event("/ask/x"))
    assert json.loads(sink.lines[0])["output"]["encoding"] == "base64"

"""The route handler over fakes: real gateway events in, HTTP answers out."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass

import pytest

from functions.bootstrap import RouteParts
from functions.core.outcome import Kind, Outcome
from functions.core.policy import Policy
from functions.core.snapshot import Snapshot
from functions.core.topology import Topology
from functions.handlers.route import respond
from functions.router import Router
from tests.unit.core.builders import (
    BATCH,
    DEDICATED,
    IDLE,
    MODEL,
    NOW,
    PATH,
    lane,
    points,
    policy,
    rules,
    snapshot,
    topology,
)
from tests.unit.handlers.events import IAM, JWT, event
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


@dataclass
class Front:
    """A router over fakes, and what they have seen."""

    parts: RouteParts
    invoker: FakeInvoker
    clock: FakeClock
    telemetry: FakeTelemetry
    log: FakeLog
    policies: FakePolicies

    def call(self, sent: object, context: FakeContext | None = None) -> dict[str, object]:
        return respond(sent, context or FakeContext(), self.parts)


def front(
    dedicated: Behaviour | None = None,
    serverless: Behaviour | None = None,
    *,
    by: Policy | str | None = "default",
    seen: Snapshot = IDLE,
    on: Topology | None = None,
) -> Front:
    clock = FakeClock(NOW)
    invoker = FakeInvoker(clock, {"dedicated": dedicated or healthy(), "serverless": serverless or healthy(0.3)})
    current = policy() if isinstance(by, str) else by
    telemetry, log = FakeTelemetry(), FakeLog()
    policies = FakePolicies(current)
    router = Router(on or topology(), policies, FakeSignals(seen), invoker, clock, race=lambda: FakeRace(clock))
    return Front(RouteParts(router, telemetry, log), invoker, clock, telemetry, log, policies)


def headers(response: dict[str, object]) -> dict[str, str]:
    found = response["headers"]
    assert isinstance(found, dict)
    return found


def problem(response: dict[str, object]) -> dict[str, object]:
    assert headers(response)["content-type"] == "application/problem+json"
    document = json.loads(str(response["body"]))
    assert isinstance(document, dict)
    assert document["status"] == response["statusCode"]
    assert {"type", "title", "status", "detail", "request_id", "attempts"} == set(document)
    return document


def test_the_models_answer_comes_back_with_the_contracts_headers() -> None:
    """Status, bytes and type are the model's; lane, rule, policy, cost, id and timing are in headers."""
    response = front().call(event())
    assert (response["statusCode"], response["body"], response["isBase64Encoded"]) == (200, '{"label":"ok"}', False)
    assert headers(response) == {
        "content-type": "application/json",
        "x-request-id": "JKJaXmPLvHcESHA=",
        "x-inferlane-lane": "dedicated",
        "x-inferlane-rule": "default",
        "x-inferlane-policy": "test.1",
        "x-inferlane-cost-usd": "0.000004889",
        "server-timing": 'decide;dur=0.000, attempt;desc="dedicated";dur=50.000',
    }


def test_the_body_reaches_the_model_byte_for_byte() -> None:
    """Text is UTF-8, Base64 is undone; content type and accept pass through."""
    made = front()
    raw = bytes(range(256))
    made.call(event(body=base64.b64encode(raw).decode(), base64=True, headers={"Content-Type": "image/png"}))
    made.call(event(body='{"text":"grüße ☃"}'))
    made.call(event(body=None))
    assert [seen.body for seen in made.invoker.seen] == [raw, '{"text":"grüße ☃"}'.encode(), b""]
    assert made.invoker.seen[0].content_type == "image/png"
    assert made.invoker.seen[0].accept == "application/json, */*;q=0.1"
    assert made.invoker.seen[0].headers == {"x-amzn-sagemaker-inference-id": "JKJaXmPLvHcESHA="}


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        (b"\x89PNG\x00\xff", "image/png", False),
        (b"\xff\xfe", "application/json", False),
        (b"plain", "text/csv; charset=utf-8", True),
        (b"{}", "application/vnd.x+json", True),
        (b"{}", None, False),
        (b"", "image/png", True),
    ],
)
def test_the_models_bytes_come_back_untouched(body: bytes, content_type: str | None, text: bool) -> None:
    """Text stays text where that loses nothing; all else is Base64."""
    response = front(healthy(0.01, Outcome(Kind.OK, 200, body, content_type))).call(event())
    sent = str(response["body"])
    assert response["isBase64Encoded"] is not text
    assert (sent.encode() if text else base64.b64decode(sent)) == body


def test_an_answer_beyond_lambdas_limit_is_a_502() -> None:
    """Base64 of 5 MB is more than Lambda returns."""
    big = Outcome(Kind.OK, 200, b"\x00" * 5_000_000, "application/octet-stream")
    assert problem(front(healthy(0.01, big)).call(event()))["type"] == "urn:inferlane:problem:response-too-large"


@pytest.mark.parametrize(
    ("body", "way"),
    [
        (b"1" * 6_000_000, "text"),
        ("\u4f60".encode() * 2_050_000, "text"),
        (b'"' * 4_000_000, "base64"),
        (b"\x01" * 2_000_000, "base64"),
        (b'"' * 5_000_000, "too large"),
        ("\u4f60".encode() * 2_100_000, "too large"),
        (b"1" * 6_300_000, "too large"),
    ],
)
def test_a_large_text_is_measured_as_lambda_sends_it(body: bytes, way: str) -> None:
    """As a JSON string in UTF-8: escapes and wide characters count; what fits only as Base64 goes as that."""
    response = front(healthy(0.01, Outcome(Kind.OK, 200, body, "application/json"))).call(event())
    assert len(json.dumps(response, ensure_ascii=False).encode()) < 6 * 1024 * 1024
    if way == "too large":
        assert problem(response)["type"] == "urn:inferlane:problem:response-too-large"
        return
    assert response["isBase64Encoded"] is (way == "base64")
    sent = str(response["body"])
    assert (base64.b64decode(sent) if way == "base64" else sent.encode()) == body


def test_a_models_content_type_cannot_break_the_header() -> None:
    """What a header may hold goes out as it is, anything else encoded."""
    for told, sent in (("text/plain; x=%41", "text/plain; x=%41"), ("text/pl\nx: 1", "text/pl%0Ax: 1")):
        response = front(healthy(0.01, Outcome(Kind.OK, 200, b"x", told))).call(event())
        assert headers(response)["content-type"] == sent


@pytest.mark.parametrize(
    ("authorizer", "tenant"),
    [
        (IAM, "backoffice"),
        (JWT, "acme"),
        ({"lambda": {"key_id": "vip-1"}}, "vip"),
        ({"lambda": {"key_id": "x"}}, "anonymous"),
    ],
)
def test_identity_comes_from_the_authorizer(authorizer: dict[str, object], tenant: str) -> None:
    """IAM, JWT and API key, each in the gateway's own shape; headers cannot change it."""
    made = front()
    made.call(event(authorizer=authorizer, headers={"x-inferlane-tenant": "vip", "x-inferlane-tier": "vip"}))
    assert made.telemetry.receipts[0].decision.tenant == tenant


@pytest.mark.parametrize("authorizer", [None, {}, {"lambda": {}}, {"lambda": None}, {"iam": {"userArn": None}}])
def test_without_a_proven_identity_nobody_gets_in(authorizer: dict[str, object] | None) -> None:
    """Even if a gateway were deployed without its authorizer."""
    made = front()
    response = made.call(event(authorizer=authorizer))
    assert response["statusCode"] == 401
    problem(response)
    assert made.invoker.seen == []


def test_a_dead_lane_is_not_noticed_by_the_caller() -> None:
    """The fallback answers; both attempts are in Server-Timing and the receipt."""
    made = front(failing(Kind.UNREACHABLE, 0.02))
    response = made.call(event())
    assert response["statusCode"] == 200
    assert headers(response)["x-inferlane-lane"] == "serverless"
    assert headers(response)["server-timing"].count("attempt;") == 2
    receipt = made.telemetry.receipts[0]
    assert (receipt.fallbacks, receipt.lane, receipt.status) == (1, "serverless", 200)


@pytest.mark.parametrize(
    ("kind", "status", "retry"),
    [
        (Kind.UNREACHABLE, 503, "1"),
        (Kind.THROTTLED, 429, "1"),
        (Kind.UPSTREAM_ERROR, 502, None),
        (Kind.TIMEOUT, 504, None),
    ],
)
def test_with_every_lane_failing_the_caller_gets_a_problem(kind: Kind, status: int, retry: str | None) -> None:
    """Status by the failures, Retry-After where it helps, each attempt listed, nothing of the stack told."""
    made = front(failing(kind), failing(kind))
    response = made.call(event())
    assert response["statusCode"] == status
    assert headers(response).get("retry-after") == retry
    found = problem(response)
    assert [attempt["lane"] for attempt in found["attempts"]] == ["dedicated", "serverless"]  # type: ignore[attr-defined]
    assert "inferlane-test" not in str(response)
    assert "123456789012" not in str(response)
    assert "x-inferlane-lane" not in headers(response)


def test_two_hanging_lanes_are_answered_before_the_deadline() -> None:
    """8 seconds asked: a 504 in less."""
    made = front(hanging(), hanging())
    response = made.call(event(headers={"x-inferlane-deadline-ms": "8000"}))
    assert response["statusCode"] == 504
    assert made.clock.passed < 8


def test_lambdas_own_time_bounds_the_attempts() -> None:
    """Five seconds left: the answer leaves half a second before the end."""
    made = front(hanging(), hanging())
    assert made.call(event(), FakeContext(remaining_ms=5_000))["statusCode"] == 504
    assert made.clock.passed <= 4.5


def test_a_containers_refusal_is_passed_on() -> None:
    """Its status, body and type, from one attempt."""
    refused = Outcome(Kind.CALLER_ERROR, 415, b"unsupported", "text/plain")
    made = front(healthy(0.01, refused))
    response = made.call(event())
    assert (response["statusCode"], response["body"]) == (415, "unsupported")
    assert len(made.invoker.seen) == 1


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (event("/nowhere"), 404),
        (event("/v1/models/nothing/invocations"), 404),
        (event(headers={"x-inferlane-priority": "urgent"}), 400),
        (event(body="x" * 7_000_000), 413),
    ],
)
def test_what_cannot_be_tried_is_refused_with_a_receipt(sent: dict[str, object], status: int) -> None:
    """Shed before any attempt, and still accounted for."""
    made = front()
    response = made.call(sent)
    assert response["statusCode"] == status
    problem(response)
    assert made.invoker.seen == []
    assert made.telemetry.receipts[0].status == status


@pytest.mark.parametrize(
    ("path", "method", "allow"),
    [(PATH, "GET", "POST"), ("/healthz", "POST", "GET"), ("/v1/lanes", "DELETE", "GET")],
)
def test_the_wrong_method_is_405_and_says_which_is_right(path: str, method: str, allow: str) -> None:
    """With the Allow header that HTTP asks for."""
    response = front().call(event(path, method))
    assert response["statusCode"] == 405
    assert headers(response)["allow"] == allow
    problem(response)


def test_health_needs_neither_identity_nor_policy() -> None:
    """And tells nothing but that it lives."""
    response = front(by=None).call(event("/healthz", "GET", authorizer=None, body=None))
    assert (response["statusCode"], response["body"]) == (200, '{"status":"ok"}')


def test_without_any_policy_the_answer_is_503() -> None:
    """`no-policy`, with a Retry-After."""
    response = front(by=None).call(event())
    assert response["statusCode"] == 503
    assert problem(response)["type"] == "urn:inferlane:problem:no-policy"
    assert headers(response)["retry-after"] == "5"


@pytest.mark.parametrize(
    ("wish", "left_ms", "patience_s"),
    [(None, 30_000, 10.0), ("4000", 30_000, 2.0), (None, 6_500, 3.0), ("0", 30_000, 10.0)],
    ids=["cap", "deadline", "lambda", "malformed"],
)
def test_a_new_instance_waits_for_its_first_policy(wish: str | None, left_ms: int, patience_s: float) -> None:
    """Half of what the caller or Lambda leaves, ten seconds at most; once there was one, nobody waits for it."""
    made = front()
    sent = event(headers={} if wish is None else {"X-Inferlane-Deadline-Ms": wish})
    made.call(sent, FakeContext(remaining_ms=left_ms))
    assert made.policies.patience_s == patience_s
    if wish != "0":
        made.call(sent)
        assert made.policies.patience_s == 0.0


def test_lanes_shows_what_the_router_believes() -> None:
    """Load, health, latches and newest metrics; no endpoint name."""
    signals = {"hot": {"lane": "dedicated", "metric": "cpu_percent", "above": 85, "for": "1m"}}
    seen = snapshot(
        taken_at=NOW - 7,
        dedicated=lane({"cpu_percent": points(91.0), "concurrency": points(2.0)}, instances=1, in_flight=0),
    )
    response = front(by=policy(signals=signals), seen=seen).call(event("/v1/lanes", "GET", body=None))
    document = json.loads(str(response["body"]))
    assert document["snapshot_age_s"] == 7
    model = document["models"][MODEL]
    assert model["latches"] == {"hot": True}
    assert model["lanes"]["dedicated"]["load"] == 0.5
    assert model["lanes"]["dedicated"]["metrics"]["cpu_percent"] == 91.0
    assert model["lanes"]["serverless"]["known"] is False
    assert "inferlane-test" not in str(response["body"])


def test_a_stage_name_in_the_path_is_not_part_of_it() -> None:
    """A named stage prefixes rawPath."""
    assert front().call(event(f"/live{PATH}", stage="live"))["statusCode"] == 200


def test_the_receipt_accounts_for_the_request() -> None:
    """Cost, counterfactual, sizes, times and the policy's version."""
    made = front()
    made.call(event(body='{"text":"xyz"}'))
    receipt = made.telemetry.receipts[0].to_json()
    assert receipt["cost_usd"] == pytest.approx(0.05 * 1.408 / 3600 / 4)
    assert receipt["counterfactual_usd"] == {"serverless": pytest.approx(0.05 * 0.00008)}
    assert (receipt["bytes_in"], receipt["bytes_out"], receipt["latency_ms"]) == (14, 14, 50.0)
    assert (receipt["lane"], receipt["policy_version"], receipt["snapshot_age_s"]) == ("dedicated", "test.1", 0.0)
    assert "xyz" not in json.dumps(receipt)


def test_demand_is_the_dedicated_lanes_service_time_whoever_serves() -> None:
    """What autoscaling follows must not shrink when requests spill."""
    seen = snapshot(dedicated=lane({"model_latency_p50_ms": points(120.0)}), serverless=lane())
    made = front(failing(Kind.BUSY), seen=seen)
    made.call(event())
    assert made.telemetry.receipts[0].demand_s == pytest.approx(0.12)


def test_own_requests_in_flight_count_as_load() -> None:
    """While four requests are at the dedicated lane, the fifth sees it full."""
    by = policy(rules=rules(({"load": {"lane": "dedicated", "at_least": 1}}, ["serverless"])))
    made = front(by=by)
    served = []

    def nested(depth: int) -> Behaviour:
        def invoke(_: object) -> tuple[Outcome, float]:
            if depth:
                made.invoker.lanes["dedicated"] = nested(depth - 1)
                served.append(headers(made.call(event()))["x-inferlane-lane"])
            return Outcome(Kind.OK, 200, b"{}", "application/json"), 0.01

        return invoke

    made.invoker.lanes["dedicated"] = nested(4)
    served.append(headers(made.call(event()))["x-inferlane-lane"])
    assert served == ["serverless", "dedicated", "dedicated", "dedicated", "dedicated"]


@pytest.mark.parametrize("sent", [None, {}, {"version": "1.0", "path": "/"}, event(body="%%%", base64=True)])
def test_what_is_no_gateway_event_is_400(sent: object) -> None:
    """Logged with its cause, answered without it."""
    made = front()
    response = made.call(sent)
    assert response["statusCode"] == 400
    assert made.log.lines[0][1] == "event refused"


def test_a_lane_without_an_instance_has_no_load() -> None:
    """It is full, which no number says; the answer stays JSON."""
    seen = snapshot(dedicated=lane(instances=0, in_flight=2))
    body = front(seen=seen).call(event("/v1/lanes", "GET", body=None))["body"]
    assert "Infinity" not in str(body)
    assert json.loads(str(body))["models"][MODEL]["lanes"]["dedicated"]["load"] is None


def test_an_unknown_error_is_500_with_the_request_id_and_nothing_else() -> None:
    """The log gets the way it came; its text, which may hold anything, goes nowhere."""

    def bug(_: object) -> tuple[Outcome, float]:
        raise KeyError("inferlane-test-secret")

    made = front(bug)
    response = made.call(event())
    assert response["statusCode"] == 500
    assert problem(response)["request_id"] == "JKJaXmPLvHcESHA="
    assert "inferlane-test" not in str(response)
    ((level, message, extra),) = made.log.lines
    assert (level, message, extra["request_id"]) == ("error", "unhandled error", "JKJaXmPLvHcESHA=")
    assert str(extra["trace"]).startswith("KeyError at test_route.py:")
    assert "< router.py:" in str(extra["trace"])
    assert "inferlane-test" not in str(extra)


def test_an_answer_that_cannot_be_recorded_still_goes_out() -> None:
    """It was paid for."""
    made = front()
    made.telemetry.broken = True
    assert made.call(event())["statusCode"] == 200
    assert made.log.lines[0][1] == "receipt not recorded"


CHAT = {"path": "/v1/chat/completions", "model": {"from_body": "model"}}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (f'{{"model":"{MODEL}","messages":[]}}', 200),
        ('{"model":"nothing"}', 404),
        ('{"messages":[]}', 400),
        ("no json", 400),
    ],
)
def test_a_route_may_take_its_model_from_the_body(body: str, status: int) -> None:
    """OpenAI's form: the client names the model; the body reaches it untouched."""
    made = front(by=policy(routes=[CHAT]))
    response = made.call(event("/v1/chat/completions", body=body))
    assert response["statusCode"] == status
    assert [seen.body for seen in made.invoker.seen] == ([body.encode()] if status == 200 else [])


def test_open_inference_paths_name_their_model() -> None:
    """`/v2/models/{model}/infer` as a route."""
    made = front(by=policy(routes=[{"path": "/v2/models/{model}/infer"}]))
    assert made.call(event(f"/v2/models/{MODEL}/infer"))["statusCode"] == 200


def test_an_idempotency_key_lands_where_the_first_try_did() -> None:
    """The share follows the key, not the request's id."""
    split = [{"id": "half", "split": {"share": "50%", "order": ["serverless"]}}]
    made = front(by=policy(rules=split))
    lanes = {
        key: {
            headers(made.call({**event(headers={"idempotency-key": key}), "requestContext": context(n)}))[
                "x-inferlane-lane"
            ]
            for n in range(5)
        }
        for key in ("a", "b", "c", "d", "e", "f", "g", "h")
    }
    assert all(len(found) == 1 for found in lanes.values())
    assert {lane for found in lanes.values() for lane in found} == {"dedicated", "serverless"}


def context(n: int) -> object:
    found = event()["requestContext"]
    assert isinstance(found, dict)
    return {**found, "requestId": f"request-{n}"}


def test_a_dead_lane_costs_five_attempts_and_is_then_passed_by() -> None:
    """Its breaker opens, /v1/lanes says so, and after five seconds one probe brings it back."""
    made = front(failing(Kind.UNREACHABLE))
    assert [headers(made.call(event()))["x-inferlane-lane"] for _ in range(20)] == ["serverless"] * 20
    assert [seen.lane for seen in made.invoker.seen].count("dedicated") == 5
    board = json.loads(str(made.call(event("/v1/lanes", "GET", body=None))["body"]))
    assert board["models"][MODEL]["lanes"]["dedicated"]["breaker"] == "open"
    made.clock.advance(5)
    made.invoker.lanes["dedicated"] = healthy()
    assert [headers(made.call(event()))["x-inferlane-lane"] for _ in range(3)] == ["dedicated"] * 3


def test_with_every_breaker_open_the_answer_is_503_at_once() -> None:
    """And says when to come back."""
    made = front(failing(Kind.LOST), failing(Kind.LOST))
    for _ in range(5):
        made.call(event())
    asked = len(made.invoker.seen)
    response = made.call(event())
    assert (response["statusCode"], headers(response)["retry-after"]) == (503, "5")
    assert len(made.invoker.seen) == asked


def test_a_rule_may_hedge() -> None:
    """A slow first lane is doubled on the second within the budget; the receipt tells of both."""
    made = front(by=policy(rules=[{"id": "quick", "order": ["dedicated", "serverless"], "hedge": True}]))
    for _ in range(40):
        made.call(event())
    made.invoker.lanes["dedicated"] = healthy(5.0)
    response = made.call(event())
    assert (response["statusCode"], headers(response)["x-inferlane-lane"]) == (200, "serverless")
    receipt = made.telemetry.receipts[-1]
    assert [(attempt.kind, attempt.hedge) for attempt in receipt.attempts] == [(Kind.ABANDONED, False), (Kind.OK, True)]
    assert receipt.fallbacks == 0
    assert receipt.latency_s < 1


def test_what_is_claimed_beyond_the_tier_is_told_in_the_receipt() -> None:
    """Granted at the tier, and counted."""
    made = front()
    made.call(event(headers={"x-inferlane-priority": "high"}))
    assert made.telemetry.receipts[0].decision.claims_refused == ("priority",)


def test_work_that_only_batch_could_do_is_refused_where_nothing_takes_it() -> None:
    """Not a silent drop, and no attempt on another lane than the rule names."""
    made = front(by=policy(rules=rules(({}, ["batch"]))), on=topology(dedicated=DEDICATED, batch=BATCH))
    response = made.call(event())
    assert response["statusCode"] == 503
    assert "deferred" in str(problem(response)["detail"])
    assert made.invoker.seen == []


@pytest.mark.parametrize("value", ["text/\u2603", "text/plain\r\nx-evil: 1", "\x00", "y" * 1025])
@pytest.mark.parametrize("name", ["content-type", "accept"])
def test_a_header_that_cannot_be_sent_on_is_the_callers_fault(name: str, value: str) -> None:
    """Not the lanes': five of them must not open a breaker."""
    made = front()
    refused = [made.call(event(headers={name: value})) for _ in range(6)]
    assert [response["statusCode"] for response in refused] == [400] * 6
    assert str(problem(refused[0])["detail"]).startswith(name)
    assert made.invoker.seen == []


def test_a_tab_in_a_header_is_white_space() -> None:
    """RFC 9110 allows it; it goes on as a space."""
    made = front()
    assert made.call(event(headers={"content-type": "application/json;\tcharset=utf-8"}))["statusCode"] == 200


def test_a_hanging_lane_is_passed_by_after_five_timeouts() -> None:
    """Also when it was quick before and callers wait long."""
    made = front()
    for _ in range(100):
        made.call(event())
    made.invoker.lanes["dedicated"] = hanging()
    lanes = []
    for _ in range(8):
        asked = len(made.invoker.seen)
        assert made.call(event(headers={"x-inferlane-deadline-ms": "3000"}))["statusCode"] == 200
        lanes.append([seen.lane for seen in made.invoker.seen[asked:]])
    assert lanes[:6] == [["dedicated", "serverless"]] * 5 + [["serverless"]]

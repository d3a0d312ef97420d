"""The Decider's own promises, beside equality with `decide` (test_properties): what it keeps, and its bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from functions.core.decide import decide
from functions.core.decider import _MOST, Decider
from functions.core.outlook import holds_until
from functions.core.policy import Policy
from functions.core.request import Identity
from functions.core.snapshot import LaneState, Snapshot
from functions.core.topology import Topology
from tests.unit.core.builders import (
    BATCH,
    DEDICATED,
    IDLE,
    MODEL,
    NOW,
    SERVERLESS,
    lane,
    points,
    policy,
    request,
    rules,
    snapshot,
    topology,
)


def test_requests_of_one_shape_share_one_decision() -> None:
    """Sizes between two limits, other ids, other headers that nobody looks at: the very same object."""
    decider = Decider(policy(), topology())
    first = decider.decide(request(), IDLE, NOW + 20)
    alike = request(id="r-2", bytes=99, headers={"user-agent": "x", "idempotency-key": "k"})
    assert decider.decide(alike, IDLE, NOW + 21) is first
    assert decider.decide(request(bytes=5_000_000), IDLE, NOW + 21) is not first


def test_a_new_snapshot_is_looked_at() -> None:
    """An open breaker counts at once."""
    decider = Decider(policy(), topology())
    assert decider.decide(request(), IDLE, NOW).order[0] == "dedicated"
    broken = snapshot(dedicated=lane(breaker="open"), serverless=lane())
    assert decider.decide(request(), broken, NOW).order == ("serverless",)
    assert decider.decide(request(), IDLE, NOW).order[0] == "dedicated"


def test_an_invalid_idempotency_key_is_400_and_not_kept() -> None:
    """The next request of the shape is served."""
    decider = Decider(policy(), topology())
    bad = request(headers={"idempotency-key": "\x07"})
    refused = decider.decide(bad, IDLE, NOW)
    assert refused == decide(bad, IDLE, policy(), topology(), NOW)
    assert refused.shed is not None
    assert decider.decide(request(), IDLE, NOW).shed is None


def test_what_callers_choose_cannot_fill_the_memory() -> None:
    """Ever new paths and keys: what is kept stays bounded, and the answers right."""
    decider = Decider(policy(), topology())
    base = request()
    for i in range(_MOST + 10):
        asked = replace(base, path=f"/{i}", identity=Identity("api_key", key_id=f"demo-{i}"))
        assert decider.decide(asked, IDLE, NOW).tenant == "demo"
        assert len(decider._shapes) <= _MOST
        assert len(decider._callers) <= _MOST
    assert decider.decide(base, IDLE, NOW).order == ("dedicated", "serverless")


CPU = {"cpu_percent": points(50.0, 60.0)}


@pytest.mark.parametrize(
    ("seen", "after_s", "until_s"),
    [
        (Snapshot(None), 20, float("inf")),
        (Snapshot(NOW - 100), 20, 500),
        (snapshot(taken_at=NOW + 900, dedicated=LaneState(CPU)), -20, 0),
        (snapshot(taken_at=NOW + 900, dedicated=LaneState(CPU)), 20, 480),
        (snapshot(taken_at=NOW + 900, dedicated=LaneState(CPU)), 500, 540),
        (snapshot(taken_at=NOW - 9_000, dedicated=LaneState(CPU)), 1_000, 3_480),
        (snapshot(taken_at=NOW - 9_000, dedicated=LaneState(CPU)), 3_599, 3_600),
    ],
)
def test_an_outlook_holds_until_a_point_finishes_or_grows_old(seen: Snapshot, after_s: float, until_s: float) -> None:
    """The next edge, less a millisecond."""
    found = holds_until(MODEL, seen, policy(), topology(), NOW + after_s)
    assert found == pytest.approx(NOW + until_s - 0.001, abs=1e-4)


def test_on_an_edge_it_holds_for_that_moment_only() -> None:
    """Within a millisecond of an edge nothing is promised."""
    seen = snapshot(dedicated=LaneState(CPU))
    for now in (NOW - 0.0005, NOW, NOW + 0.0005):
        assert holds_until(MODEL, seen, policy(), topology(), now) == now


def test_with_a_clock_it_holds_until_the_minute_turns() -> None:
    """Only where a condition looks at it; outside the calendar not at all."""
    timed = policy(rules=rules(({"clock": {"from": "01:00", "to": "02:00"}}, ["serverless"])))
    assert holds_until(MODEL, Snapshot(NOW), timed, topology(), NOW + 20) == pytest.approx(NOW + 60 - 0.001, abs=1e-4)
    assert holds_until(MODEL, Snapshot(NOW), timed, topology(), 1e300) == 1e300
    assert holds_until(MODEL, Snapshot(NOW), policy(), topology(), NOW) > NOW + 500


def test_headers_that_nobody_looks_at_are_told_from_those_that_decide() -> None:
    """Wishes, claims, the idempotency key, and what this policy's rules name."""
    named = policy(rules=rules(({"header": {"x-canary": "yes"}}, ["serverless"])))
    deciding = {"x-canary": "no", "idempotency-key": "k", "prefer": "", "x-inferlane-tier": "vip"}
    assert Decider(named, topology()).looked_at({**deciding, "user-agent": "x"}) == deciding
    assert "x-canary" not in Decider(policy(), topology()).looked_at(deciding)


LOOKS_AT_EVERYTHING = policy(
    routes=[
        {"path": "/v1/chat/completions", "model": {"from_body": "model"}},
        {"path": "/later", "model": MODEL, "prefer": "async"},
    ],
    signals={"hot": {"lane": "dedicated", "metric": "cpu_percent", "above": 85, "for": "2m"}},
    rules=[
        {"id": "canary", "when": {"header": {"x-canary": "yes"}}, "order": ["serverless"]},
        {"id": "beta", "when": {"any": [{"header": {"x-beta": "1"}}, {"tenant": "acme"}]}, "order": ["batch"]},
        {"id": "exact", "when": {"bytes": {"at_least": 100, "at_most": 100}}, "order": ["serverless", "batch"]},
        {"id": "open", "when": {"bytes": {"above": 200.5, "below": 300}}, "order": ["dedicated"]},
        {"id": "images", "when": {"content_type": "image/*"}, "order": ["dedicated", "batch"]},
        {"id": "half", "when": {"tier": "standard"}, "split": {"share": "50%", "order": ["serverless"]}},
        {"id": "tight", "when": {"deadline_ms": {"below": 100}}, "order": ["dedicated"]},
        {"id": "low", "when": {"priority": "low"}, "order": ["batch", "serverless"]},
        {"id": "shed", "when": {"signal": "hot"}, "order": ["serverless", "dedicated"]},
    ],
)
FULL = topology(
    dedicated=DEDICATED, serverless={**SERVERLESS, "content_types": ["application/*", "text/plain"]}, batch=BATCH
)


def each(part: str, *values: object) -> list[dict[str, object]]:
    return [{part: value} for value in values]


def headers(name: str, *values: str) -> list[dict[str, object]]:
    return each("headers", *({name: value} for value in values))


def identities(kind: str, key: str, *values: object) -> list[dict[str, object]]:
    return each("identity", *({"kind": kind, key: value} for value in values))


DIFFERENT: list[dict[str, object]] = [
    {},
    *each("path", "/later", "/nowhere", "/v1/chat/completions"),
    {"path": "/v1/chat/completions", "model": MODEL},
    {"path": "/v1/chat/completions", "model": "x"},
    *headers("x-inferlane-priority", "low", "normal", "high", "urgent"),
    *headers("x-inferlane-deadline-ms", "99", "100", "soon"),
    *headers("prefer", "respond-async", "wait=1", "="),
    *headers("x-inferlane-tier", "x"),
    *headers("x-inferlane-tenant", "x"),
    *headers("x-inferlane-cost-center", "x"),
    *headers("x-canary", "yes", "no"),
    *headers("x-beta", "1"),
    *each("bytes", 99, 100, 101, 200, 201, 299, 300, 4_194_304, 4_194_305, 6_291_456, 6_291_457),
    *each("bytes", 104_857_600, 104_857_601),
    *each("content_type", None, "image/png", "Text/Plain; charset=utf-8", "text/html"),
    *identities("api_key", "key_id", "vip-1", "vip-2", "stranger"),
    *identities("iam", "arn", "arn:aws:iam::1:role/ops-x", "arn:aws:iam::1:role/guest"),
    *identities("jwt", "claims", {"client_id": "acme"}, {"client_id": "x"}, {}),
    {"identity": {"kind": "anonymous"}},
]


def test_requests_that_differ_in_one_thing_are_told_apart() -> None:
    """In whichever order they come, each gets what `decide` gives it, at once and again."""
    asked = [request(**parts) for parts in DIFFERENT]
    right = [decide(one, IDLE, LOOKS_AT_EVERYTHING, FULL, NOW + 1) for one in asked]
    for which in (range(len(asked)), reversed(range(len(asked)))):
        decider = Decider(LOOKS_AT_EVERYTHING, FULL)
        for i in (*which, *range(len(asked))):
            assert decider.decide(asked[i], IDLE, NOW + 1) == right[i], DIFFERENT[i]


def test_of_one_shape_each_request_falls_on_its_own_side_of_a_split() -> None:
    """By its idempotency key, else by its id; worked out once for all of them."""
    decider = Decider(LOOKS_AT_EVERYTHING, FULL)
    asked = [request(id=f"r-{i}") for i in range(40)]
    asked += [request(headers={"idempotency-key": f"r-{i}"}) for i in range(40)]
    found = [decider.decide(one, IDLE, NOW + 1) for one in asked]
    assert found == [decide(one, IDLE, LOOKS_AT_EVERYTHING, FULL, NOW + 1) for one in asked]
    assert found[:40] == found[40:]
    assert {decision.rule for decision in found} == {"half", "default"}
    assert len({id(decision) for decision in found}) == 2


def test_what_is_kept_is_worked_out_anew_when_its_time_is_over() -> None:
    """A point that finishes turns the latch; before it and after it the decision is the same object."""
    seen = snapshot(dedicated=lane({"cpu_percent": points(90.0, 90.0, now=NOW + 30)}, in_flight=0), serverless=lane())
    decider, asked = Decider(LOOKS_AT_EVERYTHING, FULL), request(identity={"kind": "api_key", "key_id": "vip-1"})
    times = (NOW + 1, NOW + 20, NOW + 29.99, NOW + 30.01, NOW + 31, NOW + 1)
    found = [decider.decide(asked, seen, now) for now in times]
    assert [decision.rule for decision in found] == ["default", "default", "default", "shed", "shed", "default"]
    assert found[0] is found[1] is found[2]
    assert found[3] is found[4]


def test_a_refusal_is_kept_for_good() -> None:
    """It depends on neither lane nor moment; a new snapshot forgets it all the same."""
    decider, asked = Decider(policy(), topology()), request(path="/nowhere")
    first = decider.decide(asked, IDLE, NOW)
    assert decider.decide(asked, IDLE, NOW - 10**9) is first
    assert decider.decide(asked, IDLE, NOW + 10**9) is first


def test_callers_are_identified_once() -> None:
    """Two of one key are the same caller, two of different claims are not."""
    decider = Decider(policy(), topology())
    for claims in ({"client_id": "acme", "sub": "1"}, {"client_id": "acme", "sub": "2"}, {"client_id": "x"}):
        asked = request(identity={"kind": "jwt", "claims": claims})
        expected = "acme" if claims["client_id"] == "acme" else "anonymous"
        assert decider.decide(asked, IDLE, NOW).tenant == expected
    assert len(decider._callers) == 2


@pytest.mark.parametrize(
    ("by", "on"),
    [
        (policy(rules=rules(({"content_type": "image/*"}, ["serverless"]))), topology()),
        (policy(), topology(dedicated={**DEDICATED, "content_types": ["text/*"]}, serverless=SERVERLESS)),
    ],
    ids=["a rule", "a lane"],
)
def test_the_content_type_counts_where_a_rule_or_a_lane_looks_at_it(by: Policy, on: Topology) -> None:
    """Either is enough."""
    decider = Decider(by, on)
    for content_type in ("text/plain", "image/png", "text/plain"):
        asked = request(content_type=content_type)
        assert decider.decide(asked, IDLE, NOW) == decide(asked, IDLE, by, on, NOW)
    assert decider.decide(request(content_type="image/png"), IDLE, NOW).order == ("serverless",)


def test_where_nobody_looks_at_the_content_type_it_makes_no_shape() -> None:
    """The very same decision."""
    decider = Decider(policy(), topology())
    first = decider.decide(request(content_type="text/plain"), IDLE, NOW)
    assert decider.decide(request(content_type="image/png"), IDLE, NOW) is first


def test_shapes_of_one_moment_share_what_is_believed_of_the_lanes() -> None:
    """Worked out once, while it holds."""
    decider = Decider(policy(), topology())
    first, second = (decider.decide(request(bytes=size), IDLE, NOW) for size in (1, 5_000_000))
    assert first.order != second.order
    assert first.predicted is second.predicted


def test_a_stopped_experiment_takes_nothing_here_either() -> None:
    """As the snapshot says."""
    trial = {"id": "t", "share": "100%", "order": ["serverless"], "guard": {"max_late_rate": "1%"}}
    decider = Decider(policy(experiments=[trial]), topology())
    assert decider.decide(request(), IDLE, NOW).experiment == "t"
    stopped = replace(IDLE, stopped=frozenset({"t"}))
    assert decider.decide(request(), stopped, NOW).experiment is None

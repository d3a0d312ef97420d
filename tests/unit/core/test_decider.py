"""The Decider's own promises, beside equality with `decide` (test_properties): what it keeps, and its bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from functions.core.decide import decide
from functions.core.decider import _MOST, Decider
from functions.core.outlook import holds_until
from functions.core.request import Identity
from functions.core.snapshot import LaneState, Snapshot
from tests.unit.core.builders import IDLE, MODEL, NOW, lane, points, policy, request, rules, snapshot, topology


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

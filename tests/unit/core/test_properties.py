"""What must hold of every decision and plan."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from functions.core.decide import decide
from functions.core.decision import Decision
from functions.core.estimates import Prediction
from functions.core.outcome import FINAL, Kind, failure_of
from functions.core.plan import attempt_budget_s, usable_s
from functions.core.request import ANONYMOUS, Identity, Priority, Request
from functions.core.snapshot import LaneState, ModelState, Series, Snapshot
from functions.core.topology import LANES, SyncLane
from tests.unit.core.builders import BATCH, DEDICATED, MODEL, NOW, PATH, SERVERLESS, policy, rules, topology

FULL = topology(dedicated=DEDICATED, serverless=SERVERLESS, batch=BATCH)
TOPOLOGIES = [FULL, topology(), topology(serverless=SERVERLESS)]
CONDITIONS = st.sampled_from(
    [
        {},
        {"priority": "low"},
        {"signal": "hot"},
        {"not": {"signal": "hot"}},
        {"load": {"lane": "dedicated", "above": 0.8}},
        {"bytes": {"above": "1MB"}},
        {"deadline_ms": {"below": 100}},
    ]
)
ORDERS = st.lists(st.sampled_from(LANES), min_size=1, max_size=4, unique=True)
SIGNALS = {
    "hot": {
        "lane": "dedicated",
        "metric": "cpu_percent",
        "above": 85,
        "for": "2m",
        "until_below": 70,
        "until_for": "2m",
    }
}
requests = st.builds(
    Request,
    id=st.text(max_size=5),
    method=st.sampled_from(["GET", "POST"]),
    path=st.sampled_from([PATH, "/", "", "/v1/models/x/invocations", "/realtime/chat"]),
    headers=st.dictionaries(
        st.sampled_from(["x-inferlane-priority", "x-inferlane-deadline-ms", "prefer", "x-other"]),
        st.sampled_from(["low", "high", "50", "99999", "", "respond-async", "☃"]),
    ),
    content_type=st.sampled_from([None, "application/json", "image/png", ""]),
    bytes=st.integers(0, 10_000_000),
    identity=st.sampled_from(
        [ANONYMOUS, Identity("api_key", key_id="demo-1"), Identity("api_key", key_id="vip-1"), Identity("iam", arn="x")]
    ),
)
series = st.builds(
    lambda values, period: Series.of([(NOW - i * period, value) for i, value in enumerate(values)], period),
    st.lists(st.floats(0, 1e6), max_size=8),
    st.sampled_from([10.0, 60.0]),
)
lanes = st.builds(
    LaneState,
    series=st.dictionaries(
        st.sampled_from(["cpu_percent", "concurrency", "model_latency_p99_ms", "model_latency_p50_ms", "invocations"]),
        series,
    ),
    instances=st.none() | st.integers(0, 5),
    in_flight=st.none() | st.integers(0, 100),
    breaker=st.sampled_from(["closed", "open", "half_open"]),
)
snapshots = st.builds(
    lambda age, found: Snapshot(age if age is None else NOW - age, {MODEL: ModelState(found)}),
    st.none() | st.floats(-100, 2000),
    st.dictionaries(st.sampled_from(["dedicated", "serverless"]), lanes),
)
policies = st.builds(
    lambda asked, order: policy(signals=SIGNALS, rules=rules(*asked), defaults={"order": order}),
    st.lists(st.tuples(CONDITIONS, ORDERS), max_size=4),
    ORDERS,
)


@st.composite
def decisions(draw: st.DrawFn) -> tuple[Request, Decision, int]:
    asked, which = draw(requests), draw(st.integers(0, len(TOPOLOGIES) - 1))
    seen, by = draw(snapshots), draw(policies)
    decision = decide(asked, seen, by, TOPOLOGIES[which], NOW)
    assert decide(asked, seen, by, TOPOLOGIES[which], NOW) == decision
    return asked, decision, which


@given(decisions())
def test_decide_is_total_deterministic_and_complete(drawn: tuple[Request, Decision, int]) -> None:
    """Never an exception; the same twice; lanes exactly when nothing is shed; every other lane has a reason."""
    _, decision, which = drawn
    assert bool(decision.order) == (decision.shed is None)
    if decision.deadline_ms is None:
        return
    reasons = {item.lane: item.reason for item in decision.rejected}
    assert len(reasons) == len(decision.rejected)
    assert all(reasons.values())
    assert not set(reasons) & set(decision.order)
    assert set(TOPOLOGIES[which].models[MODEL]) <= set(reasons) | set(decision.order)
    assert 0 < decision.deadline_ms <= 29_000


@given(decisions())
def test_a_tier_never_grants_above_its_cap(drawn: tuple[Request, Decision, int]) -> None:
    """Whatever is asked."""
    _, decision, _ = drawn
    cap = {"vip": Priority.HIGH, "standard": Priority.NORMAL, "internal": Priority.LOW}
    if decision.granted is not None and decision.tier is not None:
        assert decision.granted <= cap[decision.tier]
        assert decision.asked is None or decision.granted <= decision.asked


SYNC: list[SyncLane] = list(FULL.sync_lanes(MODEL).values())
predictions = st.dictionaries(
    st.sampled_from(["dedicated", "serverless"]),
    st.builds(Prediction, st.none() | st.floats(0, 1e6), st.none()),
)


@given(
    st.floats(0.001, 29),
    predictions,
    st.lists(st.sampled_from(SYNC), min_size=1, max_size=4),
    st.lists(st.floats(0, 1), min_size=4, max_size=4),
)
def test_no_plan_exceeds_the_deadline(
    deadline_s: float, predicted: dict[str, Prediction], order: list[SyncLane], used: list[float]
) -> None:
    """Attempts that take any part of their budgets, one after the other, end before the deadline."""
    left = usable_s(deadline_s)
    assert 0 < left < deadline_s
    for i in range(len(order)):
        budget = attempt_budget_s(left, order[i:], predicted)
        assert 0 <= budget <= left
        assert budget <= order[i].timeout_s
        left -= budget * used[i]
    assert left >= -1e-9


@given(st.floats(1, 29), predictions, st.lists(st.sampled_from(SYNC), min_size=2, max_size=4))
def test_every_fallback_keeps_time_when_the_lanes_before_it_hang(
    deadline_s: float, predicted: dict[str, Prediction], order: list[SyncLane]
) -> None:
    """A lane that hangs takes at most what is left after the others' reserve, and never less than its share."""
    left = usable_s(deadline_s)
    budget = attempt_budget_s(left, order, predicted)
    assert budget >= min(left / len(order), order[0].timeout_s) - 1e-9
    first = predicted.get(order[1].name)
    reserve_s = 1.0 if first is None or first.p99_ms is None else first.p99_ms / 1000
    assert left - budget >= min(reserve_s, left / len(order)) - 1e-9


def test_a_lane_without_time_is_not_begun() -> None:
    """Nothing left: no attempt."""
    assert attempt_budget_s(0.004, SYNC, {}) == 0
    assert attempt_budget_s(-1.0, SYNC, {}) == 0


@given(st.lists(st.sampled_from([kind for kind in Kind if kind not in FINAL]), max_size=4))
def test_every_set_of_failures_has_an_answer(kinds: list[Kind]) -> None:
    """Always a gateway status; a Retry-After exactly where coming back helps; order does not matter."""
    failure = failure_of(kinds)
    assert failure.status in (413, 429, 502, 503, 504)
    assert (failure.retry_after_s is not None) == (failure.status in (429, 503))
    assert failure_of(reversed(kinds)) == failure

"""What must hold of every decision and plan."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from functions.core.decide import decide
from functions.core.decider import Decider
from functions.core.decision import Decision
from functions.core.estimates import Prediction
from functions.core.outcome import FINAL, Kind, failure_of
from functions.core.plan import attempt_budget_s, usable_s
from functions.core.policy import Policy
from functions.core.policy_parser import parse_policy, problems
from functions.core.request import ANONYMOUS, Identity, Priority, Request
from functions.core.snapshot import LaneState, ModelState, Series, Snapshot
from functions.core.topology import LANES, SyncLane, Topology
from tests.unit.core.builders import BATCH, DEDICATED, MODEL, NOW, PATH, SERVERLESS, policy_document, topology

FULL = topology(dedicated=DEDICATED, serverless=SERVERLESS, batch=BATCH)
PICKY = topology(dedicated={**DEDICATED, "content_types": ["image/*"], "max_instances": 1}, serverless=SERVERLESS)
TOPOLOGIES = [FULL, topology(), topology(serverless=SERVERLESS), PICKY]
LEAVES = [
    {"priority": "low"},
    {"signal": "hot"},
    {"load": {"lane": "dedicated", "above": 0.8}},
    {"load": {"lane": "serverless", "below": 0.5}},
    {"bytes": {"above": "1MB"}},
    {"bytes": {"at_most": 812.5}},
    {"deadline_ms": {"below": 100}},
    {"content_type": "image/*"},
    {"header": {"x-other": "l*"}},
    {"tenant": "demo"},
    {"tier": "vip"},
    {"model": MODEL},
    {"path": "/v1/**"},
    {"breaker": {"lane": "serverless", "is": "open"}},
    {"clock": {"from": "22:00", "to": "05:30"}},
    {"weekday": ["mon", "fri"]},
]
CONDITIONS: st.SearchStrategy[dict[str, object]] = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.builds(lambda parts: {"all": parts}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda parts: {"any": parts}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda part: {"not": part}, inner),
    ),
    max_leaves=4,
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
    path=st.sampled_from(
        [PATH, "/", "", "/v1/models/x/invocations", "/realtime/chat", "/later", "/v1/chat/completions"]
    ),
    headers=st.dictionaries(
        st.sampled_from(
            [
                "x-inferlane-priority",
                "x-inferlane-deadline-ms",
                "prefer",
                "x-other",
                "idempotency-key",
                "x-inferlane-tier",
            ]
        ),
        st.sampled_from(["low", "high", "50", "400000", "99999", "", "respond-async", "☃"]),
    ),
    content_type=st.sampled_from([None, "application/json", "image/png", "Image/PNG; q=1", ""]),
    bytes=st.integers(0, 10_000_000) | st.sampled_from([812, 813, 1_000_000, 1_000_001, 4_194_304, 4_194_305]),
    identity=st.sampled_from(
        [
            ANONYMOUS,
            Identity("api_key", key_id="demo-1"),
            Identity("api_key", key_id="vip-1"),
            Identity("iam", arn="x"),
            Identity("jwt", claims={"client_id": "acme", "sub": "1"}),
        ]
    ),
    model=st.sampled_from([None, MODEL, "x"]),
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
    lambda age, found, stopped: Snapshot(
        age if age is None else NOW - age, {MODEL: ModelState(found)}, stopped=stopped
    ),
    st.none() | st.floats(-100, 2000),
    st.dictionaries(st.sampled_from(["dedicated", "serverless", "batch"]), lanes),
    st.sampled_from([frozenset(), frozenset({"e0"})]),
)
SHARES = st.integers(0, 100).map("{}%".format)
ROUTES = [
    {"path": "/realtime/chat", "model": MODEL, "within": "10m", "capture": {"share": "50%", "redact": ["/a/*/b"]}},
    {"path": "/later", "model": MODEL, "prefer": "async", "capture": {"share": "1%", "redact": "body"}},
    {"path": "/v1/chat/completions", "model": {"from_body": "model"}},
]


@st.composite
def policy_documents(draw: st.DrawFn) -> dict[str, object]:
    """A few rules, some of which take a share, and perhaps an experiment; nearly always valid."""
    found: list[dict[str, object]] = []
    for i, when in enumerate(draw(st.lists(CONDITIONS, max_size=4, unique_by=repr))):
        order = draw(ORDERS)
        taken = {"split": {"share": draw(SHARES), "order": order}} if draw(st.booleans()) else {"order": order}
        within = draw(st.sampled_from([{}, {"within": "2h"}]))
        found.append({"id": f"r{i}", "when": when, "hedge": draw(st.booleans()), **taken, **within})
    trials = [
        {"id": f"e{i}", "when": when, "share": draw(SHARES), "order": draw(ORDERS), "guard": {"max_error_rate": "1%"}}
        for i, when in enumerate(draw(st.lists(CONDITIONS, max_size=1)))
    ]
    return policy_document(
        signals=SIGNALS,
        rules=found,
        experiments=trials,
        routes=ROUTES,
        defaults={"order": draw(ORDERS)},
        timezone=draw(st.sampled_from(["UTC", "Asia/Shanghai", "Asia/Kathmandu", "America/St_Johns"])),
        objective=draw(st.sampled_from(["rules", "cost"])),
    )


policies = policy_documents().filter(lambda document: not problems(document)).map(parse_policy)


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
    assert decision.async_ == (decision.order[:1] == ("batch",))
    assert (decision.within_s is not None) == ("batch" in decision.order)
    if decision.granted is None:
        return
    assert (decision.deadline_ms is None) == decision.async_
    reasons = {item.lane: item.reason for item in decision.rejected}
    assert len(reasons) == len(decision.rejected)
    assert all(reasons.values())
    assert not set(reasons) & set(decision.order)
    assert set(TOPOLOGIES[which].models[MODEL]) <= set(reasons) | set(decision.order)
    assert decision.deadline_ms is None or 0 < decision.deadline_ms <= 29_000


@given(decisions())
def test_a_tier_never_grants_above_its_cap(drawn: tuple[Request, Decision, int]) -> None:
    """Whatever is asked."""
    _, decision, _ = drawn
    cap = {"vip": Priority.HIGH, "standard": Priority.NORMAL, "internal": Priority.LOW}
    if decision.granted is not None and decision.tier is not None:
        assert decision.granted <= cap[decision.tier]
        above = decision.asked is not None and decision.asked > cap[decision.tier]
        assert ("priority" in decision.claims_refused) == above
        assert decision.asked is None or decision.granted <= decision.asked


TIMES = st.floats(-4_000, 4_000) | st.sampled_from([0.0, 30.0, 59.9995, 60.0, 60.0001, 119.9, 600.0, 3600.0, 3660.0])
ODD_TIMES = st.sampled_from([float("inf"), float("-inf"), float("nan"), 0.0, -1e12, 1e18])


@settings(max_examples=200, deadline=None)
@given(
    policies,
    st.lists(snapshots, min_size=1, max_size=2),
    st.sampled_from(TOPOLOGIES),
    st.lists(st.tuples(requests, TIMES.map(NOW.__add__) | ODD_TIMES, st.integers(0, 1)), min_size=1, max_size=12),
)
def test_the_decider_gives_what_decide_gives(
    by: Policy, seen: list[Snapshot], on: Topology, calls: list[tuple[Request, float, int]]
) -> None:
    """Whatever it has kept of earlier requests, times and snapshots."""
    decider = Decider(by, on)
    for asked, now, which in calls:
        snapshot = seen[which % len(seen)]
        for same in (asked, replace(asked, id=asked.id + "x")):
            assert decider.decide(same, snapshot, now) == decide(same, snapshot, by, on, now)


@settings(max_examples=50, deadline=None)
@given(
    policies, snapshots, st.sampled_from(TOPOLOGIES), st.lists(requests, min_size=1, max_size=3), st.integers(1, 600)
)
def test_what_the_decider_keeps_it_does_not_keep_too_long(
    by: Policy, seen: Snapshot, on: Topology, asked: list[Request], step_s: int
) -> None:
    """Through an hour of points that finish and grow old, at any pace, it never falls behind."""
    decider = Decider(by, on)
    for i in range(40):
        now = NOW - 700 + i * step_s / 3
        for request in asked:
            assert decider.decide(request, seen, now) == decide(request, seen, by, on, now)


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

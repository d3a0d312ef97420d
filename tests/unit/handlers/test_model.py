"""Breaker, budgets and executor together, over a fake clock, under random sequences of faults (a model-based test).

Requests may overlap: a lane's behaviour may let another request come in while its own attempt is out, as two threads
of one process would. After every step the invariants of the design's §5 must hold.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from functions.core.breaker import RULES
from functions.core.budgets import HEDGE_SHARE
from functions.core.estimates import Prediction
from functions.core.outcome import FINAL, Kind, Outcome
from functions.core.snapshot import Snapshot
from functions.core.topology import SyncLane
from functions.execute import Execution, Payload, execute
from functions.health import Health
from tests.unit.core.builders import IDLE, MODEL, NOW, topology
from tests.unit.handlers.fakes import FakeClock, FakeMarks, FakeRace

LANES = topology().sync_lanes(MODEL)
PAYLOAD = Payload(b"body", None, None, {})
COUNTED = {Kind.UNREACHABLE, Kind.UPSTREAM_ERROR, Kind.LOST, Kind.TIMEOUT}
FAULTS = [kind for kind in Kind if kind not in {*FINAL, Kind.ABANDONED}]
PREDICTED = {name: Prediction(p99_ms, None) for name, p99_ms in (("dedicated", 200.0), ("serverless", 900.0))}

faults = st.one_of(
    st.tuples(st.just(Kind.OK), st.floats(0.001, 2.0)),
    st.tuples(st.just(Kind.OK), st.floats(0.001, 60.0)),
    st.tuples(st.sampled_from([Kind.CALLER_ERROR, *FAULTS]), st.floats(0.0, 3.0)),
)


@dataclass
class Lanes:
    """The invoker: does what each lane is told, and watches the executor while it does."""

    clock: FakeClock
    health: Health
    told: dict[str, tuple[Kind, float]] = field(default_factory=dict)
    deadlines: list[float] = field(default_factory=list)
    racing: list[bool] = field(default_factory=list)
    """Of each request under way: attempts that race are laid side by side by turning the clock back (`FakeRace`), so
    no other request may come in during one."""
    tried: list[list[str]] = field(default_factory=list)
    probes: Counter[str] = field(default_factory=Counter)
    outcomes: defaultdict[str, set[Kind]] = field(default_factory=lambda: defaultdict(set))
    """Since the last look."""
    poison: bool = False
    """The requests make any container fail, however well its lane is."""
    blamed: set[str] = field(default_factory=set)
    """Lanes whose container failed on a request that another lane answered; since the last look."""
    overlap: list[tuple[str, float, bool]] = field(default_factory=list)
    """Requests that come in during the next attempts: (order, deadline, hedge)."""

    def invoke(
        self,
        lane: SyncLane,
        body: bytes,
        content_type: str | None,
        accept: str | None,
        timeout_s: float,
        headers: Mapping[str, str],
    ) -> Outcome:
        begun = self.clock.passed
        assert begun < self.deadlines[-1], "no attempt begins after the deadline"
        assert begun + timeout_s <= self.deadlines[-1] + 1e-9, "no attempt may outlast the deadline"
        assert lane.name not in self.tried[-1], "what may have run is not repeated on the same lane"
        self.tried[-1].append(lane.name)
        state = breaker_states(self.health, self.clock)[lane.name]
        assert state != "open", "an open lane is not tried"
        self.probes[lane.name] += state == "half_open"
        assert self.probes[lane.name] <= 1, "exactly one probe at a time"
        kind, took_s = self.told.get(lane.name, (Kind.OK, 0.05))
        kind = Kind.MODEL_ERROR if self.poison and kind in FINAL else kind
        if self.overlap and not any(self.racing):
            order, deadline_s, hedge = self.overlap.pop()
            request(self, order, min(deadline_s, timeout_s), hedge=hedge)
        self.clock.advance(max(0.0, begun + min(took_s, timeout_s) - self.clock.passed))
        self.probes[lane.name] -= state == "half_open"
        kind = kind if took_s <= timeout_s else Kind.TIMEOUT
        self.outcomes[lane.name].add(kind)
        return Outcome(kind, 200)


def breaker_states(health: Health, clock: FakeClock) -> dict[str, str]:
    seen: Snapshot = health.seen(IDLE, clock.now())
    return {name: seen.lane(MODEL, name).breaker for name in LANES}


def request(lanes: Lanes, order: str, deadline_s: float, *, hedge: bool) -> Execution:
    """One request, as the router makes it."""
    clock = lanes.clock
    began = clock.passed
    if hedge:
        lanes.health.hedge_requested()
    lanes.deadlines.append(began + deadline_s)
    lanes.tried.append([])
    lanes.racing.append(hedge)
    chosen = [LANES["dedicated"], LANES["serverless"]][:: 1 if order == "dedicated" else -1]
    states = breaker_states(lanes.health, clock)
    done = execute(
        [lane for lane in chosen if states[lane.name] != "open"],
        PAYLOAD,
        PREDICTED,
        began=began,
        deadline=began + deadline_s,
        invoker=lanes,
        clock=clock,
        watch=lanes.health.watch(MODEL, PREDICTED),
        race=(lambda: FakeRace(clock)) if hedge else None,
    )
    assert clock.passed <= began + deadline_s + 1e-9, "the caller is answered in time"
    assert len({attempt.lane for attempt in done.attempts}) == len(done.attempts)
    assert (done.outcome is None) == (done.served is None)
    assert sum(attempt.hedge for attempt in done.attempts) <= 1
    for attempt in done.attempts:
        assert (attempt.kind is Kind.ABANDONED) <= (done.served is not None)
    if done.outcome is not None and done.outcome.kind is Kind.OK:
        lanes.blamed |= {attempt.lane for attempt in done.attempts if attempt.kind is Kind.MODEL_ERROR}
    lanes.deadlines.pop()
    lanes.tried.pop()
    lanes.racing.pop()
    return done


class Machine(RuleBasedStateMachine):
    """Random requests, faults, overlaps, other instances' marks and time."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock(NOW)
        self.marks = FakeMarks()
        self.health = Health(self.marks, self.clock)
        self.lanes = Lanes(self.clock, self.health)
        self.hedge_requests = self.hedges = 0
        self.before = breaker_states(self.health, self.clock)

    @rule(lane=st.sampled_from(sorted(LANES)), fault=faults)
    def lane_becomes(self, lane: str, fault: tuple[Kind, float]) -> None:
        self.lanes.told[lane] = fault

    @rule(
        order=st.sampled_from(sorted(LANES)),
        deadline_s=st.floats(0.001, 29),
        hedge=st.booleans(),
        times=st.integers(1, 12),
        overlap=st.lists(st.tuples(st.sampled_from(sorted(LANES)), st.floats(0.01, 5), st.booleans()), max_size=3),
    )
    def requests_come(
        self, order: str, deadline_s: float, hedge: bool, times: int, overlap: list[tuple[str, float, bool]]
    ) -> None:
        self.lanes.overlap = list(overlap)
        for _ in range(times):
            done = request(self.lanes, order, deadline_s, hedge=hedge)
            self.hedge_requests += hedge
            self.hedges += sum(attempt.hedge for attempt in done.attempts)
        self.hedge_requests += sum(item[2] for item in overlap)
        self.lanes.overlap = []

    @rule(order=st.sampled_from(sorted(LANES)), hedge=st.booleans(), times=st.integers(1, 30))
    def poison_comes(self, order: str, hedge: bool, times: int) -> None:
        """What no container can digest: by `blamed`, the invariant below lets no breaker turn on its account."""
        self.lanes.poison = True
        self.requests_come(order, 29.0, hedge, times, [])
        self.lanes.poison = False
        assert not self.lanes.blamed

    @rule(seconds=st.sampled_from([0.1, 1.0, RULES.open_s, 31.0, 61.0, 400.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(lane=st.sampled_from(sorted(LANES)), ago=st.lists(st.floats(-2, 40), max_size=3))
    def others_mark(self, lane: str, ago: list[float]) -> None:
        self.marks.others = {(MODEL, lane): [self.clock.now() - each for each in ago]}

    @invariant()
    def hedges_stay_within_the_budget(self) -> None:
        assert self.hedges <= HEDGE_SHARE * self.hedge_requests + 1e-6

    @invariant()
    def nothing_stays_in_flight(self) -> None:
        seen = self.health.seen(IDLE, self.clock.now())
        assert all((seen.lane(MODEL, name).in_flight or 0) == 0 for name in LANES)

    @invariant()
    def a_breaker_opens_by_failures_or_marks_and_closes_by_an_answer(self) -> None:
        """Between any two looks from outside, whatever came between."""
        states = breaker_states(self.health, self.clock)
        for lane, after in states.items():
            kinds, before = self.lanes.outcomes[lane], self.before[lane]
            failed = kinds & COUNTED or lane in self.lanes.blamed
            if after == "closed" and before != "closed":
                assert kinds & FINAL, "only an answered probe closes"
            if before == "closed" and after != "closed":
                assert failed or self.marks.others.get((MODEL, lane))
            if before == "half_open" and after == "open":
                assert failed, "only a failed probe opens again"
        self.before = states
        self.lanes.blamed.clear()
        self.lanes.outcomes.clear()


Machine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestMachine = Machine.TestCase

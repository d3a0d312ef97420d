"""What this process knows of its lanes: requests in flight, breakers, latencies, and the budgets for extra attempts.

Own knowledge is merged into the shared snapshot before `decide` sees it: what is in flight here counts at least, and
a lane's breaker is this instance's own in the light of the others' marks. A snapshot to which nothing is added stays
the same object, so that what `decide` has worked out for it holds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Final

from functions.core.breaker import Breaker, Verdict, merged, verdict
from functions.core.budgets import HEDGE_SHARE, Budget
from functions.core.estimates import Prediction
from functions.core.outcome import Kind
from functions.core.receipt import Attempt
from functions.core.sketch import Sketch
from functions.core.snapshot import Breaker as State
from functions.core.snapshot import LaneState, ModelState, Snapshot
from functions.execute import Ticket
from functions.ports import Clock, FailureMarks, LaneKey

_ENOUGH: Final = 20.0
"""Durations that a P95 must stand for: with fewer, none lies beyond it."""
_TIMED: Final = frozenset({Kind.OK, Kind.TIMEOUT, Kind.ABANDONED})
"""Whose durations say how long the lane works: an error may come at once. A timeout's, and an abandoned attempt's, is
a lower bound, without which the slow ones would go missing."""
_CLOSED: Final = Breaker()


class Alone:
    """No other instances to share marks with (see `ports.FailureMarks`)."""

    def marks(self, now: float, *, urgent: bool) -> Mapping[LaneKey, Sequence[float]]:  # noqa: ARG002 - the port's shape
        """None."""
        return {}

    def publish(self, opened: Mapping[LaneKey, float], now: float) -> None:
        """Nobody to tell."""


class Health:
    """One process's. Locked where a hedged request's threads meet: nothing here waits for anything."""

    def __init__(self, marks: FailureMarks, clock: Clock) -> None:
        """Everything closed, nothing known."""
        self._shared = marks
        self._clock = clock
        self._lock = Lock()
        self._marks: Mapping[LaneKey, Sequence[float]] = {}
        self._in_flight: Counter[LaneKey] = Counter()
        self._breakers: dict[LaneKey, Breaker] = {}
        self._sketches: defaultdict[LaneKey, Sketch] = defaultdict(Sketch)
        self._hedges = Budget(HEDGE_SHARE)
        self._opened: dict[LaneKey, float] = {}
        self._merged: tuple[Snapshot, Mapping[LaneKey, State], Snapshot] | None = None

    def seen(self, snapshot: Snapshot, now: float) -> Snapshot:
        """The snapshot with what this instance knows better."""
        self._marks = self._shared.marks(now, urgent=bool(self._breakers))
        if self._breakers or self._marks:
            snapshot = self._with_breakers(snapshot, self._states(now))
        own = +self._in_flight
        return snapshot.with_in_flight(own) if own else snapshot

    def watch(self, model: str, predicted: Mapping[str, Prediction]) -> LaneWatch:
        """The executor's view of one model's lanes."""
        return LaneWatch(self, model, predicted)

    def publish(self, now: float) -> None:
        """Tell the other instances which lanes opened here since the last call; free when none did."""
        if self._opened:
            opened, self._opened = self._opened, {}
            self._shared.publish(opened, now)

    def _states(self, now: float) -> dict[LaneKey, State]:
        """The breakers that are not closed, after looking at the others' marks."""
        states: dict[LaneKey, State] = {}
        with self._lock:
            for key in {*self._breakers, *self._marks}:
                breaker = merged(self._breakers.get(key, _CLOSED), self._marks.get(key, ()), now)
                self._keep(key, _CLOSED if breaker.settled(now) else breaker)
                if (state := breaker.state(now)) != "closed":
                    states[key] = state
        return states

    def _with_breakers(self, snapshot: Snapshot, states: dict[LaneKey, State]) -> Snapshot:
        if not states:
            return snapshot
        if self._merged is not None and self._merged[0] is snapshot and self._merged[1] == states:
            return self._merged[2]
        models = dict(snapshot.models)
        for (model, lane), state in states.items():
            known = models.get(model, ModelState())
            lanes = {**known.lanes, lane: replace(known.lanes.get(lane, LaneState()), breaker=state)}
            models[model] = replace(known, lanes=lanes)
        merged_snapshot = replace(snapshot, models=models)
        self._merged = (snapshot, states, merged_snapshot)
        return merged_snapshot

    def _keep(self, key: LaneKey, breaker: Breaker) -> None:
        if breaker == _CLOSED:
            self._breakers.pop(key, None)
        else:
            self._breakers[key] = breaker

    def enter(self, key: LaneKey, *, hedge: bool) -> Ticket | None:
        """See `execute.Watch`."""
        now = self._clock.now()
        with self._lock:
            before = self._breakers.get(key, _CLOSED)
            breaker, let = before.admit(now)
            if not let or (hedge and not self._hedges.take()):
                return None
            self._keep(key, breaker)
            self._in_flight[key] += 1
            return Ticket(key[1], probe=breaker.opened_at is not None)

    def leave(self, key: LaneKey, attempt: Attempt | None) -> None:
        """An attempt is over; what it says of the lane may follow later (`judge`)."""
        with self._lock:
            self._in_flight[key] -= 1
            if attempt is not None and attempt.kind in _TIMED:
                self._sketches[key].add(attempt.duration_s, self._clock.monotonic())

    def judge(self, key: LaneKey, ticket: Ticket, found: Verdict) -> None:
        """What an attempt says of the lane."""
        now = self._clock.now()
        with self._lock:
            before = self._breakers.get(key, _CLOSED)
            after = before.record(found, now, probe=ticket.probe)
            self._keep(key, after)
            if after.opened_at == now and found is Verdict.FAILED:
                self._opened[key] = now

    def hedge_requested(self) -> None:
        """A request came by that may be hedged."""
        self._hedges.deposit()

    def corrected(
        self, model: str, predicted: Mapping[str, Prediction], lanes: Sequence[str]
    ) -> Mapping[str, Prediction]:
        """The predictions of `lanes` with a P99 no better than this instance has seen: CloudWatch's are minutes old."""
        found: dict[str, Prediction] = {}
        for lane in lanes:
            own_s = self.quantile_s((model, lane), 0.99, _ENOUGH)
            known = predicted.get(lane)
            if own_s is not None and known is not None and (known.p99_ms is None or own_s * 1000 > known.p99_ms):
                found[lane] = replace(known, p99_ms=own_s * 1000)
        return {**predicted, **found} if found else predicted

    def quantile_s(self, key: LaneKey, q: float, least: float = 0.0) -> float | None:
        """A quantile of the lane's recent durations, when it stands for at least `least` of them."""
        with self._lock:
            sketch = self._sketches.get(key)
            if sketch is None or sketch.count(self._clock.monotonic()) < least:
                return None
            return sketch.quantile(q)


class LaneWatch:
    """One model's lanes, for one request (see `execute.Watch`)."""

    def __init__(self, health: Health, model: str, predicted: Mapping[str, Prediction]) -> None:
        """`predicted` says what a fair time for each lane is."""
        self._health = health
        self._model = model
        self._predicted = predicted
        self._unproven: list[tuple[Ticket, Attempt]] = []

    def enter(self, lane: str, *, hedge: bool = False) -> Ticket | None:
        """Leave to try `lane` now."""
        return self._health.enter((self._model, lane), hedge=hedge)

    def leave(self, ticket: Ticket, attempt: Attempt | None) -> None:
        """The attempt is over. A container's own 5xx waits for its verdict until the request is over, too."""
        key = (self._model, ticket.lane)
        self._health.leave(key, attempt)
        if attempt is None:
            self._health.judge(key, ticket, Verdict.NOTHING)
        elif attempt.kind is Kind.MODEL_ERROR:
            self._unproven.append((ticket, attempt))
        else:
            predicted = self._predicted.get(ticket.lane)
            p99_s = None if predicted is None or predicted.p99_ms is None else predicted.p99_ms / 1000
            self._health.judge(key, ticket, verdict(attempt.kind, attempt.timeout_s, p99_s))

    def conclude(self, *, answered: bool) -> None:
        """The request is over."""
        for ticket, attempt in self._unproven:
            found = verdict(attempt.kind, attempt.timeout_s, None, answered_elsewhere=answered)
            self._health.judge((self._model, ticket.lane), ticket, found)
        self._unproven.clear()

    def hedge_after_s(self, lane: str) -> float | None:
        """The lane's P95 from own outcomes, else what `decide` predicted as its P99."""
        own = self._health.quantile_s((self._model, lane), 0.95, _ENOUGH)
        if own is not None:
            return own
        predicted = self._predicted.get(lane)
        return None if predicted is None or predicted.p99_ms is None else predicted.p99_ms / 1000

    def typical_s(self, lane: str) -> float | None:
        """The lane's median from own outcomes."""
        return self._health.quantile_s((self._model, lane), 0.5)

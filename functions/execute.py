"""The attempt loop: lane after lane until one answers, never past the deadline.

Pure but for the ports it is given, so the same loop runs in the Lambda, over fakes and under a fake clock. It stands
beside the core, not in it, because it calls ports. Rules:

* A lane is tried at most once a request, so nothing that may have run is repeated on it. Whoever is next gets what is
  left of the deadline, planned anew before each attempt.
* The breaker is asked before every attempt: of a half-open lane one probe is let through, others pass it by.
* With `race`, an attempt that outlasts its lane's P95 is doubled once on the next lane, if its breaker and the hedge
  budget allow. The first answer wins. The loser is abandoned, not cancelled: the model runs on, so its
  cost, estimated by what the lane usually takes, is in the receipt. If both fail, the lanes behind them are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from functions.core.estimates import Prediction
from functions.core.outcome import FINAL, RAN, Kind, Outcome
from functions.core.plan import attempt_budget_s
from functions.core.pricing import busy_cost_usd
from functions.core.receipt import Attempt
from functions.core.topology import SyncLane
from functions.ports import Clock, Invoker, Race

_OUT_OF_TIME = Outcome(Kind.TIMEOUT, detail="the deadline was over")


@dataclass(frozen=True, slots=True)
class Ticket:
    """Leave to try a lane once."""

    lane: str
    probe: bool = False
    """Whether the lane's breaker waits for this attempt's outcome."""


class Watch(Protocol):
    """What the process knows, and learns, of one model's lanes."""

    def enter(self, lane: str, *, hedge: bool = False) -> Ticket | None:
        """Leave to try `lane` now, counted as in flight; None: its breaker, or for a hedge the budget, refuses."""
        ...

    def leave(self, ticket: Ticket, attempt: Attempt | None) -> None:
        """The attempt is over; None: it ended in an error of ours and says nothing of the lane."""
        ...

    def conclude(self, *, answered: bool) -> None:
        """The request is over, after all its attempts: whether a lane answered it well. Called once."""
        ...

    def hedge_after_s(self, lane: str) -> float | None:
        """The lane's P95, seconds, as far as enough is known."""
        ...

    def typical_s(self, lane: str) -> float | None:
        """The lane's median, seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Payload:
    """What goes to the model, untouched."""

    body: bytes
    content_type: str | None
    accept: str | None
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Execution:
    """Every attempt in the order they began, and the one that goes to the caller, if one does."""

    attempts: tuple[Attempt, ...]
    outcome: Outcome | None
    served: Attempt | None = None
    refused: tuple[str, ...] = ()
    """Lanes whose breaker had no place for another attempt."""


@dataclass(frozen=True, slots=True)
class _Try:
    """An attempt under way."""

    lane: SyncLane
    ticket: Ticket
    start: float
    timeout_s: float
    hedge: bool


def execute(
    lanes: Sequence[SyncLane],
    payload: Payload,
    predicted: Mapping[str, Prediction],
    *,
    began: float,
    deadline: float,
    invoker: Invoker,
    clock: Clock,
    watch: Watch,
    race: Callable[[], Race] | None = None,
) -> Execution:
    """Try `lanes` in order. `began` and `deadline` are readings of `clock.monotonic()`. `race`: hedging is allowed."""
    run = _Run(payload, predicted, began, deadline, invoker, clock, watch)
    waiting = list(lanes)
    try:
        while waiting and run.served is None:
            one = run.begin(waiting)
            if one is None:
                continue
            after_s = watch.hedge_after_s(one.lane.name) if race is not None and waiting else None
            if race is None or after_s is None or after_s >= one.timeout_s:
                run.alone(one)
            else:
                run.hedged(one, waiting, after_s, race())
    finally:
        watch.conclude(answered=run.served is not None and run.served.kind is Kind.OK)
    attempts = tuple(sorted(run.attempts, key=lambda attempt: attempt.started_s))
    return Execution(attempts, run.outcome, run.served, tuple(run.refused))


class _Run:
    """One request's attempts as they are made."""

    def __init__(
        self,
        payload: Payload,
        predicted: Mapping[str, Prediction],
        began: float,
        deadline: float,
        invoker: Invoker,
        clock: Clock,
        watch: Watch,
    ) -> None:
        self._payload = payload
        self._predicted = predicted
        self._began = began
        self._deadline = deadline
        self._invoker = invoker
        self._clock = clock
        self._watch = watch
        self.attempts: list[Attempt] = []
        self.refused: list[str] = []
        self.outcome: Outcome | None = None
        self.served: Attempt | None = None

    def begin(self, waiting: list[SyncLane], *, hedge: bool = False) -> _Try | None:
        """Take the next lane out of `waiting`; None when its breaker refuses, or no time is left for any."""
        start = self._clock.monotonic()
        timeout_s = attempt_budget_s(self._deadline - start, waiting[:1] if hedge else waiting, self._predicted)
        if timeout_s <= 0:
            waiting.clear()
            return None
        ticket = self._watch.enter(waiting[0].name, hedge=hedge)
        if ticket is None:
            if not hedge:
                self.refused.append(waiting.pop(0).name)
            return None
        return _Try(waiting.pop(0), ticket, start, timeout_s, hedge)

    def alone(self, one: _Try) -> None:
        """One attempt to its end."""
        try:
            outcome = self._invoke(one)
        except BaseException:
            self._watch.leave(one.ticket, None)
            raise
        self._end(one, outcome)

    def _invoke(self, one: _Try) -> Outcome:
        payload = self._payload
        return self._invoker.invoke(
            one.lane, payload.body, payload.content_type, payload.accept, one.timeout_s, payload.headers
        )

    @contextmanager
    def _given_back(self, running: Mapping[int, _Try]) -> Iterator[None]:
        """When an invoker breaks its promise not to raise, its lane, and the other's, must not stay taken."""
        try:
            yield
        except BaseException:
            for one in running.values():
                self._watch.leave(one.ticket, None)
            raise

    def _end(self, one: _Try, outcome: Outcome) -> None:
        """Account for an attempt that is over; a final outcome is the caller's."""
        took = self._clock.monotonic() - one.start
        ran_s = max(took, self._watch.typical_s(one.lane.name) or 0.0) if outcome.kind is Kind.ABANDONED else took
        attempt = Attempt(
            lane=one.lane.name,
            kind=outcome.kind,
            status=outcome.status,
            started_s=one.start - self._began,
            duration_s=took,
            timeout_s=one.timeout_s,
            cost_usd=busy_cost_usd(one.lane, ran_s) if outcome.kind in RAN else 0.0,
            detail=outcome.detail,
            hedge=one.hedge,
        )
        self._watch.leave(one.ticket, attempt)
        self.attempts.append(attempt)
        if outcome.kind in FINAL:
            self.outcome, self.served = outcome, attempt

    def _start(self, one: _Try, race: Race, running: dict[int, _Try]) -> None:
        """Run one attempt beside the others; where no thread can be had, its lane is given back."""
        try:
            running[race.start(partial(self._invoke, one))] = one
        except BaseException:
            self._watch.leave(one.ticket, None)
            raise

    def hedged(self, one: _Try, waiting: list[SyncLane], after_s: float, race: Race) -> None:
        """One attempt, doubled on the next lane when it outlasts `after_s`; over when one answered or both ended."""
        running: dict[int, _Try] = {}
        with self._given_back(running):
            self._start(one, race, running)
            ended = race.first(after_s)
            if ended is None and (second := self.begin(waiting, hedge=True)) is not None:
                self._start(second, race, running)
            while running:
                ended = ended or race.first(self._deadline - self._clock.monotonic())
                if ended is None:
                    break
                number, outcome = ended
                self._end(running.pop(number), outcome)
                if self.served is not None:
                    break
                ended = None
        left_over = Outcome(Kind.ABANDONED) if self.served is not None else _OUT_OF_TIME
        for other in running.values():
            self._end(other, left_over)

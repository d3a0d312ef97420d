"""Whether a lane is worth trying: a circuit breaker per lane, as a pure state machine over outcomes and `now`.

| state     | an attempt                              | turns                                                          |
|-----------|-----------------------------------------|----------------------------------------------------------------|
| closed    | is let through                          | open: `failures` failed in `window_s`, at least half of all    |
| open      | is refused                              | half-open: `open_s` after it opened                            |
| half-open | one is let through at a time: the probe | closed: it is answered; open, for twice as long: it fails      |

What counts: unreachable, upstream_error, lost, and a timeout that had a fair chance (four times the lane's own P99, and
a second at least), so that a caller with a 45 ms deadline cannot open it for everybody. A container's own 5xx proves
nothing by itself: the request may be poison, and then one caller's requests would open every lane for all. The next
lane is the judge: it counts when another lane answered the same request, and else not (decision 9). An answer, also a
container's 4xx, shows that the lane works. Throttles, not-ready, busy and too-large say nothing of its health: the
lane is there and full, and the next request may fit. A probe that says nothing is over, and the next attempt is the
probe.

Marks: instances tell each other which lanes they opened (`merged`). One other's mark and one failure here open; marks
of two others open at once: one instance alone may be the one whose network is broken. A mark speaks for half a minute,
and this instance's own answered probe outweighs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from functions.core.outcome import FINAL, Kind
from functions.core.snapshot import Breaker as State

_FAILED: Final = frozenset({Kind.UNREACHABLE, Kind.UPSTREAM_ERROR, Kind.LOST, Kind.TIMEOUT})
_FAIR_S: Final = 1.0
"""A timeout on a lane of unknown speed counts from here on, and on a known one at the earliest: what the caller sends
(megabytes, say) takes time that the lane's own P99 does not know of."""
_FAIR_FACTOR: Final = 4.0
_FAIR_MOST_S: Final = 15.0
"""A lane that needs seconds is not waited for four times as long: half of the longest deadline is fair to anybody."""
_PARTS: Final = 10


class Verdict(Enum):
    """What an outcome says of the lane's health."""

    ANSWERED = "answered"
    FAILED = "failed"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class BreakerRules:
    """When it opens, and for how long."""

    failures: int = 5
    """One or two happen on a healthy lane (a deploy, a poisoned request); five in half a minute do not. Every failed
    attempt costs its caller only a fallback, so patience is cheap."""
    share: float = 0.5
    """A busy lane that fails now and then still serves most: below half it is better tried than spilled."""
    window_s: float = 30.0
    """Half the metric period: older failures are seen by CloudWatch's `errors`, on which policies can act."""
    open_s: float = 5.0
    """A container restarts in seconds; the callers of an open lane are told to return after as long."""
    longest_open_s: float = 60.0
    """An instance takes minutes to be replaced; once a minute a probe is one request in hundreds."""
    probe_s: float = 60.0
    """A probe without an outcome (its instance was frozen) is given up: no attempt may take longer."""


RULES: Final = BreakerRules()


@dataclass(frozen=True, slots=True)
class Breaker:
    """One lane's breaker. Immutable: every event returns the next one. `now` is Unix seconds throughout."""

    history: tuple[tuple[float, int, int], ...] = ()
    """(from when, answered, failed) by tenths of the window, oldest first; begun by a failure, none while all is well:
    a healthy lane's breaker is never touched."""
    opened_at: float | None = None
    """None: closed."""
    open_s: float = RULES.open_s
    """How long this opening lasts."""
    probe_at: float | None = None
    """When the probe that is out began."""
    healthy_at: float = float("-inf")
    """The last probe that was answered: marks from before it are history."""

    def state(self, now: float) -> State:
        """What an attempt would meet at `now`."""
        if self.opened_at is None:
            return "closed"
        # A clock that was set back must not keep a lane shut for longer than the opening itself.
        return "open" if 0 <= now - self.opened_at < self.open_s else "half_open"

    def probing(self, now: float, rules: BreakerRules = RULES) -> bool:
        """Whether a probe is out."""
        return self.probe_at is not None and 0 <= now - self.probe_at < rules.probe_s

    def settled(self, now: float, rules: BreakerRules = RULES) -> bool:
        """Whether all that it remembers is of the past, so that it may be forgotten."""
        if self.opened_at is not None:
            return False
        times = (self.healthy_at, *(item[0] for item in self.history))
        return all(abs(now - at) >= 2 * rules.window_s for at in times)

    def admit(self, now: float, rules: BreakerRules = RULES) -> tuple[Breaker, bool]:
        """Whether an attempt may begin; when half-open, it is the probe."""
        state = self.state(now)
        if state == "closed":
            return self, True
        if state == "open" or self.probing(now, rules):
            return self, False
        return replace(self, probe_at=now), True

    def record(self, verdict: Verdict, now: float, *, probe: bool = False, rules: BreakerRules = RULES) -> Breaker:
        """After an attempt. `probe`: it was let through half-open."""
        if self.opened_at is not None:
            return self._probed(verdict, now, rules) if probe and self.probe_at is not None else self
        if verdict is Verdict.NOTHING or (verdict is Verdict.ANSWERED and not self.history):
            return self
        history = _counted(self.history, verdict is Verdict.FAILED, now, rules)
        answered, failed = sum(item[1] for item in history), sum(item[2] for item in history)
        if verdict is Verdict.ANSWERED:
            return replace(self, history=history if failed else ())
        if failed >= rules.failures and failed >= rules.share * (answered + failed):
            return Breaker(opened_at=now, open_s=rules.open_s, healthy_at=self.healthy_at)
        return replace(self, history=history)

    def _probed(self, verdict: Verdict, now: float, rules: BreakerRules) -> Breaker:
        """Only the probe's outcome turns it; attempts from before the opening come too late to say anything."""
        if verdict is Verdict.ANSWERED:
            return Breaker(healthy_at=now)
        if verdict is Verdict.FAILED:
            longer = min(rules.longest_open_s, 2 * self.open_s)
            return Breaker(opened_at=now, open_s=longer, healthy_at=self.healthy_at)
        return replace(self, probe_at=None)


def _counted(
    history: Sequence[tuple[float, int, int]], failed: bool, now: float, rules: BreakerRules
) -> tuple[tuple[float, int, int], ...]:
    """The history with one outcome more, without what has left the window (or lies ahead: a clock set back)."""
    kept = [item for item in history if 0 <= now - item[0] < rules.window_s]
    if not kept or now - kept[-1][0] >= rules.window_s / _PARTS:
        kept.append((now, 0, 0))
    since, answers, failures = kept.pop()
    return (*kept, (since, answers + (not failed), failures + failed))


def verdict(kind: Kind, timeout_s: float, p99_s: float | None, *, answered_elsewhere: bool = False) -> Verdict:
    """What an attempt's outcome says, given the time it had and the lane's P99 as far as known (seconds).

    `answered_elsewhere`: another lane then answered the same request well.
    """
    if kind in FINAL:
        return Verdict.ANSWERED
    if kind is Kind.MODEL_ERROR:
        return Verdict.FAILED if answered_elsewhere else Verdict.NOTHING
    if kind not in _FAILED:
        return Verdict.NOTHING
    fair_s = _FAIR_S if p99_s is None else max(_FAIR_S, p99_s, min(_FAIR_FACTOR * p99_s, _FAIR_MOST_S))
    return Verdict.NOTHING if kind is Kind.TIMEOUT and timeout_s < fair_s else Verdict.FAILED


def merged(breaker: Breaker, marks: Sequence[float], now: float, rules: BreakerRules = RULES) -> Breaker:
    """The breaker in the light of when other instances opened the lane: their marks can open it, never close it."""
    if breaker.opened_at is not None or not marks:
        return breaker
    speaking = [at for at in marks if abs(now - at) < rules.window_s and at > breaker.healthy_at]
    failed_here = any(item[2] for item in breaker.history if 0 <= now - item[0] < rules.window_s)
    if len(speaking) < (1 if failed_here else 2):
        return breaker
    return Breaker(opened_at=min(max(speaking), now), open_s=rules.open_s, healthy_at=breaker.healthy_at)

"""A signal's state is replayed from the last hour of datapoints, never remembered, so every instance agrees.

Off: a run of finished points above `above` covering `for` turns it on. On: a run below `until_below` covering
`until_for` turns it off. Values between break a run and turn nothing. A gap of up to two missing points pauses a run;
a longer one ends it, never the latch. Coverage is the union of [t, t + period), so overlapping points do not count
twice; hence two turns in the same direction are at least `for + until_for` apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from functions.core.snapshot import LatchState, Series, Snapshot

WINDOW_S: Final = 3600.0
"""How far back the replay starts, seconds."""
_PAUSED_POINTS: Final = 2
"""Missing points that a run survives."""
_EPSILON_S: Final = 1e-6
"""Rounding of Unix seconds held in a float."""


@dataclass(frozen=True, slots=True)
class Signal:
    """Hysteresis on one metric of one lane."""

    lane: str
    metric: str
    above: float
    for_s: float
    until_below: float
    until_for_s: float


def replay(signal: Signal, series: Series | None, carried: LatchState | None, now: float) -> LatchState:
    """The latch after every point of the last hour, starting from `carried` (else off)."""
    state = carried if carried is not None else LatchState(on=False)
    if series is None:
        return state
    period, run, covered_to = series.period_s, 0.0, float("-inf")
    for stamp, value in series.finished(now):
        end = stamp + period
        if end <= now - WINDOW_S:
            continue
        if stamp - covered_to > _PAUSED_POINTS * period + _EPSILON_S:
            run = 0.0
        wanted = value < signal.until_below if state.on else value > signal.above
        run = run + end - max(stamp, covered_to) if wanted else 0.0
        covered_to = end
        if wanted and run >= (signal.until_for_s if state.on else signal.for_s) - _EPSILON_S:
            state, run = LatchState(on=not state.on, since=end), 0.0
    return state


def latches(
    signals: Mapping[str, Signal], snapshot: Snapshot, model: str, now: float, lanes: Iterable[str]
) -> dict[str, bool | None]:
    """Every signal's state for one model; None where its lane's metrics are unknown."""
    known = {lane: snapshot.known(model, lane, now) for lane in lanes}
    found: dict[str, bool | None] = {}
    for name, signal in signals.items():
        if not known.get(signal.lane, False):
            found[name] = None
            continue
        series = snapshot.lane(model, signal.lane).series.get(signal.metric)
        found[name] = replay(signal, series, snapshot.latch(model, name), now).on
    return found

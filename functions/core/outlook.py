"""What is believed of one model's lanes at one moment, and until when the same holds.

Everything that a decision needs besides the request: latches, loads, predictions, breakers, the local time. It changes
only when a point finishes, when a point or the snapshot grows too old for something, or when the local minute turns
and the policy looks at the clock. Between such edges it can be kept.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Final

from functions.core.conditions import ClockIn, Load, LocalTime, WeekdayIn
from functions.core.estimates import Prediction, exhausted, instances, load, predict
from functions.core.latches import WINDOW_S, latches
from functions.core.policy import Policy
from functions.core.snapshot import STALE_S, Series, Snapshot
from functions.core.topology import BatchLane, DedicatedLane, ServingLane, Topology

_GUARD_S: Final = 0.001
"""Kept clear of every edge: far above the rounding of Unix seconds in a float."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """One model's lanes at one moment."""

    lanes: Mapping[str, ServingLane]
    named: tuple[str, ...]
    """Every lane that the topology has for the model, also one that nothing can execute yet."""
    latches: Mapping[str, bool | None]
    loads: Mapping[str, Load | None]
    breakers: Mapping[str, str]
    used_up: Mapping[str, str]
    """By lane, why it cannot take one more request."""
    exhausted: frozenset[str]
    """Lanes without a free slot that cannot grow."""
    predicted: Mapping[str, Prediction]
    local: LocalTime | None


def look(model: str, snapshot: Snapshot, policy: Policy, topology: Topology, now: float) -> Outlook:
    """What is believed of `model`'s lanes at `now`."""
    lanes = topology.serving_lanes(model)
    sync = {name: lane for name, lane in lanes.items() if not isinstance(lane, BatchLane)}
    reasons = {name: _used_up(lane, model, snapshot, now) for name, lane in lanes.items()}
    return Outlook(
        lanes=lanes,
        named=tuple(topology.models[model]),
        latches=latches(policy.signals, snapshot, model, now, lanes),
        loads={name: load(lane, model, snapshot, now) for name, lane in sync.items()},
        breakers={name: snapshot.lane(model, name).breaker for name in lanes},
        used_up={name: reason for name, reason in reasons.items() if reason is not None},
        exhausted=frozenset(name for name, lane in lanes.items() if exhausted(lane, model, snapshot, now)),
        predicted=predict(lanes, model, snapshot, now),
        local=local_time(now, policy.zone),
    )


def local_time(now: float, zone: tzinfo) -> LocalTime | None:
    """The moment in a time zone; None outside the calendar."""
    try:
        moment = datetime.fromtimestamp(now, zone)
    except (OverflowError, ValueError, OSError):
        return None
    return LocalTime(moment.weekday(), moment.hour * 60 + moment.minute)


def holds_until(model: str, snapshot: Snapshot, policy: Policy, topology: Topology, now: float) -> float:
    """The last moment for which `look` certainly gives what it gives at `now`; at least `now`."""
    edges = [] if snapshot.taken_at is None else [snapshot.taken_at + STALE_S]
    for name in topology.serving_lanes(model):
        for series in snapshot.lane(model, name).series.values():
            edges += _edges(series, now)
    until = min((edge for edge in edges if edge > now - _GUARD_S), default=float("inf")) - _GUARD_S
    if any(isinstance(condition, ClockIn | WeekdayIn) for condition in policy.conditions()):
        until = min(until, _end_of_minute(now, policy.zone))
    return max(now, until)


def _edges(series: Series, now: float) -> list[float]:
    """For each age at which a point begins or ceases to count: when the next point reaches it."""
    found: list[float] = []
    for age in (series.period_s, STALE_S, WINDOW_S, series.period_s + WINDOW_S):
        at = bisect_left(series.points, (now - age - _GUARD_S,))
        if at < len(series.points):
            found.append(series.points[at][0] + age)
    return found


def _end_of_minute(now: float, zone: tzinfo) -> float:
    try:
        moment = datetime.fromtimestamp(now, zone)
    except (OverflowError, ValueError, OSError):
        return now
    return now + 60 - moment.second - moment.microsecond / 1e6 - _GUARD_S


def _used_up(lane: ServingLane, model: str, snapshot: Snapshot, now: float) -> str | None:
    state = snapshot.lane(model, lane.name)
    in_flight = state.in_flight or 0
    if isinstance(lane, BatchLane):
        return None
    if isinstance(lane, DedicatedLane):
        serving = instances(lane, state, now)
        if serving >= lane.max_instances and in_flight >= 2 * serving * lane.slots_per_instance:
            return f"used up: {in_flight} in flight at {serving} instances, the most"
    elif in_flight >= lane.max_concurrency:
        return f"used up: {in_flight} in flight of {lane.max_concurrency}"
    return None

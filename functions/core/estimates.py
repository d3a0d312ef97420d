"""What a lane would do with one more request: its load, its P99 and its marginal cost.

Load: the larger of the requests known in flight and the newest `concurrency` point, over all slots. Predicted P99:
the largest of the last five `model_latency_p99_ms` points of the hour plus the front's overhead; a serverless lane
without an invocation in ten minutes adds its cold start; no data: the topology's expectation, else nothing.
What drops a lane is narrower: points of the last ten minutes, or a cold start that is sure to come. A slow quarter of
an hour must not shut a lane for an hour, since a lane without traffic has no newer points to prove itself by.
Marginal cost: a paid-for idle slot costs nothing; with none free, the next instance for the time of the service, never
below serverless; serverless its own time; batch its share of a job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from functions.core.conditions import Load
from functions.core.pricing import busy_cost_usd
from functions.core.snapshot import STALE_S, LaneState, Snapshot
from functions.core.topology import BatchLane, DedicatedLane, ServerlessLane, ServingLane, SyncLane

_POINTS: Final = 5
_WINDOW_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Prediction:
    """Of one lane; None: no basis."""

    p99_ms: float | None
    cost_usd: float | None
    at_least_ms: float | None = None
    """What the lane needs by fresh knowledge alone; a deadline below it drops the lane."""


def instances(lane: DedicatedLane, state: LaneState, now: float) -> int:
    """How many instances serve: as known, else as measured, else the least the topology promises."""
    if state.instances is not None:
        return state.instances
    measured = state.fresh("instances", now)
    return max(1, round(measured)) if measured is not None else max(1, lane.min_instances)


def slots(lane: SyncLane, state: LaneState, now: float) -> int:
    """Requests the lane can work on at once."""
    if isinstance(lane, ServerlessLane):
        return lane.max_concurrency
    return instances(lane, state, now) * lane.slots_per_instance


def load(lane: SyncLane, model: str, snapshot: Snapshot, now: float) -> Load | None:
    """The lane's load; with its metrics unknown, what is in flight here is a lower bound. Without an instance: full."""
    state = snapshot.lane(model, lane.name)
    capacity = slots(lane, state, now)
    known = snapshot.known(model, lane.name, now)
    if not capacity:
        return Load(float("inf"), exact=known)
    measured = state.fresh("concurrency", now) if known else None
    if measured is None and state.in_flight is None:
        return None
    busy = max(measured or 0.0, float(state.in_flight or 0))
    return Load(busy / capacity, exact=known)


def predicted_p99_ms(lane: SyncLane, model: str, snapshot: Snapshot, now: float) -> float | None:
    """The lane's P99 as a caller would see it, milliseconds."""
    if snapshot.taken_at is None or now - snapshot.taken_at > STALE_S:
        return lane.expected_p99_ms
    state = snapshot.lane(model, lane.name)
    series = state.series.get("model_latency_p99_ms")
    points = series.finished(now)[-_POINTS:] if series is not None else ()
    recent = [value for stamp, value in points if stamp > now - _WINDOW_S]
    if not recent:
        return lane.expected_p99_ms
    cold = isinstance(lane, ServerlessLane) and not _invoked(state, now)
    return max(recent) + lane.overhead_ms + (lane.cold_start_ms if cold and isinstance(lane, ServerlessLane) else 0.0)


def at_least_ms(lane: SyncLane, model: str, snapshot: Snapshot, now: float) -> float | None:
    """What the lane needs as far as the last ten minutes tell, milliseconds."""
    if snapshot.taken_at is None or now - snapshot.taken_at > STALE_S:
        return lane.expected_p99_ms
    state = snapshot.lane(model, lane.name)
    series = state.series.get("model_latency_p99_ms")
    points = series.finished(now)[-_POINTS:] if series is not None else ()
    fresh = [value for stamp, value in points if now - stamp <= STALE_S]
    cold_ms = lane.cold_start_ms if isinstance(lane, ServerlessLane) and not _invoked(state, now) else 0.0
    if fresh:
        return max(fresh) + lane.overhead_ms + cold_ms
    if points and cold_ms:
        return cold_ms + lane.overhead_ms
    return lane.expected_p99_ms


def service_s(lane: ServingLane, model: str, snapshot: Snapshot, now: float) -> float | None:
    """How long the lane works on a typical request: its newest median of the hour, seconds."""
    series = snapshot.lane(model, lane.name).series.get("model_latency_p50_ms")
    point = series.newest(now) if series is not None else None
    return point[1] / 1000 if point is not None and now - point[0] <= _WINDOW_S else None


def predict(lanes: Mapping[str, ServingLane], model: str, snapshot: Snapshot, now: float) -> dict[str, Prediction]:
    """A prediction for each lane. One whose service time is not known is taken to need the longest of the others'."""
    own = {name: service_s(lane, model, snapshot, now) for name, lane in lanes.items()}
    longest = max((seconds for seconds in own.values() if seconds is not None), default=None)
    times = {name: longest if seconds is None else seconds for name, seconds in own.items()}
    spill = max((_cost(lane, times[name]) or 0.0 for name, lane in lanes.items() if _spills(lane)), default=0.0)
    found: dict[str, Prediction] = {}
    for name, lane in lanes.items():
        cost, p99_ms, least_ms = _cost(lane, times[name]), None, None
        if not isinstance(lane, BatchLane):
            p99_ms = predicted_p99_ms(lane, model, snapshot, now)
            least_ms = at_least_ms(lane, model, snapshot, now)
        if isinstance(lane, DedicatedLane):
            if _has_room(lane, model, snapshot, now):
                cost = 0.0
            elif cost is not None:
                # The next instance is bought for this request alone, so the whole of it is charged, not one slot.
                cost = max(cost * lane.slots_per_instance, spill)
        found[name] = Prediction(p99_ms, cost, least_ms)
    return found


def exhausted(lane: ServingLane, model: str, snapshot: Snapshot, now: float) -> bool:
    """Whether a dedicated lane has neither a free slot nor another instance to come."""
    if not isinstance(lane, DedicatedLane) or _has_room(lane, model, snapshot, now):
        return False
    return instances(lane, snapshot.lane(model, lane.name), now) >= lane.max_instances


def _has_room(lane: DedicatedLane, model: str, snapshot: Snapshot, now: float) -> bool:
    """Whether a slot is free, as far as known."""
    busy = load(lane, model, snapshot, now)
    return busy is None or busy.value < 1


def _spills(lane: ServingLane) -> bool:
    return isinstance(lane, ServerlessLane)


def _cost(lane: ServingLane, seconds: float | None) -> float | None:
    return None if seconds is None else busy_cost_usd(lane, seconds)


def _invoked(state: LaneState, now: float) -> bool:
    series = state.series.get("invocations")
    return series is not None and any(value > 0 and now - stamp <= STALE_S for stamp, value in series.finished(now))

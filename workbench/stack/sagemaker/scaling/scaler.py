"""Capacity in motion: changes begun for alarms, schedules and bounds, and how each ends. No I/O of its own.

One change of a target at a time, and only while its endpoint is InService. A change of a policy's leaves a cooldown,
counted from its end; one for new bounds or a schedule does not.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.stack.sagemaker.api.wire import AwsError
from workbench.stack.sagemaker.clock import Clock
from workbench.stack.sagemaker.scaling import capacity
from workbench.stack.sagemaker.scaling.activities import Activities, Activity
from workbench.stack.sagemaker.scaling.capacity import Demand, Hold, Scale, Situation
from workbench.stack.sagemaker.scaling.resources import Reading, Resources
from workbench.stack.sagemaker.scaling.schedules import Action
from workbench.stack.sagemaker.scaling.targets import Target


@dataclass(frozen=True, slots=True)
class Change:
    """A change that is going on."""

    activity: Activity
    before: int
    scale: Scale | None
    """None for bounds and schedules."""


@dataclass(slots=True)
class Scaler:
    """Changes the capacities of targets."""

    resources: Resources
    activities: Activities
    clock: Clock

    def enforce(self, target: Target) -> None:
        """Bring a capacity that is outside its target's bounds within them."""
        reading = self._read(target)
        if reading is None or not reading.steady or target.change is not None:
            return
        wanted = target.bounded(reading.desired)
        if wanted != reading.desired:
            which = "minimum" if wanted > reading.desired else "maximum"
            self._begin(target, reading.desired, wanted, f"{which} capacity was set to {wanted}", None)

    def fire(self, target: Target, action: Action) -> None:
        """A scheduled action is due."""
        action.renew(self.clock.now())
        if target.suspended.get("ScheduledScalingSuspended"):
            return
        target.minimum, target.maximum = action.limits(target)
        bounds, now = (target.minimum, target.maximum), time.time()
        self.activities.bounds(target.place.resource_id, target.place.dimension, bounds, action.name, now)
        self.enforce(target)

    def act(self, target: Target, demands: Sequence[Demand], *, tracking_ready_in: bool) -> None:
        """Alarms have been evaluated: do what they ask for, as far as it may be done."""
        reading = self._read(target)
        if reading is None or target.change is not None or not demands:
            return
        if not reading.steady:
            self._hold(target, Hold("TargetServicePutResourceAsUnscalable", demands[0]), reading.desired)
            return
        situation = Situation(
            reading.desired,
            target.minimum,
            target.maximum,
            target.cooldown,
            self.clock.now(),
            tracking_ready_in,
            target.suspended.get("DynamicScalingOutSuspended", False),
            target.suspended.get("DynamicScalingInSuspended", False),
        )
        match capacity.decide(situation, demands):
            case Scale() as scale:
                self._begin(target, reading.desired, scale.capacity, _cause(scale.demand), scale)
            case Hold() as hold:
                self._hold(target, hold, reading.desired)

    def watch(self, target: Target) -> None:
        """Whether the target's change has come to its end."""
        change, reading = target.change, self._read(target)
        if change is None or (reading is not None and not reading.steady):
            return
        target.change = None
        failure = "The resource is gone." if reading is None else reading.failure
        self.activities.end(change.activity, failure, time.time())
        if failure is None and change.scale is not None:
            target.cooldown = capacity.after(change.scale, change.before, self.clock.now())

    def _begin(self, target: Target, before: int, wanted: int, cause: str, scale: Scale | None) -> None:
        place, now = target.place, time.time()
        activity = self.activities.begin(place.resource_id, place.dimension, wanted, cause, now)
        try:
            self.resources.change(place.endpoint, place.variant, place.dimension, wanted)
        except AwsError as error:
            self.activities.refused(activity, f"{error.message} (Error code: {error.code})", now)
            return
        target.change = Change(activity, before, scale)

    def _hold(self, target: Target, hold: Hold, current: int) -> None:
        reason: dict[str, object] = {"Code": hold.reason}
        match hold.reason:
            case "AlreadyAtMaxCapacity":
                reason["MaxCapacity"] = target.maximum
            case "AlreadyAtMinCapacity":
                reason["MinCapacity"] = target.minimum
            case "AlreadyAtDesiredCapacity":
                reason["CurrentCapacity"] = current
        place = target.place
        self.activities.not_scaled(place.resource_id, place.dimension, _cause(hold.demand), reason, time.time())

    def _read(self, target: Target) -> Reading | None:
        place = target.place
        try:
            return self.resources.read(place.endpoint, place.variant, place.dimension)
        except AwsError:
            return None  # deleted, or turned into something without this dimension


def _cause(demand: Demand) -> str:
    return f"monitor alarm {demand.alarm} in state ALARM triggered policy {demand.policy}"

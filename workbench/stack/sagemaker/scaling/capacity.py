"""How many instances (or how much provisioned concurrency) a target shall have: demands in, one decision out. Pure.

- Target tracking wants ceil(capacity x metric / target). Out by the newest point; in by the largest of the points that
  were low, for it scales in conservatively (which point AWS takes is not documented).
- Step scaling wants what the step for `metric - threshold` says; percentages round away from zero below one, else
  toward it, and are at least MinAdjustmentMagnitude.
- Of several demands the one for most capacity counts, out and in. Out before in. Tracking scales in only when every
  tracking policy of the target that may do so is ready to; step scaling asks nobody.
- Nothing leaves minimum and maximum.
- In the cooldown after a scale-out, what it added counts: demands are computed from the capacity before it, and only a
  larger capacity than the present one is set; nothing scales in. In the cooldown after a scale-in nothing scales in,
  and a scale-out ends it.

Sources: Application Auto Scaling user guide (target tracking, step scaling, cooldowns), PutScalingPolicy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Adjustment = Literal["ChangeInCapacity", "PercentChangeInCapacity", "ExactCapacity"]
DEFAULT_COOLDOWN_S = 300
NotScaled = Literal[
    "AlreadyAtMaxCapacity", "AlreadyAtMinCapacity", "AlreadyAtDesiredCapacity", "TargetServicePutResourceAsUnscalable"
]


@dataclass(frozen=True, slots=True)
class Tracked:
    """A target tracking policy's demand; `out` by its high alarm, else by its low one."""

    policy: str
    alarm: str
    out: bool
    metric: float
    target: float
    cooldown_s: float

    def capacity(self, base: int) -> int:
        """Wanted when there are `base`."""
        exact = base * self.metric / self.target
        # A hair over a whole number is rounding in the division, not demand.
        return math.ceil(exact - 1e-9 * max(exact, 1.0))


@dataclass(frozen=True, slots=True)
class Step:
    """One step: for a metric from `lower` to `upper` above the threshold."""

    lower: float
    upper: float
    adjustment: int


@dataclass(frozen=True, slots=True)
class Stepped:
    """A step scaling policy's demand: the step it has come to."""

    policy: str
    alarm: str
    kind: Adjustment
    adjustment: int
    least_magnitude: int
    cooldown_s: float

    def capacity(self, base: int) -> int:
        """Wanted when there are `base`."""
        if self.kind == "ExactCapacity":
            return self.adjustment
        if self.kind == "ChangeInCapacity":
            return base + self.adjustment
        exact = base * self.adjustment / 100
        sign = 1 if exact >= 0 else -1
        magnitude = max(math.floor(abs(exact)), 1) if exact else 0
        return base + sign * max(magnitude, self.least_magnitude if self.adjustment else 0)


Demand = Tracked | Stepped


def step_for(steps: Sequence[Step], metric: float, threshold: float) -> Step | None:
    """The step a breach has come to. At or above the threshold lower bounds are inclusive, below it upper ones are."""
    size = metric - threshold
    for step in steps:
        above = step.lower <= size < step.upper
        below = step.lower < size <= step.upper
        if above if size >= 0 else below:
            return step
    return None


@dataclass(frozen=True, slots=True)
class Cooldown:
    """What the last scaling by a policy left."""

    out: bool
    before: int
    """Capacity before it."""
    until: float


@dataclass(frozen=True, slots=True)
class Situation:
    """All that a decision rests on besides the demands."""

    capacity: int
    minimum: int
    maximum: int
    cooldown: Cooldown | None
    now: float
    tracking_ready_in: bool = True
    """Whether every tracking policy that may scale in is in its low alarm."""
    out_suspended: bool = False
    in_suspended: bool = False

    def bounded(self, count: int) -> int:
        """The count nearest to `count` that is allowed."""
        return min(max(count, self.minimum), self.maximum)

    @property
    def cooling(self) -> Cooldown | None:
        """The cooldown that still runs."""
        return self.cooldown if self.cooldown and self.now < self.cooldown.until else None


@dataclass(frozen=True, slots=True)
class Scale:
    """Set the capacity, because of a demand."""

    capacity: int
    demand: Demand


@dataclass(frozen=True, slots=True)
class Hold:
    """A demand that changes nothing, and why."""

    reason: NotScaled
    demand: Demand


def decide(situation: Situation, demands: Sequence[Demand]) -> Scale | Hold | None:
    """What to do. None: nothing is wanted, or it is not the time for it."""
    if not demands:
        return None
    now = situation.capacity
    cooling = situation.cooling
    base = cooling.before if cooling and cooling.out else now
    if outs := [(d.capacity(base), d) for d in demands if _is_out(d) and d.capacity(base) > now]:
        if situation.out_suspended:
            return None
        wanted, demand = max(outs, key=lambda pair: pair[0])
        bounded = situation.bounded(wanted)
        return Scale(bounded, demand) if bounded > now else Hold("AlreadyAtMaxCapacity", demand)
    if cooling:
        return None
    ins = [(d.capacity(now), d) for d in demands if d.capacity(now) < now]
    if not situation.tracking_ready_in:
        ins = [(wanted, d) for wanted, d in ins if isinstance(d, Stepped)]
    if not ins:
        return Hold("AlreadyAtDesiredCapacity", demands[0])
    if situation.in_suspended:
        return None
    wanted, demand = max(ins, key=lambda pair: pair[0])
    bounded = situation.bounded(wanted)
    return Scale(bounded, demand) if bounded < now else Hold("AlreadyAtMinCapacity", demand)


def _is_out(demand: Demand) -> bool:
    # A low alarm's metric never raises the capacity.
    return isinstance(demand, Stepped) or demand.out


def after(scaled: Scale, before: int, ended: float) -> Cooldown:
    """The cooldown that a finished scaling leaves."""
    return Cooldown(scaled.capacity > before, before, ended + scaled.demand.cooldown_s)

"""What a scaling policy watches and wants: its configuration, parsed once, and the demands its alarms make. Pure.

Target tracking makes two alarms: AlarmHigh, 3 of 3 points above the target, and AlarmLow, 15 minutes of points below
0.9 x target (15 of 15, or 90 of 90 for metrics of 10 s). Without scale-in there is no AlarmLow. A customized metric is
looked at by the minute. Missing points are `missing` to both.

Sources: repost QUf450Wsd9RROGGOIwaolN9w (3 and 15 minutes, 0.9), public transcripts (names); PutScalingPolicy.
"""

from __future__ import annotations

import itertools
import math
import statistics
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from workbench.stack.sagemaker.api.wire import Document, invalid
from workbench.stack.sagemaker.scaling import alarms
from workbench.stack.sagemaker.scaling.alarms import Alarm, Metric, Rule, Verdict, Watched
from workbench.stack.sagemaker.scaling.capacity import (
    DEFAULT_COOLDOWN_S,
    Adjustment,
    Demand,
    Step,
    Stepped,
    Tracked,
    step_for,
)
from workbench.stack.sagemaker.scaling.metric_math import ExpressionError
from workbench.stack.sagemaker.scaling.resources import CONCURRENCY, INSTANCES, Dimension

MINUTE_S = 60
WINDOW_IN_S = 15 * MINUTE_S
PERIODS_OUT = 3
LOW_SHARE = 0.9
MOST_STEPS = 20


class Predefined(NamedTuple):
    """What stands behind a predefined metric."""

    dimension: Dimension
    name: str
    stat: str
    period_s: int


PREDEFINED = {
    "SageMakerVariantInvocationsPerInstance": Predefined(INSTANCES, "InvocationsPerInstance", "Sum", MINUTE_S),
    "SageMakerVariantConcurrentRequestsPerModelHighResolution": Predefined(
        INSTANCES, "ConcurrentRequestsPerModel", "Average", 10
    ),
    "SageMakerVariantProvisionedConcurrencyUtilization": Predefined(
        CONCURRENCY, "ServerlessProvisionedConcurrencyUtilization", "Average", MINUTE_S
    ),
}


@dataclass(frozen=True, slots=True)
class Place:
    """The variant that a policy scales."""

    resource_id: str
    endpoint: str
    variant: str
    dimension: Dimension


@dataclass(frozen=True, slots=True)
class Tracking:
    """A target tracking policy."""

    target: float
    out_cooldown_s: float
    in_cooldown_s: float
    high: Alarm
    low: Alarm | None

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """Those the policy has made."""
        return (self.high,) if self.low is None else (self.high, self.low)

    def demand(self, policy: str, alarm: str, verdict: Verdict) -> Demand:
        """What an alarm of the policy in ALARM asks for."""
        if alarm == self.high.name:
            return Tracked(policy, alarm, True, verdict.points[-1], self.target, self.out_cooldown_s)
        return Tracked(policy, alarm, False, max(verdict.points), self.target, self.in_cooldown_s)


_AGGREGATIONS: dict[str, Callable[[Sequence[float]], float]] = {
    "Average": statistics.fmean,
    "Minimum": min,
    "Maximum": max,
}


@dataclass(frozen=True, slots=True)
class Stepping:
    """A step scaling policy. It makes no alarms; those that name its ARN as an action belong to it."""

    kind: Adjustment
    steps: tuple[Step, ...]
    least_magnitude: int
    cooldown_s: float
    aggregation: str

    def demand(self, policy: str, alarm: Alarm, verdict: Verdict) -> Demand | None:
        """What an alarm in ALARM asks for. Without points (breaching because missing) the threshold itself counts."""
        threshold = alarm.rule.threshold
        value = _AGGREGATIONS[self.aggregation](verdict.points) if verdict.points else threshold
        step = step_for(self.steps, value, threshold)
        if step is None:
            return None
        return Stepped(policy, alarm.name, self.kind, step.adjustment, self.least_magnitude, self.cooldown_s)


def parse_tracking(configuration: Document, place: Place, names: Sequence[str] = ()) -> Tracking:
    """From a TargetTrackingScalingPolicyConfiguration; its alarms get the names that they had before, if they had."""
    watched, period_s = _watched(configuration, place)
    target = float(configuration["TargetValue"])
    if not target > 0:
        raise invalid(f"TargetValue must be above zero for this metric; got {target:g}.")
    scale_in = not configuration.get("DisableScaleIn", False)
    count_in = WINDOW_IN_S // period_s
    high, low = Rule("GreaterThanThreshold", target, PERIODS_OUT, PERIODS_OUT), None
    if scale_in:
        rule = Rule("LessThanThreshold", target * LOW_SHARE, count_in, count_in)
        low = Alarm(_name(place, "AlarmLow", names), watched, period_s, rule)
    return Tracking(
        target,
        _cooldown_s(configuration, "ScaleOutCooldown"),
        _cooldown_s(configuration, "ScaleInCooldown"),
        Alarm(_name(place, "AlarmHigh", names), watched, period_s, high),
        low,
    )


def parse_stepping(configuration: Document) -> Stepping:
    """From a StepScalingPolicyConfiguration."""
    kind = configuration.get("AdjustmentType")
    rows = configuration.get("StepAdjustments") or ()
    if kind is None or not rows:
        raise invalid("AdjustmentType and at least one StepAdjustment are required for a step scaling policy.")
    if len(rows) > MOST_STEPS:
        raise invalid(f"A step scaling policy can have {MOST_STEPS} step adjustments; got {len(rows)}.")
    steps = tuple(sorted((_step(row, kind) for row in rows), key=lambda step: step.lower))
    _check_steps(steps)
    return Stepping(
        kind,
        steps,
        int(configuration.get("MinAdjustmentMagnitude", 1)),
        _cooldown_s(configuration, "Cooldown"),
        configuration.get("MetricAggregationType", "Average"),
    )


def _step(row: Mapping[str, Any], kind: str) -> Step:
    lower = float(row.get("MetricIntervalLowerBound", -math.inf))
    upper = float(row.get("MetricIntervalUpperBound", math.inf))
    if not lower < upper:
        raise invalid(f"MetricIntervalUpperBound {upper:g} must be above MetricIntervalLowerBound {lower:g}.")
    if kind == "ExactCapacity" and row["ScalingAdjustment"] < 0:
        raise invalid("ScalingAdjustment must not be negative for ExactCapacity.")
    return Step(lower, upper, int(row["ScalingAdjustment"]))


def _check_steps(steps: tuple[Step, ...]) -> None:
    for before, after in itertools.pairwise(steps):
        if before.upper > after.lower:
            raise invalid(f"Step adjustments must not overlap; two cover {after.lower:g}.")
        if before.upper < after.lower:
            raise invalid(f"Step adjustments must not leave a gap; none covers {before.upper:g} to {after.lower:g}.")
    if -math.inf < steps[0].lower < 0:
        raise invalid("With a negative lower bound there must be a step adjustment without a lower bound.")
    if math.inf > steps[-1].upper > 0:
        raise invalid("With a positive upper bound there must be a step adjustment without an upper bound.")


def _watched(configuration: Document, place: Place) -> tuple[Watched, int]:
    predefined = configuration.get("PredefinedMetricSpecification")
    customized = configuration.get("CustomizedMetricSpecification")
    if (predefined is None) == (customized is None):
        raise invalid("Exactly one of PredefinedMetricSpecification and CustomizedMetricSpecification is required.")
    if predefined is not None:
        return _predefined(predefined, place)
    try:
        return _customized(customized or {}), MINUTE_S
    except ExpressionError as error:
        raise invalid(f"Metrics cannot be used: {error}.") from error


def _predefined(specification: Mapping[str, Any], place: Place) -> tuple[Watched, int]:
    kind = specification["PredefinedMetricType"]
    if "ResourceLabel" in specification:
        raise invalid("ResourceLabel can be given for ALBRequestCountPerTarget only.")
    found = PREDEFINED.get(kind)
    if found is None or found.dimension != place.dimension:
        raise invalid(f"Predefined metric type {kind} is not supported for scalable dimension {place.dimension}.")
    dimensions = (("EndpointName", place.endpoint), ("VariantName", place.variant))
    return alarms.watch_one(Metric("AWS/SageMaker", found.name, dimensions, found.stat)), found.period_s


def _customized(specification: Mapping[str, Any]) -> Watched:
    if queries := specification.get("Metrics"):
        return alarms.watch_queries(queries)
    if missing := [n for n in ("MetricName", "Namespace", "Statistic") if n not in specification]:
        raise invalid(f"CustomizedMetricSpecification needs Metrics, or {', '.join(missing)}.")
    return alarms.watch_one(alarms.metric_of(specification, specification["Statistic"], specification.get("Unit")))


def _cooldown_s(configuration: Document, name: str) -> float:
    value = float(configuration.get(name, DEFAULT_COOLDOWN_S))
    if value < 0:
        raise invalid(f"{name} must not be negative; got {value:g}.")
    return value


def _name(place: Place, which: str, names: Sequence[str]) -> str:
    start = f"TargetTracking-{place.resource_id}-{which}-"
    return next((name for name in names if name.startswith(start)), f"{start}{uuid.uuid4()}")

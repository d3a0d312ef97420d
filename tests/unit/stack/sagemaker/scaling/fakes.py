"""Fakes of what Application Auto Scaling works with: a service with variants, and a CloudWatch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.stack.sagemaker.api.wire import AwsError, invalid
from workbench.stack.sagemaker.scaling.alarms import Alarm, State
from workbench.stack.sagemaker.scaling.readings import Wanted
from workbench.stack.sagemaker.scaling.resources import CONCURRENCY, INSTANCES, Dimension, Reading
from workbench.stack.sagemaker.scaling.service import AutoScaling
from workbench.stack.sagemaker.settings import Settings

RESOURCE = "endpoint/e/variant/A"
KEY = {"ServiceNamespace": "sagemaker", "ResourceId": RESOURCE, "ScalableDimension": INSTANCES}


@dataclass
class Variants:
    """One variant `A` of an endpoint `e`, with an instance count and a provisioned concurrency."""

    readings: dict[Dimension, Reading] = field(
        default_factory=lambda: {INSTANCES: Reading(1, True), CONCURRENCY: Reading(2, True, 1, 20)}
    )
    refusal: AwsError | None = None

    def read(self, endpoint: str, variant: str, dimension: Dimension) -> Reading:
        """See `Resources`."""
        if (endpoint, variant) != ("e", "A"):
            raise invalid(f"Variant {variant} of endpoint {endpoint} not found.")
        return self.readings[dimension]

    def change(self, endpoint: str, variant: str, dimension: Dimension, count: int) -> None:
        """See `Resources`."""
        if self.refusal:
            raise self.refusal
        self.set(dimension, desired=count, steady=False, failure=None)

    def set(self, dimension: Dimension = INSTANCES, **changes: Any) -> None:
        """Change what is read."""
        self.readings[dimension] = replace(self.readings[dimension], **changes)


@dataclass
class CloudWatch:
    """Series by metric name (seconds to values), alarms by name, and what the service told it."""

    series: dict[str, dict[int, float]] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    kept: dict[str, Alarm] = field(default_factory=dict)
    told: dict[str, tuple[State, str]] = field(default_factory=dict)
    asked: list[tuple[set[Wanted], int, int]] = field(default_factory=list)

    def points(self, wanted: Iterable[Wanted], start: int, end: int) -> dict[Wanted, dict[int, float]]:
        """See `readings.CloudWatch`."""
        every = set(wanted)
        self.asked.append((every, start, end))
        known = {each: self.series.get(each.metric.name, {}) for each in every}
        return {each: {at: v for at, v in values.items() if start <= at < end} for each, values in known.items()}

    def put(self, alarm: Alarm, policy_arn: str) -> None:
        """See `readings.CloudWatch`."""
        self.kept[alarm.name] = alarm

    def delete(self, names: Sequence[str]) -> None:
        """See `readings.CloudWatch`."""
        for name in names:
            self.kept.pop(name, None)

    def states(self, names: Sequence[str]) -> dict[str, str]:
        """See `readings.CloudWatch`."""
        return {n: self.told[n][0] if n in self.told else "INSUFFICIENT_DATA" for n in names if n in self.kept}

    def tell(self, name: str, state: State, reason: str) -> None:
        """See `readings.CloudWatch`."""
        self.told[name] = (state, reason)

    def alarms_with_actions(self) -> list[Mapping[str, Any]]:
        """See `readings.CloudWatch`."""
        return list(self.rows)


def service(variants: Variants | None = None, **settings: Any) -> AutoScaling:
    """The service over the fake variants."""
    return AutoScaling(Settings(state_dir=Path(), **settings), variants or Variants())

"""An alarm as one row: what is measured, where the line is, and for how long it must be crossed.

Every alarm of the stack is silent where nothing is measured, tells the stack file's topic of trouble and of its end,
and is called `inferlane-{stack}-{name}`. (The alarms that roll an endpoint's update back are the lanes' own.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pulumi
import pulumi_aws as aws

from infra import naming
from infra.config import AlarmsConfig

PERIOD_S = 60
PERIODS = 5
BAD_PERIODS = 3
"""Three bad minutes of five: one bad minute wakes nobody, a flapping fault does."""
FEWEST = 20
"""Below this many in a minute a share says nothing."""


@dataclass(frozen=True)
class Metric:
    """A metric of CloudWatch, and what is taken of a period's values."""

    namespace: str
    name: str
    dimensions: Mapping[str, pulumi.Input[str]]
    statistic: Literal["Sum", "Average", "Maximum", "p99"]


@dataclass(frozen=True)
class Share:
    """How many of all, in percent. The ids are those of the queries."""

    all: tuple[str, Metric]
    part: tuple[str, Metric]
    label: str


@dataclass(frozen=True)
class Alarm:
    """One alarm."""

    name: str
    """Its resource's too."""
    says: str
    measured: Metric | Share
    line: float
    period_s: int = PERIOD_S
    periods: int = PERIODS
    bad_periods: int = BAD_PERIODS
    rings: Literal["above", "at_least"] = "above"


@dataclass(frozen=True)
class Bell:
    """Whose alarms these are, and whom they tell."""

    stack: str
    config: AlarmsConfig
    tags: Mapping[str, str]
    parent: pulumi.Resource

    def hang(self, alarm: Alarm) -> aws.cloudwatch.MetricAlarm:
        """The alarm as a resource."""
        told = [self.config.topic] if self.config.topic else []
        measured, percentile = alarm.measured, None
        single = measured if isinstance(measured, Metric) else None
        if single and single.statistic == "p99":
            percentile = single.statistic
        return aws.cloudwatch.MetricAlarm(
            alarm.name,
            name=naming.stack_name(self.stack, alarm.name),
            alarm_description=alarm.says,
            metric_queries=_queries(measured, alarm.period_s) if isinstance(measured, Share) else None,
            namespace=single.namespace if single else None,
            metric_name=single.name if single else None,
            dimensions=single.dimensions if single else None,
            statistic=single.statistic if single and not percentile else None,
            extended_statistic=percentile,
            # With too few samples for a percentile the alarm keeps its state.
            evaluate_low_sample_count_percentiles="ignore" if percentile else None,
            period=alarm.period_s if single else None,
            comparison_operator="GreaterThanThreshold" if alarm.rings == "above" else "GreaterThanOrEqualToThreshold",
            threshold=alarm.line,
            evaluation_periods=alarm.periods,
            datapoints_to_alarm=alarm.bad_periods,
            treat_missing_data="notBreaching",
            alarm_actions=told,
            ok_actions=told,
            tags=self.tags,
            opts=pulumi.ResourceOptions(parent=self.parent),
        )


def _queries(share: Share, period_s: int) -> list[aws.cloudwatch.MetricAlarmMetricQueryArgsDict]:
    (all_id, _), (part_id, _) = share.all, share.part
    counts: list[aws.cloudwatch.MetricAlarmMetricQueryArgsDict] = [
        {
            "id": id_,
            "metric": {
                "namespace": metric.namespace,
                "metric_name": metric.name,
                "dimensions": metric.dimensions,
                "stat": metric.statistic,
                "period": period_s,
            },
        }
        for id_, metric in (share.all, share.part)
    ]
    return [
        *counts,
        {
            "id": "share",
            "expression": f"IF({all_id} >= {FEWEST}, 100 * {part_id} / {all_id}, 0)",
            "label": share.label,
            "return_data": True,
        },
    ]

"""What Application Auto Scaling reads and keeps in the account's CloudWatch. Blocking calls, all of them.

Series come from GetMetricData, raw: the host's expressions and its own evaluation of alarms are not relied on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from workbench.stack.sagemaker.scaling.alarms import Alarm, Metric, State
from workbench.stack.sagemaker.scaling.metric_math import Expression

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_cloudwatch.literals import StandardUnitType
    from mypy_boto3_cloudwatch.type_defs import (
        DimensionTypeDef,
        MetricDataQueryTypeDef,
        MetricStatTypeDef,
        MetricTypeDef,
    )

QUERIES_PER_CALL = 500
NAMES_PER_CALL = 100


class Wanted(NamedTuple):
    """A metric by periods of so many real seconds."""

    metric: Metric
    period_s: int


class CloudWatch:
    """The account's CloudWatch."""

    def __init__(self, client: CloudWatchClient) -> None:
        self._client = client

    def points(self, wanted: Iterable[Wanted], start: int, end: int) -> dict[Wanted, dict[int, float]]:
        """Values by the epoch second at which their period starts, from `start` to before `end`."""
        found: dict[Wanted, dict[int, float]] = {each: {} for each in wanted}
        for part in _batches(list(found), QUERIES_PER_CALL):
            queries: list[MetricDataQueryTypeDef] = [_query(f"q{number}", each) for number, each in enumerate(part)]
            pages = self._client.get_paginator("get_metric_data").paginate(
                MetricDataQueries=queries,
                StartTime=datetime.fromtimestamp(start, UTC),
                EndTime=datetime.fromtimestamp(end, UTC),
            )
            for page in pages:
                for result in page["MetricDataResults"]:
                    values = found[part[int(result["Id"][1:])]]
                    rows = zip(result["Timestamps"], result["Values"], strict=True)
                    values.update({int(at.timestamp()): value for at, value in rows})
        return found

    def put(self, alarm: Alarm, policy_arn: str) -> None:
        """Create or change the alarm that stands for `alarm`."""
        self._client.put_metric_alarm(**put_request(alarm, policy_arn))

    def delete(self, names: Sequence[str]) -> None:
        """Delete alarms; those that do not exist are ignored."""
        for part in _batches(list(names), NAMES_PER_CALL):
            self._client.delete_alarms(AlarmNames=part)

    def states(self, names: Sequence[str]) -> dict[str, str]:
        """The states that alarms of these names have there."""
        found: dict[str, str] = {}
        for part in _batches(list(names), NAMES_PER_CALL):
            rows = self._client.describe_alarms(AlarmNames=part, MaxRecords=NAMES_PER_CALL)["MetricAlarms"]
            found |= {row["AlarmName"]: row["StateValue"] for row in rows}
        return found

    def tell(self, name: str, state: State, reason: str) -> None:
        """Have the alarm there show this state."""
        self._client.set_alarm_state(AlarmName=name, StateValue=state, StateReason=reason)

    def alarms_with_actions(self) -> list[Mapping[str, Any]]:
        """Metric alarms whose actions are enabled and name something."""
        pages = self._client.get_paginator("describe_alarms").paginate(AlarmTypes=["MetricAlarm"])
        rows = [row for page in pages for row in page["MetricAlarms"]]
        return [row for row in rows if row.get("AlarmActions") and row.get("ActionsEnabled", True)]


def put_request(alarm: Alarm, policy_arn: str) -> dict[str, Any]:
    """PutMetricAlarm's request for an alarm of a target tracking policy."""
    rule = alarm.rule
    request: dict[str, Any] = {
        "AlarmName": alarm.name,
        "AlarmDescription": f"DO NOT EDIT OR DELETE. For TargetTrackingScaling policy {policy_arn}.",
        "ActionsEnabled": True,
        "AlarmActions": [policy_arn],
        "EvaluationPeriods": rule.periods,
        "ComparisonOperator": rule.comparison,
        "Threshold": rule.threshold,
    }
    watched = alarm.watched
    if not watched.expressions:
        metric = watched.metrics[watched.result]
        statistic = "ExtendedStatistic" if metric.stat.startswith("p") else "Statistic"
        unit = {"Unit": metric.unit} if metric.unit else {}
        return request | _metric(metric) | {statistic: metric.stat, "Period": alarm.period_s} | unit
    raw = [
        _query(name, Wanted(metric, alarm.period_s)) | {"ReturnData": False} for name, metric in watched.metrics.items()
    ]
    made = [_expression(name, each, name == watched.result) for name, each in watched.expressions.items()]
    return request | {"Metrics": [*raw, *made]}


def _expression(name: str, expression: Expression, returned: bool) -> dict[str, Any]:
    return {"Id": name, "Expression": expression.text, "ReturnData": returned}


def _metric(metric: Metric) -> MetricTypeDef:
    dimensions: list[DimensionTypeDef] = [{"Name": name, "Value": value} for name, value in metric.dimensions]
    return {"Namespace": metric.namespace, "MetricName": metric.name, "Dimensions": dimensions}


def _query(name: str, wanted: Wanted) -> MetricDataQueryTypeDef:
    metric = wanted.metric
    stat: MetricStatTypeDef = {"Metric": _metric(metric), "Period": wanted.period_s, "Stat": metric.stat}
    if metric.unit:
        stat["Unit"] = cast("StandardUnitType", metric.unit)
    return {"Id": name, "MetricStat": stat}


def _batches(items: list[Any], size: int) -> Iterable[list[Any]]:
    return (items[first : first + size] for first in range(0, len(items), size))

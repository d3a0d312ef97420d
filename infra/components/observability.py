"""Alarms on what callers see of the router, and on what it sees itself.

What callers see, per model: the share of failed requests, and the slow end of their latency. Both are the router's own
counts, so a request that failed on one lane and was answered by another counts as answered. They are silent while
hardly anybody calls: three failures of four requests are no outage.

What the router sees: a lane that its breaker keeps shut, which callers feel in nothing but the bill, and a snapshot of
the metrics that is not renewed, after which decisions are made by defaults. A snapshot is renewed by requests, so the
first of a quiet night's may be decided by an old one: one bad minute, which no alarm here minds.

Where the stack names a topic, it is told; without one, the alarms are there to be looked at and to roll back a policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import metrics, naming
from infra.config import AlarmsConfig

PERIOD_S = 60
PERIODS = 5
BAD_PERIODS = 3
"""Three bad minutes of five: one bad minute wakes nobody, a flapping fault does."""
FEWEST_REQUESTS = 20
"""Below this a minute's share of failures says nothing."""
MOSTLY_SHUT = 0.5
"""Share of a minute's decisions that met a lane's breaker not closed."""
OLD_SNAPSHOT_S = 300
"""Half the age at which the router no longer believes a snapshot (`functions/core/snapshot.py`): with the minutes that
it takes an alarm to speak, somebody hears of it before decisions change."""
MISSED_READINGS = 4
"""Where snapshots live long, this many lives are old: one reading may fail."""


@dataclass(frozen=True)
class ObservabilityArgs:
    """Which models and lanes to watch, where to draw the line, whom to tell."""

    stack: str
    models: Sequence[str]
    lanes: Sequence[tuple[str, naming.Lane]]
    """(model, lane)."""
    snapshot_ttl_s: float
    """How often the router reads the metrics anew."""
    config: AlarmsConfig
    tags: Mapping[str, str]


class Observability(pulumi.ComponentResource):
    """The alarms of a stack's router."""

    errors: list[aws.cloudwatch.MetricAlarm]
    """One a model, in the models' order: what a new policy must not set off."""

    def __init__(self, name: str, args: ObservabilityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:Observability", name, None, opts)
        self.errors = [self._errors(model, args) for model in args.models]
        for model in args.models:
            self._latency(model, args)
        for model, lane in args.lanes:
            self._breaker(model, lane, args)
        self._snapshot(args)
        self.register_outputs({})

    def _errors(self, model: str, args: ObservabilityArgs) -> aws.cloudwatch.MetricAlarm:
        limit = args.config.errors_percent
        counts: list[aws.cloudwatch.MetricAlarmMetricQueryArgsDict] = [
            {
                "id": metric.lower(),
                "metric": {
                    "namespace": metrics.NAMESPACE,
                    "metric_name": metric,
                    "dimensions": metrics.of_model(args.stack, model),
                    "stat": "Sum",
                    "period": PERIOD_S,
                },
            }
            for metric in (metrics.REQUESTS, metrics.FAILURES)
        ]
        share: aws.cloudwatch.MetricAlarmMetricQueryArgsDict = {
            "id": "share",
            "expression": f"IF(requests >= {FEWEST_REQUESTS}, 100 * failures / requests, 0)",
            "label": "failed requests, %",
            "return_data": True,
        }
        return aws.cloudwatch.MetricAlarm(
            f"{model}-request-errors",
            name=naming.stack_name(args.stack, f"{model}-request-errors"),
            alarm_description=f"More than {limit} % of the requests for {model} end in a 5xx, whichever lane was tried",
            metric_queries=[*counts, share],
            comparison_operator="GreaterThanThreshold",
            threshold=limit,
            evaluation_periods=PERIODS,
            datapoints_to_alarm=BAD_PERIODS,
            treat_missing_data="notBreaching",
            alarm_actions=_told(args.config),
            ok_actions=_told(args.config),
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _latency(self, model: str, args: ObservabilityArgs) -> aws.cloudwatch.MetricAlarm:
        limit = args.config.p99_ms
        return aws.cloudwatch.MetricAlarm(
            f"{model}-request-p99",
            name=naming.stack_name(args.stack, f"{model}-request-p99"),
            alarm_description=f"One request in a hundred for {model} takes longer than {limit} ms, fallbacks included",
            namespace=metrics.NAMESPACE,
            metric_name=metrics.LATENCY_MS,
            dimensions=metrics.of_model(args.stack, model),
            extended_statistic="p99",
            # With too few samples for a percentile the alarm keeps its state.
            evaluate_low_sample_count_percentiles="ignore",
            period=PERIOD_S,
            comparison_operator="GreaterThanThreshold",
            threshold=limit,
            evaluation_periods=PERIODS,
            datapoints_to_alarm=BAD_PERIODS,
            treat_missing_data="notBreaching",
            alarm_actions=_told(args.config),
            ok_actions=_told(args.config),
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _breaker(self, model: str, lane: naming.Lane, args: ObservabilityArgs) -> aws.cloudwatch.MetricAlarm:
        return aws.cloudwatch.MetricAlarm(
            f"{model}-{lane}-breaker",
            name=naming.stack_name(args.stack, f"{model}-{lane}-breaker"),
            alarm_description=f"The router keeps requests for {model} away from {lane}: its attempts there fail",
            namespace=metrics.NAMESPACE,
            metric_name=metrics.breaker_open(lane),
            dimensions=metrics.of_model(args.stack, model),
            statistic="Average",
            period=PERIOD_S,
            comparison_operator="GreaterThanOrEqualToThreshold",
            threshold=MOSTLY_SHUT,
            evaluation_periods=PERIODS,
            datapoints_to_alarm=BAD_PERIODS,
            treat_missing_data="notBreaching",
            alarm_actions=_told(args.config),
            ok_actions=_told(args.config),
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _snapshot(self, args: ObservabilityArgs) -> aws.cloudwatch.MetricAlarm:
        limit_s = max(OLD_SNAPSHOT_S, MISSED_READINGS * args.snapshot_ttl_s)
        return aws.cloudwatch.MetricAlarm(
            "stale-snapshot",
            name=naming.stack_name(args.stack, "stale-snapshot"),
            alarm_description=f"Requests are decided by metrics older than {limit_s:g} s: the router cannot read them",
            namespace=metrics.NAMESPACE,
            metric_name=metrics.SNAPSHOT_AGE_S,
            dimensions=metrics.of_stack(args.stack),
            # The worst decision, so that one instance that reads nothing is heard of, too.
            statistic="Maximum",
            period=PERIOD_S,
            comparison_operator="GreaterThanThreshold",
            threshold=limit_s,
            evaluation_periods=PERIODS,
            datapoints_to_alarm=BAD_PERIODS,
            treat_missing_data="notBreaching",
            alarm_actions=_told(args.config),
            ok_actions=_told(args.config),
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )


def _told(config: AlarmsConfig) -> list[str]:
    return [config.topic] if config.topic else []

"""Alarms on what callers see of the router: the share of failed requests and the slow end of its latency, per model.

Both are the router's own counts, so a request that failed on one lane and was answered by another counts as answered.
An alarm speaks once something is wrong for minutes, and is silent while hardly anybody calls: three failures of four
requests are no outage. Where the stack names a topic, it is told; without one, the alarms are there to be looked at
and to roll back a policy.
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


@dataclass(frozen=True)
class ObservabilityArgs:
    """Which models to watch, where to draw the line, whom to tell."""

    stack: str
    models: Sequence[str]
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


def _told(config: AlarmsConfig) -> list[str]:
    return [config.topic] if config.topic else []

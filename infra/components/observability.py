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
from infra.alarms import Alarm, Bell, Metric, Share
from infra.config import AlarmsConfig

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
        bell = Bell(args.stack, args.config, args.tags, self)
        self.errors = [bell.hang(_errors(model, args)) for model in args.models]
        for alarm in (
            *(_latency(model, args) for model in args.models),
            *(_breaker(model, lane, args) for model, lane in args.lanes),
            _snapshot(args),
        ):
            bell.hang(alarm)
        self.register_outputs({})


def _errors(model: str, args: ObservabilityArgs) -> Alarm:
    limit, dimensions = args.config.errors_percent, metrics.of_model(args.stack, model)
    requests, failures = (
        (name.lower(), Metric(metrics.NAMESPACE, name, dimensions, "Sum"))
        for name in (metrics.REQUESTS, metrics.FAILURES)
    )
    return Alarm(
        name=f"{model}-request-errors",
        says=f"More than {limit} % of the requests for {model} end in a 5xx, whichever lane was tried",
        measured=Share(requests, failures, "failed requests, %"),
        line=limit,
    )


def _latency(model: str, args: ObservabilityArgs) -> Alarm:
    limit = args.config.p99_ms
    return Alarm(
        name=f"{model}-request-p99",
        says=f"One request in a hundred for {model} takes longer than {limit} ms, fallbacks included",
        measured=Metric(metrics.NAMESPACE, metrics.LATENCY_MS, metrics.of_model(args.stack, model), "p99"),
        line=limit,
    )


def _breaker(model: str, lane: naming.Lane, args: ObservabilityArgs) -> Alarm:
    return Alarm(
        name=f"{model}-{lane}-breaker",
        says=f"The router keeps requests for {model} away from {lane}: its attempts there fail",
        measured=Metric(metrics.NAMESPACE, metrics.breaker_open(lane), metrics.of_model(args.stack, model), "Average"),
        line=MOSTLY_SHUT,
        rings="at_least",
    )


def _snapshot(args: ObservabilityArgs) -> Alarm:
    limit_s = max(OLD_SNAPSHOT_S, MISSED_READINGS * args.snapshot_ttl_s)
    return Alarm(
        name="stale-snapshot",
        says=f"Requests are decided by metrics older than {limit_s:g} s: the router cannot read them",
        # The worst decision, so that one instance that reads nothing is heard of, too.
        measured=Metric(metrics.NAMESPACE, metrics.SNAPSHOT_AGE_S, metrics.of_stack(args.stack), "Maximum"),
        line=limit_s,
    )

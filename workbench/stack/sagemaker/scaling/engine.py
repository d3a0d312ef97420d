"""Application Auto Scaling at work: a loop that evaluates alarms, carries out schedules and sees changes to their end.

Each alarm is evaluated once a period, when the period and the metrics' lag are over; while it is in ALARM its policy is
asked anew each time. Alarms are evaluated here and not by the account's CloudWatch, whose emulator ignores dimensions
and DatapointsToAlarm; what target tracking made is kept there too, with the state found here, to be looked at.
A period is the alarm's own divided by the time scale, but at least one second, the finest that GetMetricData knows: so
a minute's alarms are exact up to a scale of 60, those of ten seconds up to 10.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from botocore.exceptions import BotoCoreError, ClientError

from workbench.stack.sagemaker.scaling import alarms
from workbench.stack.sagemaker.scaling.alarms import COMPARISONS, Alarm, Missing, Rule, State, Verdict
from workbench.stack.sagemaker.scaling.capacity import Demand
from workbench.stack.sagemaker.scaling.demands import Stepping, Tracking
from workbench.stack.sagemaker.scaling.metric_math import ExpressionError, Series
from workbench.stack.sagemaker.scaling.policies import Policy
from workbench.stack.sagemaker.scaling.readings import CloudWatch, Wanted, put_request
from workbench.stack.sagemaker.scaling.service import AutoScaling
from workbench.stack.sagemaker.scaling.targets import Target
from workbench.stack.sagemaker.settings import Settings

log = logging.getLogger(__name__)
TICK_S = 10.0
SHORTEST_TICK_S, LONGEST_TICK_S = 0.2, 5.0


class Duty(NamedTuple):
    """An alarm that acts for a policy. `host_state` counts where the alarm cannot be evaluated here."""

    target: Target
    policy: Policy
    alarm: Alarm
    host_state: State | None = None


class Judged(NamedTuple):
    """An alarm's last evaluation, and the end of its last period."""

    verdict: Verdict
    end: int


@dataclass(slots=True)
class Engine:
    """Keeps the service's promises."""

    settings: Settings
    service: AutoScaling
    cloudwatch: CloudWatch
    _judged: dict[str, Judged] = field(default_factory=dict)
    """By alarm name."""
    _kept: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """What CloudWatch was told of our alarms, by name."""
    _complained: set[str] = field(default_factory=set)

    async def run_forever(self) -> None:
        """Tick."""
        tick_s = min(max(self.settings.clock.real(TICK_S), SHORTEST_TICK_S), LONGEST_TICK_S)
        while True:
            await self._pause(tick_s)
            try:
                await self.tick()
            except (BotoCoreError, ClientError) as error:
                self._complain(error)
            except Exception:
                log.exception("a look at the scaling policies failed; the next one is due in %g s", tick_s)

    async def tick(self) -> None:
        """Do all that is due. Raises botocore's errors."""
        service, clock = self.service, self.settings.clock
        for target, action in service.schedules.due(clock.now()):
            service.scaler.fire(target, action)
        for target in service.targets.all():
            service.scaler.watch(target)
            service.scaler.enforce(target)
        await self._keep_alarms()
        await self._evaluate(await self._duties())

    async def _pause(self, seconds: float) -> None:
        # A policy that was just put is not to wait for its alarms.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.service.changed.wait()
        self.service.changed.clear()

    # Alarms in the account's CloudWatch

    def _made(self) -> list[Duty]:
        every = [(t, p) for t in self.service.targets.all() for p in t.policies.values()]
        return [Duty(target, policy, alarm) for target, policy in every for alarm in policy.alarms]

    async def _keep_alarms(self) -> None:
        wanted = {d.alarm.name: d for d in self._made()}
        requests = {name: put_request(d.alarm, d.policy.arn) for name, d in wanted.items()}
        if gone := [name for name in self._kept if name not in wanted]:
            await asyncio.to_thread(self.cloudwatch.delete, gone)
            for name in gone:
                del self._kept[name]
                self._judged.pop(name, None)
        for name, duty in wanted.items():
            if self._kept.get(name) != requests[name]:
                await asyncio.to_thread(self.cloudwatch.put, duty.alarm, duty.policy.arn)
                self._kept[name] = requests[name]

    async def _show(self, duties: Sequence[Duty]) -> None:
        ours = [d for d in duties if d.alarm.name in self._kept]
        if not ours:
            return
        there = await asyncio.to_thread(self.cloudwatch.states, [d.alarm.name for d in ours])
        for duty in ours:
            verdict = self._judged[duty.alarm.name].verdict
            if there.get(duty.alarm.name, verdict.state) != verdict.state:
                reason = reason_of(duty.alarm.rule, verdict)
                await asyncio.to_thread(self.cloudwatch.tell, duty.alarm.name, verdict.state, reason)

    # Evaluation

    async def _duties(self) -> list[Duty]:
        steps = {
            policy.arn: (target, policy)
            for target in self.service.targets.all()
            for policy in target.policies.values()
            if isinstance(policy.rule, Stepping)
        }
        if not steps:
            return self._made()
        rows = await asyncio.to_thread(self.cloudwatch.alarms_with_actions)
        acting = [(row, arn) for row in rows for arn in row["AlarmActions"] if arn in steps]
        for arn, (_, policy) in steps.items():
            policy.seen = tuple(row["AlarmName"] for row, named in acting if named == arn)
        return [*self._made(), *(duty_of(row, *steps[arn]) for row, arn in acting)]

    async def _evaluate(self, duties: Sequence[Duty]) -> None:
        ends = {d.alarm.name: self._last_end(d.alarm) for d in duties}
        due = [d for d in duties if self._end_of(d.alarm) < ends[d.alarm.name]]
        if not due:
            return
        wanted = {w for d in due for w in self._wanted(d.alarm)}
        start = min(ends[d.alarm.name] - self._period_s(d.alarm) * d.alarm.rule.range for d in due)
        points = await asyncio.to_thread(self.cloudwatch.points, wanted, start, max(ends.values())) if wanted else {}
        for duty in due:
            end = ends[duty.alarm.name]
            self._judged[duty.alarm.name] = Judged(self._judge(duty, points, end), end)
        await self._show(due)
        for target in {id(d.target): d.target for d in due}.values():
            self._act(target, [d for d in duties if d.target is target])

    def _judge(self, duty: Duty, points: Mapping[Wanted, Mapping[int, float]], end: int) -> Verdict:
        alarm, period_s = duty.alarm, self._period_s(duty.alarm)
        if duty.host_state is not None:
            return Verdict(duty.host_state)
        starts = range(end - period_s * alarm.rule.range, end, period_s)
        read: dict[str, Series] = {
            name: tuple(points[Wanted(metric, period_s)].get(at) for at in starts)
            for name, metric in alarm.watched.metrics.items()
        }
        before = self._judged.get(alarm.name)
        series = alarm.watched.series(read, period_s, alarm.rule.range)
        return alarms.judge(alarm.rule, series, before.verdict.state if before else "INSUFFICIENT_DATA")

    def _act(self, target: Target, duties: Sequence[Duty]) -> None:
        demands = [demand for d in duties if (demand := self._demand(d)) is not None]
        lows = [p.rule.low.name for p in target.policies.values() if isinstance(p.rule, Tracking) and p.rule.low]
        self.service.scaler.act(target, demands, tracking_ready_in=all(self._state(name) == "ALARM" for name in lows))

    def _demand(self, duty: Duty) -> Demand | None:
        judged, rule = self._judged.get(duty.alarm.name), duty.policy.rule
        if judged is None or judged.verdict.state != "ALARM":
            return None
        if isinstance(rule, Stepping):
            return rule.demand(duty.policy.name, duty.alarm, judged.verdict)
        return rule.demand(duty.policy.name, duty.alarm.name, judged.verdict) if judged.verdict.points else None

    def _state(self, name: str) -> State | None:
        judged = self._judged.get(name)
        return judged.verdict.state if judged else None

    # Time

    def _period_s(self, alarm: Alarm) -> int:
        return max(round(self.settings.clock.real(alarm.period_s)), 1)

    def _last_end(self, alarm: Alarm) -> int:
        """The end of the last period whose metrics are all published, if they come in time."""
        settings, period_s = self.settings, self._period_s(alarm)
        late_s = settings.clock.real(settings.metric_lag_s) + settings.publish_every_s + SHORTEST_TICK_S
        return math.floor((time.time() - late_s) / period_s) * period_s

    def _end_of(self, alarm: Alarm) -> int:
        judged = self._judged.get(alarm.name)
        return judged.end if judged else 0

    def _wanted(self, alarm: Alarm) -> list[Wanted]:
        return [Wanted(metric, self._period_s(alarm)) for metric in alarm.watched.metrics.values()]

    def _complain(self, error: Exception) -> None:
        # A service's text may carry a request id, which would make every failure a new cause.
        text = error.response["Error"]["Code"] if isinstance(error, ClientError) else str(error)
        cause = f"{type(error).__name__}: {text}"
        if cause not in self._complained:
            self._complained.add(cause)
            log.warning("scaling policies cannot be evaluated, will be tried again: %s", cause)


def duty_of(row: Mapping[str, Any], target: Target, policy: Policy) -> Duty:
    """What an alarm of CloudWatch's, as DescribeAlarms has it, does for a policy."""
    name, periods = row["AlarmName"], int(row.get("EvaluationPeriods", 1))
    missing = cast(Missing, row.get("TreatMissingData", "missing"))
    comparison, threshold = row.get("ComparisonOperator", ""), float(row.get("Threshold", 0.0))
    rule = Rule(comparison, threshold, periods, int(row.get("DatapointsToAlarm", periods)), missing)
    try:
        if queries := row.get("Metrics"):
            watched, period_s = alarms.watch_queries(queries), _longest_period_s(queries)
        else:
            stat = row.get("ExtendedStatistic") or row.get("Statistic") or "Average"
            watched, period_s = alarms.watch_one(alarms.metric_of(row, stat, row.get("Unit"))), int(row["Period"])
    except (ExpressionError, KeyError):
        watched, period_s, comparison = alarms.Watched({}, {}, ""), 60, ""
    alarm = Alarm(name, watched, period_s, rule)
    host_state = None if comparison in COMPARISONS else cast(State, row["StateValue"])
    return Duty(target, policy, alarm, host_state)


def _longest_period_s(queries: Sequence[Mapping[str, Any]]) -> int:
    return max((int(q["MetricStat"]["Period"]) for q in queries if "MetricStat" in q), default=60)


def reason_of(rule: Rule, verdict: Verdict) -> str:
    """CloudWatch's words for a state."""
    if not verdict.points:
        return "Insufficient Data: no datapoints were received."
    words = {
        "GreaterThanThreshold": "greater than",
        "GreaterThanOrEqualToThreshold": "greater than or equal to",
        "LessThanThreshold": "less than",
        "LessThanOrEqualToThreshold": "less than or equal to",
    }[rule.comparison]
    breaching = sum(map(rule.breaches, verdict.points))
    values = ", ".join(f"{value:g}" for value in verdict.points)
    verb = "were" if verdict.state == "ALARM" else "were not"
    number = breaching if verdict.state == "ALARM" else len(verdict.points) - breaching
    return f"Threshold Crossed: {number} datapoints [{values}] {verb} {words} the threshold ({rule.threshold:g})."

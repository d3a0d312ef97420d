"""Alarms, schedules and changes put together, over fakes, tick by tick."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.unit.stack.sagemaker.scaling.fakes import KEY, CloudWatch, Variants, service
from workbench.stack.sagemaker.api.wire import AwsError
from workbench.stack.sagemaker.clock import Clock
from workbench.stack.sagemaker.scaling.engine import Engine
from workbench.stack.sagemaker.scaling.resources import INSTANCES
from workbench.stack.sagemaker.scaling.service import AutoScaling
from workbench.stack.sagemaker.settings import Settings

DIRECT = {"metric_lag_s": 0.0, "metric_period_s": 1}
INVOCATIONS = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
STEP = [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 2}]


@dataclass
class World:
    """The service at work over fakes. Everything happened in the past minutes, so that nothing has to be waited for."""

    variants: Variants = field(default_factory=Variants)
    cloudwatch: CloudWatch = field(default_factory=CloudWatch)
    settings: dict[str, Any] = field(default_factory=lambda: dict(DIRECT))

    def __post_init__(self) -> None:
        self.service: AutoScaling = service(self.variants, **self.settings)
        settings = Settings(state_dir=Path(), **self.settings)
        self.engine = Engine(settings, self.service, self.cloudwatch)  # type: ignore[arg-type]
        self.call("RegisterScalableTarget", MinCapacity=1, MaxCapacity=4)

    def call(self, operation: str, **more: Any) -> Any:
        """An operation on the target."""
        return self.service.operations[operation]({**KEY, **more})

    def track(self, target: float = 10.0, name: str = "p", **more: Any) -> list[str]:
        """Put a target tracking policy; its alarms' names."""
        configuration = {"TargetValue": target, "PredefinedMetricSpecification": INVOCATIONS, **more}
        kind = "TargetTrackingScaling"
        given = {"PolicyName": name, "PolicyType": kind, f"{kind}PolicyConfiguration": configuration}
        return [a["AlarmName"] for a in self.call("PutScalingPolicy", **given)["Alarms"]]

    def step(self, **more: Any) -> str:
        """Put a step scaling policy; its ARN."""
        configuration = {"AdjustmentType": "ChangeInCapacity", "StepAdjustments": STEP, **more}
        given = {"PolicyName": "s", "PolicyType": "StepScaling", "StepScalingPolicyConfiguration": configuration}
        return str(self.call("PutScalingPolicy", **given)["PolicyARN"])

    def minutes(self, *values: float | None, metric: str = "InvocationsPerInstance", period_s: int = 60) -> None:
        """Points of the last whole periods, newest last; nothing else."""
        end = math.floor((time.time() - 0.5) / period_s) * period_s
        starts = range(end - period_s * len(values), end, period_s)
        self.cloudwatch.series[metric] = {at: v for at, v in zip(starts, values, strict=True) if v is not None}

    def tick(self) -> None:
        """One tick, as if another period were over."""
        self.engine._judged = {n: j._replace(end=0) for n, j in self.engine._judged.items()}
        asyncio.run(self.engine.tick())

    def arrive(self, failure: str | None = None) -> None:
        """The change that goes on has come to its end."""
        self.variants.set(steady=True, failure=failure)
        self.tick()

    @property
    def desired(self) -> int:
        """Instances wanted."""
        return self.variants.readings[INSTANCES].desired

    def activities(self, **more: Any) -> list[dict[str, Any]]:
        """DescribeScalingActivities."""
        return list(self.call("DescribeScalingActivities", **more)["ScalingActivities"])


@pytest.mark.fidelity(
    "auto scaling",
    "an activity says what was set, which alarm and policy asked for it, and whether the service fulfilled it",
    source="public transcripts of describe-scaling-activities for sagemaker",
)
def test_out_and_its_story() -> None:
    """Three minutes above the target scale out in proportion; the activity tells it from beginning to end."""
    world = World()
    high, _ = world.track()
    world.minutes(25, 25)
    world.tick()
    assert world.desired == 1
    world.minutes(25, 25, 25)
    world.tick()
    assert world.desired == 3
    (activity,) = world.activities()
    assert activity["Description"] == "Setting desired instance count to 3."
    assert activity["Cause"] == f"monitor alarm {high} in state ALARM triggered policy p"
    assert activity["StatusCode"] == "InProgress"
    said = "Successfully set desired instance count to 3."
    assert activity["StatusMessage"] == f"{said} Waiting for change to be fulfilled by sagemaker."
    world.arrive()
    (activity,) = world.activities()
    assert activity["StatusCode"] == "Successful"
    assert activity["StatusMessage"] == f"{said} Change successfully fulfilled by sagemaker."
    assert activity["EndTime"] >= activity["StartTime"]


@pytest.mark.fidelity(
    "auto scaling",
    "A cooldown begins when the scaling activity has ended",
    source="Application Auto Scaling user guide: target tracking, step scaling",
)
def test_cooldown_counts_from_the_end() -> None:
    """The same metric asks for nothing more after it was answered; a larger one does at once."""
    world = World()
    world.track()
    world.minutes(15, 15, 15)
    world.tick()
    world.arrive()
    world.tick()
    assert world.desired == 2
    world.minutes(15, 15, 35)
    world.tick()
    assert world.desired == 4


@pytest.mark.fidelity(
    "auto scaling",
    "scaling in takes fifteen minutes below 0.9 x target, all of them with data",
    source="repost QUf450Wsd9RROGGOIwaolN9w",
)
def test_in() -> None:
    """Fourteen low minutes do nothing, nor fifteen with one at 0.9 x target; fifteen scale in by the largest."""
    world = World()
    world.variants.set(desired=4)
    world.track()
    world.minutes(*[1] * 14)
    world.tick()
    world.minutes(*[1] * 7, 9, *[1] * 7)
    world.tick()
    assert world.desired == 4
    world.minutes(*[1] * 7, 5, *[1] * 7)
    world.tick()
    assert world.desired == 2


@pytest.mark.fidelity(
    "auto scaling",
    "Scaling in needs every target tracking policy that has scale-in enabled to be ready for it",
    source="Application Auto Scaling user guide: target tracking",
)
def test_in_needs_every_tracking_policy() -> None:
    """A second policy that is not low keeps the capacity; without scale-in it has no say."""
    world = World()
    world.variants.set(desired=4)
    world.track()
    world.track(1.0, "q")
    world.minutes(*[1] * 15)
    world.tick()
    assert world.desired == 4
    world.track(1.0, "q", DisableScaleIn=True)
    world.tick()
    assert world.desired == 1


@pytest.mark.fidelity(
    "auto scaling",
    "an alarm that asks for more than may be is told once, as an activity that scaled nothing, to who asks for those",
    source="Application Auto Scaling user guide, Scaling activities; botocore NotScaledReason",
)
def test_not_scaled() -> None:
    """At the maximum, and while the endpoint cannot be changed."""
    world = World()
    world.variants.set(desired=4)
    world.track()
    world.minutes(99, 99, 99)
    world.tick()
    world.tick()
    assert world.activities() == []
    (activity,) = world.activities(IncludeNotScaledActivities=True)
    assert activity["NotScaledReasons"] == [{"Code": "AlreadyAtMaxCapacity", "MaxCapacity": 4}]
    assert (activity["StatusCode"], activity["Description"]) == ("Failed", "Attempting to scale due to alarm triggered")
    world.variants.set(steady=False)
    world.tick()
    activity = world.activities(IncludeNotScaledActivities=True)[0]
    assert activity["NotScaledReasons"] == [{"Code": "TargetServicePutResourceAsUnscalable"}]
    world.variants.set(steady=True, desired=1)
    world.minutes(*[0] * 15)
    world.tick()
    world.variants.set(desired=2)
    world.minutes(*[8] * 15)
    world.tick()
    found = [a["NotScaledReasons"][0] for a in world.activities(IncludeNotScaledActivities=True)[:2]]
    assert {"Code": "AlreadyAtMinCapacity", "MinCapacity": 1} in found
    assert {"Code": "AlreadyAtDesiredCapacity", "CurrentCapacity": 2} in found


def test_refused_and_unfulfilled() -> None:
    """What the service refuses is Failed, in its words; what it does not reach is Unfulfilled, without a cooldown."""
    world = World()
    world.track()
    world.minutes(25, 25, 25)
    world.variants.refusal = AwsError("ResourceLimitExceeded", "The limit is 1 Instances.")
    world.tick()
    assert world.activities()[0]["StatusCode"] == "Failed"
    reason = "Reason: The limit is 1 Instances. (Error code: ResourceLimitExceeded)"
    assert world.activities()[0]["StatusMessage"] == f"Failed to set desired instance count to 3. {reason}"
    world.variants.refusal = None
    world.tick()
    world.variants.set(desired=1)
    world.minutes(1, 1, 1)
    world.arrive("The primary container did not pass the ping health check.")
    assert world.activities()[0]["StatusCode"] == "Unfulfilled"
    assert "did not pass the ping health check" in world.activities()[0]["StatusMessage"]
    (target,) = world.service.targets.all()
    assert target.cooldown is None


@pytest.mark.fidelity(
    "auto scaling", "a capacity outside of new bounds is brought within them, and an activity says so",
    source="botocore RegisterScalableTarget; user guide, Scaling activities",
)  # fmt: skip
def test_bounds() -> None:
    """At registration, and after the endpoint has come to rest."""
    world = World()
    world.call("RegisterScalableTarget", MinCapacity=2)
    assert world.desired == 2
    (activity,) = world.activities()
    assert activity["Cause"] == "minimum capacity was set to 2"
    world.call("RegisterScalableTarget", MinCapacity=1, MaxCapacity=1)
    assert world.desired == 2
    world.variants.set(steady=True)
    world.service.settled("e")
    assert world.desired == 1
    assert world.activities()[0]["Cause"] == "maximum capacity was set to 1"


def alarm(arn: str, **more: Any) -> dict[str, Any]:
    """A row of DescribeAlarms that acts for the policy."""
    row: dict[str, Any] = {
        "AlarmName": "busy", "AlarmActions": [arn], "StateValue": "OK", "Namespace": "N", "MetricName": "Backlog",
        "Dimensions": [], "Statistic": "Average", "Period": 60, "EvaluationPeriods": 2, "Threshold": 5.0,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
    }  # fmt: skip
    return row | more


@pytest.mark.fidelity(
    "auto scaling",
    "an alarm whose actions name a step policy's ARN acts for it, and is shown with it",
    source="Application Auto Scaling user guide, Create a step scaling policy",
)
def test_step_scaling() -> None:
    """The alarm is evaluated by its own definition; the step for the aggregated breach is taken."""
    world = World()
    arn = world.step()
    world.cloudwatch.rows = [alarm(arn), alarm("arn:aws:sns:somewhere")]
    world.minutes(4, 6, metric="Backlog")
    world.tick()
    assert world.desired == 1
    world.minutes(5, 6, metric="Backlog")
    world.tick()
    assert world.desired == 3
    (policy,) = world.service.operations["DescribeScalingPolicies"]({"ServiceNamespace": "sagemaker"})[
        "ScalingPolicies"
    ]
    assert [a["AlarmName"] for a in policy["Alarms"]] == ["busy"]


@pytest.mark.fidelity(
    "auto scaling",
    "Step scaling follows its alarm's DatapointsToAlarm and TreatMissingData",
    source="CloudWatch user guide: evaluating an alarm",
)
def test_step_scaling_by_points_out_of_periods() -> None:
    """DatapointsToAlarm and TreatMissingData of the alarm are kept to."""
    world = World()
    arn = world.step()
    world.cloudwatch.rows = [alarm(arn, DatapointsToAlarm=1, TreatMissingData="notBreaching")]
    world.minutes(9, None, metric="Backlog")
    world.tick()
    assert world.desired == 3


def test_step_scaling_by_the_host_s_word() -> None:
    """An alarm that cannot be evaluated here counts by the state it has there, as a breach of no size."""
    world = World()
    arn = world.step()
    row = {"AlarmName": "composite", "AlarmActions": [arn], "StateValue": "ALARM"}
    world.cloudwatch.rows = [row]
    world.tick()
    assert world.desired == 3


@pytest.mark.fidelity(
    "auto scaling",
    "a scheduled action sets minimum and maximum, and the capacity follows",
    source="botocore PutScheduledAction",
)
def test_scheduled_actions() -> None:
    """At its time, again at the next one, not while suspended; the activity names it."""
    world = World()
    world.service.scaler.clock = Clock(60, origin=time.time())
    put = {"ScheduledActionName": "morning", "Schedule": "rate(1 minute)", "ScalableTargetAction": {"MinCapacity": 3}}
    world.call("PutScheduledAction", **put)
    (target,) = world.service.targets.all()
    action = target.actions["morning"]
    world.tick()
    assert world.desired == 1
    action.due = time.time() - 1
    world.tick()
    assert (world.desired, target.minimum, target.maximum) == (3, 3, 4)
    causes = [a["Cause"] for a in world.activities()]
    assert causes == ["minimum capacity was set to 3", "scheduled action name morning was triggered"]
    assert world.activities()[1]["Description"] == "Setting min capacity to 3 and max capacity to 4"
    assert action.due is not None
    assert action.due > time.time()
    suspended = {"ScheduledScalingSuspended": True}
    world.call("RegisterScalableTarget", MinCapacity=1, SuspendedState=suspended)
    action.due = time.time() - 1
    world.tick()
    assert target.minimum == 1


@pytest.mark.fidelity(
    "auto scaling",
    "A scheduled minimum above the maximum raises it, a maximum below the minimum lowers it",
    source="API reference: ScalableTargetAction",
)
@pytest.mark.parametrize(
    ("limits", "expected"),
    [({"MinCapacity": 6}, (6, 6)), ({"MaxCapacity": 1}, (1, 1)), ({"MinCapacity": 2, "MaxCapacity": 3}, (2, 3))],
)
def test_a_scheduled_limit_moves_the_other(limits: dict[str, int], expected: tuple[int, int]) -> None:
    """A minimum above the maximum raises it, a maximum below the minimum lowers it."""
    world = World()
    world.call("RegisterScalableTarget", MinCapacity=2, MaxCapacity=4)
    put = {"ScheduledActionName": "a", "Schedule": "rate(1 minute)", "ScalableTargetAction": limits}
    world.call("PutScheduledAction", **put)
    (target,) = world.service.targets.all()
    target.actions["a"].due = 0.0
    world.tick()
    assert (target.minimum, target.maximum) == expected


@pytest.mark.fidelity(
    "auto scaling",
    "a tracking policy's alarms are CloudWatch's, with their state, and go with it",
    source="repost QUf450Wsd9RROGGOIwaolN9w",
)
def test_alarms_are_kept_in_cloudwatch() -> None:
    """They appear, show the state found here, change with the policy, and are deleted with it or its target."""
    world = World()
    high, low = world.track()
    world.minutes(25, 25, 25)
    world.tick()
    assert set(world.cloudwatch.kept) == {high, low}
    state, reason = world.cloudwatch.told[high]
    assert state == "ALARM"
    assert reason == "Threshold Crossed: 3 datapoints [25, 25, 25] were greater than the threshold (10)."
    assert world.cloudwatch.told[low][0] == "OK"
    world.track(20.0, DisableScaleIn=True)
    world.tick()
    assert {n: a.rule.threshold for n, a in world.cloudwatch.kept.items()} == {high: 20.0}
    world.call("DeregisterScalableTarget")
    world.tick()
    assert world.cloudwatch.kept == {}


def test_an_alarm_is_evaluated_once_a_period() -> None:
    """A second look within the period reads and does nothing."""
    world = World()
    world.track()
    world.minutes(1, 1, 1)
    world.tick()
    asyncio.run(world.engine.tick())
    assert len(world.cloudwatch.asked) == 1


def test_time_scale_shortens_periods() -> None:
    """At a scale of 60 a minute's alarm looks at seconds."""
    world = World(settings=DIRECT | {"time_scale": 60.0})
    world.track()
    world.tick()
    wanted, start, end = world.cloudwatch.asked[0]
    assert {w.period_s for w in wanted} == {1}
    # AlarmLow's fifteen periods, and two more.
    assert end - start == 17


def test_a_deleted_endpoint_ends_its_change() -> None:
    """A target whose variant is gone does nothing, and its activity does not stay InProgress."""
    world = World()
    world.track()
    world.minutes(25, 25, 25)
    world.tick()
    (target,) = world.service.targets.all()

    def gone(*_: object) -> None:
        raise AwsError("ValidationException", "Could not find endpoint.")

    world.variants.read = gone  # type: ignore[method-assign, assignment]
    world.tick()
    assert world.activities()[0]["StatusCode"] == "Unfulfilled"
    assert target.change is None

"""Scalable targets, policies and scheduled actions as calls."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.unit.stack.sagemaker.scaling.fakes import KEY, RESOURCE, Variants, service
from workbench.stack.sagemaker.api.wire import AwsError
from workbench.stack.sagemaker.scaling.resources import CONCURRENCY
from workbench.stack.sagemaker.scaling.service import AutoScaling

INVOCATIONS = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
LAMBDA_S = {"PredefinedMetricType": "LambdaProvisionedConcurrencyUtilization"}
LABELLED = {**INVOCATIONS, "ResourceLabel": "x"}
TRACKING: dict[str, Any] = {"TargetValue": 5.0, "PredefinedMetricSpecification": INVOCATIONS}
STEPPING: dict[str, Any] = {
    "AdjustmentType": "ChangeInCapacity",
    "StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}],
}


@pytest.fixture
def scaling() -> AutoScaling:
    """The variant has one instance, and two of provisioned concurrency."""
    return service()


def call(scaling: AutoScaling, operation: str, **more: Any) -> Any:
    """An operation on the target."""
    return scaling.operations[operation]({**KEY, **more})


def put(scaling: AutoScaling, kind: str, configuration: dict[str, Any], **more: Any) -> Any:
    """PutScalingPolicy of a policy `p`."""
    given = {"PolicyName": "p", "PolicyType": kind, f"{kind}PolicyConfiguration": configuration}
    return call(scaling, "PutScalingPolicy", **(given | more))


def customized(**specification: Any) -> dict[str, Any]:
    """A target tracking configuration of a customized metric."""
    return {"TargetValue": 1, "CustomizedMetricSpecification": specification}


def described(scaling: AutoScaling) -> list[dict[str, Any]]:
    """DescribeScalingPolicies."""
    rows = scaling.operations["DescribeScalingPolicies"]({"ServiceNamespace": "sagemaker"})["ScalingPolicies"]
    return list(rows)


def test_registering_again_updates(scaling: AutoScaling) -> None:
    """A second registration changes what it names and keeps the rest; the ARN stays."""
    first = call(scaling, "RegisterScalableTarget", MinCapacity=1, MaxCapacity=4, Tags={"a": "b"})
    assert call(scaling, "RegisterScalableTarget", MaxCapacity=9) == first
    (target,) = scaling.targets.all()
    assert (target.minimum, target.maximum, target.tags) == (1, 9, {"a": "b"})
    assert [target.bounded(n) for n in (0, 5, 20)] == [1, 5, 9]
    (row,) = scaling.operations["DescribeScalableTargets"]({"ServiceNamespace": "sagemaker"})["ScalableTargets"]
    assert row["RoleARN"].endswith("AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint")
    assert row["SuspendedState"]["DynamicScalingInSuspended"] is False


def test_two_dimensions_are_two_targets(scaling: AutoScaling) -> None:
    """Instances and provisioned concurrency of one resource id are told apart."""
    call(scaling, "RegisterScalableTarget", MinCapacity=1, MaxCapacity=4)
    call(scaling, "RegisterScalableTarget", MinCapacity=2, MaxCapacity=20, ScalableDimension=CONCURRENCY)
    request = {"ServiceNamespace": "sagemaker", "ScalableDimension": CONCURRENCY}
    (row,) = scaling.operations["DescribeScalableTargets"](request)["ScalableTargets"]
    assert (row["MinCapacity"], row["MaxCapacity"]) == (2, 20)
    assert scaling.scaled("e") == {"A"}
    call(scaling, "DeregisterScalableTarget")
    assert scaling.scaled("e") == set()
    assert len(scaling.targets.all()) == 1


@pytest.mark.fidelity(
    "auto scaling",
    "a real-time variant keeps at least one instance, an asynchronous one may have none",
    source="repost QUf450Wsd9RROGGOIwaolN9w",
)
def test_least_capacity() -> None:
    """The service's own least is the least minimum."""
    variants = Variants()
    with pytest.raises(AwsError, match="MinCapacity must be at least 1"):
        call(service(variants), "RegisterScalableTarget", MinCapacity=0, MaxCapacity=2)
    variants.set(least=0)
    call(service(variants), "RegisterScalableTarget", MinCapacity=0, MaxCapacity=2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ServiceNamespace": "lambda"}, "lambda is not emulated"),
        ({"ScalableDimension": "sagemaker:inference-component:DesiredCopyCount"}, "is not emulated"),
        ({"ResourceId": "variant/A"}, "Unsupported resource ID"),
        ({"ResourceId": "endpoint/e/variant/B"}, "Variant B of endpoint e not found"),
        ({"MinCapacity": 0}, "at least 1"),
        ({"MinCapacity": 3}, "at most MaxCapacity"),
        ({"MinCapacity": None}, "required to register a new"),
        ({"ScalableDimension": CONCURRENCY, "MaxCapacity": 21}, "MaxCapacity must be at most 20"),
    ],
)
def test_bad_registrations(scaling: AutoScaling, changes: dict[str, Any], message: str) -> None:
    """A target that cannot be is refused with the reason."""
    request = {"MinCapacity": 1, "MaxCapacity": 2, **changes}
    with pytest.raises(AwsError, match=message):
        call(scaling, "RegisterScalableTarget", **{k: v for k, v in request.items() if v is not None})


def test_policies(scaling: AutoScaling) -> None:
    """A policy needs a target; putting it again replaces it under the same ARN, type and alarm names."""
    with pytest.raises(AwsError) as caught:
        put(scaling, "TargetTrackingScaling", TRACKING)
    assert caught.value.code == "ObjectNotFoundException"
    call(scaling, "RegisterScalableTarget", MinCapacity=1, MaxCapacity=4)
    first = put(scaling, "TargetTrackingScaling", TRACKING)
    assert put(scaling, "TargetTrackingScaling", {**TRACKING, "TargetValue": 7.0}) == first
    (policy,) = described(scaling)
    assert policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 7.0
    assert policy["Alarms"] == first["Alarms"]
    with pytest.raises(AwsError, match="cannot be changed"):
        put(scaling, "StepScaling", STEPPING)
    call(scaling, "DeleteScalingPolicy", PolicyName="p")
    assert described(scaling) == []
    with pytest.raises(AwsError, match="No scaling policy found"):
        call(scaling, "DeleteScalingPolicy", PolicyName="p")


@pytest.mark.fidelity(
    "auto scaling",
    "target tracking makes the alarms TargetTracking-<resource>-AlarmHigh-<uuid> and -AlarmLow-<uuid>",
    source="aws-controllers-k8s/applicationautoscaling-controller samples",
)
def test_alarm_names(scaling: AutoScaling) -> None:
    """Both alarms from the start, only AlarmHigh without scale-in, none for step scaling."""
    call(scaling, "RegisterScalableTarget", MinCapacity=1, MaxCapacity=4)
    high, low = put(scaling, "TargetTrackingScaling", TRACKING)["Alarms"]
    uuid = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    assert re.fullmatch(f"TargetTracking-{RESOURCE}-AlarmHigh-{uuid}", high["AlarmName"])
    assert re.fullmatch(f"TargetTracking-{RESOURCE}-AlarmLow-{uuid}", low["AlarmName"])
    assert high["AlarmARN"] == f"arn:aws:cloudwatch:us-east-1:000000000000:alarm:{high['AlarmName']}"
    assert put(scaling, "TargetTrackingScaling", {**TRACKING, "DisableScaleIn": True})["Alarms"] == [high]
    assert put(scaling, "StepScaling", STEPPING, PolicyName="s")["Alarms"] == []


@pytest.mark.fidelity(
    "auto scaling",
    "predefined metrics: 3 and 15 minutes of InvocationsPerInstance (Sum), 3 and 90 periods of 10 s of concurrency",
    source="repost QUf450Wsd9RROGGOIwaolN9w",
)
def test_what_predefined_metrics_watch(scaling: AutoScaling) -> None:
    """Metric, statistic, periods, and thresholds of the target and of 0.9 x target."""
    call(scaling, "RegisterScalableTarget", MinCapacity=1, MaxCapacity=4)
    call(scaling, "RegisterScalableTarget", MinCapacity=1, MaxCapacity=4, ScalableDimension=CONCURRENCY)
    rows = {
        "SageMakerVariantInvocationsPerInstance": ("InvocationsPerInstance", "Sum", 60, 3, 15),
        "SageMakerVariantConcurrentRequestsPerModelHighResolution": (
            "ConcurrentRequestsPerModel", "Average", 10, 3, 90,
        ),
        "SageMakerVariantProvisionedConcurrencyUtilization": (
            "ServerlessProvisionedConcurrencyUtilization", "Average", 60, 3, 15,
        ),
    }  # fmt: skip
    for kind, (name, stat, period_s, out, in_) in rows.items():
        dimension = {"ScalableDimension": CONCURRENCY} if "Provisioned" in kind else {}
        configuration = {"TargetValue": 10.0, "PredefinedMetricSpecification": {"PredefinedMetricType": kind}}
        put(scaling, "TargetTrackingScaling", configuration, PolicyName=kind, **dimension)
        policy = next(p for t in scaling.targets.all() for p in t.policies.values() if p.name == kind)
        high, low = policy.alarms
        metric = high.watched.metrics[high.watched.result]
        assert (metric.namespace, metric.name, metric.stat) == ("AWS/SageMaker", name, stat)
        assert metric.dimensions == (("EndpointName", "e"), ("VariantName", "A"))
        assert (high.period_s, low.period_s) == (period_s, period_s)
        assert (high.rule.datapoints, high.rule.periods, high.rule.threshold) == (out, out, 10.0)
        assert (low.rule.datapoints, low.rule.periods, low.rule.threshold) == (in_, in_, 9.0)


@pytest.mark.parametrize(
    ("kind", "configuration", "message"),
    [
        ("TargetTrackingScaling", {"TargetValue": 1}, "Exactly one of"),
        ("TargetTrackingScaling", {**TRACKING, "TargetValue": 0}, "TargetValue must be above zero"),
        ("TargetTrackingScaling", {**TRACKING, "ScaleInCooldown": -1}, "ScaleInCooldown must not be negative"),
        (
            "TargetTrackingScaling",
            {**TRACKING, "PredefinedMetricSpecification": LAMBDA_S},
            "is not supported for scalable",
        ),
        (
            "TargetTrackingScaling",
            {**TRACKING, "PredefinedMetricSpecification": LABELLED},
            "ResourceLabel can be given",
        ),
        ("TargetTrackingScaling", customized(MetricName="m"), "needs Metrics, or Namespace, Statistic"),
        (
            "TargetTrackingScaling",
            customized(Metrics=[{"Id": "a", "Expression": "SEARCH('x')"}]),
            "Metrics cannot be used: metric math function SEARCH is not emulated",
        ),
        ("StepScaling", {}, "AdjustmentType and at least one StepAdjustment are required"),
        ("PredictiveScaling", {}, "PredictiveScaling is not supported for service namespace sagemaker"),
    ],
)
def test_bad_policies(scaling: AutoScaling, kind: str, configuration: dict[str, Any], message: str) -> None:
    """A policy that could never act is refused with the reason."""
    call(scaling, "RegisterScalableTarget", MinCapacity=1, MaxCapacity=4)
    with pytest.raises(AwsError, match=re.escape(message)):
        put(scaling, kind, configuration)
    with pytest.raises(AwsError, match="requires StepScalingPolicyConfiguration"):
        call(scaling, "PutScalingPolicy", PolicyName="p", PolicyType="StepScaling")


@pytest.mark.fidelity(
    "auto scaling",
    "step adjustments neither overlap nor leave gaps, and reach to infinity on the sides that they are on",
    source="Application Auto Scaling user guide, How step scaling works",
)
@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ([(0, 10), (5, None)], "must not overlap; two cover 5"),
        ([(0, 10), (20, None)], "must not leave a gap; none covers 10 to 20"),
        ([(None, -10), (-5, 0)], "none covers -10 to -5"),
        ([(-10, 0)], "there must be a step adjustment without a lower bound"),
        ([(0, 10)], "there must be a step adjustment without an upper bound"),
        ([(10, 0)], "MetricIntervalUpperBound 0 must be above MetricIntervalLowerBound 10"),
        ([(None, None)] * 21, "can have 20 step adjustments; got 21"),
    ],
)
def test_bad_steps(scaling: AutoScaling, bounds: list[tuple[float | None, float | None]], message: str) -> None:
    """Steps with two answers or none to a breach are refused."""
    names = ("MetricIntervalLowerBound", "MetricIntervalUpperBound")
    rows = [
        {"ScalingAdjustment": 1} | {n: b for n, b in zip(names, pair, strict=True) if b is not None} for pair in bounds
    ]
    call(scaling, "RegisterScalableTarget", MinCapacity=1, MaxCapacity=4)
    with pytest.raises(AwsError, match=re.escape(message)):
        put(scaling, "StepScaling", {**STEPPING, "StepAdjustments": rows})


def test_negative_exact_capacity(scaling: AutoScaling) -> None:
    """A capacity is not negative."""
    call(scaling, "RegisterScalableTarget", MinCapacity=1, MaxCapacity=4)
    rows = [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": -1}]
    with pytest.raises(AwsError, match="must not be negative for ExactCapacity"):
        put(scaling, "StepScaling", {"AdjustmentType": "ExactCapacity", "StepAdjustments": rows})


def test_targets_go_with_their_endpoint(scaling: AutoScaling) -> None:
    """Deregistering or deleting the endpoint takes targets and policies away."""
    call(scaling, "RegisterScalableTarget", MinCapacity=1, MaxCapacity=4)
    put(scaling, "TargetTrackingScaling", TRACKING)
    scaling.forget("e")
    assert described(scaling) == []
    with pytest.raises(AwsError, match="No scalable target found"):
        call(scaling, "DeregisterScalableTarget")

"""What of Application Auto Scaling outlives its process."""

from __future__ import annotations

import json

from tests.unit.stack.sagemaker.scaling.fakes import KEY, service
from workbench.stack.sagemaker.scaling import snapshot
from workbench.stack.sagemaker.scaling.service import AutoScaling


def described(of: AutoScaling) -> list[object]:
    """Everything the service says of its targets."""
    request = {"ServiceNamespace": "sagemaker"}
    names = ("DescribeScalableTargets", "DescribeScalingPolicies", "DescribeScheduledActions")
    return [of.operations[name](request) for name in names]


def test_round_trip() -> None:
    """Targets, policies with their alarms' names, and scheduled actions are the same after JSON and back."""
    before = service()
    tracking = {
        "TargetValue": 5.0,
        "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"},
    }
    stepping = {
        "AdjustmentType": "ChangeInCapacity",
        "StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}],
    }
    policies = {"t": ("TargetTrackingScaling", tracking), "s": ("StepScaling", stepping)}
    before.operations["RegisterScalableTarget"]({**KEY, "MinCapacity": 1, "MaxCapacity": 4, "Tags": {"a": "b"}})
    for name, (kind, configuration) in policies.items():
        policy = {"PolicyName": name, "PolicyType": kind, f"{kind}PolicyConfiguration": configuration}
        before.operations["PutScalingPolicy"](KEY | policy)
    action = {"Schedule": "rate(1 hour)", "ScalableTargetAction": {"MinCapacity": 2}}
    before.operations["PutScheduledAction"](KEY | action | {"ScheduledActionName": "a"})
    text = json.dumps(snapshot.save(before.targets.all()))
    after = service()
    for target in snapshot.load(json.loads(text), moment=1_000.0):
        after.targets.add(target)
    assert described(after) == described(before)
    (target,) = after.targets.all()
    assert target.tags == {"a": "b"}
    assert target.actions["a"].due == 4_600.0

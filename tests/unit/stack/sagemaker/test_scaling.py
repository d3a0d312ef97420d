"""Scalable targets and policies without endpoints."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.stack.sagemaker.api.wire import AwsError
from workbench.stack.sagemaker.scaling.targets import DIMENSION, Scaling

KEY = {"ServiceNamespace": "sagemaker", "ResourceId": "endpoint/e/variant/A", "ScalableDimension": DIMENSION}
TRACKING = {"TargetValue": 5.0, "PredefinedMetricSpecification": {"PredefinedMetricType": "X"}}


@pytest.fixture
def scaling() -> Scaling:
    """Every variant has one instance."""
    return Scaling("us-east-1", "000000000000", lambda endpoint, variant: 1)


def test_registering_again_updates(scaling: Scaling) -> None:
    """A second registration changes what it names and keeps the rest; the ARN stays."""
    first, _ = scaling.register({**KEY, "MinCapacity": 1, "MaxCapacity": 4, "Tags": {"a": "b"}}, 1.0)
    second, target = scaling.register({**KEY, "MaxCapacity": 9}, 2.0)
    assert first == second
    assert (target.minimum, target.maximum, target.created, target.tags) == (1, 9, 1.0, {"a": "b"})
    assert [target.bounded(n) for n in (0, 5, 20)] == [1, 5, 9]
    (row,) = scaling.describe_targets({"ServiceNamespace": "sagemaker"})["ScalableTargets"]
    assert row["RoleARN"].endswith("AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint")
    assert row["SuspendedState"]["DynamicScalingInSuspended"] is False


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ServiceNamespace": "lambda"}, "lambda is not emulated"),
        ({"ScalableDimension": "sagemaker:variant:DesiredProvisionedConcurrency"}, "is not emulated"),
        ({"ResourceId": "variant/A"}, "Unsupported resource ID"),
        ({"MinCapacity": 0}, "at least 1"),
        ({"MinCapacity": None}, "required to register a new"),
    ],
)
def test_bad_registrations(scaling: Scaling, changes: dict[str, Any], message: str) -> None:
    """A target that cannot be is refused with the reason."""
    request = {**KEY, "MinCapacity": 1, "MaxCapacity": 2, **changes}
    with pytest.raises(AwsError, match=message):
        scaling.register({k: v for k, v in request.items() if v is not None}, 1.0)


def test_policies(scaling: Scaling) -> None:
    """A policy needs a target and its own configuration; putting it again replaces it under the same ARN."""
    request = {**KEY, "PolicyName": "p", "PolicyType": "TargetTrackingScaling"}
    with pytest.raises(AwsError) as caught:
        scaling.put_policy({**request, "TargetTrackingScalingPolicyConfiguration": TRACKING}, 1.0)
    assert caught.value.code == "ObjectNotFoundException"
    scaling.register({**KEY, "MinCapacity": 1, "MaxCapacity": 4}, 1.0)
    with pytest.raises(AwsError, match="requires TargetTrackingScalingPolicyConfiguration"):
        scaling.put_policy(request, 1.0)
    with pytest.raises(AwsError, match="Exactly one of"):
        scaling.put_policy({**request, "TargetTrackingScalingPolicyConfiguration": {"TargetValue": 1}}, 1.0)
    first = scaling.put_policy({**request, "TargetTrackingScalingPolicyConfiguration": TRACKING}, 1.0)
    changed = {**TRACKING, "TargetValue": 7.0}
    assert scaling.put_policy({**request, "TargetTrackingScalingPolicyConfiguration": changed}, 2.0) == first
    (policy,) = scaling.describe_policies({"ServiceNamespace": "sagemaker"})["ScalingPolicies"]
    assert policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 7.0
    with pytest.raises(AwsError, match="cannot be changed"):
        scaling.put_policy({**request, "PolicyType": "StepScaling", "StepScalingPolicyConfiguration": {}}, 3.0)


def test_targets_go_with_their_endpoint(scaling: Scaling) -> None:
    """Deregistering or deleting the endpoint takes targets and policies away."""
    scaling.register({**KEY, "MinCapacity": 1, "MaxCapacity": 4}, 1.0)
    scaling.forget("e")
    assert scaling.of("e") == []
    with pytest.raises(AwsError, match="No scalable target found"):
        scaling.deregister(KEY)

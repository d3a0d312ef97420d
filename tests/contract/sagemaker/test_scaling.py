"""Application Auto Scaling's calls: targets bring counts within bounds, policies are kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from botocore.exceptions import ClientError

from tests.contract.sagemaker.emulator import VARIANT, Emulator, eventually

DIMENSION: Literal["sagemaker:variant:DesiredInstanceCount"] = "sagemaker:variant:DesiredInstanceCount"
RESOURCE = f"endpoint/scaled/variant/{VARIANT}"


@pytest.fixture(scope="module")
def scaled(running: Emulator) -> Iterator[Emulator]:
    """The emulator with a one-instance endpoint `scaled`."""
    running.endpoint("scaled", running.config("scaled", "model"))
    running.settled("scaled")
    yield running
    running.settled("scaled")
    running.sagemaker.delete_endpoint(EndpointName="scaled")


def register(emulator: Emulator, minimum: int, maximum: int, resource: str = RESOURCE) -> str:
    """RegisterScalableTarget."""
    return emulator.autoscaling.register_scalable_target(
        ServiceNamespace="sagemaker",
        ResourceId=resource,
        ScalableDimension=DIMENSION,
        MinCapacity=minimum,
        MaxCapacity=maximum,
        Tags={"team": "ml"},
    )["ScalableTargetARN"]


@pytest.mark.fidelity(
    "auto scaling",
    "Registering a target brings the count within its bounds; deregistering removes policies and leaves the count",
    source="API reference: RegisterScalableTarget, DeregisterScalableTarget",
)
def test_targets_and_policies(scaled: Emulator) -> None:
    """A target raises and lowers the count to its bounds, is described with its policies, and goes on request."""

    def count() -> int:
        return scaled.settled("scaled")["ProductionVariants"][0]["CurrentInstanceCount"]  # type: ignore[no-any-return]

    arn = register(scaled, 2, 3)
    eventually(lambda: count() == 2)
    register(scaled, 1, 1)
    eventually(lambda: count() == 1)
    client = scaled.autoscaling
    target = client.describe_scalable_targets(ServiceNamespace="sagemaker", ResourceIds=[RESOURCE])["ScalableTargets"][
        0
    ]
    assert (target["MinCapacity"], target["MaxCapacity"], target["ScalableTargetARN"]) == (1, 1, arn)
    assert client.list_tags_for_resource(ResourceARN=arn)["Tags"] == {"team": "ml"}
    client.put_scaling_policy(
        PolicyName="track",
        ServiceNamespace="sagemaker",
        ResourceId=RESOURCE,
        ScalableDimension=DIMENSION,
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={
            "TargetValue": 100,
            "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"},
        },
    )
    policies = client.describe_scaling_policies(ServiceNamespace="sagemaker", ResourceId=RESOURCE)["ScalingPolicies"]
    assert policies[0]["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 100
    keys = {"ServiceNamespace": "sagemaker", "ResourceId": RESOURCE, "ScalableDimension": DIMENSION}
    client.delete_scaling_policy(PolicyName="track", **keys)  # type: ignore[arg-type]
    client.deregister_scalable_target(**keys)  # type: ignore[arg-type]
    assert (
        client.describe_scalable_targets(ServiceNamespace="sagemaker", ResourceIds=[RESOURCE])["ScalableTargets"] == []
    )
    with pytest.raises(ClientError, match="ObjectNotFoundException"):
        client.deregister_scalable_target(**keys)  # type: ignore[arg-type]


@pytest.mark.fidelity(
    "auto scaling",
    "PutScheduledAction changes what it names; an action goes with its target",
    source="API reference: PutScheduledAction",
)
def test_scheduled_actions(scaled: Emulator) -> None:
    """An action is kept, changed by what an update names, listed, deleted, and gone with its target."""
    client: Any = scaled.autoscaling
    keys = {"ServiceNamespace": "sagemaker", "ResourceId": RESOURCE, "ScalableDimension": DIMENSION}

    def put(name: str, **more: Any) -> None:
        client.put_scheduled_action(ScheduledActionName=name, **keys, **more)

    def listed(**more: Any) -> Any:
        return client.describe_scheduled_actions(ServiceNamespace="sagemaker", **more)["ScheduledActions"]

    with pytest.raises(ClientError, match="ObjectNotFoundException"):
        put("morning", Schedule="rate(1 day)", ScalableTargetAction={"MinCapacity": 1})
    register(scaled, 1, 2)
    put(
        "morning",
        Schedule="cron(0 8 ? * MON-FRI *)",
        Timezone="Asia/Shanghai",
        StartTime=1_800_000_000,
        ScalableTargetAction={"MinCapacity": 1},
    )
    (before,) = listed(ResourceId=RESOURCE)
    put("morning", Schedule="rate(2 hours)")
    (after,) = listed(ScheduledActionNames=["morning"])
    assert before["StartTime"].timestamp() == 1_800_000_000
    assert "StartTime" not in after
    assert after["Schedule"] == "rate(2 hours)"
    for same in ("ScheduledActionARN", "Timezone", "ScalableTargetAction", "CreationTime"):
        assert after[same] == before[same]
    refused: list[tuple[dict[str, Any], str]] = [
        ({"Schedule": "cron(0 8 * * *)"}, "six fields; got 'cron(0 8 * * *)'"),
        ({"Timezone": "Mars/Olympus"}, "Timezone 'Mars/Olympus' is not known"),
        ({"ScalableTargetAction": {"MinCapacity": 3, "MaxCapacity": 2}}, "MinCapacity 3 is above MaxCapacity 2"),
    ]
    for wrong, message in refused:
        with pytest.raises(ClientError, match=re.escape(message)):
            put("morning", **wrong)
    with pytest.raises(ClientError, match="ScalableTargetAction needs MinCapacity"):
        put("evening", Schedule="rate(1 day)")
    assert listed() == [after]
    client.delete_scheduled_action(ScheduledActionName="morning", **keys)
    with pytest.raises(ClientError, match="No scheduled action found"):
        client.delete_scheduled_action(ScheduledActionName="morning", **keys)
    put("noon", Schedule="at(2030-01-01T12:00:00)", ScalableTargetAction={"MaxCapacity": 2})
    client.deregister_scalable_target(**keys)
    assert listed() == []


@pytest.mark.fidelity(
    "auto scaling",
    "Only an existing variant can be a target, at least one instance unless the endpoint is asynchronous",
    source="developer guide: endpoint-auto-scaling-prerequisites",
)
def test_refusals(scaled: Emulator) -> None:
    """Only an existing dedicated variant can be a target, within sensible bounds."""
    for resource, minimum, message in [
        ("endpoint/none/variant/AllTraffic", 1, "Could not find endpoint"),
        ("endpoint/scaled/variant/none", 1, "Variant none of endpoint scaled not found"),
        (f"endpoint/serverless/variant/{VARIANT}", 1, "is serverless"),
        (RESOURCE, 5, "MinCapacity must be at least 1 and at most MaxCapacity"),
    ]:
        with pytest.raises(ClientError, match=message):
            register(scaled, minimum, 3, resource)


@pytest.mark.fidelity(
    "auto scaling",
    "DesiredProvisionedConcurrency scales a serverless variant up to its MaxConcurrency",
    source="API reference: RegisterScalableTarget; developer guide: serverless-endpoints-autoscale",
)
def test_provisioned_concurrency(running: Emulator) -> None:
    """A target of a serverless variant raises and lowers its provisioned concurrency."""
    client: Any = running.autoscaling
    size: Any = {"MemorySizeInMB": 1024, "MaxConcurrency": 3, "ProvisionedConcurrency": 1}
    variant: Any = {"VariantName": VARIANT, "ModelName": "model", "ServerlessConfig": size}
    running.sagemaker.create_endpoint_config(EndpointConfigName="kept-scaled", ProductionVariants=[variant])
    running.endpoint("kept-scaled", "kept-scaled")
    running.settled("kept-scaled")
    keys = {"ServiceNamespace": "sagemaker", "ResourceId": f"endpoint/kept-scaled/variant/{VARIANT}"}
    dimension = {"ScalableDimension": "sagemaker:variant:DesiredProvisionedConcurrency"}

    def provisioned() -> int:
        seen = running.settled("kept-scaled")["ProductionVariants"][0]["CurrentServerlessConfig"]
        return int(seen["ProvisionedConcurrency"])

    try:
        with pytest.raises(ClientError, match="MaxCapacity must be at most 3"):
            client.register_scalable_target(**keys, **dimension, MinCapacity=1, MaxCapacity=4)
        client.register_scalable_target(**keys, **dimension, MinCapacity=2, MaxCapacity=3)
        eventually(lambda: provisioned() == 2)
        client.register_scalable_target(**keys, **dimension, MinCapacity=1, MaxCapacity=1)
        eventually(lambda: provisioned() == 1)
        rows = client.describe_scaling_activities(**keys)["ScalingActivities"]
        assert [r["Description"] for r in rows] == [f"Setting desired provisioned concurrency to {n}." for n in (1, 2)]
    finally:
        running.settled("kept-scaled")
        running.sagemaker.delete_endpoint(EndpointName="kept-scaled")

"""Application Auto Scaling at work on a real endpoint, sixty times as fast: from traffic, and from a schedule."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.sagemaker.emulator import VARIANT, Aws, Emulator, eventually

KEY: dict[str, Any] = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": f"endpoint/scaled/variant/{VARIANT}",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
# A minute is a second: bins, alarm periods, cooldowns and the start of an instance.
OPTIONS = ("--time-scale", "60", "--metric-period", "60", "--metric-lag", "0", "--instance-start", "60")


@pytest.fixture(scope="module")
def emulator(aws: Aws, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """An emulator of its own with a one-instance endpoint `scaled`, which may have two."""
    emulator = Emulator.start(tmp_path_factory.mktemp("fast") / "state", aws.url, *OPTIONS)
    emulator.model("model", FLAVOR="vanilla")
    emulator.endpoint("scaled", emulator.config("scaled", "model"))
    assert emulator.settled("scaled")["EndpointStatus"] == "InService"
    emulator.autoscaling.register_scalable_target(**KEY, MinCapacity=1, MaxCapacity=2)
    yield emulator
    emulator.stop()


def counts(emulator: Emulator) -> tuple[str, int, int]:
    """Status, desired and current instances."""
    seen = emulator.sagemaker.describe_endpoint(EndpointName="scaled")
    variant = seen["ProductionVariants"][0]
    return seen["EndpointStatus"], variant["DesiredInstanceCount"], variant["CurrentInstanceCount"]


def track(emulator: Emulator) -> None:
    """Ten invocations an instance and minute."""
    emulator.autoscaling.put_scaling_policy(
        **KEY,
        PolicyName="track",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={
            "TargetValue": 10,
            "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"},
            "ScaleOutCooldown": 60,
            "ScaleInCooldown": 60,
        },
    )


@pytest.mark.fidelity(
    "auto scaling",
    "target tracking scales an endpoint out after 3 minutes of traffic and in after 15 without, Updating meanwhile",
    source="repost QUf450Wsd9RROGGOIwaolN9w",
)
def test_one_two_one(emulator: Emulator, aws: Aws) -> None:
    """Traffic brings a second instance, its end takes one away; alarms and activities tell of it."""
    track(emulator)
    stopping = threading.Event()

    def traffic() -> None:
        while not stopping.wait(0.02):
            emulator.invoke("scaled")

    caller = threading.Thread(target=traffic)
    caller.start()
    try:
        eventually(lambda: counts(emulator) == ("Updating", 2, 1), 15)
        eventually(lambda: counts(emulator) == ("InService", 2, 2), 10)
    finally:
        stopping.set()
        caller.join()
    alarms = {
        a["AlarmName"].split("-Alarm")[1][:3]: a["StateValue"]
        for a in aws.cloudwatch.describe_alarms(AlarmNamePrefix=f"TargetTracking-{KEY['ResourceId']}")["MetricAlarms"]
    }
    assert set(alarms) == {"Hig", "Low"}
    eventually(lambda: counts(emulator) == ("InService", 1, 1), 30)
    rows = emulator.autoscaling.describe_scaling_activities(ServiceNamespace="sagemaker")["ScalingActivities"]
    assert [r["Description"] for r in rows] == [f"Setting desired instance count to {n}." for n in (1, 2)]
    assert {r["StatusCode"] for r in rows} == {"Successful"}
    emulator.autoscaling.delete_scaling_policy(**KEY, PolicyName="track")
    prefix = f"TargetTracking-{KEY['ResourceId']}"
    eventually(lambda: not aws.cloudwatch.describe_alarms(AlarmNamePrefix=prefix)["MetricAlarms"], 5)


@pytest.mark.fidelity(
    "auto scaling",
    "A scheduled action sets the bounds at its time, and the capacity follows",
    source="Application Auto Scaling user guide: scheduled scaling",
)
def test_by_the_clock(emulator: Emulator) -> None:
    """A scheduled action raises the minimum at its time, and the endpoint follows."""
    emulator.autoscaling.put_scheduled_action(
        **KEY, ScheduledActionName="up", Schedule="rate(1 minute)", ScalableTargetAction={"MinCapacity": 2}
    )
    eventually(lambda: counts(emulator) == ("InService", 2, 2), 10)

"""Updates by traffic share, with alarms that take them back, and changes in place: on real processes."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

import pytest

from tests.contract.sagemaker.emulator import Aws, Emulator, eventually
from tests.contract.sagemaker.test_updates import request_loop

GUIDE = "developer guide: deployment-guardrails"


def versions(emulator: Emulator, endpoint: str, count: int, **more: Any) -> Counter[str]:
    """How many of `count` requests each version answered."""
    return Counter(json.loads(emulator.invoke(endpoint, **more)["Body"].read())["version"] for _ in range(count))


def two_versions(emulator: Emulator, name: str, instances: int = 1) -> None:
    """Configurations `NAME-1` and `NAME-2`, and the endpoint `NAME` in service with the former."""
    for version in ("1", "2"):
        model = emulator.model(f"{name}-{version}", VERSION=version)
        emulator.config(f"{name}-{version}", model, instances=instances)
    emulator.endpoint(name, f"{name}-1")
    assert emulator.settled(name)["EndpointStatus"] == "InService"


def baking(emulator: Emulator, name: str) -> Any:
    """The description of the endpoint once its update bakes."""

    def look() -> Any:
        seen = emulator.sagemaker.describe_endpoint(EndpointName=name)
        pending: Any = seen.get("PendingDeploymentSummary", {}).get("ProductionVariants", [{}])
        stages = [s["Status"] for s in pending[0].get("VariantStatus", ())]
        return seen if stages == ["Baking"] else None

    return eventually(look)


def canary(wait_s: int, *alarms: str) -> Any:
    """Half of the traffic for so long, then all of it."""
    size = {"Type": "CAPACITY_PERCENT", "Value": 50}
    routing = {"Type": "CANARY", "CanarySize": size, "WaitIntervalInSeconds": wait_s}
    rollback = {"AutoRollbackConfiguration": {"Alarms": [{"AlarmName": a} for a in alarms]}} if alarms else {}
    return {"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": routing}, **rollback}


@pytest.mark.fidelity(
    "updates", "Both fleets serve by their share of the traffic while a canary bakes", source=f"{GUIDE}-blue-green"
)
def test_canary(emulator: Emulator) -> None:
    """While it bakes either version answers about half of the requests; then the new one answers all."""
    two_versions(emulator, "canary")
    emulator.sagemaker.update_endpoint(
        EndpointName="canary", EndpointConfigName="canary-2", DeploymentConfig=canary(2)
    )  # fmt: skip
    seen = baking(emulator, "canary")
    counts = versions(emulator, "canary", 60)
    assert (seen["EndpointStatus"], seen["EndpointConfigName"]) == ("Updating", "canary-1")
    pending = seen["PendingDeploymentSummary"]
    assert pending["EndpointConfigName"] == "canary-2"
    assert [v["CurrentWeight"] for v in (*seen["ProductionVariants"], *pending["ProductionVariants"])] == [0.5, 0.5]
    # Sixty fair coins: fewer than 12 of either is a one in a million.
    assert set(counts) == {"1", "2"}
    assert min(counts.values()) >= 12
    seen = emulator.settled("canary")
    assert (seen["EndpointStatus"], seen["EndpointConfigName"]) == ("InService", "canary-2")
    assert "PendingDeploymentSummary" not in seen
    assert seen["LastDeploymentConfig"] == canary(2)
    assert set(versions(emulator, "canary", 10)) == {"2"}
    emulator.sagemaker.delete_endpoint(EndpointName="canary")


@pytest.mark.fidelity(
    "rollback",
    "An alarm in ALARM during the baking period takes the endpoint back to the old configuration, which never stopped, "
    "with FailureReason",
    source=f"{GUIDE}-configuration",
)
def test_alarm_takes_the_update_back(emulator: Emulator, aws: Aws) -> None:
    """The old processes serve on, the new ones are gone, and the reason names the alarm."""
    two_versions(emulator, "guarded")
    old = {r["pid"] for r in emulator.shown("guarded")["replicas"]}
    aws.cloudwatch.put_metric_alarm(
        AlarmName="errors",
        # Without data nothing takes the alarm out of the state that is set below.
        MetricName="Errors",
        Namespace="Tests",
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
    )
    aws.cloudwatch.set_alarm_state(AlarmName="errors", StateValue="ALARM", StateReason="a test")
    with request_loop(emulator, "guarded") as answers:
        emulator.sagemaker.update_endpoint(
            EndpointName="guarded", EndpointConfigName="guarded-2",
            DeploymentConfig=canary(3600, "errors", "no-such-alarm"),
        )  # fmt: skip
        seen = emulator.settled("guarded")
        assert (seen["EndpointStatus"], seen["EndpointConfigName"]) == ("InService", "guarded-1")
        assert "errors" in seen["FailureReason"]
        assert "no-such-alarm" not in seen["FailureReason"]
        eventually(lambda: answers[-20:] == ["1"] * 20)
    assert {r["pid"] for r in emulator.shown("guarded")["replicas"]} == old
    emulator.sagemaker.delete_endpoint(EndpointName="guarded")


@pytest.mark.fidelity(
    "updates",
    "Rolling: one batch of new instances at a time, old ones go as they come, no request fails",
    source=f"{GUIDE}-rolling",
)
def test_rolling(emulator: Emulator) -> None:
    """Two instances are replaced one by one, and every request is answered."""
    two_versions(emulator, "rolling", instances=2)
    policy: Any = {"MaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 1}, "WaitIntervalInSeconds": 1}
    with request_loop(emulator, "rolling") as answers:
        emulator.sagemaker.update_endpoint(
            EndpointName="rolling", EndpointConfigName="rolling-2",
            DeploymentConfig={"RollingUpdatePolicy": policy},
        )  # fmt: skip
        seen = baking(emulator, "rolling")
        joining = seen["PendingDeploymentSummary"]["ProductionVariants"][0]
        assert (joining["CurrentInstanceCount"], joining["DesiredInstanceCount"]) == (1, 2)
        eventually(lambda: len(emulator.shown("rolling")["replicas"]) == 1)
        seen = emulator.settled("rolling")
        eventually(lambda: answers[-20:] == ["2"] * 20)
    assert seen["EndpointConfigName"] == "rolling-2"
    assert set(answers) == {"1", "2"}
    assert len(emulator.shown("rolling")["replicas"]) == 2
    emulator.sagemaker.delete_endpoint(EndpointName="rolling")


@pytest.mark.fidelity(
    "weights and capacities",
    "New weights and instance counts hold without another configuration; TargetVariant overrides weights",
    source="botocore: UpdateEndpointWeightsAndCapacities; InvokeEndpoint TargetVariant",
)
def test_weights_and_capacities(emulator: Emulator) -> None:
    """All traffic moves to the variant with all the weight, which has a second instance."""
    variants: Any = [
        {
            "VariantName": f"V{version}",
            "ModelName": emulator.model(f"weighted-{version}", VERSION=version),
            "InstanceType": "ml.m5.large",
            "InitialInstanceCount": 1,
            "InitialVariantWeight": 2.0 - int(version),
        }
        for version in ("1", "2")
    ]
    emulator.sagemaker.create_endpoint_config(EndpointConfigName="weighted", ProductionVariants=variants)
    emulator.endpoint("weighted", "weighted")
    emulator.settled("weighted")
    assert set(versions(emulator, "weighted", 10)) == {"1"}
    assert set(versions(emulator, "weighted", 3, TargetVariant="V2")) == {"2"}
    emulator.sagemaker.update_endpoint_weights_and_capacities(
        EndpointName="weighted",
        DesiredWeightsAndCapacities=[
            {"VariantName": "V1", "DesiredWeight": 0},
            {"VariantName": "V2", "DesiredWeight": 3, "DesiredInstanceCount": 2},
        ],
    )
    assert emulator.sagemaker.describe_endpoint(EndpointName="weighted")["EndpointStatus"] == "Updating"
    seen = emulator.settled("weighted")
    by_name = {v["VariantName"]: v for v in seen["ProductionVariants"]}
    assert (by_name["V1"]["CurrentWeight"], by_name["V2"]["CurrentWeight"]) == (0.0, 3.0)
    assert by_name["V2"]["CurrentInstanceCount"] == 2
    assert set(versions(emulator, "weighted", 10)) == {"2"}
    emulator.sagemaker.delete_endpoint(EndpointName="weighted")


@pytest.mark.fidelity(
    "serverless",
    "ProvisionedConcurrency keeps containers warm: no cold start within it, not stopped when idle, changed in place",
    source="developer guide: serverless-endpoints; botocore ProductionVariantServerlessUpdateConfig",
)
def test_provisioned_concurrency(emulator: Emulator) -> None:
    """One container waits for the first request, outlives the idle time, is replaced, and gets company on request."""
    variant: Any = {
        "VariantName": "AllTraffic",
        "ModelName": emulator.model("warm"),
        "ServerlessConfig": {"MemorySizeInMB": 1024, "MaxConcurrency": 3, "ProvisionedConcurrency": 1},
    }
    emulator.sagemaker.create_endpoint_config(EndpointConfigName="warm", ProductionVariants=[variant])
    emulator.endpoint("warm", "warm")
    size = emulator.settled("warm")["ProductionVariants"][0]["CurrentServerlessConfig"]
    assert size == {"MemorySizeInMB": 1024, "MaxConcurrency": 3, "ProvisionedConcurrency": 1}
    [first] = emulator.shown("warm")["replicas"]
    assert json.loads(emulator.invoke("warm")["Body"].read())["pid"] == first["pid"]
    emulator.sagemaker.update_endpoint_weights_and_capacities(
        EndpointName="warm",
        DesiredWeightsAndCapacities=[
            {"VariantName": "AllTraffic", "ServerlessUpdateConfig": {"MaxConcurrency": 4, "ProvisionedConcurrency": 2}}
        ],
    )
    assert emulator.settled("warm")["ProductionVariants"][0]["CurrentServerlessConfig"]["MaxConcurrency"] == 4
    pids = {r["pid"] for r in emulator.shown("warm")["replicas"]}
    assert first["pid"] in pids
    assert len(pids) == 2
    time.sleep(1.8)  # the idle time is 1.5 s
    assert {r["pid"] for r in emulator.shown("warm")["replicas"]} == pids
    next(p for p in emulator.children() if p.pid == first["pid"]).kill()
    eventually(lambda: len({r["pid"] for r in emulator.shown("warm")["replicas"]} - {first["pid"]}) == 2)
    emulator.sagemaker.delete_endpoint(EndpointName="warm")

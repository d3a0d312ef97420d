"""CloudWatch receives the metrics AWS publishes for each kind, with their units and dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.contract.sagemaker.emulator import VARIANT, Aws, Emulator, eventually

INFERENCE, HARDWARE = "AWS/SageMaker", "/aws/sagemaker/Endpoints"
DEDICATED = {
    (INFERENCE, "Invocations"),
    (INFERENCE, "InvocationsPerInstance"),
    (INFERENCE, "Invocation4XXErrors"),
    (INFERENCE, "Invocation5XXErrors"),
    (INFERENCE, "InvocationModelErrors"),
    (INFERENCE, "ModelLatency"),
    (INFERENCE, "OverheadLatency"),
    (INFERENCE, "ConcurrentRequestsPerModel"),
    (HARDWARE, "CPUUtilization"),
    (HARDWARE, "MemoryUtilization"),
    (HARDWARE, "DiskUtilization"),
    (HARDWARE, "GPUUtilization"),
    (HARDWARE, "GPUMemoryUtilization"),
}
SERVERLESS = {
    (INFERENCE, "Invocations"),
    (INFERENCE, "Invocation4XXErrors"),
    (INFERENCE, "Invocation5XXErrors"),
    (INFERENCE, "ModelLatency"),
    (INFERENCE, "OverheadLatency"),
    (INFERENCE, "ModelSetupTime"),
    (INFERENCE, "ServerlessConcurrentExecutionsUtilization"),
    (HARDWARE, "MemoryUtilization"),
}
PROVISIONED = SERVERLESS - {(INFERENCE, "ModelSetupTime")} | {
    (INFERENCE, "ServerlessProvisionedConcurrencyExecutions"),
    (INFERENCE, "ServerlessProvisionedConcurrencyUtilization"),
    (INFERENCE, "ServerlessProvisionedConcurrencyInvocations"),
}


def published(aws: Aws, endpoint: str) -> set[tuple[str, str]]:
    """Namespace and name of every metric with exactly the endpoint's two dimensions."""
    dimensions = [{"Name": "EndpointName", "Value": endpoint}, {"Name": "VariantName", "Value": VARIANT}]
    return {(m["Namespace"], m["MetricName"]) for m in listed(aws) if m["Dimensions"] == dimensions}


def listed(aws: Aws) -> list[Any]:
    """Every metric that CloudWatch has."""
    return [m for page in aws.cloudwatch.get_paginator("list_metrics").paginate() for m in page["Metrics"]]


def points(
    aws: Aws, endpoint: str, namespace: str, name: str, stat: str, unit: str, since: datetime | None = None
) -> list[float]:
    """One-second values that have that unit, oldest first; of the last minute if nothing else is said."""
    now = datetime.now(UTC)
    data = aws.cloudwatch.get_metric_statistics(
        Namespace=namespace,
        MetricName=name,
        Dimensions=[{"Name": "EndpointName", "Value": endpoint}, {"Name": "VariantName", "Value": VARIANT}],
        StartTime=since or now - timedelta(seconds=60),
        EndTime=now + timedelta(seconds=5),
        Period=1,
        Statistics=[stat],  # type: ignore[list-item]
        Unit=unit,  # type: ignore[arg-type]
    )
    rows = sorted(data["Datapoints"], key=lambda d: d["Timestamp"])
    return [float(d[stat]) for d in rows]  # type: ignore[literal-required]


@pytest.mark.fidelity(
    "metrics",
    "Dedicated and serverless variants publish exactly their own lists: serverless has neither CPUUtilization nor "
    "InvocationsPerInstance",
    source="developer guide: monitoring-cloudwatch, serverless-endpoints-monitoring",
)
def test_each_kind_publishes_its_metrics(emulator: Emulator, aws: Aws) -> None:
    """Dedicated and serverless publish exactly their own lists: serverless has no CPU and no per-instance count."""
    eventually(lambda: not emulator.shown("serverless")["replicas"])
    for endpoint in ("dedicated", "serverless"):
        emulator.invoke(endpoint)
    eventually(lambda: published(aws, "dedicated") == DEDICATED)
    eventually(lambda: published(aws, "serverless") == SERVERLESS)


@pytest.mark.fidelity(
    "metrics",
    "Invocations count requests, latencies are microseconds, idle minutes of a dedicated variant are zero",
    source="developer guide: monitoring-cloudwatch, endpoint-auto-scaling-prerequisites",
)
def test_counts_and_latencies(emulator: Emulator, aws: Aws) -> None:
    """Requests are counted once, latencies are microseconds, and idle bins of a dedicated variant are zero."""
    since = datetime.now(UTC) - timedelta(seconds=60)  # one moment for both sums: a last minute would lose old requests

    def counted() -> float:
        return sum(points(aws, "dedicated", INFERENCE, "Invocations", "Sum", "None", since))

    before = counted()
    for _ in range(5):
        emulator.invoke("dedicated", b'{"sleep_s": 0.05}')
    eventually(lambda: counted() >= before + 5)
    latencies = points(aws, "dedicated", INFERENCE, "ModelLatency", "Maximum", "Microseconds")
    assert 50_000 <= latencies[-1] < 1_000_000
    eventually(lambda: points(aws, "dedicated", INFERENCE, "Invocations", "Sum", "None")[-1] == 0)


@pytest.mark.fidelity(
    "metrics",
    "A cold start is ModelSetupTime, and part of OverheadLatency",
    source="developer guide: serverless-endpoints-monitoring",
)
def test_cold_start_shows_in_overhead(emulator: Emulator, aws: Aws) -> None:
    """A cold start is ModelSetupTime, and part of OverheadLatency."""
    eventually(lambda: not emulator.shown("serverless")["replicas"])
    emulator.invoke("serverless")
    start_us = emulator.shown("serverless")["replicas"][0]["start_s"] * 1e6

    def seen(name: str) -> float:
        return max(points(aws, "serverless", INFERENCE, name, "Maximum", "Microseconds"), default=0)

    eventually(lambda: seen("ModelSetupTime") >= start_us * 0.99)
    eventually(lambda: seen("OverheadLatency") >= start_us * 0.99)


@pytest.mark.fidelity(
    "metrics",
    "CPUUtilization is summed over cores: 0 to vCPUs x 100",
    source="developer guide: monitoring-cloudwatch (instance metrics)",
)
def test_stress_shows_in_cpu(emulator: Emulator, aws: Aws) -> None:
    """A fully burnt host core reads as a saturated instance: vCPUs x 100 % on a 4-vCPU type."""

    def highest() -> float:
        return max(points(aws, "dedicated", HARDWARE, "CPUUtilization", "Maximum", "Percent")[-2:], default=0)

    eventually(lambda: highest() < 60)
    emulator.fault("dedicated", "stress", cores=1)
    # Two instances burn one core each; on a busy machine each may get less than a whole one.
    eventually(lambda: highest() > 120, 15)
    assert highest() <= 400


@contextmanager
def endpoint(emulator: Emulator, name: str, variant: dict[str, Any], **more: Any) -> Iterator[str]:
    """An endpoint of one variant, for a while."""
    production: Any = {"VariantName": VARIANT, "ModelName": "model", **variant}
    emulator.sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[production], **more)
    emulator.endpoint(name, name)
    try:
        assert emulator.settled(name)["EndpointStatus"] == "InService"
        yield name
    finally:
        emulator.sagemaker.delete_endpoint(EndpointName=name)


@pytest.mark.fidelity(
    "metrics",
    "Provisioned concurrency has its own metrics",
    source="developer guide: serverless-endpoints-monitoring",
)
def test_provisioned_concurrency(emulator: Emulator, aws: Aws) -> None:
    """What is provisioned has metrics of its own, and serves without a cold start."""
    size = {"MemorySizeInMB": 1024, "MaxConcurrency": 2, "ProvisionedConcurrency": 1}
    with endpoint(emulator, "kept", {"ServerlessConfig": size}):
        emulator.invoke("kept")
        eventually(lambda: published(aws, "kept") == PROVISIONED)
        used = "ServerlessProvisionedConcurrencyUtilization"
        eventually(lambda: points(aws, "kept", INFERENCE, used, "Average", "None")[-1] == 0)


@pytest.mark.fidelity(
    "metrics",
    "with EnableEnhancedMetrics each instance has its own series besides the variant's",
    source="developer guide: monitoring-cloudwatch-enhanced-metrics",
)
def test_enhanced_metrics(emulator: Emulator, aws: Aws) -> None:
    """Utilization by instance, GPUs by accelerator, requests by container; the variant's own stay."""
    variant = {"InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1}
    with endpoint(emulator, "fine", variant, MetricsConfig={"EnableEnhancedMetrics": True}):
        emulator.invoke("fine")
        instance = emulator.shown("fine")["replicas"][0]["id"]

        def names(*dimensions: str) -> set[str]:
            wanted = {"EndpointName", "VariantName", "InstanceId", *dimensions}
            ours = [m for m in listed(aws) if {"Name": "InstanceId", "Value": instance} in m["Dimensions"]]
            return {m["MetricName"] for m in ours if {d["Name"] for d in m["Dimensions"]} == wanted}

        eventually(lambda: names() == {"CPUUtilization", "MemoryUtilization", "DiskUtilization"})
        eventually(lambda: names("AcceleratorId") == {"GPUUtilization", "GPUMemoryUtilization"})
        eventually(lambda: names("ContainerId") == {name for namespace, name in DEDICATED if namespace == INFERENCE})
        assert published(aws, "fine") == DEDICATED

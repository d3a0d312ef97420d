"""Which metrics come of what: points against a table of the developer guide's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import botocore.session
import pytest

from workbench.stack.sagemaker.metrics import catalogue, points
from workbench.stack.sagemaker.metrics.points import Backlog, Instance, Outcome, Point, Processed, Size
from workbench.stack.sagemaker.model.hardware import Hardware, hardware

G5 = Size(vcpus=4, memory_mib=16384, gpus=1, disk_bytes=1000)
VARIANT = ("EndpointName", "VariantName")


class Row(NamedTuple):
    """A metric as the guide has it."""

    name: str
    unit: str
    dimensions: tuple[str, ...] = VARIANT
    high_resolution: bool = False


class Table(NamedTuple):
    """What one kind publishes, by namespace."""

    inference: set[Row]
    hardware: set[Row]


def us(*names: str) -> set[Row]:
    """Metrics in microseconds."""
    return {Row(name, "Microseconds") for name in names}


def none(*names: str) -> set[Row]:
    """Metrics without a unit."""
    return {Row(name, "None") for name in names}


def count(*names: str, dimensions: tuple[str, ...] = VARIANT) -> set[Row]:
    """Metrics that count."""
    return {Row(name, "Count", dimensions) for name in names}


def percent(*names: str, dimensions: tuple[str, ...] = VARIANT) -> set[Row]:
    """Metrics of utilization."""
    return {Row(name, "Percent", dimensions) for name in names}


ERRORS = none("Invocation4XXErrors", "Invocation5XXErrors")
CONCURRENCY = {Row("ConcurrentRequestsPerModel", "None", high_resolution=True)}
GPU = ("CPUUtilization", "MemoryUtilization", "GPUUtilization", "GPUMemoryUtilization")
QUEUE = ("ApproximateBacklogSize", "ApproximateBacklogSizePerInstance", "HasBacklogWithoutCapacity")
# Developer guide: monitoring-cloudwatch, serverless-endpoints-monitoring, async-inference-monitor.
REAL_TIME = Table(
    none("Invocations", "InvocationsPerInstance", "InvocationModelErrors")
    | ERRORS
    | us("ModelLatency", "OverheadLatency")
    | CONCURRENCY,
    percent(*GPU, "DiskUtilization"),
)
SERVERLESS = Table(
    none("Invocations", "ServerlessConcurrentExecutionsUtilization")
    | ERRORS
    | us("ModelLatency", "OverheadLatency", "ModelSetupTime"),
    percent("MemoryUtilization"),
)
PROVISIONED = Table(
    SERVERLESS.inference
    | none("ServerlessProvisionedConcurrencyUtilization")
    | count(
        "ServerlessProvisionedConcurrencyExecutions",
        "ServerlessProvisionedConcurrencyInvocations",
        "ServerlessProvisionedConcurrencySpilloverInvocations",
    ),
    SERVERLESS.hardware,
)
ASYNCHRONOUS = Table(
    none("InvocationModelErrors")
    | ERRORS
    | us("ModelLatency", "RequestDownloadLatency", "ResponseUploadLatency")
    | CONCURRENCY
    | count("RequestDownloadFailures", "ResponseUploadFailures", "NotificationFailures", "ExpiredRequests")
    | count("InvocationFailures", "InvocationsProcesssed")
    | {Row("TimeInBacklog", "Milliseconds"), Row("TotalProcessingTime", "Milliseconds")}
    | count(*QUEUE, dimensions=("EndpointName",))
    | {Row("ApproximateAgeOfOldestRequest", "Seconds", ("EndpointName",))},
    REAL_TIME.hardware,
)
TRANSFORM = Table(set(), percent(*GPU, dimensions=("Host",)))

SEEN = Instance(0.5, 4096, 500)
DONE = Outcome("dedicated", 200, 0.25, 0.002)


def real_time() -> Iterable[Point]:
    """A request, a look at a GPU instance and at its concurrency."""
    yield from points.request_points(DONE)
    yield from points.instance_points(SEEN, G5, 1.0)
    yield Point(catalogue.CONCURRENT_REQUESTS, 1.0)


def serverless(provisioned: int = 0) -> Iterable[Point]:
    """A cold start and requests; with provisioned concurrency one within it and one beyond."""
    for spilled in (False, True) if provisioned else (None,):
        yield from points.request_points(Outcome("serverless", 200, 0.25, 1.5, spilled=spilled))
    yield points.setup_point(1.0)
    yield points.container_point(100, 1024)
    yield from points.concurrency_points(1, 4, provisioned)


def asynchronous() -> Iterable[Point]:
    """Requests with every ending, the queue, and the instance."""
    yield from points.request_points(Outcome("asynchronous", 200, 0.25, 1.5))
    failures: list[points.Failure | None] = [None, "download", "upload", "notification", "expired", "invocation"]
    for failure in failures:
        yield from points.processed_points(Processed(failure, 1.0, 2.0, 0.1, 0.1))
    yield from points.backlog_points(Backlog(3, 1.0, 1))
    yield from points.instance_points(SEEN, G5, 1.0)
    yield Point(catalogue.CONCURRENT_REQUESTS, 1.0)


@pytest.mark.fidelity(
    "metrics",
    "each kind of lane publishes the metrics of the guide, no more and no less",
    source="developer guide: monitoring-cloudwatch",
)
@pytest.mark.fidelity(
    "metrics",
    "serverless has no CPUUtilization and no InvocationsPerInstance",
    source="developer guide: serverless-endpoints-monitoring",
)
@pytest.mark.fidelity(
    "metrics",
    "asynchronous endpoints have no Invocations and no OverheadLatency",
    source="developer guide: async-inference-monitor",
)
@pytest.mark.fidelity(
    "batch transform",
    "A job's instances publish CPU summed over vCPUs, memory and GPU under Host <job>/<instance-id>, and no disk",
    source="developer guide: monitoring-cloudwatch",
)
def test_names_units_dimensions() -> None:
    """Exactly what the guide lists is published, of each kind, by name, unit, dimensions and resolution."""
    published = {
        "real-time": (real_time(), REAL_TIME),
        "serverless": (serverless(), SERVERLESS),
        "provisioned": (serverless(2), PROVISIONED),
        "asynchronous": (asynchronous(), ASYNCHRONOUS),
        "transform": (points.host_points(SEEN, G5, 1.0), TRANSFORM),
    }
    for kind, (seen, table) in published.items():
        metrics = {p.metric for p in seen}
        rows = {n: {Row(*_row(m)) for m in metrics if m.namespace == n} for n in {m.namespace for m in metrics}}
        expected = {
            "AWS/SageMaker": table.inference,
            "/aws/sagemaker/TransformJobs" if kind == "transform" else "/aws/sagemaker/Endpoints": table.hardware,
        }
        assert rows == {namespace: those for namespace, those in expected.items() if those}, kind


def _row(metric: catalogue.Metric) -> tuple[str, str, tuple[str, ...], bool]:
    return metric.name, metric.unit, metric.dimensions, metric.high_resolution


def values(seen: Iterable[Point]) -> dict[str, float]:
    """Points by name."""
    return {p.metric.name: p.value for p in seen}


@pytest.mark.fidelity(
    "metrics",
    "a request is 1/N in InvocationsPerInstance; latencies are microseconds",
    source="developer guide: monitoring-cloudwatch",
)
def test_dedicated_request() -> None:
    """A request counts as one, as 1/N for each instance, and its latencies are microseconds."""
    assert values(points.request_points(Outcome("dedicated", 500, 0.25, 0.002, 4))) == {
        "Invocations": 1,
        "InvocationsPerInstance": 0.25,
        "InvocationModelErrors": 1,
        "Invocation4XXErrors": 0,
        "Invocation5XXErrors": 1,
        "ModelLatency": 250_000,
        "OverheadLatency": 2_000,
    }


@pytest.mark.fidelity(
    "metrics",
    "InvocationModelErrors counts non-2xx answers and answers that never came",
    source="developer guide: monitoring-cloudwatch",
)
def test_a_request_without_an_answer() -> None:
    """A time-out is a model error, but neither 4XX nor 5XX."""
    seen = values(points.request_points(Outcome("dedicated", 0, 60, 0)))
    assert (seen["InvocationModelErrors"], seen["Invocation4XXErrors"], seen["Invocation5XXErrors"]) == (1, 0, 0)


@pytest.mark.fidelity(
    "metrics", "CPUUtilization is the sum over cores, 0 to vCPUs x 100", source="developer guide: monitoring-cloudwatch"
)
@pytest.mark.parametrize(("busy", "cpu"), [(0.0, 0.0), (0.5, 200.0), (1.0, 400.0), (1.7, 400.0)])
def test_cpu_is_summed_over_vcpus(busy: float, cpu: float) -> None:
    """One busy host core stands for all four vCPUs, and a saturated instance reads vCPUs x 100."""
    assert values(points.instance_points(Instance(busy, 4096, 500), G5, 1.0)) == {
        "CPUUtilization": cpu,
        "MemoryUtilization": 25,
        "DiskUtilization": 50,
        "GPUUtilization": 0,
        "GPUMemoryUtilization": 0,
    }


def test_what_is_unknown_is_not_published() -> None:
    """No CPU at the first look, no memory for a type without a known size, no GPU without one."""
    seen = values(points.instance_points(Instance(None, 100, 0), Size(4, None, 0, 1000), 1.0))
    assert set(seen) == {"DiskUtilization"}


@pytest.mark.fidelity(
    "metrics",
    "provisioned concurrency: executions and utilization of it, invocations within and beyond",
    source="developer guide: monitoring-cloudwatch",
)
def test_provisioned_concurrency() -> None:
    """What goes beyond is a spillover, and utilization ends at one."""
    seen = [values(points.concurrency_points(n, 10, 4)) for n in (0, 3, 6)]
    assert [s["ServerlessProvisionedConcurrencyExecutions"] for s in seen] == [0, 3, 4]
    assert [s["ServerlessProvisionedConcurrencyUtilization"] for s in seen] == [0, 0.75, 1]
    assert [s["ServerlessConcurrentExecutionsUtilization"] for s in seen] == [0, 0.3, 0.6]
    within, beyond = (values(points.request_points(Outcome("serverless", 200, 1, 1, spilled=s))) for s in (False, True))
    assert "ServerlessProvisionedConcurrencyInvocations" in within
    assert "ServerlessProvisionedConcurrencySpilloverInvocations" in beyond


@pytest.mark.fidelity(
    "metrics",
    "HasBacklogWithoutCapacity is 1 while requests wait for no instance",
    source="developer guide: monitoring-cloudwatch",
)
def test_backlog() -> None:
    """Without instances there is a backlog without capacity, and none for each instance."""
    assert values(points.backlog_points(Backlog(6, 2.5, 2))) == {
        "ApproximateBacklogSize": 6,
        "ApproximateBacklogSizePerInstance": 3,
        "ApproximateAgeOfOldestRequest": 2.5,
        "HasBacklogWithoutCapacity": 0,
    }
    assert values(points.backlog_points(Backlog(6, 2.5, 0)))["HasBacklogWithoutCapacity"] == 1
    assert values(points.backlog_points(Backlog(0, 0, 0))) == {
        "ApproximateBacklogSize": 0,
        "ApproximateAgeOfOldestRequest": 0,
        "HasBacklogWithoutCapacity": 0,
    }


def test_asynchronous_times() -> None:
    """Milliseconds in the backlog and in all, microseconds for the transfers that took place."""
    assert values(points.processed_points(Processed("download", 1.5, 2.0, 0.25))) == {
        "RequestDownloadFailures": 1,
        "TimeInBacklog": 1500,
        "TotalProcessingTime": 2000,
        "RequestDownloadLatency": 250_000,
    }


@pytest.mark.parametrize(
    ("instance_type", "expected"),
    [
        ("ml.g5.xlarge", Hardware(4, 16384, 1)),
        ("ml.c5.large", Hardware(2, 4096, 0)),
        ("ml.p3.2xlarge", Hardware(8, None, 1)),
        ("ml.dl1.24xlarge", Hardware(96, None, 0)),
    ],
)
def test_hardware(instance_type: str, expected: Hardware) -> None:
    """Types have EC2's hardware; one the data lacks is derived from its size, with memory unknown."""
    assert hardware(instance_type) == expected


@pytest.mark.fidelity(
    "metrics",
    "Every instance type of CreateEndpointConfig has a number of vCPUs",
    source="botocore: ProductionVariantInstanceType; EC2 instance types",
)
def test_every_hosting_type_has_hardware() -> None:
    """Whatever instance type CreateEndpointConfig accepts, its CPU utilization can be told."""
    model = botocore.session.get_session().get_service_model("sagemaker")
    types: list[str] = model.shape_for("ProductionVariantInstanceType").metadata["enum"]
    assert len(types) > 200
    assert min(hardware(t).vcpus for t in types) >= 1


def test_transform_types_have_hardware() -> None:
    """Every type a transform job may run on is known, or told from its size."""
    model = botocore.session.get_session().get_service_model("sagemaker")
    types: list[str] = model.shape_for("TransformInstanceType").metadata["enum"]
    assert all(hardware(name).vcpus >= 1 for name in types)

"""Points, bins and datums."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from botocore.loaders import Loader
from botocore.model import ServiceModel, StringShape

from workbench.stack.sagemaker.metrics.points import (
    HARDWARE,
    INFERENCE,
    Bins,
    Instance,
    Outcome,
    Point,
    Size,
    host_points,
    instance_points,
    request_points,
)
from workbench.stack.sagemaker.model.hardware import Hardware, hardware

G5 = Size(vcpus=4, memory_mib=16384, gpus=1, disk_bytes=1000)


def values(points: Any) -> dict[str, float]:
    """Points by name."""
    return {p.name: p.value for p in points}


def test_dedicated_request() -> None:
    """A request counts as one, as 1/N for each instance, and its latencies are microseconds."""
    assert values(request_points(Outcome(False, 500, 0.25, 0.002, 4))) == {
        "Invocations": 1,
        "InvocationsPerInstance": 0.25,
        "InvocationModelErrors": 1,
        "Invocation4XXErrors": 0,
        "Invocation5XXErrors": 1,
        "ModelLatency": 250_000,
        "OverheadLatency": 2_000,
    }


def test_a_request_without_an_answer() -> None:
    """A time-out is a model error, but neither 4XX nor 5XX."""
    seen = values(request_points(Outcome(False, 0, 60, 0, 1)))
    assert (seen["InvocationModelErrors"], seen["Invocation4XXErrors"], seen["Invocation5XXErrors"]) == (1, 0, 0)


def test_serverless_request() -> None:
    """Serverless has neither InvocationsPerInstance nor InvocationModelErrors."""
    assert set(values(request_points(Outcome(True, 200, 0.1, 1.5, 0)))) == {
        "Invocations",
        "Invocation4XXErrors",
        "Invocation5XXErrors",
        "ModelLatency",
        "OverheadLatency",
    }


@pytest.mark.parametrize(("busy", "cpu"), [(0.0, 0.0), (0.5, 200.0), (1.0, 400.0), (1.7, 400.0)])
def test_cpu_is_summed_over_vcpus(busy: float, cpu: float) -> None:
    """One busy host core stands for all four vCPUs, and a saturated instance reads vCPUs x 100."""
    assert values(instance_points(Instance(busy, 4096, 500, 3), G5, 1.0)) == {
        "ConcurrentRequestsPerModel": 3,
        "CPUUtilization": cpu,
        "MemoryUtilization": 25,
        "DiskUtilization": 50,
        "GPUUtilization": 0,
        "GPUMemoryUtilization": 0,
    }


def test_what_is_unknown_is_not_published() -> None:
    """No CPU at the first look, no memory for a type without a known size, no GPU without one."""
    seen = values(instance_points(Instance(None, 100, 0, 0), Size(4, None, 0, 1000), 1.0))
    assert set(seen) == {"ConcurrentRequestsPerModel", "DiskUtilization"}


def test_bins_close_after_the_lag() -> None:
    """A bin is published once, `lag` after its end, stamped with its start; equal values are counted together."""
    bins = Bins(10)
    for at, value in ((101.0, 1.0), (109.9, 1.0), (105.0, 2.0), (110.0, 7.0)):
        bins.add("e", "v", Point(INFERENCE, "Invocations", "None", value), at)
    assert bins.take(111.9, 2.0) == {}
    (datum,) = bins.take(112.0, 2.0)[INFERENCE]
    assert datum == {
        "MetricName": "Invocations",
        "Dimensions": [{"Name": "EndpointName", "Value": "e"}, {"Name": "VariantName", "Value": "v"}],
        "Timestamp": 100,
        "Unit": "None",
        "Values": [1.0, 2.0],
        "Counts": [2.0, 1.0],
        "StorageResolution": 1,
    }
    assert bins.take(112.0, 2.0) == {}


def test_idle_bins() -> None:
    """A touched bin without values is one zero; one with values stays as it is."""
    bins = Bins(60)
    bins.touch("e", "v", "Invocations", "None", 30.0)
    bins.add("e", "v", Point(INFERENCE, "Invocations", "None", 1.0), 61.0)
    bins.touch("e", "v", "Invocations", "None", 62.0)
    taken = bins.take(180.0, 0.0)[INFERENCE]
    assert [(d["Timestamp"], d["Values"], d["Counts"]) for d in taken] == [(0, [0.0], [1.0]), (60, [1.0], [1.0])]
    assert taken[0]["StorageResolution"] == 60


def test_many_values_make_several_datums() -> None:
    """A datum has at most 150 values, and none is lost."""
    bins = Bins(60)
    for number in range(400):
        bins.add("e", "v", Point(INFERENCE, "ModelLatency", "Microseconds", float(number)), 1.0)
    sizes = [len(d["Values"]) for d in bins.take(60.0, 0.0)[INFERENCE]]
    assert sizes == [150, 150, 100]


def test_own_period_of_hardware_metrics() -> None:
    """MetricsConfig's frequency holds for utilization metrics only."""
    bins = Bins(60)
    bins.add("e", "v", Point(HARDWARE, "CPUUtilization", "Percent", 1.0), 25.0, 10)
    bins.add("e", "v", Point(INFERENCE, "Invocations", "None", 1.0), 25.0, 10)
    assert {ns: d[0]["Timestamp"] for ns, d in bins.take(30.0, 0.0).items()} == {HARDWARE: 20}
    assert {ns: d[0]["Timestamp"] for ns, d in bins.take(60.0, 0.0).items()} == {INFERENCE: 0}


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


def test_every_hosting_type_has_hardware() -> None:
    """Whatever instance type CreateEndpointConfig accepts, its CPU utilization can be told."""
    model = botocore.session.get_session().get_service_model("sagemaker")
    types: list[str] = model.shape_for("ProductionVariantInstanceType").metadata["enum"]
    assert len(types) > 200
    assert min(hardware(t).vcpus for t in types) >= 1


@pytest.mark.fidelity(
    "batch transform",
    "A job's instances publish CPU summed over vCPUs, memory and GPU under Host <job>/<instance-id>, and no disk",
    "developer guide: monitoring-cloudwatch",
)
def test_transform_hosts() -> None:
    """An instance of a job has a namespace and one dimension of its own."""
    bins = Bins(60)
    size = Size(vcpus=4, memory_mib=16384, gpus=1, disk_bytes=1)
    seen = Instance(busy_cores=0.5, memory_mib=1638.4, disk_bytes=1, in_flight=3)
    for point in host_points(seen, size, cores_per_instance=1.0):
        bins.add_host("job/i-1", point, 120.0)
    taken = bins.take(180.0, 0.0)
    assert set(taken) == {"/aws/sagemaker/TransformJobs"}
    rows = {d["MetricName"]: (d["Values"], d["Dimensions"]) for d in taken["/aws/sagemaker/TransformJobs"]}
    host = [{"Name": "Host", "Value": "job/i-1"}]
    assert rows == {
        "CPUUtilization": ([200.0], host),
        "MemoryUtilization": ([10.0], host),
        "GPUUtilization": ([0.0], host),
        "GPUMemoryUtilization": ([0.0], host),
    }


def test_transform_types_have_hardware() -> None:
    """Every type a transform job may run on is known, or told from its size."""
    shape = ServiceModel(Loader().load_service_model("sagemaker", "service-2"), "sagemaker")
    types = shape.shape_for("TransformInstanceType")
    assert isinstance(types, StringShape)
    assert all(hardware(name).vcpus >= 1 for name in types.enum)

"""Which points a request, a container's start or a look at the hardware makes. Pure. Names and units: `catalogue.py`.

- dedicated: a request is one in Invocations and 1/N in InvocationsPerInstance, 0 or 1 in each of the errors;
  CPUUtilization is summed over vCPUs, GPU utilization is 0 (the emulated instance has none);
- serverless: only what AWS publishes for it: no InvocationsPerInstance, no CPU; OverheadLatency includes the cold
  start, which ModelSetupTime shows by itself. With provisioned concurrency a request that finds as many others as are
  provisioned in flight spills over;
- asynchronous: neither Invocations nor InvocationsPerInstance nor OverheadLatency, but its backlog, and a count of
  what became of each request;
- an instance of a transform job: CPU, memory and GPU utilization under its Host, `<job>/<instance id>`, and no disk.

Throttled and refused requests count nowhere (AWS: not documented).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from workbench.stack.sagemaker.metrics import catalogue
from workbench.stack.sagemaker.metrics.catalogue import Metric


class Point(NamedTuple):
    """One observed value."""

    metric: Metric
    value: float


Kind = Literal["dedicated", "serverless", "asynchronous"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One request that reached a variant."""

    kind: Kind
    status: int
    """The container's; 0 when it did not answer."""
    model_latency_s: float
    overhead_s: float
    instances: int = 1
    """In service when it was served."""
    instance: str | None = None
    """Which one served it."""
    spilled: bool | None = None
    """With provisioned concurrency: whether the request went beyond it."""


def request_points(outcome: Outcome) -> Iterator[Point]:
    """The points of one request."""
    status = outcome.status
    if outcome.kind != "asynchronous":
        yield Point(catalogue.INVOCATIONS, 1.0)
        yield Point(catalogue.OVERHEAD_LATENCY, round(outcome.overhead_s * 1e6))
    if outcome.kind == "dedicated":
        yield Point(catalogue.INVOCATIONS_PER_INSTANCE, 1.0 / max(outcome.instances, 1))
    if outcome.kind != "serverless":
        yield Point(catalogue.MODEL_ERRORS, float(not 200 <= status < 300))
    yield Point(catalogue.ERRORS_4XX, float(400 <= status < 500))
    yield Point(catalogue.ERRORS_5XX, float(status >= 500))
    yield Point(catalogue.MODEL_LATENCY, round(outcome.model_latency_s * 1e6))
    if outcome.spilled is not None:
        yield Point(catalogue.SPILLOVER_INVOCATIONS if outcome.spilled else catalogue.PROVISIONED_INVOCATIONS, 1.0)


def setup_point(seconds: float) -> Point:
    """A serverless container's start."""
    return Point(catalogue.MODEL_SETUP_TIME, round(seconds * 1e6))


IDLE = (catalogue.INVOCATIONS, catalogue.INVOCATIONS_PER_INSTANCE)
"""What a dedicated variant publishes, as zero, although nothing happens: so that scaling in works."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A look at one instance over an interval."""

    busy_cores: float | None
    """Host cores its processes kept busy; None at the first look."""
    memory_mib: float
    disk_bytes: int


@dataclass(frozen=True, slots=True)
class Size:
    """What the emulated instance has."""

    vcpus: int
    memory_mib: int | None
    gpus: int
    disk_bytes: int


def instance_points(seen: Instance, size: Size, cores_per_instance: float) -> Iterator[Point]:
    """The points of one instance's hardware: `cores_per_instance` busy host cores read as its vCPUs x 100 %."""
    if seen.busy_cores is not None:
        share = min(max(seen.busy_cores / cores_per_instance, 0.0), 1.0)
        yield Point(catalogue.CPU, round(share * size.vcpus * 100.0, 3))
    if size.memory_mib:
        yield Point(catalogue.MEMORY, _percent(seen.memory_mib, size.memory_mib))
    yield Point(catalogue.DISK, _percent(seen.disk_bytes, size.disk_bytes))
    if size.gpus:
        yield Point(catalogue.GPU, 0.0)
        yield Point(catalogue.GPU_MEMORY, 0.0)


_OF_JOBS = {
    catalogue.CPU: catalogue.JOB_CPU,
    catalogue.MEMORY: catalogue.JOB_MEMORY,
    catalogue.GPU: catalogue.JOB_GPU,
    catalogue.GPU_MEMORY: catalogue.JOB_GPU_MEMORY,
}


def host_points(seen: Instance, size: Size, cores_per_instance: float) -> Iterator[Point]:
    """The points of one instance of a transform job: an endpoint's, but for its disk."""
    for point in instance_points(seen, size, cores_per_instance):
        if metric := _OF_JOBS.get(point.metric):
            yield Point(metric, point.value)


def container_point(memory_mib: float, size_mib: int) -> Point:
    """The memory of one serverless container."""
    return Point(catalogue.MEMORY, _percent(memory_mib, size_mib))


def concurrency_points(in_flight: int, max_concurrency: int, provisioned: int) -> Iterator[Point]:
    """How much of MaxConcurrency and of what is provisioned is in use, each 0 to 1."""
    yield Point(catalogue.SERVERLESS_UTILIZATION, round(in_flight / max_concurrency, 6))
    if provisioned:
        used = min(in_flight, provisioned)
        yield Point(catalogue.PROVISIONED_EXECUTIONS, float(used))
        yield Point(catalogue.PROVISIONED_UTILIZATION, round(used / provisioned, 6))


@dataclass(frozen=True, slots=True)
class Backlog:
    """An asynchronous endpoint's queue, now."""

    waiting: int
    oldest_s: float
    """How long the oldest of them has waited, in AWS's seconds."""
    instances: int
    """In service."""


def backlog_points(backlog: Backlog) -> Iterator[Point]:
    """The points of a look at a queue. Without instances there is no backlog for each of them."""
    yield Point(catalogue.BACKLOG, float(backlog.waiting))
    if backlog.instances:
        yield Point(catalogue.BACKLOG_PER_INSTANCE, backlog.waiting / backlog.instances)
    yield Point(catalogue.OLDEST_REQUEST, round(backlog.oldest_s, 3))
    yield Point(catalogue.BACKLOG_WITHOUT_CAPACITY, float(backlog.waiting > 0 and not backlog.instances))


Failure = Literal["download", "upload", "notification", "expired", "invocation"]
_FAILURES: dict[Failure, Metric] = {
    "download": catalogue.DOWNLOAD_FAILURES,
    "upload": catalogue.UPLOAD_FAILURES,
    "notification": catalogue.NOTIFICATION_FAILURES,
    "expired": catalogue.EXPIRED_REQUESTS,
    "invocation": catalogue.INVOCATION_FAILURES,
}


@dataclass(frozen=True, slots=True)
class Processed:
    """An asynchronous request that has come to its end. Times that it did not come to are None."""

    failure: Failure | None
    in_backlog_s: float
    total_s: float
    download_s: float | None = None
    upload_s: float | None = None


def processed_points(processed: Processed) -> Iterator[Point]:
    """The points of one asynchronous request, besides those of its invocation (`request_points`)."""
    yield Point(_FAILURES[processed.failure] if processed.failure else catalogue.PROCESSED, 1.0)
    yield Point(catalogue.TIME_IN_BACKLOG, round(processed.in_backlog_s * 1e3, 3))
    yield Point(catalogue.TOTAL_PROCESSING_TIME, round(processed.total_s * 1e3, 3))
    if processed.download_s is not None:
        yield Point(catalogue.DOWNLOAD_LATENCY, round(processed.download_s * 1e6))
    if processed.upload_s is not None:
        yield Point(catalogue.UPLOAD_LATENCY, round(processed.upload_s * 1e6))


def _percent(part: float, whole: float) -> float:
    return round(min(part / whole, 1.0) * 100.0, 3)

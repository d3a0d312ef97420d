"""CloudWatch metrics, without I/O: which points a request or a look at the hardware makes, and their bins in time.

Names, units and dimensions are AWS's (developer guide, "Monitor with CloudWatch"). Rules:
- a request counts in the bin in which it ends; bins are stamped with their start;
- dedicated: Invocations, InvocationsPerInstance (1/N a request), 4XX/5XX/ModelErrors (0 or 1 a request), ModelLatency,
  OverheadLatency (microseconds), ConcurrentRequestsPerModel, and CPU (summed over vCPUs), memory and disk utilization,
  GPU utilization on GPU types (0 here: the emulated instance has none);
- serverless: only what AWS publishes for it: no InvocationsPerInstance, no CPU; OverheadLatency includes the cold
  start, which ModelSetupTime shows by itself;
- an instance of a transform job: CPU, memory and GPU utilization under its Host, `<job>/<instance id>`, and no disk;
- a dedicated variant without traffic publishes zeros for the counts, so that scaling in works; serverless publishes
  nothing then. Throttled and refused requests count nowhere (AWS: not documented).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

INFERENCE = "AWS/SageMaker"
HARDWARE = "/aws/sagemaker/Endpoints"
TRANSFORM = "/aws/sagemaker/TransformJobs"
MICROSECONDS = "Microseconds"
NONE = "None"
PERCENT = "Percent"
# PutMetricData: at most 150 values a datum, 1000 datums and 1 MB a call. 250 full datums are about half of that.
VALUES_PER_DATUM = 150
DATUMS_PER_CALL = 250


class Point(NamedTuple):
    """One observed value."""

    namespace: str
    name: str
    unit: str
    value: float


class Series(NamedTuple):
    """What a datum belongs to."""

    dimensions: tuple[tuple[str, str], ...]
    namespace: str
    name: str
    unit: str
    period_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """One request that reached a variant."""

    serverless: bool
    status: int
    """The container's; 0 when it did not answer."""
    model_latency_s: float
    overhead_s: float
    instances: int
    """In service when it was served."""


def request_points(outcome: Outcome) -> Iterator[Point]:
    """The points of one request."""
    status = outcome.status
    yield Point(INFERENCE, "Invocations", NONE, 1.0)
    if not outcome.serverless:
        yield Point(INFERENCE, "InvocationsPerInstance", NONE, 1.0 / max(outcome.instances, 1))
        yield Point(INFERENCE, "InvocationModelErrors", NONE, float(not 200 <= status < 300))
    yield Point(INFERENCE, "Invocation4XXErrors", NONE, float(400 <= status < 500))
    yield Point(INFERENCE, "Invocation5XXErrors", NONE, float(status >= 500))
    yield Point(INFERENCE, "ModelLatency", MICROSECONDS, round(outcome.model_latency_s * 1e6))
    yield Point(INFERENCE, "OverheadLatency", MICROSECONDS, round(outcome.overhead_s * 1e6))


def setup_point(seconds: float) -> Point:
    """A serverless container's start."""
    return Point(INFERENCE, "ModelSetupTime", MICROSECONDS, round(seconds * 1e6))


IDLE = (("Invocations", NONE), ("InvocationsPerInstance", NONE))
"""What a dedicated variant publishes, as zero, although nothing happens."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A look at one dedicated instance over an interval."""

    busy_cores: float | None
    """Host cores its processes kept busy; None at the first look."""
    memory_mib: float
    disk_bytes: int
    in_flight: int


@dataclass(frozen=True, slots=True)
class Size:
    """What the emulated instance has."""

    vcpus: int
    memory_mib: int | None
    gpus: int
    disk_bytes: int


def instance_points(seen: Instance, size: Size, cores_per_instance: float) -> Iterator[Point]:
    """The points of one instance: `cores_per_instance` busy host cores read as its vCPUs x 100 %."""
    yield Point(INFERENCE, "ConcurrentRequestsPerModel", NONE, float(seen.in_flight))
    if seen.busy_cores is not None:
        share = min(max(seen.busy_cores / cores_per_instance, 0.0), 1.0)
        yield Point(HARDWARE, "CPUUtilization", PERCENT, round(share * size.vcpus * 100.0, 3))
    if size.memory_mib:
        yield Point(HARDWARE, "MemoryUtilization", PERCENT, _percent(seen.memory_mib, size.memory_mib))
    yield Point(HARDWARE, "DiskUtilization", PERCENT, _percent(seen.disk_bytes, size.disk_bytes))
    if size.gpus:
        yield Point(HARDWARE, "GPUUtilization", PERCENT, 0.0)
        yield Point(HARDWARE, "GPUMemoryUtilization", PERCENT, 0.0)


def host_points(seen: Instance, size: Size, cores_per_instance: float) -> Iterator[Point]:
    """The points of one instance of a transform job: an endpoint's, but for its disk and its requests."""
    for point in instance_points(seen, size, cores_per_instance):
        if point.namespace == HARDWARE and point.name != "DiskUtilization":
            yield point._replace(namespace=TRANSFORM)


def container_point(memory_mib: float, size_mib: int) -> Point:
    """The memory of one serverless container."""
    return Point(HARDWARE, "MemoryUtilization", PERCENT, _percent(memory_mib, size_mib))


def concurrency_point(in_flight: int, max_concurrency: int) -> Point:
    """How much of MaxConcurrency is in use, 0 to 1."""
    value = in_flight / max_concurrency
    return Point(INFERENCE, "ServerlessConcurrentExecutionsUtilization", NONE, round(value, 6))


def _percent(part: float, whole: float) -> float:
    return round(min(part / whole, 1.0) * 100.0, 3)


@dataclass(slots=True)
class Bins:
    """Values by series and by bin: how often each was seen."""

    period_s: float
    """Of the wall clock."""
    _bins: dict[tuple[float, Series], Counter[float]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, endpoint: str, variant: str, point: Point, at: float, hardware_period_s: float | None = None) -> None:
        """Keep a value seen at epoch second `at`. Hardware metrics may have a period of their own (MetricsConfig)."""
        hardware = point.namespace == HARDWARE
        period = hardware_period_s if hardware and hardware_period_s else self.period_s
        self._add(_of_variant(endpoint, variant), point, at, period)

    def add_host(self, host: str, point: Point, at: float) -> None:
        """Keep a value seen of an instance of a transform job."""
        self._add((("Host", host),), point, at, self.period_s)

    def _add(self, dimensions: tuple[tuple[str, str], ...], point: Point, at: float, period: float) -> None:
        series = Series(dimensions, point.namespace, point.name, point.unit, period)
        self._bins[math.floor(at / period) * period, series][point.value] += 1

    def touch(self, endpoint: str, variant: str, name: str, unit: str, at: float) -> None:
        """Have the bin of an inference metric published: as one zero if nothing else is seen in it."""
        series = Series(_of_variant(endpoint, variant), INFERENCE, name, unit, self.period_s)
        self._bins[math.floor(at / self.period_s) * self.period_s, series].update()

    def take(self, now: float, lag_s: float) -> dict[str, list[Mapping[str, Any]]]:
        """Remove the bins that ended `lag_s` ago or earlier; returns PutMetricData's datums by namespace."""
        done = [key for key in self._bins if key[0] + key[1].period_s + lag_s <= now]
        taken: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for start, series in sorted(done):
            values = self._bins.pop((start, series))
            taken[series.namespace].extend(_datums(start, series, values))
        return taken


def _of_variant(endpoint: str, variant: str) -> tuple[tuple[str, str], ...]:
    return (("EndpointName", endpoint), ("VariantName", variant))


def _datums(start: float, series: Series, values: Counter[float]) -> Iterator[Mapping[str, Any]]:
    pairs = sorted(values.items()) or [(0.0, 1)]
    for first in range(0, len(pairs), VALUES_PER_DATUM):
        part = pairs[first : first + VALUES_PER_DATUM]
        yield {
            "MetricName": series.name,
            "Dimensions": [{"Name": name, "Value": value} for name, value in series.dimensions],
            "Timestamp": start,
            "Unit": series.unit,
            "Values": [v for v, _ in part],
            "Counts": [float(n) for _, n in part],
            "StorageResolution": 1 if series.period_s < 60 else 60,
        }

"""CloudWatch as a `SignalSource`: one GetMetricData for all lanes, at most once per time to live.

Raw series only, newest first (no metric math: the emulators have none, and the arithmetic below is exact per stamp):

| series                    | from                                                                                  |
|---------------------------|---------------------------------------------------------------------------------------|
| cpu_percent, gpu_percent  | CPUUtilization, GPUUtilization Average ÷ vCPUs, GPUs (SageMaker sums over them)       |
| memory_percent            | MemoryUtilization Average                                                             |
| concurrency               | ConcurrentRequestsPerModel Maximum; serverless: its utilization × max_concurrency     |
| invocations               | Invocations Sum                                                                       |
| model_latency_p50/p99_ms  | ModelLatency (µs) ÷ 1000                                                              |
| errors                    | the lane's faults: Invocation5XXErrors Sum, or where more, InvocationModelErrors less |
|                           | Invocation4XXErrors (model errors are all non-2xx, so 4xx would blame the lane)       |
| instances                 | Invocations ÷ InvocationsPerInstance, since each request counts 1/N in the latter     |

A serverless lane publishes neither CPU nor per-instance metrics, so it is not asked for them. Throttles are not
published per lane by SageMaker and stay absent. A failed reading keeps the old snapshot, which ages into unknown.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from functions.aws.redaction import redacted
from functions.core.latches import WINDOW_S
from functions.core.snapshot import LaneState, ModelState, Point, Series, Snapshot
from functions.core.topology import DedicatedLane, ServerlessLane, SyncLane, Topology
from functions.ports import Log
from functions.refresh import LastGood

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_cloudwatch.type_defs import GetMetricDataInputTypeDef, MetricDataQueryTypeDef

_CALLS: Final = "AWS/SageMaker"
_HOSTS: Final = "/aws/sagemaker/Endpoints"
_MOST_QUERIES: Final = 500
"""GetMetricData's limit per call."""
_CALL_PERIOD_S: Final = 60
"""Invocation metrics are published each minute, whatever MetricsConfig says of utilization."""


Carry = Callable[[Snapshot, "Snapshot | None", float], Snapshot]


class CloudWatchError(Exception):
    """A reading failed; the cause is chained."""


@dataclass(frozen=True, slots=True)
class _Metric:
    """One raw series: what to ask for, and its factor into our unit."""

    name: str
    namespace: str
    metric: str
    stat: str
    factor: float = 1.0
    utilization: bool = False
    """Published at the stack's metric period, others each minute."""


@dataclass(frozen=True, slots=True)
class _Query:
    model: str
    lane: SyncLane
    metric: _Metric
    period_s: int


class CloudWatchSignals:
    """Reads all lanes of a topology."""

    def __init__(
        self,
        client: Callable[[], CloudWatchClient],
        topology: Topology,
        *,
        period_s: int,
        ttl_s: float,
        log: Log,
        carry: Carry | None = None,
    ) -> None:
        """`client` is made at the first reading. `period_s` is the utilization metrics' period.

        `carry(fresh, last, now)` completes a reading with what the last one knew.
        """
        self._client = client
        self._carry = carry
        self._last: Snapshot | None = None
        self._queries = list(_queries(topology, period_s))
        self._kept = LastGood(lambda now, _: self._next(now), ttl_s, lambda error: _warn(log, error))

    def snapshot(self, now: float) -> Snapshot:
        """The newest reading (see `ports.SignalSource`)."""
        return self._kept.get(now) or Snapshot(None)

    def read(self, now: float, last: Snapshot | None) -> Snapshot:
        """A new reading. Raises what the client does, or `CloudWatchError`."""
        fresh = self._read(now)
        return fresh if self._carry is None else self._carry(fresh, last, now)

    def _next(self, now: float) -> Snapshot:
        self._last = self.read(now, self._last)
        return self._last

    def _read(self, now: float) -> Snapshot:
        raw: dict[tuple[str, str], dict[str, Series]] = defaultdict(dict)
        for start in range(0, len(self._queries), _MOST_QUERIES):
            part = self._queries[start : start + _MOST_QUERIES]
            for query, points in zip(part, self._ask(part, now), strict=True):
                scaled = [(stamp, value * query.metric.factor) for stamp, value in points]
                raw[query.model, query.lane.name][query.metric.name] = Series.of(scaled, float(query.period_s))
        models: dict[str, dict[str, LaneState]] = defaultdict(dict)
        for (model, lane), series in raw.items():
            models[model][lane] = LaneState(series=_derive(series), in_flight=0)
        return Snapshot(now, {model: ModelState(lanes) for model, lanes in models.items()})

    def _ask(self, queries: list[_Query], now: float) -> list[list[Point]]:
        client = self._client()
        points: list[list[Point]] = [[] for _ in queries]
        longest = max(query.period_s for query in queries)
        start = math.floor((now - WINDOW_S - longest) / longest) * longest
        asked: GetMetricDataInputTypeDef = {
            "MetricDataQueries": [_query(f"q{i}", query) for i, query in enumerate(queries)],
            "StartTime": datetime.fromtimestamp(start, UTC),
            "EndTime": datetime.fromtimestamp(now, UTC),
            "ScanBy": "TimestampDescending",
        }
        while True:
            answer = client.get_metric_data(**asked)
            for result in answer["MetricDataResults"]:
                if result.get("StatusCode") in ("InternalError", "Forbidden"):
                    raise CloudWatchError(f"GetMetricData answered {result.get('StatusCode')} for a metric")
                stamps = (stamp.timestamp() for stamp in result.get("Timestamps", []))
                points[int(result["Id"][1:])] += zip(stamps, result.get("Values", []), strict=True)
            token = answer.get("NextToken", "")
            if not token:
                return points
            asked["NextToken"] = token


def _queries(topology: Topology, period_s: int) -> Iterator[_Query]:
    for model in topology.models:
        for lane in topology.sync_lanes(model).values():
            for metric in _serverless(lane) if isinstance(lane, ServerlessLane) else _dedicated(lane):
                yield _Query(model, lane, metric, period_s if metric.utilization else max(period_s, _CALL_PERIOD_S))


def _both() -> Iterator[_Metric]:
    yield _Metric("memory_percent", _HOSTS, "MemoryUtilization", "Average", utilization=True)
    yield _Metric("invocations", _CALLS, "Invocations", "Sum")
    yield _Metric("model_latency_p50_ms", _CALLS, "ModelLatency", "p50", 1e-3)
    yield _Metric("model_latency_p99_ms", _CALLS, "ModelLatency", "p99", 1e-3)
    yield _Metric("errors", _CALLS, "Invocation5XXErrors", "Sum")


def _dedicated(lane: DedicatedLane) -> Iterator[_Metric]:
    yield from _both()
    yield _Metric("cpu_percent", _HOSTS, "CPUUtilization", "Average", 1 / lane.vcpus, utilization=True)
    if lane.gpus:
        yield _Metric("gpu_percent", _HOSTS, "GPUUtilization", "Average", 1 / lane.gpus, utilization=True)
    yield _Metric("concurrency", _CALLS, "ConcurrentRequestsPerModel", "Maximum", utilization=True)
    yield _Metric("_per_instance", _CALLS, "InvocationsPerInstance", "Sum")
    yield _Metric("_model_errors", _CALLS, "InvocationModelErrors", "Sum")
    yield _Metric("_caller_errors", _CALLS, "Invocation4XXErrors", "Sum")


def _serverless(lane: ServerlessLane) -> Iterator[_Metric]:
    yield from _both()
    used = "ServerlessConcurrentExecutionsUtilization"
    yield _Metric("concurrency", _CALLS, used, "Maximum", float(lane.max_concurrency))


def _query(query_id: str, query: _Query) -> MetricDataQueryTypeDef:
    return {
        "Id": query_id,
        "ReturnData": True,
        "MetricStat": {
            "Metric": {
                "Namespace": query.metric.namespace,
                "MetricName": query.metric.metric,
                "Dimensions": [
                    {"Name": "EndpointName", "Value": query.lane.endpoint},
                    {"Name": "VariantName", "Value": query.lane.variant},
                ],
            },
            "Period": query.period_s,
            "Stat": query.metric.stat,
        },
    }


def _derive(raw: Mapping[str, Series]) -> dict[str, Series]:
    """The contract's series: fold the helpers in, leave out what has no point."""
    found = {name: series for name, series in raw.items() if series.points and not name.startswith("_")}
    if "_per_instance" in raw and "invocations" in found:
        per = dict(raw["_per_instance"].points)
        ratio = [(t, n / per[t]) for t, n in found["invocations"].points if n > 0 and per.get(t, 0) > 0]
        if ratio:
            found["instances"] = Series.of(ratio, found["invocations"].period_s)
    if "_model_errors" in raw and raw["_model_errors"].points:
        faults = dict(raw["errors"].points)
        excused = dict(raw["_caller_errors"].points)
        for stamp, count in raw["_model_errors"].points:
            faults[stamp] = max(faults.get(stamp, 0.0), count - excused.get(stamp, 0.0))
        found["errors"] = Series.of(list(faults.items()), raw["errors"].period_s)
    return found


def _warn(log: Log, error: Exception) -> None:
    log.warning("CloudWatch cannot be read; the last snapshot serves on", extra={"cause": redacted(error)})

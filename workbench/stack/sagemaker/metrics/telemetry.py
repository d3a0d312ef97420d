"""Metrics in motion: looks at what runs every few seconds, and publishes each bin when it and its lag are over.

Hardware is looked at ten times a bin but neither above 1 Hz nor below 0.2 Hz, concurrency and backlogs once in one of
AWS's seconds. A bin is as long as the metric's period divided by the time scale, and stamped with the wall clock's
time.

A failing PutMetricData is logged once for each cause and tried again later with what has gathered since; after an
hour's worth the oldest data is given up. Nothing here can stop the server.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from workbench.stack.sagemaker.control.lifecycle import Lifecycle
from workbench.stack.sagemaker.metrics import catalogue, points
from workbench.stack.sagemaker.metrics.bins import DATUMS_PER_CALL, Bins, Scope
from workbench.stack.sagemaker.metrics.catalogue import Metric
from workbench.stack.sagemaker.metrics.frequency import Frequency, frequency
from workbench.stack.sagemaker.metrics.points import Backlog, Outcome, Point, Processed
from workbench.stack.sagemaker.metrics.utilization import Usage, usage_of
from workbench.stack.sagemaker.model.hardware import hardware
from workbench.stack.sagemaker.model.lane import Lane
from workbench.stack.sagemaker.model.pool import Pool
from workbench.stack.sagemaker.model.replica import Replica
from workbench.stack.sagemaker.records import EndpointConfig
from workbench.stack.sagemaker.settings import Settings
from workbench.stack.sagemaker.transform.instance import Instance
from workbench.stack.sagemaker.transform.runner import Runner

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient

log = logging.getLogger(__name__)
RETRY_S = 5.0
MOST_PENDING = 20_000
"""Datums kept while CloudWatch does not answer: an hour of a dozen busy endpoints."""

Backlogs = Callable[[], Mapping[str, Backlog]]
"""The queues of the asynchronous endpoints, by name."""


@dataclass(slots=True)
class Telemetry:
    """Gathers and publishes."""

    settings: Settings
    lifecycle: Lifecycle
    transforms: Runner
    client: CloudWatchClient
    backlogs: Backlogs = dict
    bins: Bins = field(default_factory=Bins)
    _busy: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Process id -> CPU seconds and monotonic time of the last look."""
    _pending: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    _complained: set[str] = field(default_factory=set)

    # What others tell

    def outcome(self, endpoint: str, variant: str, outcome: Outcome) -> None:
        """A request has ended."""
        self._add(endpoint, variant, points.request_points(outcome), outcome.instance)

    def setup(self, endpoint: str, variant: str, seconds: float) -> None:
        """A serverless container has started."""
        self._add(endpoint, variant, [points.setup_point(seconds)])

    def processed(self, endpoint: str, variant: str, processed: Processed) -> None:
        """An asynchronous request has come to its end."""
        self._add(endpoint, variant, points.processed_points(processed))

    # Loops

    async def sample_forever(self) -> None:
        """Look at the hardware of every replica."""
        bin_s = self.settings.clock.real(self.settings.metric_period_s)
        await self._forever(min(max(bin_s / 10, 1.0), 5.0), self._sample)

    async def look_forever(self) -> None:
        """Look at how many requests are in flight and waiting."""
        await self._forever(min(max(self.settings.clock.real(1.0), 0.1), 1.0), self._look)

    async def publish_forever(self) -> None:
        """Publish what is due, every second, or twice a bin where bins are short."""
        lag_s = self.settings.clock.real(self.settings.metric_lag_s)
        while True:
            await asyncio.sleep(self.settings.publish_every_s)
            for namespace, datums in self.bins.take(time.time(), lag_s).items():
                self._pending.extend((namespace, d) for d in datums)
            if self._pending and not await asyncio.to_thread(self._publish):
                del self._pending[:-MOST_PENDING]
                await asyncio.sleep(RETRY_S)

    async def _forever(self, interval_s: float, look: Callable[[], Any]) -> None:
        while True:
            await asyncio.sleep(interval_s)
            try:
                await look()
            except Exception:
                log.exception("a look at the replicas failed; the next one is due in %g s", interval_s)

    # Looks

    async def _look(self) -> None:
        for endpoint, lane, _ in self._lanes():
            name = lane.planned.variant.name
            if isinstance(lane, Pool):
                if lane.replicas or lane.in_flight:
                    size = lane.size
                    seen = points.concurrency_points(lane.in_flight, size.max_concurrency, size.provisioned)
                    self._add(endpoint, name, seen)
                continue
            for replica in lane.replicas:
                if replica.ready:
                    point = Point(catalogue.CONCURRENT_REQUESTS, float(replica.in_flight))
                    self._add(endpoint, name, [point], replica.id)
        for endpoint, backlog in self.backlogs().items():
            self._put((("EndpointName", endpoint),), points.backlog_points(backlog))

    async def _sample(self) -> None:
        lanes = list(self._lanes())
        hosts = [(f"{job}/{i.id}", i) for job, instances in self.transforms.running.items() for i in instances]
        roots = {pid for _, lane, _ in lanes for r in lane.replicas for pid in r.pids}
        roots |= {pid for _, instance in hosts for pid in instance.replica.pids}
        usage = await asyncio.to_thread(usage_of, roots) if roots else {}
        at = time.monotonic()
        for endpoint, lane, config in lanes:
            if lane.planned.variant.serverless:
                self._sample_serverless(endpoint, lane, usage)
            else:
                self._sample_dedicated(endpoint, lane, config, usage, at)
        for host, instance in hosts:
            self._sample_host(host, instance, usage, at)
        self._busy = {pid: (usage[pid].cpu_s, at) for pid in usage}

    def _sample_dedicated(
        self, endpoint: str, lane: Lane, config: EndpointConfig, usage: Mapping[int, Usage], at: float
    ) -> None:
        variant = lane.planned.variant
        kind = hardware(variant.instance_type or "")
        size = points.Size(kind.vcpus, kind.memory_mib, kind.gpus, variant.volume_gb * 1024**3)
        for replica in lane.replicas:
            if replica.child.pid in usage:
                instance = self._seen(replica, usage, at)
                if lane.faults.disk_full:
                    instance = replace(instance, disk_bytes=size.disk_bytes)
                seen = points.instance_points(instance, size, self.settings.cores_per_instance)
                self._add(endpoint, variant.name, seen, replica.id)
        if "AsyncInferenceConfig" not in config.document:
            how = frequency(config.document)
            for metric in points.IDLE:
                self.bins.touch(_scope(endpoint, variant.name), metric, time.time(), self._period_s(how, metric))

    def _sample_host(self, host: str, instance: Instance, usage: Mapping[int, Usage], at: float) -> None:
        if instance.replica.child.pid in usage:
            kind = hardware(instance.spec.instance_type)
            # Transform jobs have no disk metric: its size says nothing here.
            size = points.Size(kind.vcpus, kind.memory_mib, kind.gpus, disk_bytes=1)
            seen = self._seen(instance.replica, usage, at)
            self._put((("Host", host),), points.host_points(seen, size, self.settings.cores_per_instance))

    def _seen(self, replica: Replica, usage: Mapping[int, Usage], at: float) -> points.Instance:
        busy: float | None = None
        for pid in replica.pids:
            if pid in usage and pid in self._busy:
                cpu_s, then = self._busy[pid]
                busy = (busy or 0.0) + max(usage[pid].cpu_s - cpu_s, 0.0) / (at - then)
        memory = sum(usage[pid].memory_mib for pid in replica.pids if pid in usage)
        return points.Instance(busy, memory, replica.artifact.size_bytes)

    def _sample_serverless(self, endpoint: str, lane: Lane, usage: Mapping[int, Usage]) -> None:
        variant = lane.planned.variant
        if variant.serverless is None:
            return
        for replica in lane.replicas:
            if seen := usage.get(replica.child.pid):
                point = points.container_point(seen.memory_mib, variant.serverless.memory_mb)
                self._add(endpoint, variant.name, [point])

    def _lanes(self) -> Iterator[tuple[str, Lane, EndpointConfig]]:
        for name, deployment in self.lifecycle.serving():
            for lane in deployment.lanes.values():
                yield name, lane, deployment.plan.config

    # Bins and what becomes of them

    def _add(
        self, endpoint: str, variant: str, seen: Iterator[Point] | list[Point], instance: str | None = None
    ) -> None:
        deployment = self.lifecycle.live.get(endpoint)
        how = frequency(deployment.plan.config.document) if deployment else Frequency()
        now, scope = time.time(), _scope(endpoint, variant)
        for point in seen:
            period_s = self._period_s(how, point.metric)
            for each in how.scopes(point.metric, scope, instance):
                self.bins.add(each, point, now, period_s)

    def _put(self, scope: Scope, seen: Iterator[Point]) -> None:
        now, usual = time.time(), Frequency()
        for point in seen:
            self.bins.add(scope, point, now, self._period_s(usual, point.metric))

    def _period_s(self, how: Frequency, metric: Metric) -> float:
        return how.period_s(metric, self.settings.metric_period_s, self.settings.clock)

    def _publish(self) -> bool:
        """Send what is pending, in as few calls as its size allows; False when a call failed."""
        while self._pending:
            namespace = self._pending[0][0]
            part = [item for item in self._pending if item[0] == namespace][:DATUMS_PER_CALL]
            try:
                self.client.put_metric_data(Namespace=namespace, MetricData=[d for _, d in part])  # type: ignore[misc]
            except (BotoCoreError, ClientError) as error:
                self._complain(error)
                return False
            sent = {id(item) for item in part}
            self._pending = [item for item in self._pending if id(item) not in sent]
        return True

    def _complain(self, error: Exception) -> None:
        # A service's text may carry a request id, which would make every failure a new cause.
        text = error.response["Error"]["Code"] if isinstance(error, ClientError) else str(error)
        cause = f"{type(error).__name__}: {text}"
        if cause not in self._complained:
            self._complained.add(cause)
            log.warning("metrics cannot be published, will be tried again: %s", cause)


def _scope(endpoint: str, variant: str) -> Scope:
    return (("EndpointName", endpoint), ("VariantName", variant))

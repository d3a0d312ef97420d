"""What the endpoints' state machine asks for, done: deployments are started, replaced, scaled, stopped.

An update is blue/green, all at once: the new deployment starts and answers /ping, then takes over in one step; the old
one finishes the requests it has and goes. So an update fails no request. Canary and linear traffic shifting and
rollback alarms of a DeploymentConfig are kept and shown, but not carried out.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from workbench.stack.sagemaker.control.endpoints import Endpoints
from workbench.stack.sagemaker.faults import FaultTable
from workbench.stack.sagemaker.model.fleet import Fleet
from workbench.stack.sagemaker.model.lane import Lane
from workbench.stack.sagemaker.model.pool import Pool
from workbench.stack.sagemaker.model.replica import Host, ReplicaFactory, StartError
from workbench.stack.sagemaker.records import Endpoint, Plan, PlannedVariant

log = logging.getLogger(__name__)
OnSetup = Callable[[str, str, float], None]
"""Told of each cold start: endpoint, variant, seconds."""


@dataclass(slots=True)
class Deployment:
    """The running variants of one endpoint under one plan."""

    plan: Plan
    lanes: dict[str, Lane]

    async def start(self) -> None:
        """Start all; on failure nothing of it runs. Raises `StartError`."""
        outcomes = await asyncio.gather(*(lane.start() for lane in self.lanes.values()), return_exceptions=True)
        if errors := [o for o in outcomes if o is not None]:
            await self.stop(0)
            raise errors[0]

    async def drain(self, limit_s: float) -> None:
        """Finish what is in flight, then stop."""
        await asyncio.gather(*(lane.drain(limit_s) for lane in self.lanes.values()))

    async def stop(self, grace_s: float) -> None:
        """Stop."""
        await asyncio.gather(*(lane.stop(grace_s) for lane in self.lanes.values()))


@dataclass(slots=True)
class Lifecycle:
    """Runs deployments. `on_settled(endpoint)` is called whenever an endpoint has come to rest InService."""

    host: Host
    endpoints: Endpoints
    faults: FaultTable
    on_setup: OnSetup
    on_settled: Callable[[Endpoint], None]
    live: dict[str, Deployment] = field(default_factory=dict)
    """Serving deployments by endpoint name."""
    _all: list[Deployment] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def create(self, endpoint: Endpoint) -> None:
        """Start the endpoint's first deployment."""
        self._background(self._create(endpoint))

    def update(self, endpoint: Endpoint) -> None:
        """Start `endpoint.pending` and let it take over."""
        self._background(self._update(endpoint))

    def scale(self, endpoint: Endpoint, variant: str) -> None:
        """Bring a dedicated variant to its desired count."""
        self._background(self._scale(endpoint, variant))

    def delete(self, endpoint: Endpoint) -> None:
        """Stop all the endpoint runs."""
        self._background(self._delete(endpoint))

    def running(self, endpoint: str) -> dict[str, int]:
        """Replicas that are up, by variant."""
        deployment = self.live.get(endpoint)
        lanes = deployment.lanes if deployment else {}
        return {name: sum(r.ready for r in lane.replicas) for name, lane in lanes.items()}

    def deployments(self, endpoint: str) -> list[Deployment]:
        """All of an endpoint's deployments: serving, starting, draining."""
        return [d for d in self._all if d.plan.endpoint == endpoint]

    async def apply_faults(self, endpoint: str) -> None:
        """The faults of an endpoint have changed."""
        lanes = [lane for d in self.deployments(endpoint) for lane in d.lanes.values()]
        await asyncio.gather(*(lane.apply_faults() for lane in lanes))

    async def shut_down(self, grace_s: float) -> None:
        """Stop everything; the server ends."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(d.stop(grace_s) for d in self._all))

    async def _create(self, endpoint: Endpoint) -> None:
        deployment, failure = await self._start(endpoint.plan)
        if failure is None:
            self.live[endpoint.name] = deployment
        self.endpoints.finish_create(endpoint, failure, time.time())
        self._settled(endpoint)

    async def _update(self, endpoint: Endpoint) -> None:
        if endpoint.pending is None:
            raise RuntimeError(f"{endpoint.name} is Updating without a pending plan")
        deployment, failure = await self._start(endpoint.pending)
        old = self.live[endpoint.name]
        if failure is None:
            self.live[endpoint.name] = deployment
        self.endpoints.finish_update(endpoint, failure, time.time())
        self._settled(endpoint)
        if failure is None:
            await self._retire(old)

    async def _scale(self, endpoint: Endpoint, variant: str) -> None:
        lane = self.live[endpoint.name].lanes[variant]
        failure = None
        if isinstance(lane, Fleet):
            settings = self.host.settings
            start_s = settings.clock.real(settings.instance_start_s)
            limit_s = start_s + (lane.planned.variant.startup_timeout_s or settings.startup_timeout_s)
            failure = await lane.scale(endpoint.desired[variant], limit_s)
        self.endpoints.finish_update(endpoint, failure, time.time())
        self._settled(endpoint)

    async def _delete(self, endpoint: Endpoint) -> None:
        self.live.pop(endpoint.name, None)
        await asyncio.gather(*(self._stop(d) for d in self.deployments(endpoint.name)))
        self.faults.forget(endpoint.name)
        self.endpoints.finish_delete(endpoint)

    def _settled(self, endpoint: Endpoint) -> None:
        if endpoint.failure_reason:
            log.warning("%s is %s: %s", endpoint.name, endpoint.status, endpoint.failure_reason)
        if endpoint.status == "InService":
            self.on_settled(endpoint)

    async def _start(self, plan: Plan) -> tuple[Deployment, str | None]:
        deployment = Deployment(plan, {p.variant.name: self._lane(plan.endpoint, p) for p in plan.variants})
        self._all.append(deployment)
        try:
            await deployment.start()
        except StartError as error:
            self._all.remove(deployment)
            return deployment, str(error)
        except Exception as error:
            # A defect of ours or of the host (no more processes, disk full): the endpoint must not stay Creating.
            log.exception("%s could not be started", plan.endpoint)
            self._all.remove(deployment)
            return deployment, f"Internal error of the emulator: {error!r}"
        return deployment, None

    async def _retire(self, deployment: Deployment) -> None:
        settings = self.host.settings
        await deployment.drain(settings.invocation_timeout_s + settings.cold_start_timeout_s)
        self._all.remove(deployment)

    async def _stop(self, deployment: Deployment) -> None:
        await deployment.stop(self.host.settings.stop_grace_s)
        if deployment in self._all:
            self._all.remove(deployment)

    def _lane(self, endpoint: str, planned: PlannedVariant) -> Lane:
        name, size = planned.variant.name, planned.variant.serverless
        factory = ReplicaFactory(self.host, endpoint, planned, self.faults.view(endpoint, name))
        if size is None:
            return Fleet(factory, planned.count)
        return Pool(factory, size, lambda seconds: self.on_setup(endpoint, name, seconds))

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("endpoint operation failed: %r", error, exc_info=error)

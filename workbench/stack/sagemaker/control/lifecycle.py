"""What the endpoints' state machine asks for, done: deployments are started, replaced, resized, stopped.

An update starts the new deployment and lets it take over as its `Rollout` says; while both serve, each request goes to
one of them by its share of the traffic. The old one finishes the requests it has and goes, so an update fails no
request. States last at least as long as the settings say, so that whoever waits for them can see them.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

from workbench.stack.sagemaker.control import capacity
from workbench.stack.sagemaker.control.alarms import Alarms
from workbench.stack.sagemaker.control.deployment import Deployment, part
from workbench.stack.sagemaker.control.endpoints import Endpoints
from workbench.stack.sagemaker.control.rollout import Outcome, Rollout
from workbench.stack.sagemaker.control.update import Update
from workbench.stack.sagemaker.control.view import Running
from workbench.stack.sagemaker.faults import FaultTable
from workbench.stack.sagemaker.model.fleet import Fleet
from workbench.stack.sagemaker.model.lane import Lane
from workbench.stack.sagemaker.model.pool import Pool
from workbench.stack.sagemaker.model.replica import Host, ReplicaFactory, StartError
from workbench.stack.sagemaker.records import Endpoint, Plan, PlannedVariant

log = logging.getLogger(__name__)
OnSetup = Callable[[str, str, float], None]
"""Told of each cold start: endpoint, variant, seconds."""
Shares = list[tuple[Deployment, float]]


@dataclass(slots=True)
class Lifecycle:
    """Runs deployments. `on_settled(endpoint)` is called whenever an endpoint has come to rest InService."""

    host: Host
    endpoints: Endpoints
    faults: FaultTable
    alarms: Alarms
    on_setup: OnSetup
    on_settled: Callable[[Endpoint], None]
    live: dict[str, Deployment] = field(default_factory=dict)
    """The deployment of each serving endpoint's configuration, by endpoint name."""
    _split: dict[str, Shares] = field(default_factory=dict)
    """While several deployments of an endpoint serve: their shares of the traffic."""
    _all: list[Deployment] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def create(self, endpoint: Endpoint) -> None:
        """Start the endpoint's first deployment."""
        self._background(self._create(endpoint))

    def restart(self, endpoint: Endpoint) -> None:
        """Start what an endpoint of an earlier run ran then."""
        self._background(self._create(endpoint) if endpoint.status == "Creating" else self._restart(endpoint))

    def update(self, endpoint: Endpoint, rollout: Rollout) -> None:
        """Start `endpoint.pending` and let it take over."""
        self._background(self._update(endpoint, rollout))

    def change(self, endpoint: Endpoint) -> None:
        """Bring the endpoint's variants from `previous` to `capacity`."""
        self._background(self._change(endpoint))

    def delete(self, endpoint: Endpoint) -> None:
        """Stop all the endpoint runs."""
        self._background(self._delete(endpoint))

    def pick(self, endpoint: str) -> Deployment | None:
        """The deployment that answers the next request; None when nothing serves."""
        split = self._split.get(endpoint)
        if split is None:
            return self.live.get(endpoint)
        deployments, shares = zip(*split, strict=True)
        chosen: Deployment = random.choices(deployments, shares)[0]
        return chosen

    def serving(self) -> Iterator[tuple[str, Deployment]]:
        """Every deployment that may be given requests, with its endpoint."""
        for name, deployment in self.live.items():
            for each in [d for d, _ in self._split[name]] if name in self._split else [deployment]:
                yield name, each

    def running(self, endpoint: str) -> Running:
        """Replicas that are up, by variant."""
        main = self.live.get(endpoint)
        others = [d for d in self.deployments(endpoint) if d is not main]
        return Running(main.running if main else {}, others[-1].running if others else {})

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
        rest = self._at_least(self.host.settings.creating_s)
        deployment = self._deployment(endpoint.plan, 1.0)
        failure = await self._start(endpoint, deployment)
        await rest
        if failure is None:
            self.live[endpoint.name] = deployment
        else:
            self._all.remove(deployment)
        self.endpoints.finish_create(endpoint, failure, time.time())
        self._settled(endpoint)

    async def _restart(self, endpoint: Endpoint) -> None:
        rest = self._at_least(self.host.settings.updating_s)
        deployment = self._deployment(capacity.applied(endpoint.plan, endpoint.capacity), 1.0)
        # Requests find an endpoint of which nothing runs yet, not none.
        self.live[endpoint.name] = deployment
        failure = await self._start(endpoint, deployment)
        await rest
        if failure is not None:
            failure = f"The endpoint could not be started again when the emulator was. {failure}"
            del self.live[endpoint.name]
            self._all.remove(deployment)
        self.endpoints.finish_restart(endpoint, failure, time.time())
        self._settled(endpoint)

    async def _start(self, endpoint: Endpoint, deployment: Deployment) -> str | None:
        """Start a deployment; returns what stood in the way."""
        try:
            await deployment.start()
        except StartError as error:
            return str(error)
        except Exception as error:
            return _defect(endpoint, error)
        return None

    async def _update(self, endpoint: Endpoint, rollout: Rollout) -> None:
        if endpoint.pending is None:
            raise RuntimeError(f"{endpoint.name} is Updating without a pending plan")
        rest = self._at_least(self.host.settings.updating_s)
        before = self._split.get(endpoint.name) or [(self.live[endpoint.name], 1.0)]
        new = self._deployment(endpoint.pending, rollout.steps[0] if rollout.rolling else 1.0)
        update = Update(
            rollout,
            before[0][0],
            new,
            self.alarms,
            self.host.settings.clock,
            route=lambda share: self._route(endpoint.name, before, new, share),
            on_stage=lambda old, new_, share: self.endpoints.advance(endpoint, old, new_, share, time.time()),
            on_rollback=lambda reason: self.endpoints.begin_rollback(endpoint, reason, time.time()),
        )
        try:
            outcome = await update.run()
        except Exception as error:
            outcome = Outcome(_defect(endpoint, error))
            self._route(endpoint.name, before, new, 0.0)
        await rest
        gone = [d for d, _ in before] if outcome.failure is None else [new]
        if outcome.failure is None:
            self.live[endpoint.name] = new
            self._split.pop(endpoint.name, None)
        self.endpoints.finish_update(endpoint, outcome, time.time())
        self._settled(endpoint)
        if not outcome.mixed:
            await asyncio.gather(*(self._retire(d) for d in gone))

    async def _change(self, endpoint: Endpoint) -> None:
        if endpoint.previous is None:
            raise RuntimeError(f"{endpoint.name} is Updating without a change")
        rest = self._at_least(self.host.settings.updating_s)
        deployment, previous, wanted = self.live[endpoint.name], endpoint.previous, endpoint.capacity
        try:
            failure = await deployment.reach(wanted, previous)
        except Exception as error:
            failure = _defect(endpoint, error)
        if failure is not None:
            self.endpoints.begin_rollback(endpoint, failure, time.time())
            await deployment.reach(previous, wanted)
        await rest
        self.endpoints.finish_change(endpoint, failure, time.time())
        self._settled(endpoint)

    async def _delete(self, endpoint: Endpoint) -> None:
        rest = self._at_least(self.host.settings.deleting_s)
        self.live.pop(endpoint.name, None)
        self._split.pop(endpoint.name, None)
        await asyncio.gather(*(self._stop(d) for d in self.deployments(endpoint.name)))
        await rest
        self.faults.forget(endpoint.name)
        self.endpoints.finish_delete(endpoint)

    def _at_least(self, seconds: float) -> asyncio.Future[None]:
        """Done after so many emulated seconds from now."""
        return asyncio.ensure_future(self.host.settings.clock.sleep(seconds))

    def _route(self, endpoint: str, before: Shares, new: Deployment, share: float) -> None:
        shares = [(d, now * (1 - share)) for d, now in before] + [(new, share)]
        self._split[endpoint] = [(d, s) for d, s in shares if s > 0]
        if share == 0 and len(before) == 1:
            del self._split[endpoint]

    def _settled(self, endpoint: Endpoint) -> None:
        if endpoint.failure_reason:
            log.warning("%s is %s: %s", endpoint.name, endpoint.status, endpoint.failure_reason)
        if endpoint.status == "InService":
            self.on_settled(endpoint)

    async def _retire(self, deployment: Deployment) -> None:
        settings = self.host.settings
        await deployment.drain(settings.invocation_timeout_s + settings.cold_start_timeout_s)
        self._all.remove(deployment)

    async def _stop(self, deployment: Deployment) -> None:
        await deployment.stop(self.host.settings.stop_grace_s)
        if deployment in self._all:
            self._all.remove(deployment)

    def _deployment(self, plan: Plan, share: float) -> Deployment:
        """Not started yet, with a share of the plan's instances."""
        counts = part({p.variant.name: p.count for p in plan.variants}, share)
        lanes = {p.variant.name: self._lane(plan.endpoint, p, counts[p.variant.name]) for p in plan.variants}
        deployment = Deployment(plan, lanes)
        self._all.append(deployment)
        return deployment

    def _lane(self, endpoint: str, planned: PlannedVariant, count: int) -> Lane:
        name, size = planned.variant.name, planned.variant.serverless
        factory = ReplicaFactory(self.host, endpoint, planned, self.faults.view(endpoint, name))
        if size is None:
            return Fleet(factory, count)
        return Pool(factory, size, lambda seconds: self.on_setup(endpoint, name, seconds))

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("endpoint operation failed: %r", error, exc_info=error)


def _defect(endpoint: Endpoint, error: Exception) -> str:
    # A defect of ours or of the host (no more processes, disk full): the endpoint must not stay as it is.
    log.error("%s: an operation failed", endpoint.name, exc_info=error)
    return f"Internal error of the emulator: {error!r}"

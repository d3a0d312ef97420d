"""InvokeEndpointAsync: requests are taken at once, answered 202, and given to instances in the order they came.

An instance has MaxConcurrentInvocationsPerInstance of them at a time. While none is in service they wait: an
asynchronous endpoint may be scaled to none. Whatever waits when its endpoint is deleted is dropped. What was taken and
has not come to its end is kept by the `Keeper`, and resumed by the next process.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from workbench.stack.sagemaker.api.invocations import ASYNC
from workbench.stack.sagemaker.api.wire import Answer
from workbench.stack.sagemaker.metrics.points import Backlog
from workbench.stack.sagemaker.model.lane import Lane, ThrottledError, UnavailableError
from workbench.stack.sagemaker.records import Asynchronous
from workbench.stack.sagemaker.runtime.asynchronous.queue import Queue
from workbench.stack.sagemaker.runtime.asynchronous.request import Ids, Request, accepted
from workbench.stack.sagemaker.runtime.asynchronous.serving import Serving
from workbench.stack.sagemaker.runtime.door import REFUSALS, Door, pass_faults

log = logging.getLogger(__name__)
POLL_S = 0.1
"""How often a queue looks for instances that have come into service, and for requests that have waited too long."""


class Keeper(Protocol):
    """Keeps requests beyond this process."""

    def taken(self, request: Request) -> None:
        """A request is about to be answered 202."""

    def ended(self, request: Request) -> None:
        """It has come to its end, good or bad."""


@dataclass(slots=True)
class Accept:
    """Serves InvokeEndpointAsync, and works its queues off."""

    door: Door
    serving: Serving
    keeper: Keeper
    _queues: defaultdict[str, Queue] = field(default_factory=lambda: defaultdict(Queue))
    _dispatching: set[str] = field(default_factory=set)
    _busy: Counter[Lane] = field(default_factory=Counter)
    """Requests that a lane has been given and not ended."""
    _freed: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def answer(self, endpoint: str, headers: Mapping[str, str], body: bytes, id_: str) -> Answer:
        """Take one request. Raises `ResetError`."""
        clock = self.door.settings.clock
        try:
            visit = self.door.enter(endpoint, ASYNC, headers)
            for lane in visit.deployment.lanes.values():
                pass_faults(lane)
                if lane.faults.throttles:
                    raise ThrottledError
            config = visit.deployment.plan.config.asynchronous or Asynchronous()
            ids = Ids(str(uuid.uuid4()), str(uuid.uuid4()))
            request = accepted(endpoint, visit.parameters, body, config, ids, (time.time(), clock.now()))
        except REFUSALS as error:
            return self.door.refused(endpoint, error, id_)
        self.keeper.taken(request)
        self._enqueue(request)
        places = {
            "X-Amzn-SageMaker-OutputLocation": request.output,
            "X-Amzn-SageMaker-FailureLocation": request.failure,
        }
        answer = {"Content-Type": "application/json", "x-amzn-RequestId": id_}
        answer |= {name: uri for name, uri in places.items() if uri is not None}
        return Answer(202, answer, json.dumps({"InferenceId": request.inference_id}).encode())

    def resume(self, requests: Iterable[Request]) -> None:
        """Take up what an earlier process has taken."""
        for request in requests:
            self._enqueue(request)

    def backlogs(self) -> dict[str, Backlog]:
        """What waits at each asynchronous endpoint."""
        now = self.door.settings.clock.now()
        return {
            name: self._queues[name].seen(now, sum(deployment.running.values()))
            for name, deployment in self.door.lifecycle.live.items()
            if deployment.plan.config.asynchronous is not None
        }

    async def close(self) -> None:
        """Stop: what is being served is broken off."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _enqueue(self, request: Request) -> None:
        self._queues[request.endpoint].add(request)
        if request.endpoint not in self._dispatching:
            self._dispatching.add(request.endpoint)
            self._background(self._dispatch(request.endpoint))

    async def _dispatch(self, endpoint: str) -> None:
        """Give requests to instances until none waits."""
        queue = self._queues[endpoint]
        try:
            while queue.waiting:
                config = self._config(endpoint)
                if config is None:
                    log.warning("%s is gone: %d asynchronous requests are dropped", endpoint, len(queue.waiting))
                    while queue.waiting:
                        self.keeper.ended(queue.take())
                    return
                self._expire(queue, endpoint, config)
                lane = self._free(endpoint, config)
                if lane is None:
                    await self._wait()
                elif queue.waiting:
                    self._busy[lane] += 1
                    self._background(self._serve(queue, queue.take(), config, lane))
        finally:
            self._dispatching.discard(endpoint)

    async def _serve(self, queue: Queue, request: Request, config: Asynchronous, lane: Lane) -> None:
        try:
            await self.serving.serve(request, config, lane)
        except (ThrottledError, UnavailableError):
            await asyncio.sleep(POLL_S)
            queue.put_back(request)
            if request.endpoint not in self._dispatching:
                self._dispatching.add(request.endpoint)
                self._background(self._dispatch(request.endpoint))
        except Exception:  # a defect of ours: the next process would meet it again
            self.keeper.ended(request)
            raise
        else:
            self.keeper.ended(request)
        finally:
            self._busy[lane] -= 1
            if not self._busy[lane]:
                del self._busy[lane]
            self._freed.set()

    def _expire(self, queue: Queue, endpoint: str, config: Asynchronous) -> None:
        variant = next(iter(self.door.lifecycle.live[endpoint].lanes))
        for request in queue.expire(self.door.settings.clock.now()):
            self._background(self._end_late(request, config, variant))

    async def _end_late(self, request: Request, config: Asynchronous, variant: str) -> None:
        await self.serving.expire(request, config, variant)
        self.keeper.ended(request)

    def _config(self, endpoint: str) -> Asynchronous | None:
        deployment = self.door.lifecycle.live.get(endpoint)
        return deployment.plan.config.asynchronous if deployment else None

    def _free(self, endpoint: str, config: Asynchronous) -> Lane | None:
        """A variant that can take one more request, drawn by weight among those."""
        deployment = self.door.lifecycle.pick(endpoint)
        if deployment is None:
            return None
        most = config.concurrency or self.door.settings.async_concurrency
        free = {
            name: lane
            for name, lane in deployment.lanes.items()
            if self._busy[lane] < most * sum(r.ready for r in lane.replicas)
        }
        weights = [deployment.weights[name] for name in free]
        if not any(weights):
            return next(iter(free.values()), None)
        return random.choices(list(free.values()), weights)[0]

    async def _wait(self) -> None:
        self._freed.clear()
        try:
            async with asyncio.timeout(POLL_S):
                await self._freed.wait()
        except TimeoutError:
            return

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("an asynchronous request failed: %r", error, exc_info=error)

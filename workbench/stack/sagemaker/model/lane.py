"""What a variant's two kinds have in common: a set of replicas that is watched, drained, stopped and broken on request.

`Fleet` (dedicated) keeps a number of replicas running; `Pool` (serverless) starts them when requests come. Both hand
out leases: the right to send one request to one replica.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from workbench.stack.sagemaker.model.replica import MISSED_PINGS, Replica, ReplicaFactory, StartError

log = logging.getLogger(__name__)


class ThrottledError(Exception):
    """The platform refuses one more request now."""


class UnavailableError(Exception):
    """Nothing that could serve the request is running; the message says why."""


class NotReadyError(Exception):
    """What would serve the request is still starting."""


class Lane(ABC):
    """One running variant."""

    def __init__(self, factory: ReplicaFactory) -> None:
        self.factory = factory
        self.planned = factory.planned
        self.faults = factory.faults
        self.replicas: list[Replica] = []
        self.starts = 0
        """Replicas started so far; for a serverless variant, its cold starts."""
        self.in_flight = 0
        self._leaving: list[Replica] = []
        self._closing = False
        self._changed = asyncio.Event()
        self._moved = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Start what must run before the variant can serve. Raises `StartError` and leaves nothing behind."""
        try:
            await self._wait_for_release()
            await self._open()
        except BaseException:
            await self.stop(0)
            raise
        self._background(self._supervise())

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[Replica]:
        """The right to send one request. Raises this module's errors or `StartError`."""
        if self.faults.throttles:
            raise ThrottledError
        self._admit()
        self.in_flight += 1
        try:
            replica = await self._obtain()
            replica.in_flight += 1
            replica.uses += 1
            try:
                yield replica
            finally:
                replica.in_flight -= 1
                self._give_back(replica)
        finally:
            self.in_flight -= 1
            if not self.in_flight:
                self._notify()

    async def drain(self, limit_s: float) -> None:
        """Let the requests that are in flight finish (new ones go elsewhere already), then stop."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self.until(lambda: not self.in_flight)
        await self.stop(self.factory.host.settings.stop_grace_s)

    async def stop(self, grace_s: float) -> None:
        """Stop everything."""
        self._closing = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        replicas, self.replicas, self._leaving = [*self.replicas, *self._leaving], [], []
        await asyncio.gather(*(r.stop(grace_s) for r in replicas))
        for replica in replicas:
            self.factory.discard(replica)

    async def apply_faults(self) -> None:
        """Faults that touch processes have come or gone."""
        if self.faults.held_down:
            await asyncio.gather(*(r.kill() for r in self.replicas))
        await asyncio.gather(*(self.factory.burn(r) for r in self.replicas))
        self._notify()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition on the replicas or the faults."""
        while not condition():
            await self._moved.wait()

    @property
    def spills(self) -> bool | None:
        """Whether one more request would go beyond what is provisioned; None where nothing is."""
        return None

    # For the two kinds

    @abstractmethod
    async def _open(self) -> None:
        """Start what must run, before supervision begins."""

    @abstractmethod
    def _admit(self) -> None:
        """Refuse a request that cannot be taken now."""

    @abstractmethod
    async def _obtain(self) -> Replica:
        """A replica for an admitted request."""

    @abstractmethod
    def _give_back(self, replica: Replica) -> None:
        """A request has left the replica."""

    @abstractmethod
    def _tend(self) -> None:
        """Dead replicas have been removed; do what that asks for."""

    def _welcome(self, replica: Replica) -> None:
        self.starts += 1
        self.replicas.append(replica)
        replica.child.exited.add_done_callback(lambda _: self._notify())
        self._background(self.factory.burn(replica))

    def _remove(self, replica: Replica) -> None:
        self.replicas.remove(replica)
        self._background(self._retire(replica))

    async def _retire(self, replica: Replica) -> None:
        self._leaving.append(replica)
        await replica.stop(self.factory.host.settings.stop_grace_s)
        self._leaving.remove(replica)
        self.factory.discard(replica)

    async def _wait_for_release(self) -> None:
        limit_s = self.factory.timeout_s
        try:
            async with asyncio.timeout(limit_s):
                await self.until(lambda: not self.faults.held_down)
        except TimeoutError as error:
            raise StartError(f"A kill fault held the variant down for {limit_s:g} s; clear it first.") from error

    def _notify(self) -> None:
        """Something happened that supervision, or whoever waits for a condition, should look at."""
        self._changed.set()
        self._moved.set()
        self._moved = asyncio.Event()

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("%s/%s: %r", self.factory.endpoint, self.planned.variant.name, error, exc_info=error)

    async def _supervise(self) -> None:
        loop, settings = asyncio.get_running_loop(), self.factory.host.settings
        interval_s = settings.clock.poll_s(settings.ping_interval_s)
        next_ping = loop.time() + interval_s
        while not self._closing:
            if loop.time() >= next_ping:
                await self._ping_all()
                next_ping = loop.time() + interval_s
            for replica in [r for r in self.replicas if not r.child.alive]:
                self._remove(replica)
            self._tend()
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(next_ping - loop.time(), 0)):
                    await self._changed.wait()

    async def _ping_all(self) -> None:
        watched = [r for r in self.replicas if r.ready]
        await asyncio.gather(*(self.factory.ping(r) for r in watched))
        for replica in watched:
            if replica.missed_pings >= MISSED_PINGS and replica.child.alive:
                log.warning("%s: %s missed %d pings; replacing it", self.factory.endpoint, replica.id, MISSED_PINGS)
                await replica.kill()

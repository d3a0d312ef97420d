"""A serverless variant: containers started by requests, one request each, stopped when idle, throttled at a maximum.

A request that finds no idle container starts one and is served by it or by whichever becomes free first. The most
recently used container is taken first, so that others can become idle long enough to stop. A request over
MaxConcurrency is throttled at once. When the endpoint is created or updated one container is started to prove that the
model answers /ping, and stopped again: so the first request is a cold start, as it may be on AWS.

With ProvisionedConcurrency so many containers are kept: they start with the endpoint, do not stop when idle, and are
replaced when they end. Requests beyond them spill over to others, started on demand.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from workbench.stack.sagemaker.model.lane import Lane, NotReadyError, ThrottledError, UnavailableError
from workbench.stack.sagemaker.model.replica import Replica, ReplicaFactory, StartError
from workbench.stack.sagemaker.records import Serverless

log = logging.getLogger(__name__)
PROVISION_PAUSE_S = 1.0
"""Between a container that did not start and the next try to have what is provisioned."""


class Pool(Lane):
    """Containers of one variant. `on_setup(seconds)` is told of each cold start."""

    def __init__(self, factory: ReplicaFactory, size: Serverless, on_setup: Callable[[float], None]) -> None:
        super().__init__(factory)
        self.size = size
        self._on_setup = on_setup
        self._idle: list[Replica] = []
        self._waiting: deque[asyncio.Future[Replica]] = deque()
        self._starting = 0
        self._not_before = 0.0

    @property
    def spills(self) -> bool | None:
        """See `Lane`."""
        return self.in_flight >= self.size.provisioned if self.size.provisioned else None

    async def resize(self, size: Serverless, limit_s: float) -> str | None:
        """Change what may run at once. Returns once what is provisioned runs, or what stood in the way."""
        self.size = size
        for surplus in self._idle[: max(len(self.replicas) - size.provisioned, 0)]:
            self._expire_later(surplus)
        self._notify()
        try:
            async with asyncio.timeout(limit_s):
                await self.until(lambda: len(self.replicas) >= size.provisioned)
        except TimeoutError:
            return f"{len(self.replicas)} of {size.provisioned} provisioned containers run after {limit_s:g} s."
        return None

    async def _open(self) -> None:
        if not self.size.provisioned:
            await self._retire(await self.factory.start())
            return
        first = (self._provision() for _ in range(self.size.provisioned))
        if errors := [o for o in await asyncio.gather(*first, return_exceptions=True) if o is not None]:
            raise errors[0]

    async def _provision(self) -> None:
        replica = await self.factory.start()
        self._welcome(replica)
        self._idle.append(replica)

    def _admit(self) -> None:
        if self.in_flight >= self.size.max_concurrency:
            raise ThrottledError
        if self.faults.held_down:
            raise UnavailableError("no container of the variant can run")

    async def _obtain(self) -> Replica:
        while self._idle:
            replica = self._idle.pop()
            if replica.ready:
                return replica
        waiter: asyncio.Future[Replica] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        if self._starting < len(self._waiting):
            self._starting += 1
            self._background(self._start_one())
        try:
            async with asyncio.timeout(self.factory.host.settings.cold_start_timeout_s):
                return await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._give_back(waiter.result())  # it came just as we gave up
            if isinstance(error, TimeoutError):
                raise NotReadyError from error
            raise
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)

    def _give_back(self, replica: Replica) -> None:
        if not replica.ready or self._closing:
            self._notify()
        elif not self._hand_over(replica):
            self._idle.append(replica)
            self._expire_later(replica)

    def _tend(self) -> None:
        self._idle = [r for r in self._idle if r.ready]
        loop = asyncio.get_running_loop()
        if self.faults.held_down or loop.time() < self._not_before:
            return
        for _ in range(self.size.provisioned - len(self.replicas) - self._starting):
            self._starting += 1
            self._background(self._start_one())

    async def apply_faults(self) -> None:
        """Also turns away who waits for a container that will not come."""
        if self.faults.held_down:
            self._refuse(UnavailableError("no container of the variant can run"), everyone=True)
        await super().apply_faults()

    async def _start_one(self) -> None:
        try:
            replica = await self.factory.start()
        except StartError as error:
            log.warning("%s: a container did not start: %s", self.factory.endpoint, error)
            self._refuse(error, everyone=False)
            loop = asyncio.get_running_loop()
            self._not_before = loop.time() + PROVISION_PAUSE_S
            loop.call_later(PROVISION_PAUSE_S, self._notify)
            return
        finally:
            self._starting -= 1
        self._on_setup(replica.start_s)
        self._welcome(replica)
        self._notify()
        if self.faults.held_down:
            await replica.kill()
        else:
            self._give_back(replica)

    def _hand_over(self, replica: Replica) -> bool:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(replica)
                return True
        return False

    def _refuse(self, error: Exception, *, everyone: bool) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_exception(error)
                if not everyone:
                    return

    def _expire_later(self, replica: Replica) -> None:
        settings = self.factory.host.settings
        idle_s = settings.clock.real(settings.serverless_idle_s)
        asyncio.get_running_loop().call_later(idle_s, self._stop_idle, replica, replica.uses)

    def _stop_idle(self, replica: Replica, uses: int) -> None:
        if len(self.replicas) <= self.size.provisioned:
            return
        if replica in self._idle and replica.uses == uses and not self._closing:
            self._idle.remove(replica)
            self._remove(replica)

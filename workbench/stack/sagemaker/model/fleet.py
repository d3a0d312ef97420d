"""A dedicated variant: as many instances as are wanted, each request to one of them by the variant's RoutingStrategy.

RANDOM, which is also AWS's default, takes any instance; LEAST_OUTSTANDING_REQUESTS the one with the fewest requests in
flight (botocore, ProductionVariantRoutingConfig).

An instance that ends or misses its pings is replaced, after a pause that doubles with every start that fails in a row
(0.5 s to 30 s). Requests wait for nothing here: an instance queues them itself, behind its worker slots.
"""

from __future__ import annotations

import asyncio
import logging
import random

from workbench.stack.sagemaker.model.lane import Lane, UnavailableError
from workbench.stack.sagemaker.model.replica import Replica, ReplicaFactory, StartError

log = logging.getLogger(__name__)
LEAST_OUTSTANDING = "LEAST_OUTSTANDING_REQUESTS"
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0


class Fleet(Lane):
    """Instances of one variant."""

    def __init__(self, factory: ReplicaFactory, count: int) -> None:
        super().__init__(factory)
        self.desired = count
        self._starting = 0
        self._failed_starts = 0
        self._last_failure = ""
        self._not_before = 0.0
        self._turn = 0

    @property
    def ready(self) -> list[Replica]:
        """Instances that can be given requests."""
        return [r for r in self.replicas if r.ready]

    async def scale(self, count: int, limit_s: float) -> str | None:
        """Have `count` instances. Returns once they run, or what stood in the way after `limit_s`."""
        self.desired = count
        self._notify()
        try:
            async with asyncio.timeout(limit_s):
                await self.until(lambda: len(self.ready) == count)
        except TimeoutError:
            reached = f"{len(self.ready)} of {count} instances are in service after {limit_s:g} s."
            return f"{reached} {self._last_failure}".strip()
        return None

    async def _open(self) -> None:
        outcomes = await asyncio.gather(*(self._first() for _ in range(self.desired)), return_exceptions=True)
        if errors := [o for o in outcomes if o is not None]:
            raise errors[0]

    async def _first(self) -> None:
        self._welcome(await self.factory.start())

    def _admit(self) -> None:
        if not any(r.ready for r in self.replicas):
            raise UnavailableError("no instance of the variant is in service")

    async def _obtain(self) -> Replica:
        ready = self.ready
        if self.planned.variant.routing != LEAST_OUTSTANDING:
            return random.choice(ready)
        # Among equals take turns, so that idle instances share the load too.
        self._turn += 1
        rotated = ready[self._turn % len(ready) :] + ready[: self._turn % len(ready)]
        return min(rotated, key=lambda r: r.in_flight)

    def _give_back(self, replica: Replica) -> None:
        if replica.draining and not replica.in_flight:
            self._notify()

    def _tend(self) -> None:
        loop = asyncio.get_running_loop()
        if self.faults.held_down:
            return
        ready = self.ready
        missing = self.desired - len(ready) - self._starting
        if missing > 0 and loop.time() >= self._not_before:
            for _ in range(missing):
                self._starting += 1
                self._background(self._replace())
        # The newest go first: the oldest have the warmest caches.
        for surplus in ready[self.desired :]:
            surplus.draining = True
        for idle in [r for r in self.replicas if r.draining and not r.in_flight]:
            self._remove(idle)

    async def _replace(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            replica = await self.factory.start()
        except StartError as error:
            self._failed_starts += 1
            self._last_failure = str(error)
            pause_s = min(FIRST_PAUSE_S * 2 ** (self._failed_starts - 1), LONGEST_PAUSE_S)
            self._not_before = loop.time() + pause_s
            loop.call_later(pause_s, self._notify)
            log.warning("%s: an instance did not start (next try in %g s): %s", self.factory.endpoint, pause_s, error)
        else:
            self._failed_starts, self._last_failure = 0, ""
            self._welcome(replica)
            if self.faults.held_down:
                await replica.kill()
        finally:
            self._starting -= 1
            self._notify()

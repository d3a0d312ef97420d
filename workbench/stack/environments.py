"""How many environments of a function serve an API at a time, and how fast they become more.

On AWS a request that finds every environment busy starts a new one, on a machine of its own: it pays for its cold start
and nobody else does, and a function's environments grow at a limited rate (1,000 each ten seconds). Here all of them
start on the host's few cores. A crowd of cold starts slows the very answers that would free an environment, so that
each further request starts one more: fifty requests a second on two cores end in a hundred starts and half a minute
without an answer. So the growth is limited here too, at what the host can start beside its other work:

* a request takes an environment that is free, in the order in which they were started, as the emulated Lambda does;
* when none is free it waits, first come first served, for one that becomes free. Who has waited for `patience_s`, as
  long as a start takes at the least, starts one, at most `per_s` of them with `burst` at once;
* an environment that was idle for `idle_s` is gone, but the first of a function stays: the emulated Lambda's rules.

Nothing is refused: AWS would throttle above its limit, which is a thousand times further away.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

STARTS_PER_S_AND_CORE: Final = 2.0
"""A start takes 0.35 to 0.4 s of CPU (Python, imports, the unzipping of the package)."""
PATIENCE_S: Final = 0.25
IDLE_S: Final = 300.0
"""As long as the emulated Lambda keeps an idle one (its LAMBDA_WARM_TTL_SECONDS)."""


@dataclass(slots=True)
class _Environment:
    busy: bool
    used_at: float


@dataclass(frozen=True, slots=True)
class _Turn:
    since: float
    taken: asyncio.Future[_Environment]


class Environments:
    """The environments behind one API."""

    def __init__(
        self,
        per_s: float | None = None,
        burst: int | None = None,
        *,
        patience_s: float = PATIENCE_S,
        idle_s: float = IDLE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Not given, `per_s` and `burst` are what this host can do."""
        cores = os.cpu_count() or 1
        self._pause_s = 1 / (per_s or STARTS_PER_S_AND_CORE * cores)
        self._burst = burst or cores
        self._patience_s = patience_s
        self._idle_s = idle_s
        self._clock = clock
        self._known: list[_Environment] = []
        self._waiting: deque[_Turn] = deque()
        self._paid_until = float("-inf")
        """The starts so far, at `per_s`, last until then."""
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._known)

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[None]:
        """One environment, for one request."""
        taken = self._take()
        if taken is None:
            taken = await self._turn()
        try:
            yield
        finally:
            self._give_back(taken)

    def _take(self) -> _Environment | None:
        """A free environment, or the first one."""
        now = self._clock()
        self._known[1:] = [each for each in self._known[1:] if each.busy or now - each.used_at < self._idle_s]
        free = next((each for each in self._known if not each.busy), None)
        if free is not None:
            free.busy = True
            return free
        return None if self._known else self._start(now)

    def _start(self, now: float) -> _Environment:
        self._paid_until = max(self._paid_until, now) + self._pause_s
        made = _Environment(True, now)
        self._known.append(made)
        return made

    async def _turn(self) -> _Environment:
        taken: asyncio.Future[_Environment] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Turn(self._clock(), taken))
        self._plan()
        try:
            return await taken
        except asyncio.CancelledError:
            if taken.done() and not taken.cancelled():
                self._give_back(taken.result())
            raise

    def _next(self) -> _Turn | None:
        """Who waits longest, and still does."""
        while self._waiting and self._waiting[0].taken.done():
            self._waiting.popleft()
        return self._waiting[0] if self._waiting else None

    def _plan(self) -> None:
        """See to it that the next start is not missed while somebody waits."""
        if self._timer is None and (turn := self._next()) is not None:
            delay_s = max(0.0, self._may_start_at(turn) - self._clock())
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._start_one)

    def _may_start_at(self, turn: _Turn) -> float:
        return max(turn.since + self._patience_s, self._paid_until - (self._burst - 1) * self._pause_s)

    def _start_one(self) -> None:
        self._timer = None
        now, turn = self._clock(), self._next()
        if turn is not None and now >= self._may_start_at(turn):
            turn.taken.set_result(self._start(now))
        self._plan()

    def _give_back(self, environment: _Environment) -> None:
        environment.used_at = self._clock()
        if (turn := self._next()) is not None:
            turn.taken.set_result(environment)
        else:
            environment.busy = False

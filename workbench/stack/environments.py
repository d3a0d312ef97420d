"""How many environments of a function serve an API at a time, and how fast they become more.

On AWS a request that finds every environment busy starts a new one, on a machine of its own: it pays for its cold start
and nobody else does, and a function's environments grow at a limited rate (1,000 each ten seconds). Here all of them
start on the host's few cores. A crowd of cold starts slows the very answers that would free an environment, so that
each further request starts one more: fifty requests a second on two cores end in a hundred starts and half a minute
without an answer. So the growth is limited here too, at what the host can start beside its other work:

* a request takes an environment that is free, in the order in which they were started, as the emulated Lambda does;
* when none is free it waits, first come first served, for one that becomes free. Who has waited for `patience_s`, as
  long as a start takes at the least, starts one: at most `per_s` of them, each only when the last moment left some CPU
  idle, since one more start on a busy host delays all that run and the answers besides; but one in `at_least_each_s`;
* an environment that was idle for `idle_s` is gone, but the first of a function stays: the emulated Lambda's rules.

Nothing is refused: AWS would throttle above its limit, which is a thousand times further away.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import psutil

STARTS_PER_S_AND_CORE: Final = 2.0
"""A start takes 0.35 to 0.4 s of CPU (Python, imports, the unzipping of the package)."""
PATIENCE_S: Final = 0.25
AT_LEAST_EACH_S: Final = 2.0
IDLE_SHARE: Final = 0.1
"""Of all cores: with less, the host is busy."""
LOOK_AGAIN_S: Final = 0.1
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
        *,
        patience_s: float = PATIENCE_S,
        at_least_each_s: float = AT_LEAST_EACH_S,
        idle_s: float = IDLE_S,
        idle_share: Callable[[], float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`per_s` not given: what this host can do. `idle_share()` tells how much CPU was idle since it last did."""
        self._pause_s = 1 / (per_s or STARTS_PER_S_AND_CORE * (psutil.cpu_count() or 1))
        self._patience_s = patience_s
        self._at_least_each_s = at_least_each_s
        self._idle_s = idle_s
        self._idle_share = idle_share or host_idle_share()
        self._clock = clock
        self._known: list[_Environment] = []
        self._waiting: deque[_Turn] = deque()
        self._started_at = float("-inf")
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
        self._started_at = now
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
            self._idle_share()  # what counts is the time from here on
            due_at = max(turn.since + self._patience_s, self._started_at + self._pause_s)
            self._look_in(due_at - self._clock())

    def _look_in(self, delay_s: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(max(0.0, delay_s), self._start_one)

    def _start_one(self) -> None:
        self._timer = None
        now, turn = self._clock(), self._next()
        if turn is None:
            return
        waited = now >= turn.since + self._patience_s and now >= self._started_at + self._pause_s
        if waited and self._idle_share() < IDLE_SHARE and now < self._started_at + self._at_least_each_s:
            self._look_in(LOOK_AGAIN_S)
            return
        if waited:
            turn.taken.set_result(self._start(now))
        self._plan()

    def _give_back(self, environment: _Environment) -> None:
        environment.used_at = self._clock()
        if (turn := self._next()) is not None:
            turn.taken.set_result(environment)
        else:
            environment.busy = False


def host_idle_share() -> Callable[[], float]:
    """Tells, at each call, how much of the host's CPU was idle since the one before."""
    last = psutil.cpu_times()

    def share() -> float:
        nonlocal last
        before, last = last, psutil.cpu_times()
        passed, idle = sum(last) - sum(before), last.idle - before.idle
        return idle / passed if passed > 0 else 1.0

    return share

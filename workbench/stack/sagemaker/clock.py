"""How fast the emulated cloud's time passes: what AWS makes one wait for takes `seconds / scale` here.

Every duration is given in AWS's seconds and divided at the one place where it is waited for. Sped up are the waits of
the emulated cloud itself: starts of instances and what cold starts add, idle stops, the interval of health checks,
metric bins and their lag, alarm periods, cooldowns, scheduled actions, traffic shifting, baking and termination waits,
and how long an asynchronous request may wait. Not sped up is real work and every limit on it, for a model does not
compute faster because a clock does: model calls and their time-out, /ping, a process's start and its health check,
downloads, draining, SIGTERM to SIGKILL. Timestamps that clients see are the wall clock's.
"""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass, field

SHORTEST_POLL_S = 0.2
"""Looking at real processes is real work: however fast time passes, it is not done more often than this."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Emulated time. Raises `ValueError` for a scale that is not a finite number above zero."""

    scale: float = 1.0
    """Emulated seconds in a real one."""
    origin: float = field(default_factory=time.time)
    """Epoch second at which emulated and real time agree."""

    def __post_init__(self) -> None:
        if not 0 < self.scale < math.inf:
            raise ValueError(f"a time scale must be a finite number above zero; got {self.scale}")

    def real(self, seconds: float) -> float:
        """Real seconds that so many emulated ones take."""
        return seconds / self.scale

    def now(self) -> float:
        """The emulated time, epoch seconds: for deciding what is due, never for showing."""
        return self.at(time.time())

    def at(self, real: float) -> float:
        """The emulated time at a real one, both epoch seconds."""
        return self.origin + (real - self.origin) * self.scale

    async def sleep(self, seconds: float) -> None:
        """Let so many emulated seconds pass."""
        await asyncio.sleep(self.real(seconds))

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        """`asyncio.timeout` for emulated seconds; None is no limit."""
        return asyncio.timeout(None if seconds is None else self.real(seconds))

    def poll_s(self, seconds: float) -> float:
        """Real seconds between two looks at something real that AWS looks at every `seconds`."""
        return max(self.real(seconds), min(seconds, SHORTEST_POLL_S))

"""Admission at the source: whether a model server takes one more request, told from the wait it would meet. Pure.

Only the server sees its own queue, and a router that spills on knowledge older than a tenth of a second spills wrongly.
So the server refuses at once what would have to wait longer than `INFERLANE_MAX_QUEUE_MS`: the queued work at the
recent mean service time, over the workers, less what the running requests have already used up.

- The mean is of the last `RECENT` answers, of any status: refusing a bad input took a worker too.
- The wait is that of a first-come queue in which every request takes the mean: each free worker takes the next.
- A running request past the mean is expected to need as long again as it is late, so that workers which are stuck
  close the door within the limit.
- Before the first answer nothing is known, and no more may wait than there are workers.
- 0, the default, is no limit: what the official servers do out of the box, up to their own queue sizes.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

VARIABLE = "INFERLANE_MAX_QUEUE_MS"
RECENT = 32
"""Answers that make the mean: few enough to follow a change within seconds at ten requests a second."""


@dataclass(slots=True)
class Queue:
    """What one server has to do. Every reading of the clock is given, in seconds."""

    workers: int
    limit_s: float = math.inf
    waiting: int = 0
    _running: dict[int, float] = field(default_factory=dict)
    """Since when each running request has its worker."""
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def admits(self, now: float) -> bool:
        """Whether one more request would begin within the limit."""
        return self.wait_s(now) <= self.limit_s

    def wait_s(self, now: float) -> float:
        """How long one more request would wait for a worker."""
        if len(self._running) + self.waiting < self.workers:
            return 0.0
        if not self._recent:
            return 0.0 if self.waiting < self.workers else math.inf
        mean = math.fsum(self._recent) / len(self._recent)
        idle = [0.0] * (self.workers - len(self._running))
        free = idle + [abs(mean - (now - since)) for since in self._running.values()]
        heapq.heapify(free)
        for _ in range(self.waiting):
            heapq.heapreplace(free, free[0] + mean)
        return free[0]

    def begin(self, now: float) -> int:
        """A request has got its worker; returns its number for `end`."""
        number = next(self._numbers)
        self._running[number] = now
        return number

    def end(self, number: int, now: float) -> None:
        """A request has left its worker."""
        self._recent.append(now - self._running.pop(number))


def limit_s(environment: Mapping[str, str]) -> float:
    """The longest wait by the environment, seconds; infinite when nothing is set. Raises `ValueError`."""
    text = environment.get(VARIABLE) or "0"
    try:
        ms = float(text)
    except ValueError:
        ms = math.nan
    if not 0 <= ms < math.inf:
        raise ValueError(f"{VARIABLE} must be milliseconds from 0 (no limit) on; got {text!r}")
    return ms / 1000 if ms else math.inf

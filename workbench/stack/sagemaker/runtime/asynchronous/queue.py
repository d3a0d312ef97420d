"""The backlog of one asynchronous endpoint: first come, first served; what waits too long expires. Pure.

`now` is the emulated clock's.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from workbench.stack.sagemaker.metrics.points import Backlog
from workbench.stack.sagemaker.runtime.asynchronous.request import Request


@dataclass(slots=True)
class Queue:
    """Requests that wait for an instance."""

    waiting: deque[Request] = field(default_factory=deque)

    def add(self, request: Request) -> None:
        """One more, at the end."""
        self.waiting.append(request)

    def take(self) -> Request:
        """The one that has waited longest."""
        return self.waiting.popleft()

    def put_back(self, request: Request) -> None:
        """What was taken could not be served: it is first again."""
        self.waiting.appendleft(request)

    def expire(self, now: float) -> list[Request]:
        """Remove what has waited too long."""
        gone = [r for r in self.waiting if now - r.queued >= r.ttl_s]
        if gone:
            self.waiting = deque(r for r in self.waiting if now - r.queued < r.ttl_s)
        return gone

    def seen(self, now: float, instances: int) -> Backlog:
        """As metrics see it."""
        oldest_s = max((now - r.queued for r in self.waiting), default=0.0)
        return Backlog(len(self.waiting), oldest_s, instances)

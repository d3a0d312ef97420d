"""What befalls a caller of the ports: death before any effect, services that refuse or lose their answer, company.

Every effect of a fake is a step. A process is killed between two steps, never within one; then it makes no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

from functions.batch_ports import BusyError, UnavailableError


class Killed(BaseException):
    """The process is gone. Nothing catches it but the test that started the process."""


class Weather:
    """Fair until told otherwise."""

    def __init__(self, seed: int = 0) -> None:
        self._random = Random(seed)
        self.trouble = 0.0
        """The part of all steps that fail, half of them after they had their effect."""
        self._kill_in: int | None = None
        self._visit: tuple[int, Callable[[], None]] | None = None
        self._dead = False
        self.steps = 0

    def clear(self) -> None:
        """Fair again."""
        self.trouble, self._kill_in, self._visit, self._dead = 0.0, None, None, False

    def revive(self) -> None:
        """Another process takes its turn; the services are as they were."""
        self._kill_in, self._visit, self._dead = None, None, False

    def kill_in(self, steps: int) -> None:
        """The process dies before its step of this number, from 0."""
        self._kill_in = steps

    def visit_in(self, steps: int, visitor: Callable[[], None]) -> None:
        """Something else happens, in full, before the step of this number."""
        self._visit = (steps, visitor)

    @contextmanager
    def step(self) -> Iterator[None]:
        """One effect."""
        self.steps += 1
        if self._dead or self._kill_in == 0:
            self._dead = True
            raise Killed
        if self._kill_in is not None:
            self._kill_in -= 1
        if self._visit is not None:
            left, visitor = self._visit
            self._visit = (left - 1, visitor) if left else None
            if not left:
                visitor()
        fails = self.trouble > 0 and self._random.random() < self.trouble
        if fails and self._random.random() < 0.5:
            raise BusyError("throttled") if self._random.random() < 0.5 else UnavailableError("cannot be reached")
        yield
        if fails:
            raise UnavailableError("the answer was lost")

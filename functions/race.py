"""Attempts side by side, on threads: used by hedging only, and only once a decision allows it.

A thread whose attempt lost goes on until that attempt's own timeout and is then forgotten. It is a daemon, so it
never keeps a process alive; when Lambda freezes the process meanwhile, it goes on, or breaks, at the next request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from functions.core.outcome import Outcome


class ThreadRace:
    """One request's attempts (see `ports.Race`)."""

    def __init__(self) -> None:
        """Nothing runs yet."""
        self._ended: SimpleQueue[tuple[int, Outcome | BaseException]] = SimpleQueue()
        self._count = 0

    def start(self, run: Callable[[], Outcome]) -> int:
        """A thread for `run`."""
        number, self._count = self._count, self._count + 1
        threading.Thread(target=self._run, args=(number, run), name=f"attempt-{number}", daemon=True).start()
        return number

    def first(self, timeout_s: float) -> tuple[int, Outcome] | None:
        """The next to end."""
        try:
            number, ended = self._ended.get(timeout=max(0.0, timeout_s))
        except Empty:
            return None
        if isinstance(ended, BaseException):
            raise ended
        return number, ended

    def _run(self, number: int, run: Callable[[], Outcome]) -> None:
        try:
            self._ended.put((number, run()))
        except BaseException as error:  # raised where it is waited for
            self._ended.put((number, error))

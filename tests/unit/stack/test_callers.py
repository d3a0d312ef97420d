"""Whose a connection is, is looked up once in a while, and anew where its process has ended."""

from __future__ import annotations

from typing import cast

import psutil

from workbench.stack.callers import Caller, Callers


class Process:
    """A function's, that may end."""

    running = True

    def is_running(self) -> bool:
        return self.running


def test_a_caller_is_remembered_for_seconds_and_no_longer_than_its_process() -> None:
    """One look for many calls on a port; another when time has passed, or the process has ended."""
    process, looks, now = Process(), [], [0.0]

    def look(port: int) -> Caller | None:
        looks.append(port)
        return Caller("f", cast("psutil.Process", process)) if port == 1 else None

    callers = Callers(look, lambda: now[0])
    assert [callers.at(port) is None for port in (1, 1, 2, 2)] == [False, False, True, True]
    assert looks == [1, 2]
    process.running = False
    assert callers.at(1) is not None
    assert looks == [1, 2, 1]
    process.running, now[0] = True, 20.0
    callers.at(2)
    assert looks == [1, 2, 1, 2]

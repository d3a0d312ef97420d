"""Which Lambda function a request to the offline cloud comes from, by the process at the other end of its connection.

The emulated Lambda runs each environment as a process of its own below the gateway, and gives it the variable
AWS_LAMBDA_FUNCTION_NAME, as AWS does. Looking takes milliseconds for each process there is: it is done only while a
fault asks for it, and remembered for seconds, since a client makes many calls on one connection. A port is not given to
another process so soon: the connection that had it lingers for a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import psutil

VARIABLE = "AWS_LAMBDA_FUNCTION_NAME"
REMEMBERED_S = 20.0


@dataclass(frozen=True, slots=True)
class Caller:
    """A Lambda function's process."""

    function: str
    process: psutil.Process

    def kill(self) -> None:
        """End it as the kernel ends a process that is out of memory."""
        try:
            self.process.kill()
        except psutil.NoSuchProcess:
            return


def caller_at(port: int) -> Caller | None:
    """The function whose process has this local port; None where it is nobody's."""
    for process in psutil.Process().children(recursive=True):
        try:
            function = process.environ().get(VARIABLE)
            if function and any(each.laddr and each.laddr.port == port for each in process.net_connections("tcp")):
                return Caller(function, process)
        except psutil.Error:  # it ended while we looked, or is not ours to look at
            continue
    return None


@dataclass(slots=True)
class Callers:
    """Remembers whose the ports were that `look` was asked for."""

    look: Callable[[int], Caller | None] = caller_at
    now: Callable[[], float] = time.monotonic
    _seen: dict[int, tuple[float, Caller | None]] = field(default_factory=dict)

    def at(self, port: int) -> Caller | None:
        """The function whose process has this local port."""
        now = self.now()
        at, caller = self._seen.get(port, (float("-inf"), None))
        if now - at < REMEMBERED_S and (caller is None or caller.process.is_running()):
            return caller
        self._seen = {seen: known for seen, known in self._seen.items() if now - known[0] < REMEMBERED_S}
        caller = self.look(port)
        self._seen[port] = (now, caller)
        return caller

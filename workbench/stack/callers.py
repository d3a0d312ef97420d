"""Which Lambda function a request to the offline cloud comes from, by the process at the other end of its connection.

The emulated Lambda runs each environment as a process of its own below the gateway, and gives it the variable
AWS_LAMBDA_FUNCTION_NAME, as AWS does. Looking takes a few milliseconds: it is done only while a fault asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import psutil

VARIABLE = "AWS_LAMBDA_FUNCTION_NAME"


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

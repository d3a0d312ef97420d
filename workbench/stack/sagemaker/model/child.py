"""Child processes that never outlive this one.

Each child leads a session of its own, so that signals reach its whole group, and holds the read end of a pipe (its
standard input) whose write end only the parent has. When the parent ends, however it ends, the pipe reports end of
file and the child kills its own group. That needs no platform feature beyond POSIX pipes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path


def end_with_parent() -> None:
    """Called in the child: kill this process group as soon as standard input reports end of file."""

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 4096):
            pass
        os.killpg(os.getpgrp(), signal.SIGKILL)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()


class Child:
    """A running child process and its group."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.exited = asyncio.ensure_future(self._reap())

    @classmethod
    async def spawn(
        cls, arguments: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path, module: str
    ) -> Child:
        """Run `python -m module arguments`, its errors (and what it prints after its first line) appended to `log`."""
        # The log is opened here: a child that cannot even start Python still says why in it.
        with log.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", module, *arguments,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=errors,
                env=dict(env), cwd=cwd, start_new_session=True,
            )  # fmt: skip
        return cls(process)

    @property
    def pid(self) -> int:
        """Its process id, which is also its group's."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return not self.exited.done()

    async def first_line(self) -> str:
        """What it reports on standard output; empty when it ended first."""
        if self._process.stdout is None:
            raise RuntimeError("the child was started without a pipe for standard output")
        return (await self._process.stdout.readline()).decode().strip()

    async def stop(self, grace_s: float) -> None:
        """SIGTERM, then SIGKILL to the group when it still runs after `grace_s`."""
        if self.alive:
            self._signal(signal.SIGTERM)
            done, _ = await asyncio.wait([self.exited], timeout=grace_s)
            if not done:
                await self.kill()

    async def kill(self) -> None:
        """SIGKILL to the group, and wait until it is gone."""
        if self.alive:
            self._signal(signal.SIGKILL)
            await asyncio.wait([self.exited])

    async def _reap(self) -> int:
        status = await self._process.wait()
        # What it started itself goes with it.
        self._signal(signal.SIGKILL)
        return status

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def child_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of a model process: what a process needs to run here, the AWS variables, then `extra`."""
    kept = {"PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV"}
    prefixes = ("AWS_", "LC_", "CUDA_", "NVIDIA_", "SSL_")
    env = {k: v for k, v in os.environ.items() if k in kept or k.startswith(prefixes)}
    # `-P` keeps the working directory off the import path, so this package is named explicitly.
    root = str(Path(__file__).resolve().parents[4])
    path = os.pathsep.join(filter(None, [root, extra.get("PYTHONPATH")]))
    return env | {"PYTHONUNBUFFERED": "1"} | dict(extra) | {"PYTHONPATH": path}

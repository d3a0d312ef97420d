"""The processes of a measurement: the backend, and each contender in one of its own, told from here when to run.

Where the machine has two cores, the backend gets one and the contenders share the other: otherwise the scheduler lets
the backend answer inside the caller's `send`, and the caller pays for it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from functions.settings import TOPOLOGY_FILE, router_environment
from workbench.bench import scene
from workbench.stack.cloud import offline_environment
from workbench.stack.layout import project_root

_STOP_S = 10
T = TypeVar("T")


class BenchError(Exception):
    """A contender does not run; the message says which and what it said."""


class Times(NamedTuple):
    """Of each call, nanoseconds: all of it, and what of it was waiting for bytes from a socket."""

    wall: list[int]
    wait: list[int]

    @property
    def own(self) -> list[int]:
        """All but the wait."""
        return [wall - wait for wall, wait in zip(self.wall, self.wait, strict=True)]


@dataclass(frozen=True, slots=True)
class Backend:
    """Where the model that costs nothing listens."""

    at_once: str
    delayed: str


class Caller:
    """A contender in its own process."""

    def __init__(self, name: str, process: subprocess.Popen[str], errors: Path) -> None:
        self.name = name
        self._process = process
        self._errors = errors

    def run(self, calls: int) -> Times:
        """Make so many calls, one after another. Raises `BenchError` when the contender fails."""
        try:
            _pipe(self._process.stdin).write(f"{calls}\n")
            _pipe(self._process.stdin).flush()
            line = _pipe(self._process.stdout).readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise BenchError(f"{self.name} ended: {self._errors.read_text()[-1500:].strip()}")
        return Times(**json.loads(line))


@contextmanager
def backend() -> Iterator[Backend]:
    """The backend, while the context lasts."""
    with _python("workbench.bench.backend", [], dict(os.environ), core=0) as process:
        at_once, delayed = _pipe(process.stdout).readline().split()
        yield Backend(f"http://127.0.0.1:{at_once}", f"http://127.0.0.1:{delayed}")


@contextmanager
def caller(name: str, kind: str, url: str) -> Iterator[Caller]:
    """A contender of `caller.KINDS` that calls `url`, ready to run."""
    with tempfile.TemporaryDirectory(prefix="inferlane-bench-") as folder:
        errors = Path(folder) / "stderr"
        arguments = [kind, url, str(Path(folder) / "stdout")]
        env = lambda_environment(url, Path(folder))
        with _python("workbench.bench.caller", arguments, env, core=-1, errors=errors) as process:
            yield Caller(name, process, errors)


@contextmanager
def crowd(name: str, url: str, clients: int) -> Iterator[Caller]:
    """So many clients of `url` in one process, ready to run; `run` makes so many calls of each."""
    with tempfile.TemporaryDirectory(prefix="inferlane-bench-") as folder:
        errors = Path(folder) / "stderr"
        arguments = [url, str(clients)]
        with _python("workbench.bench.crowd", arguments, dict(os.environ), core=None, errors=errors) as process:
            yield Caller(name, process, errors)


@contextmanager
def served(url: str) -> Iterator[str]:
    """Our handler behind an HTTP server, on the backend at `url`: its own URL, while the context lasts."""
    with tempfile.TemporaryDirectory(prefix="inferlane-bench-") as folder:
        env = lambda_environment(url, Path(folder))
        with _python("workbench.bench.served", [], env, core=None) as process:
            port = _pipe(process.stdout).readline().strip()
            yield f"http://127.0.0.1:{port}{scene.PATH}"


def lambda_environment(url: str, folder: Path) -> dict[str, str]:
    """What the `route` function finds around itself, on the backend at `url`; its package's root is `folder`."""
    (folder / TOPOLOGY_FILE).write_text(json.dumps(scene.topology()))
    settings = router_environment(
        stack="bench",
        policy_application="bench",
        policy_environment="live",
        policy_profile="policy",
        snapshot_table="bench-snapshot",
    )
    return {**offline_environment(url), **settings, "LAMBDA_TASK_ROOT": str(folder)}


@contextmanager
def _python(
    module: str, arguments: list[str], env: Mapping[str, str], *, core: int | None, errors: Path | None = None
) -> Iterator[subprocess.Popen[str]]:
    with (errors or Path(os.devnull)).open("w") as stderr:
        process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=dict(env),
            cwd=project_root(),
        )
    try:
        if core is not None:
            _pin(process.pid, core)
        yield process
    finally:
        _pipe(process.stdin).close()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        _pipe(process.stdout).close()


def _pin(pid: int, core: int) -> None:
    """Keep a process on the first (0) or last (-1) core. macOS has no such call, and a single core no choice."""
    if sys.platform == "linux" and len(cores := sorted(os.sched_getaffinity(0))) > 1:
        os.sched_setaffinity(pid, {cores[core]})


def _pipe(pipe: T | None) -> T:
    if pipe is None:
        raise BenchError("the process was started without pipes")
    return pipe

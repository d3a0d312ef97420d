"""Start, watch and stop the stack's own processes. Only processes that we started are ever signalled.

A process is known by pid and start time together; a pid that the system gave to somebody else is left alone.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

from workbench.errors import UserError
from workbench.stack.layout import ProcessRecord

STOP_GRACE_S = 8.0
"""From SIGTERM to SIGKILL: the emulators stop their own children in that time."""


class StackError(UserError):
    """Something the user can act on; the message is one line, with the way out."""


def spawn(
    name: str, command: list[str], *, log: Path, env: Mapping[str, str], cwd: Path, keep: Iterable[socket.socket] = ()
) -> ProcessRecord:
    """Start a background process in its own session, output appended to `log`. It inherits the sockets in `keep`."""
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603 - our own modules, no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            pass_fds=[each.fileno() for each in keep],
        )
    return ProcessRecord(name, process.pid, psutil.Process(process.pid).create_time())


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back until the block is done, so that what it starts is also written down.

    Main thread only.
    """
    held: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _frame: held.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if held:
            signal.raise_signal(held[0])


def find(record: ProcessRecord) -> psutil.Process | None:
    """The live process of a record, or None when it ended or its pid is somebody else's now."""
    try:
        process = psutil.Process(record.pid)
        if abs(process.create_time() - record.started) > 0.5 or process.status() == psutil.STATUS_ZOMBIE:
            return None
    except psutil.NoSuchProcess:
        return None
    return process


def stop(records: Iterable[ProcessRecord], grace_s: float = STOP_GRACE_S) -> None:
    """Ask the processes to end, wait, then kill what is left, children included."""
    live = [process for record in records if (process := find(record)) is not None]
    children = [child for process in live for child in _children(process)]
    for process in live:
        _signal(process.terminate)
    _, stubborn = psutil.wait_procs([*live, *children], timeout=grace_s)
    for process in stubborn:
        _signal(process.kill)
    psutil.wait_procs(stubborn, timeout=2.0)


def wait_until(ready: Callable[[], bool], record: ProcessRecord, *, timeout_s: float, log: Path) -> None:
    """Poll `ready` until it is true. Raises `StackError` with the log's last line when the process ends or is late."""
    deadline = time.monotonic() + timeout_s
    while not ready():
        if find(record) is None:
            raise StackError(f"{record.name} ended while starting: {last_line(log)} (log: {log})")
        if time.monotonic() > deadline:
            raise StackError(f"{record.name} is not ready after {timeout_s:.0f} s: {last_line(log)} (log: {log})")
        time.sleep(0.05)


def last_line(log: Path) -> str:
    """The last line that says something, for a one-line cause."""
    lines = (
        [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()] if log.exists() else []
    )
    return lines[-1] if lines else "it printed nothing"


def stop_marked(name: str, value: str, grace_s: float = STOP_GRACE_S) -> list[int]:
    """Stop every process of this user whose environment has that variable, this one apart: what killed parents left.

    Returns their pids.
    """
    left = [process for process in psutil.process_iter() if _is_marked(process, name, value)]
    for process in left:
        _signal(process.terminate)
    _, stubborn = psutil.wait_procs(left, timeout=grace_s)
    for process in stubborn:
        _signal(process.kill)
    psutil.wait_procs(stubborn, timeout=2.0)
    return [process.pid for process in left]


def listen(host: str, port: int, patience_s: float = 0.0) -> socket.socket:
    """A listening socket for a process that will inherit it, so that its port is its own from now on; 0 is a free one.

    Raises `StackError` when the port is still taken after `patience_s`, naming who has it where the system tells.
    """
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return socket.create_server((host, port))
        except OSError as error:
            if time.monotonic() >= deadline:
                raise StackError(
                    f"port {port} is in use{_owner(port)}: stop that program, or choose another port with --port"
                ) from error
        time.sleep(0.05)


def free_port(host: str = "127.0.0.1") -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _owner(port: int) -> str:
    try:
        pids = {
            c.pid for c in psutil.net_connections("tcp") if c.laddr and c.laddr.port == port and c.status == "LISTEN"
        }
    except psutil.AccessDenied:  # macOS tells only root
        return ""
    names = [
        f"{psutil.Process(pid).name()}, pid {pid}"
        for pid in pids
        if pid and psutil.pid_exists(pid) and pid != os.getpid()
    ]
    return f" ({'; '.join(names)})" if names else ""


def _is_marked(process: psutil.Process, name: str, value: str) -> bool:
    try:
        mine = process.uids().real == os.getuid() and process.pid != os.getpid()
        return mine and process.status() != psutil.STATUS_ZOMBIE and process.environ().get(name) == value
    except (psutil.Error, OSError):  # it ended, or it may not be looked at: none of ours
        return False


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _signal(send: Callable[[], None]) -> None:
    try:
        send()
    except psutil.NoSuchProcess:
        return  # it ended by itself between the look and the signal

"""How busy process trees are: CPU seconds and resident memory, one pass over the process table for all of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True)
class Usage:
    """One process tree at one moment."""

    cpu_s: float
    """CPU time its living processes have used so far."""
    memory_mib: float


def usage_of(roots: Collection[int]) -> dict[int, Usage]:
    """The usage of the trees under these process ids; a tree that is gone is missing. Blocking: milliseconds."""
    parents = {p.pid: p.info["ppid"] for p in psutil.process_iter(["ppid"])}
    members: dict[int, list[int]] = {root: [] for root in roots if root in parents}
    for pid in parents:
        if (root := _root_of(pid, parents, members)) is not None:
            members[root].append(pid)
    return {root: _sum(pids) for root, pids in members.items()}


def _root_of(pid: int, parents: dict[int, int | None], roots: Collection[int]) -> int | None:
    seen: int | None = pid
    # A process table read while it changes can show a circle; no real chain is this long.
    for _ in range(64):
        if seen is None or seen in roots:
            return seen
        seen = parents.get(seen)
    return None


def _sum(pids: list[int]) -> Usage:
    cpu_s, memory = 0.0, 0
    for pid in pids:
        try:
            process = psutil.Process(pid)
            with process.oneshot():
                times = process.cpu_times()
                cpu_s += times.user + times.system
                memory += process.memory_info().rss
        except psutil.Error:
            continue  # it ended since the table was read
    return Usage(cpu_s, memory / (1024 * 1024))

"""Jobs, runs and results in memory, as the `jobs` use case sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from functions.batch_ports import BatchError, Page
from functions.core.job import End, Job, JobKey, JobState
from functions.core.run import Run


@dataclass
class FakeRecords:
    """Records by key. Ends are conditional, as the port has it."""

    records: dict[JobKey, Job] = field(default_factory=dict)
    asked: list[JobKey] = field(default_factory=list)
    pages: int = 0
    broken: BatchError | None = None
    before_end: Callable[[], None] = lambda: None
    """What happens between a look and the end that follows it."""

    def find(self, keys: Sequence[JobKey]) -> Mapping[JobKey, Job]:
        if self.broken is not None:
            raise self.broken
        self.asked += keys
        return {key: self.records[key] for key in keys if key in self.records}

    def end(self, ends: Mapping[JobKey, End], held_by: str | None) -> set[JobKey]:
        self.before_end()
        ended: set[JobKey] = set()
        for key, end in ends.items():
            job = self.records[key]
            if job.state is JobState.ACCEPTED and job.run == held_by:
                self.records[key] = replace(job, end=end)
                ended.add(key)
        return ended

    def page(self, tenant: str, limit: int, after: tuple[int, str] | None = None) -> Page:
        self.pages += 1
        mine = sorted((place(job), job) for key, job in self.records.items() if key.tenant == tenant)
        rest = [job for at, job in reversed(mine) if after is None or at < after]
        jobs = tuple(rest[:limit])
        return Page(jobs, place(jobs[-1]) if len(rest) > limit else None)


def place(job: Job) -> tuple[int, str]:
    """Where a list goes on after this one."""
    return round(job.accepted_at * 1000), job.key.id


@dataclass
class FakeRuns:
    """Runs by name, and how often each was looked at."""

    runs: dict[str, Run] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def find(self, name: str) -> Run | None:
        self.asked.append(name)
        return self.runs.get(name)


@dataclass
class FakeResults:
    """Objects by key; a link names its object and its time."""

    objects: dict[str, bytes] = field(default_factory=dict)

    def get(self, key: str) -> bytes | None:
        return self.objects.get(key)

    def link(self, key: str, expires_s: int) -> str:
        return f"https://bucket.example/{key}?expires={expires_s}"


@dataclass
class FakeCounts:
    """What was counted."""

    counted: list[tuple[str | None, Mapping[str, float]]] = field(default_factory=list)

    def count(self, model: str | None, counts: Mapping[str, float]) -> None:
        self.counted.append((model, counts))

"""A fake of `ports.Acceptance`: queues and records in memory, which fail when told to."""

from __future__ import annotations

from dataclasses import dataclass, field

from functions.batch_ports import BatchError
from functions.core.job import PROMOTED, Job, JobKey, Work


@dataclass
class FakeAcceptance:
    """Keeps the port's promise: the work is queued before its record is written."""

    queue: list[Work] = field(default_factory=list)
    promotions: list[Work] = field(default_factory=list)
    records: dict[JobKey, Job] = field(default_factory=dict)
    timeouts: list[float] = field(default_factory=list)
    broken: BatchError | None = None
    """What every call raises."""
    lost: bool = False
    """Whether records are written, and the answers that say so get lost."""

    def find(self, key: JobKey, timeout_s: float) -> Job | None:
        self.timeouts.append(timeout_s)
        if self.broken is not None:
            raise self.broken
        return self.records.get(key)

    def accept(self, work: Work, job: Job, timeout_s: float) -> Job | None:
        self.timeouts.append(timeout_s)
        if self.broken is not None:
            raise self.broken
        (self.promotions if job.run == PROMOTED else self.queue).append(work)
        found = self.records.setdefault(job.key, job)
        if self.lost:
            raise BatchError("the table did not answer")
        return None if found is job else found

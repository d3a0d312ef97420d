"""Where the router puts what can wait, and what it needs to be allowed to."""

from __future__ import annotations

from dataclasses import dataclass

from infra import iam
from infra.components.data_bucket import DataBucket
from infra.components.job_store import JobStore
from infra.components.work_queue import WorkQueue

PAYLOADS = "batch/payloads/"
"""Bodies too large for a message (`functions/aws/work_messages.py`)."""


@dataclass(frozen=True)
class Deferral:
    """The jobs table, the queues, and the bucket for what a message cannot carry."""

    store: JobStore
    work: WorkQueue
    promotions: WorkQueue
    """For what cannot wait until the collector looks."""
    data: DataBucket

    @property
    def grants(self) -> list[iam.Allow]:
        """To accept a job: look for its record, keep a payload, send it, record it."""
        return [
            self.store.may(self.store.jobs, "GetItem", "PutItem"),
            *self.work.sends,
            *self.promotions.sends,
            *self.data.writes(PAYLOADS),
        ]

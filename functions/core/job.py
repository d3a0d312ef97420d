"""A job: one request that may wait. What its record says, how it can end, and what its caller is told.

A record is written three times: at acceptance, when a run (or promotion) takes it over, and at its end. Ends are final.
`run` says who answers for an accepted job: nobody yet (it lies in the queue), a run by name, or promotion. Every change
is conditional on what the writer believes, so duplicates, re-orderings and restarts change nothing twice.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

PROMOTED: Final = "promoted"
"""Stands where a run's name would: the job was taken out of the batch lane to be answered in time by another."""
UNKNOWN_S: Final = 600.0
"""A message precedes its record by a moment; one without a record for so long was never accepted."""


class JobState(StrEnum):
    """What a job's record says; all but `ACCEPTED` are final."""

    ACCEPTED = "accepted"
    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, order=True)
class JobKey:
    """A job's name. The tenant is part of it, so that nothing is found without naming whose it is."""

    tenant: str
    id: str


@dataclass(frozen=True, slots=True)
class Dataset:
    """A whole data set as one job: S3 URIs of its input prefix and of where the output goes."""

    input: str
    output: str


@dataclass(frozen=True, slots=True)
class Work:
    """What the queue carries of a job: all that it takes to run it. The body is here or in S3, never in the record."""

    key: JobKey
    model: str
    content_type: str | None
    accept: str | None
    accepted_at: float
    due_at: float
    """Unix seconds, both."""
    lanes: tuple[str, ...]
    """Lanes that may answer it while a caller would wait, in order; empty: batch or nothing."""
    body: bytes | None = None
    object: str | None = None
    """The key of the object that holds the body, when the message could not."""
    dataset: Dataset | None = None
    fingerprint: str | None = None
    """As in the record it was sent for; None where no other could have been. Two callers who race with one idempotency
    key send two messages, and only one of them gets the record: the other's says something else."""

    def is_of(self, job: Job) -> bool:
        """Whether this was sent for the record that there is under its key."""
        return self.fingerprint is None or self.fingerprint == job.fingerprint


@dataclass(frozen=True, slots=True)
class Result:
    """The model's answer: its bytes, or the object that holds them."""

    content_type: str | None
    size: int
    """Bytes."""
    body: bytes | None = None
    object: str | None = None


@dataclass(frozen=True, slots=True)
class JobError:
    """Why a job failed, for its caller: an HTTP status, and words without any inside."""

    status: int
    detail: str


@dataclass(frozen=True, slots=True)
class End:
    """How a job ended."""

    state: JobState
    at: float
    lane: str | None = None
    cost_usd: float | None = None
    result: Result | None = None
    error: JobError | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A job's record."""

    key: JobKey
    model: str
    fingerprint: str
    accepted_at: float
    due_at: float
    run: str | None = None
    end: End | None = None
    dataset: Dataset | None = None

    @property
    def state(self) -> JobState:
        """Accepted until it has ended."""
        return JobState.ACCEPTED if self.end is None else self.end.state

    @property
    def late(self) -> bool:
        """Whether it was done after its deadline."""
        return self.end is not None and self.end.state is JobState.DONE and self.end.at > self.due_at


def keyed_id(tenant: str, idempotency_key: str) -> str:
    """The id of every job that this tenant asks for under this key: 32 hex digits."""
    return _digest(tenant.encode(), idempotency_key.encode())[:32]


def fingerprint(model: str, content_type: str | None, accept: str | None, body: bytes) -> str:
    """What is asked, so that a key sent again with something else is told apart: 64 hex digits."""
    return _digest(model.encode(), (content_type or "").encode(), (accept or "").encode(), body)


def result_key(key: JobKey, by: str) -> str:
    """Where an answer lies that its record could not hold.

    `by` is whoever answered: what comes too late from another must not be written over the answer that counts.
    """
    return f"batch/results/{_digest(key.tenant.encode())[:16]}/{key.id}/{by}"


def _digest(*parts: bytes) -> str:
    """SHA-256 over parts that cannot run into each other."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()

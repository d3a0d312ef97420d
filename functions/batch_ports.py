"""What the batch lane needs from outside, as Protocols. Adapters live in `aws/`; every one has a fake under `tests/`.

Methods raise `BusyError` where the service asks to slow down or a quota is reached, and `UnavailableError` where it
cannot be reached or fails: whoever calls leaves off, and the next turn begins where the records say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

from functions.core.job import End, Job, JobKey, JobState, Work
from functions.core.run import Part, Run, RunState, Tally
from functions.ports import Clock, Log


class BatchError(Exception):
    """Something outside did not do what was asked; the message has no payload and no identity in it."""


class BusyError(BatchError):
    """Throttled, or a quota is reached: the same may do later."""


class UnavailableError(BatchError):
    """The service cannot be reached, or failed."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some of a tenant's jobs, newest first, and where the next page begins; None: there is none."""

    jobs: tuple[Job, ...]
    next: tuple[int, str] | None
    """(accepted at, Unix milliseconds; id) of the last one looked at."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """What the audit sees of one record. Unix seconds."""

    key: JobKey
    state: JobState
    accepted_at: float
    due_at: float
    run: str | None
    """Who answers for it, as in the record."""


class JobStore(Protocol):
    """The jobs' records. Bulk calls work on several at a time; a failure half-way leaves what was done done."""

    def add(self, job: Job) -> Job | None:
        """Write a new record; the one that exists already under its key is answered instead, and left as it is."""
        ...

    def find(self, keys: Sequence[JobKey]) -> Mapping[JobKey, Job]:
        """Those that exist, read consistently."""
        ...

    def claim(self, keys: Sequence[JobKey], run: str, held_by: str | None) -> set[JobKey]:
        """Make `run` (a name or `PROMOTED`) answer for accepted jobs that `held_by` answered for: those it now does.

        One that `run` answers for already is among them: a claim may be made again.
        """
        ...

    def end(self, ends: Mapping[JobKey, End], held_by: str | None) -> set[JobKey]:
        """End accepted jobs that `held_by` answers for; those that were ended by this call.

        The record goes on naming who answered for it, so that a run's tally can be made up from its records.
        """
        ...

    def page(self, tenant: str, limit: int, after: tuple[int, str] | None = None) -> Page:
        """At most `limit` of a tenant's jobs, newest first."""
        ...

    def sightings(self) -> Iterator[Sighting]:
        """Every record there is. Expensive; for the audit."""
        ...


class RunStore(Protocol):
    """The runs' items, and the lease by which one collector works at a time."""

    def add(self, run: Run) -> bool:
        """Write a new run; False when its name exists."""
        ...

    def find(self, name: str) -> Run | None:
        """The run, read consistently."""
        ...

    def open(self) -> tuple[Run, ...]:
        """Those not settled, perhaps as of a second ago."""
        ...

    def add_part(self, name: str, part: Part) -> bool:
        """Add to a gathering run; False when it gathers no more. A part of that name is added once."""
        ...

    def move(
        self,
        name: str,
        before: RunState,
        after: RunState,
        *,
        at: float,
        tally: Tally | None = None,
    ) -> bool:
        """Move on; False when it is not in `before`. `at` becomes `started_at` (RUNNING) or `settled_at` (SETTLED).

        A run moves to SETTLED from any other state: one that was left with nothing to do has no transform job.
        """
        ...

    def lease(self, owner: str, now: float, until: float) -> bool:
        """Take or keep the collector's lease; False while another holds it."""
        ...

    def release(self, owner: str) -> None:
        """Give it back, if it is still held."""
        ...


class Objects(Protocol):
    """The stack's data bucket."""

    def put(self, key: str, body: bytes, content_type: str | None = None) -> None:
        """Write an object."""
        ...

    def put_all(self, objects: Mapping[str, bytes], content_type: str | None = None) -> None:
        """Write them, several at a time; raises unless all are written."""
        ...

    def get(self, key: str) -> bytes | None:
        """Its bytes; None where there is none."""
        ...

    def get_all(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Those of them that exist, several at a time."""
        ...

    def sizes(self, prefix: str) -> Mapping[str, int]:
        """Every key under `prefix`, with its bytes."""
        ...

    def link(self, key: str, expires_s: int) -> str:
        """A URL that reads this object, and nothing else, for so long."""
        ...

    def uri(self, key: str) -> str:
        """`s3://…`: the object's, or the prefix's, name for a service that reads it itself."""
        ...


@dataclass(frozen=True, slots=True)
class Received:
    """A message from the work queue. `work` None: it cannot be read."""

    work: Work | None
    receipt: str
    sent_at: float


class WorkQueue(Protocol):
    """A queue of work (the lane's, or promotion's)."""

    def send(self, work: Sequence[Work]) -> None:
        """Append; raises unless all of it is in."""
        ...

    def receive(self, most: int) -> Sequence[Received]:
        """Up to `most`; none: the queue is empty, or all but."""
        ...

    def delete(self, receipts: Sequence[str]) -> None:
        """Done with them. One that could not be deleted comes again."""
        ...

    def hide(self, receipt: str, seconds: int) -> None:
        """Have one that was received come again in so long, instead of when the queue would show it."""
        ...


@dataclass(frozen=True, slots=True)
class TransformSpec:
    """A transform job, as its run and its lane make it."""

    name: str
    model_name: str
    input: str
    output: str
    """S3 URIs of prefixes."""
    content_type: str | None
    accept: str | None
    lines: bool
    """Split and put together by line; else an object is a record."""
    strategy: Literal["SingleRecord", "MultiRecord"]
    instance_type: str
    instance_count: int
    max_payload_mb: int
    max_concurrent: int


@dataclass(frozen=True, slots=True)
class TransformStatus:
    """What SageMaker says of a transform job."""

    status: Literal["InProgress", "Completed", "Failed", "Stopping", "Stopped"]
    failure_reason: str | None = None
    began: float | None = None
    ended: float | None = None
    """Billed from the first to the second, Unix seconds."""


class Transforms(Protocol):
    """SageMaker's batch transform."""

    def create(self, spec: TransformSpec) -> None:
        """Begin; one of that name that exists already is as good. Raises `BusyError` at the account's quota."""
        ...

    def describe(self, name: str) -> TransformStatus | None:
        """How it fares; None where there is none."""
        ...


class Notices(Protocol):
    """Tells those who asked to be told."""

    def send(self, ended: Mapping[JobKey, JobState]) -> None:
        """These jobs have ended. Never raises: a notice is a courtesy, the record is the truth."""
        ...


class Count(StrEnum):
    """Names of the batch lane's metrics, all of them sums."""

    JOBS_GATHERED = "JobsGathered"
    JOBS_PROMOTED = "JobsPromoted"
    JOBS_RETRIED = "JobsRetried"
    JOBS_DONE = "JobsDone"
    JOBS_LATE = "JobsLate"
    """Of those done, after their deadline."""
    JOBS_FAILED = "JobsFailed"
    JOBS_EXPIRED = "JobsExpired"
    RUNS_STARTED = "RunsStarted"
    RUNS_FAILED = "RunsFailed"
    """Transform jobs that did not complete."""
    RUN_UNACCOUNTED = "RunUnaccounted"
    """Records of a settled run of which nothing became. Never anything but 0."""
    MESSAGES_DROPPED = "MessagesDropped"
    """Whose job is another's already, has ended, or was never accepted."""
    MESSAGES_UNREADABLE = "MessagesUnreadable"
    STEPS_PUT_OFF = "StepsPutOff"
    """Steps that a service refused or failed, left for the next turn."""
    JOBS_OPEN = "JobsOpen"
    JOBS_OVERDUE = "JobsOverdue"
    """Open past their deadline and a quarter of an hour."""
    JOBS_UNACCOUNTED = "JobsUnaccounted"
    """Accepted in the last finished day by the front door's count, and not to be found."""
    JOBS_ACCEPTED = "JobsAccepted"
    """The front door's; counted there."""


class BatchTelemetry(Protocol):
    """Counts, as metrics."""

    def count(self, model: str | None, counts: Mapping[str, float]) -> None:
        """Metric names with values, one line of EMF: by stack, and by stack and model where there is one."""
        ...


class Acceptances(Protocol):
    """The front door's own count of what it accepted."""

    def accepted(self, begin: float, end: float) -> float | None:
        """The sum of `JobsAccepted` between two whole hours, Unix seconds; None: unknown."""
        ...


@dataclass(frozen=True, slots=True)
class BatchPorts:
    """What collecting, settling and promoting all work with."""

    jobs: JobStore
    runs: RunStore
    objects: Objects
    work: WorkQueue
    promotions: WorkQueue
    transforms: Transforms
    notices: Notices
    telemetry: BatchTelemetry
    clock: Clock
    log: Log

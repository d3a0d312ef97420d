"""What the batch lane needs from outside, as Protocols. Adapters live in `aws/`; every one has a fake under `tests/`.

Methods raise `BusyError` where the service asks to slow down or a quota is reached, and `UnavailableError` where it
cannot be reached or fails: whoever calls leaves off, and the next turn begins where the records say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from functions.core.job import End, Job, JobKey, JobState, Work
from functions.core.run import Part, Run, RunState, Tally


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

    state: JobState
    accepted_at: float
    due_at: float


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
        """End accepted jobs that `held_by` answers for; those that were ended by this call."""
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
        """Move on; False when it is not in `before`. `at` becomes `started_at` (RUNNING) or `settled_at` (SETTLED)."""
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

    def get(self, key: str) -> bytes | None:
        """Its bytes; None where there is none."""
        ...

    def sizes(self, prefix: str) -> Mapping[str, int]:
        """Every key under `prefix`, with its bytes."""
        ...

    def link(self, key: str, expires_s: int) -> str:
        """A URL that reads this object, and nothing else, for so long."""
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


class BatchTelemetry(Protocol):
    """Counts, as metrics."""

    def count(self, model: str, counts: Mapping[str, float]) -> None:
        """Metric names with values, one line of EMF."""
        ...

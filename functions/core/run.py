"""A run: jobs gathered for one transform job, and how far it has come.

`gathering` takes parts in; `starting` is closed and waits for its transform job; `running` has one; `settled` has told
its jobs. Its name is the transform job's. A run owns the jobs whose record names it: a line of its input whose record
names another counts for nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from functions.core.job import JobKey

Form = Literal["lines", "objects", "dataset"]
"""JSON Lines with a record a line; an object a record; a data set that somebody else wrote."""


class RunState(StrEnum):
    """How far a run has come; never backwards."""

    GATHERING = "gathering"
    STARTING = "starting"
    RUNNING = "running"
    SETTLED = "settled"


@dataclass(frozen=True, slots=True)
class Group:
    """What one transform job can hold: one model, one content type, one form of answer."""

    model: str
    content_type: str | None
    accept: str | None
    form: Form


@dataclass(frozen=True, slots=True)
class Part:
    """What one drain of the queue added to a run."""

    name: str
    records: int
    size: int
    """Bytes."""
    first_due: float
    """Unix seconds."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of a run's records; they add up to all of them."""

    done: int = 0
    failed: int = 0
    expired: int = 0
    promoted: int = 0
    retried: int = 0
    foreign: int = 0
    """Lines whose record another run, a cancellation or an earlier turn of this one answers for."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.done + self.failed + self.expired + self.promoted + self.retried + self.foreign


@dataclass(frozen=True, slots=True)
class Run:
    """A run's item."""

    name: str
    group: Group
    state: RunState
    opened_at: float
    attempt: int = 1
    parts: tuple[Part, ...] = ()
    started_at: float | None = None
    """When its transform job was created, Unix seconds."""
    settled_at: float | None = None
    tally: Tally = field(default_factory=Tally)
    parent: str | None = None
    input: str | None = None
    output: str | None = None
    """S3 URIs, for a data set only."""

    @property
    def records(self) -> int:
        """How many records its parts hold."""
        return sum(part.records for part in self.parts)

    @property
    def first_due(self) -> float | None:
        """When the first of its records is due, Unix seconds; None while it has none."""
        return min((part.first_due for part in self.parts), default=None)


@dataclass(frozen=True, slots=True)
class Line:
    """Where one job's record lies in a run's input, and what promotion needs to know of it."""

    tenant: str
    id: str
    due_at: float
    file: str
    """Name of the input object, under the run's `in/`."""
    line: int | None
    """Its line there, from 0; None: the object is the record."""
    lanes: tuple[str, ...]

    @property
    def key(self) -> JobKey:
        """The job's."""
        return JobKey(self.tenant, self.id)


def child_name(parent: str, number: int) -> str:
    """The name of the run that retries what `parent` left behind; `number` counts those that were closed already."""
    digest = hashlib.sha256(f"{parent}/{number}".encode()).hexdigest()
    return f"{parent.rpartition('-')[0]}-{digest[:16]}"


def input_prefix(run: str) -> str:
    """Where a run's input objects lie, and nothing else."""
    return f"batch/{run}/in/"


def index_prefix(run: str) -> str:
    """Where its index objects lie: a part each, JSON Lines of `Line`."""
    return f"batch/{run}/index/"


def output_prefix(run: str) -> str:
    """Where its transform job writes `<file>.out`."""
    return f"batch/{run}/out/"

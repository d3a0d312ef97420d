"""Nothing is lost: what became of a run's records adds up to all of them, and so do the states of all jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from functions.core.job import PROMOTED, Job, JobState
from functions.core.run import Run, Tally

Fate = Literal["done", "failed", "expired", "promoted", "retried", "foreign"]
"""A field of `Tally`."""
_ENDS: Final[Mapping[JobState, Fate]] = {
    JobState.DONE: "done",
    JobState.FAILED: "failed",
    JobState.EXPIRED: "expired",
}


def fate(job: Job | None, run: str, children: frozenset[str]) -> Fate | None:
    """What a record says became of a line of `run`, whose retries are `children`; None: `run` still answers for it.

    A job that this run does not answer for, or not yet, and one that was cancelled, is foreign.
    """
    if job is None:
        return "foreign"
    if job.run == PROMOTED:
        return "promoted"
    if job.run is not None and job.run in children:
        return "retried"
    if job.run != run:
        return "foreign"
    return None if job.state is JobState.ACCEPTED else _ENDS.get(job.state, "foreign")


def tally(fates: Mapping[Fate, int]) -> Tally:
    """As a run's item has it."""
    return Tally(
        done=fates.get("done", 0),
        failed=fates.get("failed", 0),
        expired=fates.get("expired", 0),
        promoted=fates.get("promoted", 0),
        retried=fates.get("retried", 0),
        foreign=fates.get("foreign", 0),
    )


def unaccounted(run: Run, found: Tally) -> int:
    """How many of a run's records nothing became of."""
    return abs(run.records - found.total)


@dataclass(frozen=True, slots=True)
class Census:
    """All records by what they say."""

    done: int = 0
    failed: int = 0
    expired: int = 0
    cancelled: int = 0
    open: int = 0

    @property
    def total(self) -> int:
        """What this must be equal to: accepted = done + failed + expired + cancelled + open."""
        return self.done + self.failed + self.expired + self.cancelled + self.open


def census(states: Mapping[JobState, int]) -> Census:
    """Of the numbers of records in each state."""
    return Census(
        done=states.get(JobState.DONE, 0),
        failed=states.get(JobState.FAILED, 0),
        expired=states.get(JobState.EXPIRED, 0),
        cancelled=states.get(JobState.CANCELLED, 0),
        open=states.get(JobState.ACCEPTED, 0),
    )

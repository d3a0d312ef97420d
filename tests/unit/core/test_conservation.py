"""What became of records, and that it adds up."""

from __future__ import annotations

import pytest

from functions.core.conservation import Census, Fate, census, fate, tally, unaccounted
from functions.core.job import PROMOTED, End, Job, JobKey, JobState
from functions.core.run import Group, Part, Run, RunState, Tally

CHILDREN = frozenset({"child-0", "child-1"})


def job(run: str | None, state: JobState = JobState.ACCEPTED) -> Job:
    """A record that says so."""
    end = None if state is JobState.ACCEPTED else End(state, 1.0)
    return Job(JobKey("t", "i"), "m", "f", 0.0, 9.0, run=run, end=end)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, "foreign"),
        (job(None), "foreign"),
        (job("other"), "foreign"),
        (job("other", JobState.DONE), "foreign"),
        (job(None, JobState.EXPIRED), "foreign"),
        (job("run"), None),
        (job("run", JobState.DONE), "done"),
        (job("run", JobState.FAILED), "failed"),
        (job("run", JobState.EXPIRED), "expired"),
        (job("run", JobState.CANCELLED), "foreign"),
        (job(PROMOTED), "promoted"),
        (job(PROMOTED, JobState.DONE), "promoted"),
        (job("child-1"), "retried"),
        (job("child-0", JobState.FAILED), "retried"),
    ],
)
def test_a_record_says_what_became_of_a_line(found: Job | None, expected: Fate | None) -> None:
    """Whoever answers for the job, and how it ended; only an open one of the run's own has no fate yet."""
    assert fate(found, "run", CHILDREN) == expected


def test_fates_make_a_tally() -> None:
    """Each in its place; none is zero."""
    fates: dict[Fate, int] = {"done": 1, "failed": 2, "expired": 3, "promoted": 4, "retried": 5, "foreign": 6}
    assert tally(fates) == Tally(done=1, failed=2, expired=3, promoted=4, retried=5, foreign=6)
    assert tally({}) == Tally()


def test_what_is_missing_or_too_much_is_not_accounted_for() -> None:
    """As a number of records, never negative."""
    run = Run("r", Group("m", None, None, "lines"), RunState.RUNNING, 0.0, parts=(Part("p", 5, 1, 1.0),))
    assert unaccounted(run, Tally(done=3, foreign=2)) == 0
    assert unaccounted(run, Tally(done=3)) == 2
    assert unaccounted(run, Tally(done=6)) == 1


def test_a_census_counts_every_state() -> None:
    """Accepted ones are open; the total is all of them."""
    found = census(
        {
            JobState.DONE: 1,
            JobState.FAILED: 10,
            JobState.EXPIRED: 100,
            JobState.CANCELLED: 1000,
            JobState.ACCEPTED: 10_000,
        }
    )
    assert found == Census(done=1, failed=10, expired=100, cancelled=1000, open=10_000)
    assert found.total == 11_111
    assert census({}) == Census()

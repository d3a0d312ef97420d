"""How an open job looks to its caller; the rest of the view is told over the handler."""

from __future__ import annotations

import pytest

from functions.core.job import PROMOTED, End, Job, JobKey, JobState
from functions.core.job_view import Status, json_text, run_of, status_of, wait_s
from functions.core.run import Group, Run, RunState
from tests.unit.core.builders import NOW

JOB = Job(JobKey("demo", "0" * 32), "m", "f", NOW, NOW + 3600)


@pytest.mark.parametrize(
    ("left_s", "wait"), [(3600.0, 60), (1200.0, 60), (600.0, 30), (101.0, 5), (10.0, 5), (-10.0, 5)]
)
def test_an_open_job_is_worth_another_look_the_sooner_the_nearer_its_end(left_s: float, wait: int) -> None:
    """A twentieth of what is left, from five seconds to a minute."""
    assert wait_s(JOB, JOB.due_at - left_s) == wait


@pytest.mark.parametrize("state", [each for each in JobState if each is not JobState.ACCEPTED])
def test_an_end_is_an_end_whatever_its_run_does(state: JobState) -> None:
    """No run needs to be looked at."""
    job = Job(JOB.key, "m", "f", NOW, NOW, run="r", end=End(state, NOW))
    assert run_of(job) is None
    running = Run("r", Group("m", None, None, "lines"), RunState.RUNNING, NOW)
    assert status_of(job, running) == Status(str(state)) == status_of(job, None)


@pytest.mark.parametrize(("run", "looked_at"), [(None, None), (PROMOTED, None), ("r", "r")])
def test_only_a_run_by_name_is_looked_at(run: str | None, looked_at: str | None) -> None:
    """Neither the queue nor promotion has one."""
    assert run_of(Job(JOB.key, "m", "f", NOW, NOW, run=run)) == looked_at


@pytest.mark.parametrize("body", [b"NaN", b"[Infinity]", b"-Infinity", b"\xef\xbb\xbf{}", b"{} x", b"'a'", b"\xff"])
def test_what_only_some_parsers_take_is_no_json(body: bytes) -> None:
    """The document that it would be part of must be read by all."""
    assert json_text(body) is None

"""How a job looks to its caller."""

from __future__ import annotations

from dataclasses import replace

import pytest

from functions.core.job import PROMOTED, Dataset, End, Job, JobError, JobKey, JobState, Result
from functions.core.job_view import Status, describe, json_text, run_of, status_of, wait_s, with_result
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


@pytest.mark.parametrize(
    ("run", "state", "status"),
    [
        (None, None, "queued"),
        (PROMOTED, None, "running"),
        ("r", None, "queued"),
        ("r", RunState.GATHERING, "queued"),
        ("r", RunState.STARTING, "queued"),
        ("r", RunState.RUNNING, "running"),
        ("r", RunState.SETTLED, "running"),
    ],
)
def test_an_open_job_is_queued_until_nobody_can_stop_it(run: str | None, state: RunState | None, status: str) -> None:
    """By its record alone, or by its run; a settled run's job is about to be told."""
    found = None if state is None else Run("r", Group("m", None, None, "lines"), state, NOW)
    assert status_of(replace(JOB, run=run), found) == status


SEEN = {
    "id": "0" * 32,
    "status": "queued",
    "model": "m",
    "accepted_at": "2026-11-30T01:00:00Z",
    "deadline": "2026-11-30T02:00:00Z",
}
SET = Dataset("s3://data/in/", "s3://data/out/")
ENDED = {"ended_at": "2026-11-30T01:30:00Z"}


@pytest.mark.parametrize(
    ("job", "status", "document"),
    [
        (JOB, Status.QUEUED, SEEN),
        (replace(JOB, dataset=SET), Status.RUNNING, {**SEEN, "status": "running", "input": "s3://data/in/"}),
        (
            replace(JOB, end=End(JobState.EXPIRED, NOW + 1800)),
            Status.EXPIRED,
            {**SEEN, "status": "expired", **ENDED},
        ),
        (
            replace(JOB, end=End(JobState.DONE, NOW + 1800, "batch", 0.25, Result("text/plain", 3, b"yes"))),
            Status.DONE,
            {**SEEN, "status": "done", **ENDED, "lane": "batch", "cost_usd": 0.25, "content_type": "text/plain"},
        ),
        (
            replace(JOB, due_at=NOW + 1799, end=End(JobState.DONE, NOW + 1800, result=Result(None, 3, b"yes"))),
            Status.DONE,
            {**SEEN, "status": "done", "deadline": "2026-11-30T01:29:59Z", **ENDED, "late": True},
        ),
        (
            replace(JOB, end=End(JobState.FAILED, NOW + 1800, "serverless", error=JobError(400, "no text"))),
            Status.FAILED,
            {
                **SEEN,
                **ENDED,
                "status": "failed",
                "lane": "serverless",
                "error": {"status": 400, "detail": "no text"},
            },
        ),
        (
            replace(JOB, dataset=SET, end=End(JobState.DONE, NOW + 1800, "batch")),
            Status.DONE,
            {
                **SEEN,
                **ENDED,
                "status": "done",
                "lane": "batch",
                "input": "s3://data/in/",
                "output": "s3://data/out/",
            },
        ),
        (
            replace(JOB, dataset=SET, end=End(JobState.FAILED, NOW + 1800)),
            Status.FAILED,
            {**SEEN, "status": "failed", **ENDED, "input": "s3://data/in/"},
        ),
    ],
    ids=["open", "data set", "expired", "done", "late", "failed", "data set done", "data set failed"],
)
def test_a_document_says_this_and_nothing_else(job: Job, status: Status, document: dict[str, object]) -> None:
    """What is not known is left out; where a data set's output lies is told once it is there."""
    assert describe(job, status) == document


@pytest.mark.parametrize(
    ("kind", "body", "document"),
    [
        ("application/json", b'{ "a": 1.10 }', b'{"id":"x","n":1,"result":{ "a": 1.10 }}'),
        ("application/json", b"{broken", b'{"id":"x","n":1,"result_base64":"e2Jyb2tlbg=="}'),
        ("text/plain", b"{}", b'{"id":"x","n":1,"result_base64":"e30="}'),
        (None, b"{}", b'{"id":"x","n":1,"result_base64":"e30="}'),
    ],
)
def test_json_is_part_of_the_document_as_it_was_written(kind: str | None, body: bytes, document: bytes) -> None:
    """To the byte; anything else, and what only claims to be JSON, in Base64."""
    assert with_result({"id": "x", "n": 1}, Result(kind, len(body), body), body) == document

"""The client that orchestrators use (docs/orchestrators/inferlane_jobs.py), against a real HTTP server."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from functools import partial

import pytest

from inferlane_jobs import EndedBadlyError, Job, Jobs, JobsError, api_key, bearer, iam, key_of
from tests.unit.orchestrators.front_door import KEY, FrontDoor, front_door

SOURCE, TARGET = "s3://b/in/", "s3://b/out/"


@pytest.fixture
def door() -> Iterator[FrontDoor]:
    """A front door whose jobs end at the second look."""
    with front_door() as made:
        yield made


@pytest.fixture
def slept() -> list[float]:
    """What was slept."""
    return []


@pytest.fixture
def jobs(door: FrontDoor, slept: list[float]) -> Jobs:
    """Its jobs, for a caller with the key; time does not pass."""
    return Jobs(door.url, api_key(KEY), sleep=slept.append)


def test_a_data_set_is_one_job_that_is_waited_for(door: FrontDoor, jobs: Jobs, slept: list[float]) -> None:
    """It is asked for with its key, looked at as often as the service says, and tells where its output lies."""
    job = jobs.wait(jobs.dataset("moderation", SOURCE, TARGET, key_of("task")), 60)
    assert (job.status, job.document["output"]) == ("done", TARGET)
    assert slept == [5.0, 7.0]
    method, path, headers = door.calls[0]
    assert (method, path, headers["idempotency-key"]) == ("POST", "/v1/models/moderation/batches", key_of("task"))
    assert json.loads(door.bodies[0]) == {"input": SOURCE, "output": TARGET}


def test_one_request_is_asked_for_as_work_that_may_wait(door: FrontDoor, jobs: Jobs) -> None:
    """Prefer: respond-async, with the deadline in milliseconds and its body as it is."""
    jobs.request("moderation", b'{"text": "a"}', "k", within_s=3600)
    _, path, headers = door.calls[0]
    assert path == "/v1/models/moderation/invocations"
    assert (headers["prefer"], headers["x-inferlane-deadline-ms"]) == ("respond-async", "3600000")
    assert door.bodies[0] == b'{"text": "a"}'


def test_a_second_start_under_the_same_names_is_the_same_job(door: FrontDoor, jobs: Jobs) -> None:
    """What a crashed worker started is found, not run twice."""
    start = partial(jobs.dataset, "moderation", SOURCE, TARGET)
    first = jobs.attached(start, 1, "dag", "run", "task")
    again = jobs.attached(start, 2, "dag", "run", "task")
    assert first.id == again.id
    assert len(door.jobs) == 1


def test_a_try_after_a_job_that_ended_badly_starts_another(door: FrontDoor, jobs: Jobs) -> None:
    """The third try passes over two failed jobs, and a fourth finds the third's."""
    door.ends = ["failed", "expired"]
    start = partial(jobs.dataset, "moderation", SOURCE, TARGET)
    for tries in (1, 2):
        with pytest.raises(EndedBadlyError):
            jobs.wait(jobs.attached(start, tries, "task"), 60)
    third = jobs.wait(jobs.attached(start, 3, "task"), 60)
    assert third.status == "done"
    assert jobs.attached(start, 4, "task").id == third.id
    assert len(door.jobs) == 3


def test_why_a_job_ended_badly_is_told(door: FrontDoor, jobs: Jobs) -> None:
    """The reason of the service stands in the error, also when the job is found ended."""
    door.ends = ["failed"]
    start = partial(jobs.dataset, "moderation", SOURCE, TARGET)
    with pytest.raises(EndedBadlyError, match="failed: the model ended"):
        jobs.wait(jobs.attached(start, 1, "task"), 60)
    with pytest.raises(EndedBadlyError, match="failed: the model ended"):
        jobs.attached(start, 1, "task")


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again(door: FrontDoor, jobs: Jobs, slept: list[float], status: int) -> None:
    """Throttling and 5xx, after as long as the service asks; with one key there is one job."""
    door.failures = [status, status]
    jobs.dataset("moderation", SOURCE, TARGET, "k")
    assert slept == [2.0, 2.0]
    assert len(door.jobs) == 1


def test_what_does_not_pass_ends_after_five_tries(door: FrontDoor, jobs: Jobs, slept: list[float]) -> None:
    """With the last status and the service's words."""
    door.failures = [503] * 9
    with pytest.raises(JobsError, match="503 as told") as caught:
        jobs.look("0" * 32)
    assert caught.value.status == 503
    assert len(slept) == 4


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_a_refusal_is_not_tried_again(door: FrontDoor, jobs: Jobs, slept: list[float], status: int) -> None:
    """Asking again would be refused again."""
    door.failures = [status]
    with pytest.raises(JobsError, match=f"{status} as told"):
        jobs.dataset("moderation", SOURCE, TARGET, "k")
    assert slept == []


def test_a_key_that_names_something_else_is_refused(jobs: Jobs) -> None:
    """The same key for another data set is the caller's mistake, and is told."""
    jobs.dataset("moderation", SOURCE, TARGET, "k")
    with pytest.raises(JobsError, match="422 This Idempotency-Key was used before"):
        jobs.dataset("moderation", "s3://b/other/", TARGET, "k")


def test_a_door_that_cannot_be_reached_is_tried_and_told(slept: list[float]) -> None:
    """No connection is status 0, after pauses that grow."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(JobsError, match="GET /v1/jobs/a") as caught:
        Jobs(f"http://127.0.0.1:{port}", api_key(KEY), sleep=slept.append).look("a")
    assert caught.value.status == 0
    assert slept == sorted(slept)


def test_a_queued_job_is_cancelled_and_a_running_one_stays(door: FrontDoor, jobs: Jobs) -> None:
    """Cancelling tells which of both it was."""
    job = jobs.dataset("moderation", SOURCE, TARGET, "k")
    assert jobs.cancel(job.id)
    other = jobs.dataset("moderation", SOURCE, TARGET, "other")
    door.jobs[other.id]["status"] = "running"
    assert not jobs.cancel(other.id)


def test_a_wait_ends_at_its_timeout(door: FrontDoor, jobs: Jobs) -> None:
    """The job goes on; the error says how it stands."""
    door.looks = 9
    with pytest.raises(TimeoutError, match="is still queued after 0 s"):
        jobs.wait(jobs.dataset("moderation", SOURCE, TARGET, "k"), 0)


def test_a_redirect_is_not_followed(door: FrontDoor, jobs: Jobs) -> None:
    """Whoever sends one is not told who calls."""
    door.failures = [302]
    with pytest.raises(JobsError, match="302"):
        jobs.look("a")
    assert len(door.calls) == 1


def test_each_way_to_say_who_calls_makes_its_header(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key, a token that is asked for every time, and a signature over what is sent."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    tokens = iter("ab")
    assert api_key("k")("GET", "https://d/v1/jobs/1", b"", {}) == {"X-Api-Key": "k"}
    asked = bearer(lambda: next(tokens))
    assert [asked("GET", "https://d/", b"", {})["Authorization"] for _ in range(2)] == ["Bearer a", "Bearer b"]
    signed = iam("us-east-1")("POST", "https://d/v1/models/m/batches", b"{}", {"Idempotency-Key": "k"})
    assert signed["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/us-east-1/execute-api/aws4_request" in signed["Authorization"]
    assert "idempotency-key" in signed["Authorization"]


def test_a_key_is_made_of_names_that_cannot_run_into_each_other() -> None:
    """64 hex digits, another for every list of names."""
    assert key_of("a", "bc") != key_of("ab", "c")
    assert key_of("a", 1) == key_of("a", "1")
    assert len(key_of("a")) == 64


def test_a_url_must_be_one() -> None:
    """A file, or a name without a scheme, is refused before anything is sent."""
    with pytest.raises(JobsError, match="no URL"):
        Jobs("file:///etc/passwd", api_key(KEY))


def test_a_job_is_open_until_it_ends() -> None:
    """queued and running are; an end without a reason says that there is none."""
    assert Job({"id": "1", "status": "running"}).open
    assert not Job({"id": "1", "status": "done"}).checked().open
    with pytest.raises(EndedBadlyError, match="cancelled: no reason is given"):
        Job({"id": "1", "status": "cancelled"}).checked()

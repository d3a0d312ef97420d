"""The Lambda behind a SageMaker Pipelines callback step: the message stays on the queue while the job is open."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

import inferlane_jobs
import sagemaker_callback
from tests.unit.orchestrators.front_door import KEY, FrontDoor, front_door

ARGUMENTS = {"model": "moderation", "source": "s3://b/in/", "target": "s3://b/out/"}


class Pipelines:
    """SageMaker, as far as a callback step is told of."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.refuses: str | None = None

    def send_pipeline_execution_step_success(self, **request: Any) -> None:
        """The step has its outputs."""
        self._tell("success", request)

    def send_pipeline_execution_step_failure(self, **request: Any) -> None:
        """The step has failed."""
        self._tell("failure", request)

    def _tell(self, what: str, request: dict[str, Any]) -> None:
        if self.refuses is not None:
            raise ClientError({"Error": {"Code": self.refuses, "Message": "no"}}, "SendPipelineExecutionStep")
        self.told.append((what, request))


@pytest.fixture
def door() -> Iterator[FrontDoor]:
    """A front door whose jobs end at the second look."""
    with front_door() as made:
        yield made


@pytest.fixture
def pipelines() -> Pipelines:
    """One that takes what it is told."""
    return Pipelines()


def tended(door: FrontDoor, pipelines: Pipelines, *tokens: str) -> list[str]:
    """One delivery of a message for each token; the ids of those that stay on the queue."""
    records = [
        {"messageId": f"m-{token}", "body": json.dumps({"token": token, "arguments": ARGUMENTS})} for token in tokens
    ]
    jobs = inferlane_jobs.Jobs(door.url, inferlane_jobs.api_key(KEY), sleep=lambda _: None)
    answer = sagemaker_callback.tended({"Records": records}, jobs, pipelines)
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def test_a_message_stays_until_its_job_has_ended(door: FrontDoor, pipelines: Pipelines) -> None:
    """The first delivery starts the job, the second finds it done: one job, one success with its output."""
    assert tended(door, pipelines, "t") == ["m-t"]
    assert tended(door, pipelines, "t") == []
    assert len(door.jobs) == 1
    told = {"CallbackToken": "t", "OutputParameters": [{"Name": "output", "Value": "s3://b/out/"}]}
    assert pipelines.told == [("success", told)]


def test_a_failed_job_fails_the_step_with_its_reason(door: FrontDoor, pipelines: Pipelines) -> None:
    """And its message is done with; the neighbour's stays."""
    door.ends = ["failed"]
    tended(door, pipelines, "t")
    assert tended(door, pipelines, "t", "other") == ["m-other"]
    assert pipelines.told[0][0] == "failure"
    assert "the model ended" in pipelines.told[0][1]["FailureReason"]


def test_a_refusal_fails_the_step_and_a_fault_does_not(door: FrontDoor, pipelines: Pipelines) -> None:
    """403 will be 403 again; while the service is down nobody knows yet."""
    door.failures = [503] * 5
    assert tended(door, pipelines, "t") == ["m-t"]
    door.failures = [403]
    assert tended(door, pipelines, "t") == []
    assert [what for what, _ in pipelines.told] == ["failure"]


def test_a_step_that_is_over_needs_no_telling(door: FrontDoor, pipelines: Pipelines) -> None:
    """A stopped pipeline refuses the token: the message is done with. Throttled, it comes again."""
    tended(door, pipelines, "t")
    pipelines.refuses = "ThrottlingException"
    with pytest.raises(ClientError):
        tended(door, pipelines, "t")
    pipelines.refuses = "ValidationException"
    assert tended(door, pipelines, "t") == []

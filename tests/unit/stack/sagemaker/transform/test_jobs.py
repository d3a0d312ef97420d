"""The life of jobs, as clients see it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.stack.sagemaker.transform.test_request import request
from workbench.stack.sagemaker.api.wire import AwsError
from workbench.stack.sagemaker.records import Container
from workbench.stack.sagemaker.transform.events import detail, entry
from workbench.stack.sagemaker.transform.jobs import Job, Jobs
from workbench.stack.sagemaker.transform.request import parse

ARN = "arn:aws:sagemaker:us-east-1:000000000000:transform-job/"


def add(jobs: Jobs, name: str, now: float = 100.0, **more: Any) -> Job:
    """A new job."""
    document = request(TransformJobName=name, **more)
    return jobs.add(parse(document, Container("image", None, {})), f"{ARN}{name.lower()}", document, now)


def describe(jobs: Jobs, name: str) -> dict[str, Any]:
    """The job as DescribeTransformJob shows it."""
    return dict(jobs.describe({"TransformJobName": name}))


@pytest.mark.fidelity(
    "batch transform",
    "A job is InProgress, then Completed, Failed or Stopped; it is billed from TransformStartTime to TransformEndTime",
    source="API reference: DescribeTransformJob",
)
def test_life() -> None:
    """Times appear as they come, and a failure with its reason."""
    jobs = Jobs()
    good, bad = add(jobs, "good"), add(jobs, "bad")
    seen = describe(jobs, "good")
    assert (seen["TransformJobStatus"], seen["CreationTime"]) == ("InProgress", 100.0)
    assert not seen.keys() & {"TransformStartTime", "TransformEndTime", "FailureReason"}
    jobs.start(good, 110.0)
    jobs.finish(good, None, 120.0)
    jobs.finish(bad, "ClientError: x" + "y" * 2000, 130.0)
    seen = describe(jobs, "good")
    assert seen["TransformJobStatus"] == "Completed"
    assert (seen["TransformStartTime"], seen["TransformEndTime"]) == (110.0, 120.0)
    seen = describe(jobs, "bad")
    assert (seen["TransformJobStatus"], len(seen["FailureReason"])) == ("Failed", 1024)
    assert "TransformStartTime" not in seen


@pytest.mark.fidelity(
    "batch transform", "Stopping a job takes it through Stopping to Stopped", source="API reference: StopTransformJob"
)
def test_stop() -> None:
    """A stopped job has an end and no failure, and cannot be stopped again."""
    jobs = Jobs()
    job = add(jobs, "job")
    assert jobs.begin_stop("JOB", 105.0).status == "Stopping"
    for status in ("Stopping", "Stopped"):
        with pytest.raises(AwsError) as caught:
            jobs.begin_stop("job", 106.0)
        text = f"The request was rejected because the transform job is in status {status}"
        assert (caught.value.code, caught.value.message) == ("ValidationException", text)
        jobs.finish(job, None, 110.0)
        job.status = "Stopped"
    assert describe(jobs, "job")["TransformEndTime"] == 110.0


def test_unknown_jobs() -> None:
    """A job that is not there is a ValidationException in the words of each call."""
    with pytest.raises(AwsError, match="Could not find requested job with name: none"):
        Jobs().describe({"TransformJobName": "none"})
    with pytest.raises(AwsError, match="Could not find job to update with name: none"):
        Jobs().begin_stop("none", 0)


@pytest.mark.fidelity(
    "batch transform",
    "A transform job's name is unique for good, and jobs cannot be deleted",
    source="botocore: CreateTransformJob (ResourceInUse); no DeleteTransformJob",
)
def test_names_are_never_free_again() -> None:
    """A name that any job has had is in use, whatever its case."""
    jobs = Jobs()
    jobs.finish(add(jobs, "job"), None, 101.0)
    with pytest.raises(AwsError) as caught:
        add(jobs, "Job")
    assert caught.value.code == "ResourceInUse"
    assert caught.value.message == (
        f"Job name must be unique within an AWS account and region, and a job with this name already exists ({ARN}job)"
    )


@pytest.mark.fidelity(
    "listing",
    "ListTransformJobs filters, sorts and pages",
    source="botocore: ListTransformJobsRequest",
)
def test_list() -> None:
    """Jobs are filtered by status, name and time, sorted, and paged."""
    jobs = Jobs()
    for number, name in enumerate(["beta", "alpha", "gamma"]):
        add(jobs, name, 100.0 + number)
    jobs.finish(jobs.all()[0], "AlgorithmError: x", 200.0)

    def names(**more: Any) -> list[str]:
        return [row["TransformJobName"] for row in jobs.list(more)["TransformJobSummaries"]]

    assert names() == ["gamma", "alpha", "beta"]
    assert names(SortBy="Name", SortOrder="Ascending") == ["alpha", "beta", "gamma"]
    assert names(StatusEquals="Failed") == ["beta"]
    assert names(NameContains="ALPH") == ["alpha"]
    assert names(LastModifiedTimeAfter=150.0) == ["beta"]
    assert names(CreationTimeBefore=101.5, SortBy="CreationTime") == ["alpha", "beta"]
    page = jobs.list({"MaxResults": 2})
    rest = jobs.list({"MaxResults": 2, "NextToken": page["NextToken"]})
    assert [row["TransformJobName"] for row in rest["TransformJobSummaries"]] == ["beta"]
    assert "NextToken" not in rest
    (row,) = jobs.list({"StatusEquals": "Failed"})["TransformJobSummaries"]
    assert (row["FailureReason"], row["TransformEndTime"]) == ("AlgorithmError: x", 200.0)


def test_instances_in_use() -> None:
    """Only jobs that run hold instances of their type."""
    jobs = Jobs()
    two: Any = {"TransformResources": {"InstanceType": "ml.m5.large", "InstanceCount": 2}}
    add(jobs, "a", **two)
    jobs.finish(add(jobs, "b", **two), None, 101.0)
    jobs.begin_stop(add(jobs, "c", **two).name, 102.0)
    assert jobs.instances("ml.m5.large") == 4
    assert jobs.instances("ml.c5.large") == 0


@pytest.mark.fidelity(
    "batch transform",
    "Every new status is an event of aws.sagemaker with the job as its detail",
    source="developer guide: automating-sagemaker-with-eventbridge",
)
def test_events() -> None:
    """An event has the job's fields, its times in milliseconds, its tags, and no field that has no value yet."""
    jobs = Jobs()
    job = add(jobs, "job", MaxPayloadInMB=10)
    event = entry(job, {})
    assert (event["Source"], event["DetailType"]) == ("aws.sagemaker", "SageMaker Transform Job State Change")
    assert event["Resources"] == [f"{ARN}job"]
    jobs.start(job, 101.5)
    jobs.finish(job, "ClientError: x", 110.0)
    seen = detail(job, {"team": "ml"})
    assert (seen["TransformJobStatus"], seen["FailureReason"]) == ("Failed", "ClientError: x")
    assert (seen["CreationTime"], seen["TransformStartTime"], seen["TransformEndTime"]) == (100_000, 101_500, 110_000)
    assert (seen["MaxPayloadInMB"], seen["Tags"]) == (10, {"team": "ml"})
    assert seen["TransformInput"]["DataSource"]["S3DataSource"]["S3Uri"] == "s3://b/in/"
    assert "BatchStrategy" not in seen

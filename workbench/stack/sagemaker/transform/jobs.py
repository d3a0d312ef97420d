"""The life of transform jobs, as a state machine without I/O, and what is seen of it.

    (new) create -> InProgress --all objects done--> Completed
                               --any failed, or the job itself--> Failed, with FailureReason
                               stop -> Stopping -> Stopped
A job cannot be deleted, and its name is never free again. TransformStartTime is when its instances are there (and cost
money), TransformEndTime when it has ended, whatever the status.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench.stack.sagemaker.api import listing
from workbench.stack.sagemaker.api.wire import AwsError, Document, invalid
from workbench.stack.sagemaker.transform import request as requests
from workbench.stack.sagemaker.transform.request import Spec

Status = Literal["InProgress", "Completed", "Failed", "Stopping", "Stopped"]
REASON_LENGTH = 1024


class JobError(Exception):
    """The job as a whole cannot be done; the message is its FailureReason."""


@dataclass(slots=True)
class Job:
    """A job and where it is in its life."""

    spec: Spec
    arn: str
    document: Document
    created: float
    modified: float
    status: Status = "InProgress"
    started: float | None = None
    ended: float | None = None
    failure_reason: str | None = None

    @property
    def name(self) -> str:
        """As it was given."""
        return self.spec.name

    @property
    def active(self) -> bool:
        """Whether it uses instances, or is about to."""
        return self.status in ("InProgress", "Stopping")


class Jobs:
    """Every job by name."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}

    def all(self) -> list[Job]:
        """In order of creation."""
        return list(self._jobs.values())

    def put(self, job: Job) -> None:
        """A job of an earlier run."""
        self._jobs[job.name.lower()] = job

    def instances(self, instance_type: str) -> int:
        """Instances of a type that active jobs hold."""
        return sum(j.spec.instances for j in self._jobs.values() if j.active and j.spec.instance_type == instance_type)

    def use(self) -> dict[str, int]:
        """Instances that active jobs hold, by type."""
        return {t: self.instances(t) for t in {j.spec.instance_type for j in self._jobs.values() if j.active}}

    def check_new(self, name: str, arn: str) -> None:
        """Refuse a name that is taken."""
        if name.lower() in self._jobs:
            raise AwsError(
                "ResourceInUse",
                "Job name must be unique within an AWS account and region, and a job with this name already exists "
                f"({arn})",
            )

    def add(self, spec: Spec, arn: str, document: Document, now: float) -> Job:
        """A new job, InProgress. Raises `ResourceInUse`."""
        self.check_new(spec.name, arn)
        job = self._jobs[spec.name.lower()] = Job(spec, arn, document, now, now)
        return job

    def begin_stop(self, name: str, now: float) -> Job:
        """StopTransformJob: Stopping; what it runs is to be stopped."""
        job = self._jobs.get(name.lower())
        if job is None:
            raise invalid(f"Could not find job to update with name: {name}")
        if job.status != "InProgress":
            raise invalid(f"The request was rejected because the transform job is in status {job.status}")
        job.status, job.modified = "Stopping", now
        return job

    def start(self, job: Job, now: float) -> None:
        """Its instances are there."""
        job.started = job.modified = now

    def finish(self, job: Job, failure: str | None, now: float) -> None:
        """Everything it ran has ended."""
        if job.status == "Stopping":
            job.status = "Stopped"
        else:
            job.status = "Completed" if failure is None else "Failed"
            job.failure_reason = failure[:REASON_LENGTH] if failure else None
        job.ended = job.modified = now

    def describe(self, document: Document) -> Document:
        """DescribeTransformJob."""
        name = document["TransformJobName"]
        job = self._jobs.get(name.lower())
        if job is None:
            raise invalid(f"Could not find requested job with name: {name}")
        seen = {
            "TransformJobName": job.name,
            "TransformJobArn": job.arn,
            "TransformJobStatus": job.status,
            "CreationTime": job.created,
            **requests.shown(job.document),
        }
        late = {
            "FailureReason": job.failure_reason,
            "TransformStartTime": job.started,
            "TransformEndTime": job.ended,
        }
        return seen | {name: value for name, value in late.items() if value is not None}

    def list(self, document: Document) -> Document:
        """ListTransformJobs."""
        found, token = listing.select(
            list(self._jobs.values()),
            document,
            name=lambda j: j.name,
            created=lambda j: j.created,
            modified=lambda j: j.modified,
            status=lambda j: j.status,
        )
        rows = [_summary(job) for job in found]
        return {"TransformJobSummaries": rows} | ({"NextToken": token} if token else {})


def _summary(job: Job) -> Document:
    row = {
        "TransformJobName": job.name,
        "TransformJobArn": job.arn,
        "CreationTime": job.created,
        "LastModifiedTime": job.modified,
        "TransformJobStatus": job.status,
    }
    late = {"TransformEndTime": job.ended, "FailureReason": job.failure_reason}
    return row | {name: value for name, value in late.items() if value is not None}

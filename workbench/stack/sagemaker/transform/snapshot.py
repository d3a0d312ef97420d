"""Transform jobs as documents and back: what outlives the process. Pure.

A job keeps nothing of its work but finished objects in S3, so one that ran when the process ended cannot go on: it is
Failed, with the reason, or Stopped where it was Stopping. Its name stays taken, as every job's does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from workbench.stack.sagemaker.journal import Row
from workbench.stack.sagemaker.records import Container
from workbench.stack.sagemaker.transform import request as requests
from workbench.stack.sagemaker.transform.jobs import Job, Jobs

KIND = "transform-job"
CUT_OFF = "InternalServerError: The emulator was restarted while the job ran. Please create it again."


def save(jobs: Jobs) -> Iterator[Row]:
    """Every job."""
    for job in jobs.all():
        # The container itself: the model can be deleted while the job lives.
        kept = {"document": job.document, "container": asdict(job.spec.container)}
        times = {"created": job.created, "modified": job.modified, "started": job.started, "ended": job.ended}
        end = {"arn": job.arn, "status": job.status, "failure_reason": job.failure_reason}
        yield Row(KIND, job.name, {**kept, **times, **end})


def load(row: Row, jobs: Jobs, now: float) -> Job | None:
    """Put back the job of a row of `save`. Returns it where it has come to its end by that."""
    kept = row.document
    spec = requests.parse(kept["document"], Container(**kept["container"]))
    job = Job(
        spec,
        kept["arn"],
        kept["document"],
        kept["created"],
        kept["modified"],
        kept["status"],
        kept["started"],
        kept["ended"],
        kept["failure_reason"],
    )
    jobs.put(job)
    if not job.active:
        return None
    jobs.finish(job, CUT_OFF, now)
    return job

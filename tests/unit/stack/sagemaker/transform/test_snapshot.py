"""Transform jobs as documents and back."""

from __future__ import annotations

import json

from tests.unit.stack.sagemaker.transform.test_jobs import add, describe
from workbench.stack.sagemaker.journal import Row
from workbench.stack.sagemaker.transform import snapshot
from workbench.stack.sagemaker.transform.jobs import Job, Jobs


def restarted(jobs: Jobs) -> tuple[Jobs, list[Job | None]]:
    """The jobs of an emulator that starts with what this one has kept, and which of them ended by that."""
    again = Jobs()
    rows = [Row(row.kind, row.name, json.loads(json.dumps(row.document))) for row in snapshot.save(jobs)]
    return again, [snapshot.load(row, again, 900.0) for row in rows]


def test_a_job_that_ended_is_as_it_was() -> None:
    """Described as before, and its name is still taken."""
    jobs = Jobs()
    done = add(jobs, "done")
    jobs.start(done, 110.0)
    jobs.finish(done, None, 120.0)
    again, ended = restarted(jobs)
    assert ended == [None]
    assert describe(again, "done") == describe(jobs, "done")
    assert again.all()[0].spec == done.spec


def test_a_job_that_ran_is_failed_and_one_that_was_stopping_stopped() -> None:
    """The reason says what happened; neither holds instances any more."""
    jobs = Jobs()
    jobs.start(add(jobs, "ran"), 110.0)
    add(jobs, "stopping")
    jobs.begin_stop("stopping", 111.0)
    again, ended = restarted(jobs)
    assert [job.name for job in ended if job] == ["ran", "stopping"]
    ran, stopping = describe(again, "ran"), describe(again, "stopping")
    assert (ran["TransformJobStatus"], ran["FailureReason"]) == ("Failed", snapshot.CUT_OFF)
    assert (ran["TransformStartTime"], ran["TransformEndTime"]) == (110.0, 900.0)
    assert (stopping["TransformJobStatus"], stopping.get("FailureReason")) == ("Stopped", None)
    assert again.use() == {}

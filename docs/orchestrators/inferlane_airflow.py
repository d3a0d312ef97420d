"""An Airflow 3 operator that has a data set run by an inferlane stack's batch lane; it goes with `inferlane_jobs`.

    TransformDataset(task_id="recheck", model="moderation", source="s3://…/{{ ds }}/", target="s3://…/out/{{ ds }}/")

- The job's idempotency key is made of DAG, run, task, map index and what is asked. A worker that dies after it started
  the job finds it again at its next try, and the data set is not run, nor paid for, twice.
- A try after a job that failed starts another; the task's `retries` bound how many.
- A data set that is refused (403, 422) fails the task without retries: it would be refused again.
- With `deferrable=True` the wait takes no worker slot. Killed by a user, the job is cancelled if it has not started;
  one that runs ends by itself, and its output stays.

The connection (`inferlane_default`): host = the front door's URL; password = the API key, or the token of a stack with
`auth: jwt`; extra = {"auth": "api_key" | "jwt" | "iam", "region": "us-east-1"}. IAM signs as the worker's own role.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from airflow.sdk import BaseHook, BaseOperator, Connection, Context
from airflow.sdk.exceptions import AirflowFailException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from inferlane_jobs import EndedBadlyError, Job, Jobs, JobsError, api_key, bearer, iam

REFUSED = frozenset({400, 401, 403, 404, 413, 422})


class TransformDataset(BaseOperator):
    """Runs `source` (s3://bucket/prefix) through a model's batch lane into `target`; its XCom is the job's document."""

    template_fields: Sequence[str] = ("model", "source", "target", "conn_id")

    def __init__(
        self,
        *,
        model: str,
        source: str,
        target: str,
        content_type: str | None = None,
        conn_id: str = "inferlane_default",
        timeout_s: float = 6 * 3600.0,
        deferrable: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.model = model
        self.source = source
        self.target = target
        self.content_type = content_type
        self.conn_id = conn_id
        self.timeout_s = timeout_s
        self.deferrable = deferrable
        self._started: tuple[Jobs, str] | None = None

    def execute(self, context: Context) -> Any:
        """Start the job, or find it; then wait for its end here or in the triggerer."""
        jobs = jobs_of(BaseHook.get_connection(self.conn_id))
        ti = context["ti"]
        names = (ti.dag_id, ti.run_id, ti.task_id, ti.map_index, self.model, self.source, self.target)
        try:
            job = jobs.attached(self._start(jobs), ti.try_number, *names)
            self._started = (jobs, job.id)
            self.log.info("job %s is %s", job.id, job.status)
            if job.open and self.deferrable:
                self.defer(
                    trigger=JobTrigger(self.conn_id, job.id, job.wait_s),
                    method_name="resumed",
                    timeout=self.timeout_s,
                )
            return dict(jobs.wait(job, self.timeout_s).document)
        except JobsError as error:
            if error.status in REFUSED:
                raise AirflowFailException(str(error)) from error
            raise

    def resumed(self, context: Context, event: dict[str, Any]) -> Any:  # noqa: ARG002 - Airflow passes it
        """The trigger saw the job end."""
        return dict(Job(event).checked().document)

    def on_kill(self) -> None:
        """Cancel what has not started. While the task is deferred this is the trigger's."""
        if self._started is not None:
            jobs, job_id = self._started
            try:
                cancelled = jobs.cancel(job_id)
            except JobsError as error:  # the task is gone either way
                self.log.warning("job %s could not be cancelled: %s", job_id, error)
                return
            self.log.info("job %s %s", job_id, "is cancelled" if cancelled else "runs, or has ended, and stays")

    def _start(self, jobs: Jobs) -> Any:
        return lambda key: jobs.dataset(self.model, self.source, self.target, key, content_type=self.content_type)


class JobTrigger(BaseTrigger):
    """Waits for a job's end without a worker; fires with the job's document, however it ended."""

    def __init__(self, conn_id: str, job_id: str, wait_s: float) -> None:
        super().__init__()
        self.conn_id = conn_id
        self.job_id = job_id
        self.wait_s = wait_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """What a triggerer makes it anew from; no secret is in it."""
        kwargs = {"conn_id": self.conn_id, "job_id": self.job_id, "wait_s": self.wait_s}
        return f"{type(self).__module__}.{type(self).__qualname__}", kwargs

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look at the job as often as the service asks for, until it has ended."""
        jobs = jobs_of(await BaseHook.aget_connection(self.conn_id))
        wait_s = self.wait_s
        while True:
            await asyncio.sleep(wait_s)
            job = await asyncio.to_thread(jobs.look, self.job_id)
            if not job.open:
                yield TriggerEvent(dict(job.document))
                return
            wait_s = job.wait_s

    async def on_kill(self) -> None:
        """A user killed the deferred task: cancel what has not started."""
        jobs = jobs_of(await BaseHook.aget_connection(self.conn_id))
        with contextlib.suppress(JobsError):  # the task is gone either way
            await asyncio.to_thread(jobs.cancel, self.job_id)


def jobs_of(connection: Connection) -> Jobs:
    """The stack that a connection names, called as the connection says."""
    extra = connection.extra_dejson
    match extra.get("auth", "api_key"):
        case "iam":
            authorize = iam(extra["region"])
        case "jwt":
            authorize = bearer(lambda: connection.password or "")
        case "api_key":
            authorize = api_key(connection.password or "")
        case other:
            raise ValueError(f"the connection's auth is {other!r}; it must be api_key, jwt or iam")
    return Jobs(connection.host or "", authorize)


__all__ = ["EndedBadlyError", "JobTrigger", "TransformDataset"]

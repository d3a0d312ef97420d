"""A SageMaker Pipelines step that has a data set run by an inferlane stack's batch lane: the Lambda behind its queue.

A callback step (`CallbackStep(sqs_queue_url=…, inputs={"model": …, "source": …, "target": …}, outputs=[output])`) puts
a message with a token on the queue. This function starts the job under an idempotency key made of the token, and leaves
the message on the queue while the job is open: it comes again when its visibility timeout is over, and the same key
finds the same job. So nothing is stored, nothing runs while it waits, and a lost invocation loses nothing.

The event source mapping: batch size 1 to 10, ReportBatchItemFailures. The queue: a visibility timeout of a minute or
two (how often is looked), no redrive policy below what the longest job needs, a retention beyond it. Environment:
INFERLANE_URL, and INFERLANE_API_KEY or, for a stack with `auth: iam`, the function's own role and AWS_REGION.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from inferlane_jobs import EndedBadlyError, Jobs, JobsError, api_key, iam, key_of

REFUSED = frozenset({400, 401, 403, 404, 413, 422})
LONGEST_REASON = 256


class Pipelines(Protocol):
    """The part of boto3's SageMaker client that is used."""

    def send_pipeline_execution_step_success(
        self,
        *,
        CallbackToken: str,  # noqa: N803
        OutputParameters: list[dict[str, str]],  # noqa: N803
    ) -> object:
        """The step has its outputs."""

    def send_pipeline_execution_step_failure(self, *, CallbackToken: str, FailureReason: str) -> object:  # noqa: N803
        """The step has failed."""


def handler(event: Mapping[str, Any], _context: object) -> Mapping[str, Any]:
    """The Lambda's entry."""
    import boto3

    url, key = os.environ["INFERLANE_URL"], os.environ.get("INFERLANE_API_KEY")
    pipelines: Any = boto3.client("sagemaker")
    jobs = Jobs(url, iam(os.environ["AWS_REGION"]) if key is None else api_key(key))
    return tended(event, jobs, pipelines)


def tended(event: Mapping[str, Any], jobs: Jobs, pipelines: Pipelines) -> Mapping[str, Any]:
    """Look at each message's job; those whose job is open, or could not be asked about, stay on the queue."""
    left = [
        record["messageId"] for record in event["Records"] if not _ended(json.loads(record["body"]), jobs, pipelines)
    ]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in left]}


def _ended(message: Mapping[str, Any], jobs: Jobs, pipelines: Pipelines) -> bool:
    """Whether the step is over, and the pipeline knows."""
    token, asked = message["token"], message["arguments"]
    try:
        # A start says that there is a job, a look how it stands.
        job = jobs.look(jobs.dataset(asked["model"], asked["source"], asked["target"], key_of(token)).id).checked()
    except (EndedBadlyError, JobsError) as error:
        if isinstance(error, JobsError) and error.status not in REFUSED:
            return False  # nobody knows yet
        reason = str(error)[:LONGEST_REASON]
        return _told(lambda: pipelines.send_pipeline_execution_step_failure(CallbackToken=token, FailureReason=reason))
    if job.open:
        return False
    outputs = [{"Name": "output", "Value": job.document["output"]}]
    return _told(lambda: pipelines.send_pipeline_execution_step_success(CallbackToken=token, OutputParameters=outputs))


def _told(tell: Callable[[], object]) -> bool:
    """Tell the pipeline. A step that is over already (stopped, or told by an earlier turn) needs no telling."""
    try:
        tell()
    except Exception as error:
        code = getattr(error, "response", {}).get("Error", {}).get("Code")
        if code != "ValidationException":
            raise
    return True

"""What a transform job's end says to those whose records it did not answer: a status and words without any inside.

SageMaker's reasons begin with a class (`ClientError: See job logs for more information`); what follows may name
buckets, containers and accounts, and is for logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from functions.core.job import JobError

_ERRORS: Final[Mapping[str, JobError]] = {
    "ClientError": JobError(422, "The model refused the request."),
    "AlgorithmError": JobError(502, "The model failed on the request."),
}
NOT_RUN_STATUS: Final = 503
"""Says that the fault is not the record's."""
_STOPPED: Final = JobError(NOT_RUN_STATUS, "The batch job was stopped.")
_NOT_RUN: Final = JobError(NOT_RUN_STATUS, "The batch job could not be run.")
_NO_ANSWER: Final = JobError(502, "The model gave no answer to the request.")


def run_error(status: str, reason: str | None) -> JobError:
    """For records of a job that ended in `status`: one that completed gave another number of answers than records."""
    if status == "Completed":
        return _NO_ANSWER
    if status == "Stopped":
        return _STOPPED
    return _ERRORS.get((reason or "").partition(":")[0], _NOT_RUN)

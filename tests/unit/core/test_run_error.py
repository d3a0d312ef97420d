"""What the end of a transform job says to those it did not answer."""

from __future__ import annotations

import pytest

from functions.core.job import JobError
from functions.core.run_error import NOT_RUN_STATUS, run_error


@pytest.mark.parametrize(
    ("status", "reason", "error"),
    [
        ("Completed", None, JobError(502, "The model gave no answer to the request.")),
        ("Stopped", None, JobError(503, "The batch job was stopped.")),
        ("Failed", "ClientError: see arn:aws:x", JobError(422, "The model refused the request.")),
        ("Failed", "AlgorithmError: secret", JobError(502, "The model failed on the request.")),
        ("Failed", "InternalServerError: x", JobError(503, "The batch job could not be run.")),
        ("Failed", "ClientErrors: x", JobError(503, "The batch job could not be run.")),
        ("Failed", None, JobError(503, "The batch job could not be run.")),
    ],
)
def test_a_reason_becomes_words_without_any_inside(status: str, reason: str | None, error: JobError) -> None:
    """By its class alone; what is not known is nobody's fault."""
    assert run_error(status, reason) == error
    assert NOT_RUN_STATUS == 503

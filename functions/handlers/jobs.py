"""The `jobs` Lambda: a tenant's own jobs, and data sets to run."""

from __future__ import annotations

from functools import cache

from functions.batch_settings import read_jobs
from functions.bootstrap import JobsParts, jobs_parts
from functions.gateway import read_parameters
from functions.handlers.http import Context, answered


def handler(event: object, context: Context) -> dict[str, object]:
    """Lambda's entry point."""
    return respond(event, context, _parts())


@cache
def _parts() -> JobsParts:
    return jobs_parts(read_jobs())


def respond(event: object, context: Context, parts: JobsParts) -> dict[str, object]:
    """Answer one event."""
    response, _ = answered(event, context, parts.log, lambda call: parts.jobs.answer(call, read_parameters(event)))
    return response

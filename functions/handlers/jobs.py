"""The `jobs` Lambda: a tenant's own jobs, and data sets to run.

A line a call says what was asked, and how it was answered: of a job its id, never whose it is nor what is in it.
"""

from __future__ import annotations

import time
from functools import cache

from functions.answer import Answer, Call
from functions.batch_settings import read_jobs
from functions.bootstrap import JobsParts, jobs_parts
from functions.core.listing import ID
from functions.defer import JOBS_PATH
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
    began = time.perf_counter()
    line: dict[str, object] = {"request_id": context.aws_request_id, "operation": "unreadable"}

    def answer_to(call: Call) -> Answer:
        line.update(request_id=call.request.id, operation=_operation(call))
        answer = parts.jobs.answer(call, read_parameters(event))
        place = answer.headers.get("location", call.request.path)
        if ID.fullmatch(job := place.removeprefix(f"{JOBS_PATH}/")):
            line["job"] = job
        return answer

    response, _ = answered(event, context, parts.log, answer_to)
    line |= {"status": response["statusCode"], "took_s": round(time.perf_counter() - began, 3)}
    parts.log.info("jobs", extra=line)
    return response


def _operation(call: Call) -> str:
    """What was asked, in a word of ours: a path may hold anything."""
    path, method = call.request.path, call.request.method
    if path == JOBS_PATH:
        return "list"
    if path.startswith(f"{JOBS_PATH}/"):
        return "cancel" if method == "DELETE" else "look"
    return "run" if path.endswith("/batches") else "none"

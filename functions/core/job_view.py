"""What a job's own tenant is told of it.

| the record says                                   | the caller sees |
|---------------------------------------------------|-----------------|
| accepted, answered for by nobody yet              | queued          |
| accepted, in a run that gathers or waits to start | queued          |
| accepted, in a run that runs, or promoted         | running         |
| ended                                             | how it ended    |

A small result is part of the document: JSON as it is, anything else in Base64. So is what claims to be JSON and is
none, since it would break the document.
"""

from __future__ import annotations

import base64
import json
from enum import StrEnum
from typing import Final, NoReturn

from functions.core.document import show_time
from functions.core.job import PROMOTED, Job, JobState, Result
from functions.core.patterns import is_json
from functions.core.run import Run, RunState

SHORTEST_WAIT_S: Final = 5
LONGEST_WAIT_S: Final = 60
_WAIT_SHARE: Final = 20
"""An open job is worth looking at again after a twentieth of what is left until it is due."""
_WAITING: Final = frozenset({RunState.GATHERING, RunState.STARTING})


class Status(StrEnum):
    """How a job stands, in its caller's words."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


OPEN: Final = frozenset({Status.QUEUED, Status.RUNNING})


def run_of(job: Job) -> str | None:
    """The run whose state says how an accepted job stands; None where the record alone says it."""
    return None if job.end is not None or job.run == PROMOTED else job.run


def status_of(job: Job, run: Run | None) -> Status:
    """How the job stands; `run` is that of `run_of`, as far as it is known."""
    if job.state is not JobState.ACCEPTED:
        return Status(str(job.state))
    waits = run_of(job) is not None and (run is None or run.state in _WAITING)
    return Status.QUEUED if job.run is None or waits else Status.RUNNING


def wait_s(job: Job, now: float) -> int:
    """When to look at an open job again, in whole seconds."""
    return int(min(max((job.due_at - now) / _WAIT_SHARE, SHORTEST_WAIT_S), LONGEST_WAIT_S))


def describe(job: Job, status: Status) -> dict[str, object]:
    """The job without its result."""
    document: dict[str, object] = {
        "id": job.key.id,
        "status": str(status),
        "model": job.model,
        "accepted_at": show_time(job.accepted_at),
        "deadline": show_time(job.due_at),
    }
    if job.dataset is not None:
        document["input"] = job.dataset.input
    end = job.end
    if end is None:
        return document
    document["ended_at"] = show_time(end.at)
    if job.late:
        document["late"] = True
    if end.lane is not None:
        document["lane"] = end.lane
    if end.cost_usd is not None:
        document["cost_usd"] = end.cost_usd
    if end.error is not None:
        document["error"] = {"status": end.error.status, "detail": end.error.detail}
    if end.result is not None and end.result.content_type is not None:
        document["content_type"] = end.result.content_type
    if job.dataset is not None and end.state is JobState.DONE:
        document["output"] = job.dataset.output
    return document


def with_result(document: dict[str, object], result: Result, body: bytes) -> bytes:
    """The document as JSON, with the result in it: its JSON text untouched, or Base64."""
    text = json_text(body) if is_json(result.content_type) else None
    if text is None:
        return _written({**document, "result_base64": base64.b64encode(body).decode("ascii")})
    return _written(document)[:-1] + b',"result":' + text.encode() + b"}"


def json_text(body: bytes) -> str | None:
    """The body's text, if it is JSON in UTF-8 by the letter of RFC 8259."""
    try:
        text = body.decode("utf-8")
        json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    return text


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _written(document: dict[str, object]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()

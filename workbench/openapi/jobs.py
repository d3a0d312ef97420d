"""Paths and bodies of the jobs API: what may wait is asked for, looked at, listed and cancelled."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from functions.core import problem
from functions.core.datasets import LARGEST_BODY
from functions.core.job_view import Status
from functions.core.listing import DEFAULT_LIMIT, ID, LARGEST_LIMIT
from functions.defer import JOBS_PATH
from functions.jobs import BATCHES_PATH, LARGEST_INLINE
from workbench.openapi.headers import WISHES, job_headers

ONE_PATH: Final = f"{JOBS_PATH}/{{id}}"
_TEXT: Final = {"type": "string"}
_TIME: Final = {"type": "string", "format": "date-time"}
_S3: Final = {"type": "string", "pattern": "^s3://[a-z0-9][a-z0-9.-]+/.*$", "maxLength": 1024}
_ID: Final = {"type": "string", "pattern": f"^{ID.pattern}$"}
_STATUS: Final = {"type": "string", "enum": [str(status) for status in Status]}

_COMMON: Final[dict[str, Any]] = {
    "id": _ID,
    "status": {"$ref": "#/components/schemas/JobStatus"},
    "model": _TEXT,
    "accepted_at": _TIME,
    "deadline": {**_TIME, "description": "When the answer is due."},
}
_LISTED: Final[dict[str, Any]] = {
    **_COMMON,
    "ended_at": _TIME,
    "late": {"const": True, "description": "There when it was done after its deadline."},
    "lane": {**_TEXT, "description": "The lane that answered; another than batch when that would have been too late."},
    "cost_usd": {"type": "number", "minimum": 0, "description": "Its share of what its run cost, estimated."},
    "content_type": {**_TEXT, "description": "Of the result."},
    "error": {"$ref": "#/components/schemas/JobError"},
    "input": {**_S3, "description": "Of a data set."},
    "output": {**_S3, "description": "Where a data set's answers are, when it is done."},
}
SCHEMAS: Final[dict[str, Any]] = {
    "JobStatus": {
        **_STATUS,
        "description": "queued: its run has not started, and it can be cancelled. running: nobody can stop it. "
        "expired: its deadline passed before anything could answer. All but the first two are final.",
    },
    "JobError": {
        "type": "object",
        "properties": {"status": {"type": "integer"}, "detail": _TEXT},
        "required": ["status", "detail"],
        "description": "Why it failed: the model's own refusal, or what became of its run.",
    },
    "Accepted": {
        "type": "object",
        "properties": {name: _COMMON[name] for name in ("id", "status", "deadline")},
        "required": ["id", "status", "deadline"],
        "description": "A promise: the job is recorded and cannot be lost.",
    },
    "ListedJob": {"type": "object", "properties": _LISTED, "required": list(_COMMON)},
    "Job": {
        "type": "object",
        "properties": {
            **_LISTED,
            "result": {"description": "The model's answer, where it is JSON."},
            "result_base64": {**_TEXT, "description": "The model's answer, where it is anything else."},
            "result_url": {
                **_TEXT,
                "description": f"Reads an answer of more than {LARGEST_INLINE} bytes, no key asked.",
            },
            "result_url_expires_at": {**_TIME, "description": "When that link ends; ask again for another."},
        },
        "required": list(_COMMON),
        "dependentRequired": {"result_url": ["result_url_expires_at"]},
    },
    "JobPage": {
        "type": "object",
        "properties": {
            "jobs": {"type": "array", "items": {"$ref": "#/components/schemas/ListedJob"}, "maxItems": LARGEST_LIMIT},
            "next_cursor": {"type": ["string", "null"], "description": "Of the next page; null: there is none."},
        },
        "required": ["jobs", "next_cursor"],
    },
    "DataSet": {
        "type": "object",
        "properties": {
            "input": {**_S3, "description": "Every object under this prefix is run."},
            "output": {**_S3, "description": "Where `<object>.out` is written; not within the input."},
            "content_type": {
                **_TEXT,
                "pattern": "^[ -~]{1,256}$",
                "description": "Of the objects. JSON Lines, if not said; those and CSV are split by line.",
            },
            "accept": {**_TEXT, "pattern": "^[ -~]{1,256}$"},
        },
        "required": ["input", "output"],
        "additionalProperties": False,
    },
}
_WORDS: Final = {
    400: "A parameter, a wish or the body is malformed.",
    401: "The call carries no identity that the gateway could prove.",
    403: "The identity may not call this stack, is no tenant that the policy lists, or a prefix is not open to it.",
    409: "The job runs already, or has ended.",
    410: "The job was done, and its result is no longer kept.",
    413: f"The body is larger than {LARGEST_BODY} bytes.",
    422: "The `Idempotency-Key` was used before, for another request.",
    429: "The gateway has too many calls.",
    500: "A fault of the function itself; the request id finds it in the logs.",
    503: "The jobs cannot be reached now, or there is no policy yet that could decide.",
    504: "The function did not answer in time.",
}
_NO_JOB: Final = "None of the caller's jobs has this id; the same for another tenant's as for one that never was."
_NO_JOBS: Final = "This stack runs no deferred work."
_NO_LANE: Final = "No model has this name, or it has no batch lane."
_ALWAYS: Final = (401, 403, 413, 429, 500, 503, 504)
_BY_GATEWAY: Final = (*_ALWAYS, 404)
"""In the gateway's own form as well; 404 for a path that it makes nothing of."""


def paths() -> dict[str, Any]:
    """The paths of stacks that run deferred work; the others answer 404 here."""
    tag: dict[str, Any] = {"tags": ["jobs"]}
    one = {"name": "id", "in": "path", "required": True, "description": "The job's id.", "schema": _ID}
    model = {"type": "string", "minLength": 1, "pattern": "^[^/]+$"}
    return {
        JOBS_PATH: {
            "get": {
                **tag,
                "operationId": "list_jobs",
                "summary": "The caller's own jobs, newest first, without their results",
                "parameters": _QUERY,
                "responses": {"200": _answer("A page of them.", "JobPage"), **_problems(400, 404, unknown=_NO_JOBS)},
            }
        },
        ONE_PATH: {
            "get": {
                **tag,
                "operationId": "job",
                "summary": "How a job stands, and its answer",
                "parameters": [one],
                "responses": {"200": _answer("The job.", "Job", retry_after=True), **_problems(404, 410)},
            },
            "delete": {
                **tag,
                "operationId": "cancel_job",
                "summary": "Cancel a job that has not begun",
                "description": "Once more is the same answer.",
                "parameters": [one],
                "responses": {"200": _answer("The job, cancelled.", "Job"), **_problems(404, 409)},
            },
        },
        BATCHES_PATH: {
            "post": {
                **tag,
                "operationId": "run_data_set",
                "summary": "Have a whole data set run as one job",
                "description": "Both prefixes must lie where the stack lets the caller's tenant read and write.",
                "parameters": [
                    {
                        "name": "model",
                        "in": "path",
                        "required": True,
                        "description": "The model's name in this stack.",
                        "schema": model,
                    },
                    *[wish for wish in WISHES if wish["name"] in ("Idempotency-Key", "X-Inferlane-Deadline-Ms")],
                ],
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/DataSet"}}},
                },
                "responses": {"202": accepted(), **_problems(400, 404, 413, 422, unknown=_NO_LANE)},
            }
        },
    }


def accepted(more: dict[str, Any] | None = None) -> dict[str, Any]:
    """The answer of what became a job; `more` are headers besides the promise's."""
    return {
        "description": "It became a job, or is one already. `Location` tells how it stands.",
        "headers": {**job_headers(accepted=True), **(more or {})},
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Accepted"}}},
    }


def _answer(words: str, schema: str, *, retry_after: bool = False) -> dict[str, Any]:
    return {
        "description": words,
        "headers": job_headers(retry_after=retry_after),
        "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}},
    }


def _problems(*statuses: int, unknown: str = _NO_JOB) -> dict[str, Any]:
    """Problems that this call can end with, besides those that every one can; `unknown` is what its 404 means."""
    answers: dict[str, Any] = {}
    for status in sorted({*statuses, *_ALWAYS}):
        content = {problem.CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        if status in _BY_GATEWAY:
            content["application/json"] = {"schema": {"$ref": "#/components/schemas/GatewayRefusal"}}
        answers[str(status)] = {
            "description": unknown if status == HTTPStatus.NOT_FOUND else _WORDS[status],
            "headers": job_headers(retry_after=status in (429, 503)),
            "content": content,
        }
    return answers


_QUERY: Final = [
    {
        "name": "limit",
        "in": "query",
        "description": f"Jobs a page; {DEFAULT_LIMIT} if not said.",
        "schema": {"type": "integer", "minimum": 1, "maximum": LARGEST_LIMIT},
    },
    {
        "name": "status",
        "in": "query",
        "description": "Only those. A page may then be shorter than `limit` although there are more.",
        "schema": {"$ref": "#/components/schemas/JobStatus"},
    },
    {
        "name": "cursor",
        "in": "query",
        "description": "`next_cursor` of the page before.",
        "schema": {"type": "string"},
    },
]

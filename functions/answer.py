"""One HTTP call and its answer, as values: what use cases take and give, whatever carries them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from functions.core.problem import CONTENT_TYPE, Problem
from functions.core.receipt import Receipt
from functions.core.request import Request


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP call, translated."""

    request: Request
    body: bytes
    accept: str | None
    time_left_s: float
    """How long the function itself may still run."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer to translate, and the receipt to write."""

    status: int
    body: bytes
    content_type: str | None
    headers: Mapping[str, str] = field(default_factory=dict)
    receipt: Receipt | None = None


def problem_answer(request_id: str, problem: Problem) -> Answer:
    """The HTTP form of a problem."""
    headers = {"x-request-id": request_id}
    if problem.retry_after_s is not None:
        headers["retry-after"] = str(problem.retry_after_s)
    return Answer(problem.status, problem.body(request_id), CONTENT_TYPE, headers)


def document_answer(request: Request, document: object, status: int = 200) -> Answer:
    """A JSON document."""
    body = json.dumps(document, separators=(",", ":")).encode()
    return Answer(status, body, "application/json", {"x-request-id": request.id})


def only(request: Request, *methods: str) -> Answer | None:
    """The refusal of another method than these, or None."""
    if request.method in methods:
        return None
    listed = ", ".join(methods)
    answer = problem_answer(request.id, Problem(405, f"This path answers {listed} only."))
    return replace(answer, headers={**answer.headers, "allow": listed})

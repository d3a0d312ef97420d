"""The `route` Lambda: every call of the front door. Parses the event, asks the router, translates its answer."""

from __future__ import annotations

from functools import cache
from typing import Protocol

from functions.answer import problem_answer
from functions.aws.redaction import trace_of
from functions.bootstrap import RouteParts, route_parts
from functions.core.problem import Problem
from functions.core.receipt import Receipt
from functions.gateway import EventError, HeaderError, read_event, write_answer
from functions.settings import read_router

_ANSWER_S = 0.5
"""Kept back from Lambda's own time limit, so that an answer still leaves before the function is stopped."""


class Context(Protocol):
    """The part of Lambda's context that is used."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda stops the function."""
        ...


def handler(event: object, context: Context) -> dict[str, object]:
    """Lambda's entry point."""
    return respond(event, context, _parts())


@cache
def _parts() -> RouteParts:
    return route_parts(read_router())


def respond(event: object, context: Context, parts: RouteParts) -> dict[str, object]:
    """Answer one event. Whatever goes wrong, the caller gets problem+json and no inside."""
    request_id = context.aws_request_id
    try:
        call = read_event(event, request_id, context.get_remaining_time_in_millis() / 1000 - _ANSWER_S)
        request_id = call.request.id
        answer = parts.router.answer(call)
        response = write_answer(answer, request_id)
    except HeaderError as error:
        return write_answer(problem_answer(request_id, Problem(400, f"{error}.")), request_id)
    except EventError as error:
        parts.log.warning("event refused", extra={"request_id": request_id, "cause": str(error)})
        return write_answer(problem_answer(request_id, Problem(400, "The request cannot be read.")), request_id)
    except Exception as error:
        parts.log.error("unhandled error", extra={"request_id": request_id, "trace": trace_of(error)})
        problem = Problem(500, "An internal error occurred; the request id finds it in the logs.")
        return write_answer(problem_answer(request_id, problem), request_id)
    if answer.receipt is not None:
        _record(answer.receipt, parts)
    return response


def _record(receipt: Receipt, parts: RouteParts) -> None:
    """An answer that was paid for goes out, also when it cannot be recorded."""
    try:
        parts.telemetry.record(receipt)
    except Exception as error:
        parts.log.error("receipt not recorded", extra={"request_id": receipt.request_id, "trace": trace_of(error)})

"""What every HTTP Lambda does around its use case: parses the event, translates the answer, lets nothing of the inside
out when something goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from functions.answer import Answer, Call, problem_answer
from functions.aws.redaction import trace_of
from functions.core.problem import Problem
from functions.gateway import EventError, HeaderError, read_event, write_answer
from functions.ports import Log

_ANSWER_S: Final = 0.5
"""Kept back from Lambda's own time limit, so that an answer still leaves before the function is stopped."""


class Context(Protocol):
    """The part of Lambda's context that is used."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda stops the function."""
        ...


def answered(
    event: object, context: Context, log: Log, answer_to: Callable[[Call], Answer]
) -> tuple[dict[str, object], Answer | None]:
    """The response to one event, and the answer it was made of. Whatever goes wrong, the caller gets problem+json."""
    request_id = context.aws_request_id
    try:
        call = read_event(event, request_id, context.get_remaining_time_in_millis() / 1000 - _ANSWER_S)
        request_id = call.request.id
        answer = answer_to(call)
        return write_answer(answer, request_id), answer
    except HeaderError as error:
        problem = Problem(400, f"{error}.")
    except EventError as error:
        log.warning("event refused", extra={"request_id": request_id, "cause": str(error)})
        problem = Problem(400, "The request cannot be read.")
    except Exception as error:
        log.error("unhandled error", extra={"request_id": request_id, "trace": trace_of(error)})
        problem = Problem(500, "An internal error occurred; the request id finds it in the logs.")
    return write_answer(problem_answer(request_id, problem), request_id), None

"""The `route` Lambda: every call of the front door but those about jobs. Asks the router, and writes its receipt."""

from __future__ import annotations

from functools import cache

from functions.aws.redaction import trace_of
from functions.bootstrap import RouteParts, route_parts
from functions.core.receipt import Receipt
from functions.handlers.http import Context, answered
from functions.settings import read_router


def handler(event: object, context: Context) -> dict[str, object]:
    """Lambda's entry point."""
    return respond(event, context, _parts())


@cache
def _parts() -> RouteParts:
    return route_parts(read_router())


def respond(event: object, context: Context, parts: RouteParts) -> dict[str, object]:
    """Answer one event."""
    response, answer = answered(event, context, parts.log, parts.router.answer)
    if answer is not None and answer.receipt is not None:
        _record(answer.receipt, parts)
    return response


def _record(receipt: Receipt, parts: RouteParts) -> None:
    """An answer that was paid for goes out, also when it cannot be recorded."""
    try:
        parts.telemetry.record(receipt)
    except Exception as error:
        parts.log.error("receipt not recorded", extra={"request_id": receipt.request_id, "trace": trace_of(error)})

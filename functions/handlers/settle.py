"""The `settle` Lambda: EventBridge calls it when a transform job has changed its state.

The event says which job, and no more is believed of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from functions.batch_bootstrap import SettleParts, settle_parts
from functions.batch_settings import read_batch
from functions.handlers.turn import Context, time_left_s, turn


def handler(event: object, context: Context) -> None:
    """Lambda's entry point."""
    respond(event, context, _parts())


@cache
def _parts() -> SettleParts:
    return settle_parts(read_batch())


def respond(event: object, context: Context, parts: SettleParts) -> None:
    """Settle the runs that the event, or each event of a list, names. Raises `TurnError`."""
    names = list(dict.fromkeys(_names(event)))
    if not names:
        parts.log.warning("an event names no transform job")
    for name in names:
        with turn("settle", parts.log, {"run": name}) as found:
            found["settled"] = parts.settler.settle(name, lambda: time_left_s(context))


def _names(event: object) -> Iterator[str]:
    for one in event if isinstance(event, list) else [event]:
        detail = one.get("detail") if isinstance(one, dict) else None
        name = detail.get("TransformJobName") if isinstance(detail, dict) else None
        if isinstance(name, str) and name:
            yield name

"""The `collect` Lambda: the scheduler calls it every minute."""

from __future__ import annotations

from functools import cache

from functions.batch_bootstrap import CollectParts, collect_parts
from functions.batch_settings import read_batch
from functions.handlers.turn import Context, time_left_s, turn


def handler(event: object, context: Context) -> None:  # noqa: ARG001 - Lambda's signature
    """Lambda's entry point."""
    respond(context, _parts())


@cache
def _parts() -> CollectParts:
    return collect_parts(read_batch())


def respond(context: Context, parts: CollectParts) -> None:
    """One turn of the collector. Raises `TurnError`."""
    with turn("collect", parts.log):
        parts.collector.run(lambda: time_left_s(context))

"""The `promote` Lambda: reads the promotion queue, and says which messages must come again.

Those whose deadlines are nearest first; what must come again does so in time for its deadline.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from functions.aws.work_messages import read
from functions.batch_bootstrap import PromoteParts, promote_parts
from functions.batch_settings import read_batch
from functions.core.job import Work
from functions.handlers.turn import Context, TurnError, failures, records, time_left_s, turn


def handler(event: object, context: Context) -> dict[str, object]:
    """Lambda's entry point."""
    return respond(event, context, _parts())


@cache
def _parts() -> PromoteParts:
    return promote_parts(read_batch())


def respond(event: object, context: Context, parts: PromoteParts) -> dict[str, object]:
    """Answer the job of each message. One that cannot be read ends among the dead letters, where a person looks."""
    again: list[object] = []
    readable: list[tuple[Mapping[str, object], Work]] = []
    for message in records(event):
        if (work := read(str(message.get("body")))) is not None:
            readable.append((message, work))
        else:
            parts.log.error("a message cannot be read", extra={"message": message.get("messageId")})
            again.append(message.get("messageId"))
    for message, work in sorted(readable, key=lambda one: one[1].due_at):
        if not _one(work, _receives(message), context, parts):
            parts.promoter.put_off(work, str(message.get("receiptHandle")), _receives(message))
            again.append(message.get("messageId"))
    return failures(again)


def _one(work: Work, received_count: int, context: Context, parts: PromoteParts) -> bool:
    """Whether the message is done with."""
    try:
        with turn("promote", parts.log, {"job": work.key.id, "model": work.model}) as found:
            done = parts.promoter.promote(work, received_count, time_left_s(context))
            found["done"] = done
    except TurnError:
        return False
    return done


def _receives(message: Mapping[str, object]) -> int:
    """How often the message was received, with this time."""
    attributes = message.get("attributes")
    count = attributes.get("ApproximateReceiveCount") if isinstance(attributes, dict) else None
    return int(count) if isinstance(count, str) and count.isdecimal() else 1

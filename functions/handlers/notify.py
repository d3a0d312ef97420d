"""The `notify` Lambda: reads the notices queue, and says which messages must come again."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from functions.batch_bootstrap import NotifyParts, notify_parts
from functions.batch_settings import read_notify
from functions.handlers.turn import TurnError, failures, records, turn
from functions.notify import read_notice


def handler(event: object, context: object) -> dict[str, object]:  # noqa: ARG001 - Lambda's signature
    """Lambda's entry point."""
    return respond(event, _parts())


@cache
def _parts() -> NotifyParts:
    return notify_parts(read_notify())


def respond(event: object, parts: NotifyParts) -> dict[str, object]:
    """Tell of each message's jobs. One that cannot be read ends among the dead letters, where a person looks."""
    return failures([message.get("messageId") for message in records(event) if not _one(message, parts)])


def _one(message: Mapping[str, object], parts: NotifyParts) -> bool:
    """Whether the message is done with."""
    notice, notice_id = read_notice(str(message.get("body"))), str(message.get("messageId"))
    if notice is None:
        parts.log.error("a message cannot be read", extra={"message": notice_id})
        return False
    try:
        with turn("notify", parts.log, {"notice": notice_id, "to": notice.to, "jobs": len(notice.jobs)}) as found:
            told = parts.notifier.notify(notice, notice_id)
            found["told"] = told
    except TurnError:
        return False
    return told

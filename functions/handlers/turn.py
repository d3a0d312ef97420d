"""What every function of the batch lane does around its use case: it says that it worked, and how it failed.

One line a call, so that silence means something. What a service refused, and what nobody foresaw, is logged without any
value and raised without any text, since Lambda writes what is raised into the log as it is, and tries again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from functions.aws.redaction import trace_of
from functions.batch_ports import BatchError
from functions.ports import FunctionLog


class Context(Protocol):
    """The part of Lambda's context that is used."""

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda stops the function."""
        ...


class TurnError(Exception):
    """A call failed and is to be made again; the log says why."""


@contextmanager
def turn(function: str, log: FunctionLog, about: Mapping[str, object] | None = None) -> Iterator[dict[str, object]]:
    """One call. What is put into the dictionary is in its line; raises `TurnError` for whatever goes wrong inside."""
    began = time.perf_counter()
    found: dict[str, object] = dict(about or {})
    try:
        yield found
    except BatchError as error:
        log.warning(f"{function} put off", extra={**found, "cause": str(error)})
        raise TurnError(f"{function} was put off; the log says why") from None
    except Exception as error:
        log.error("unhandled error", extra={**found, "trace": trace_of(error)})
        raise TurnError(f"{function} failed; the log says where") from None
    log.info(function, extra={**found, "took_s": round(time.perf_counter() - began, 3)})


def time_left_s(context: Context) -> float:
    """Seconds until Lambda stops the function."""
    return context.get_remaining_time_in_millis() / 1000


def records(event: object) -> Sequence[Mapping[str, object]]:
    """The messages of an SQS event."""
    found = event.get("Records") if isinstance(event, dict) else None
    return [record for record in found if isinstance(record, dict)] if isinstance(found, list) else []


def failures(messages: Sequence[object]) -> dict[str, object]:
    """What Lambda wants to hear of an SQS event: the ids of the messages that must come again."""
    return {"batchItemFailures": [{"itemIdentifier": message} for message in messages]}

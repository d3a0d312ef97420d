"""Records to payloads: one each (SingleRecord), or as many as fit under MaxPayloadInMB (MultiRecord). Pure.

A record is never cut, left out or moved; one that is larger than the limit by itself is an error, which fails its
object. The size of a payload is what is sent: after InputFilter, with frames and newlines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

BatchStrategy = Literal["SingleRecord", "MultiRecord"]


class PackError(ValueError):
    """A record is over the limit."""


@dataclass(frozen=True, slots=True)
class Item:
    """A record that is ready to be sent: its bytes, and what its answer will be joined with."""

    body: bytes
    inputs: tuple[Any, ...] = ()
    """The parsed records in it, where a join needs them; JSON Lines that are not split are several."""
    records: int = 1
    """How many answers it asks for."""


@dataclass(frozen=True, slots=True)
class Payload:
    """The body of one request."""

    body: bytes
    inputs: tuple[Any, ...]
    records: int


def pack(items: Iterable[Item], strategy: BatchStrategy, limit: int | None) -> Iterator[Payload]:
    """The items as payloads of at most `limit` bytes, in their order. Raises `PackError`."""
    waiting: list[Item] = []
    size = 0
    for item in items:
        if limit is not None and len(item.body) > limit:
            raise PackError(f"a record is larger than MaxPayloadInMB ({limit} bytes)")
        if waiting and (strategy == "SingleRecord" or (limit is not None and size + len(item.body) > limit)):
            yield _payload(waiting)
            waiting, size = [], 0
        waiting.append(item)
        size += len(item.body)
    if waiting:
        yield _payload(waiting)


def _payload(items: list[Item]) -> Payload:
    if len(items) == 1:
        return Payload(items[0].body, items[0].inputs, items[0].records)
    inputs = tuple(value for item in items for value in item.inputs)
    return Payload(b"".join(item.body for item in items), inputs, sum(item.records for item in items))

"""Objects to records: what SplitType says, over blocks of bytes, without ever holding more than one record. Pure.

- `None`: the whole object is one record.
- `Line`: a record ends with a newline, which belongs to it; the last one may lack it. An empty line is a record.
- `RecordIO` (MXNet's): 0xced7230a, a word whose upper 3 bits say whole, first, middle or last part and whose lower 29
  bits are the length, the bytes, zeros up to a multiple of 4.
- `TFRecord`: length (8 bytes), its masked CRC-32C (4), the bytes, their masked CRC-32C (4). The first CRC is checked,
  because a wrong length would read garbage from there on; the second is the reader's business.

A record has two forms: `framed`, as it stands in the object, and `body`, without its frame and padding. SingleRecord
sends the body, MultiRecord the frames ("padding is removed if the value of BatchStrategy is set to SingleRecord":
API reference, TransformInput). A line is its own frame.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

SplitType = Literal["None", "Line", "RecordIO", "TFRecord"]
_RECORDIO_MAGIC = 0xCED7230A
_WHOLE, _FIRST, _MIDDLE, _LAST = range(4)
_CRC_MASK = 0xA282EAD8


class SplitError(ValueError):
    """The object is not what SplitType says, or a record is over the limit; the message says which."""


class Record(NamedTuple):
    """One unit of input."""

    body: bytes
    framed: bytes


def split(kind: SplitType, blocks: Iterable[bytes], limit: int | None) -> Iterator[Record]:
    """The records of an object that comes in blocks; none may be over `limit` bytes. Raises `SplitError`."""
    return _SPLITTERS[kind](blocks, limit)


def _whole(blocks: Iterable[bytes], limit: int | None) -> Iterator[Record]:
    parts, size = [], 0
    for block in blocks:
        size += len(block)
        _check(size, limit, "the object")
        parts.append(block)
    body = b"".join(parts)
    yield Record(body, body)


def _lines(blocks: Iterable[bytes], limit: int | None) -> Iterator[Record]:
    parts: list[bytes] = []
    size = 0
    for block in blocks:
        first, *rest = block.split(b"\n")
        parts.append(first)
        size += len(first)
        _check(size, limit, "a record")
        if not rest:
            continue
        line = b"".join(parts) + b"\n"
        yield Record(line, line)
        for text in rest[:-1]:
            line = text + b"\n"
            yield Record(line, line)
        parts, size = [rest[-1]], len(rest[-1])
    if last := b"".join(parts):
        yield Record(last, last)


class _Reader:
    """Exact numbers of bytes out of blocks."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = iter(blocks)
        self._buffer = bytearray()

    def read(self, size: int) -> bytes:
        """`size` bytes, or fewer at the end."""
        while len(self._buffer) < size and (block := next(self._blocks, None)) is not None:
            self._buffer += block
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def exactly(self, size: int, what: str) -> bytes:
        """`size` bytes. Raises `SplitError` when the object ends before."""
        taken = self.read(size)
        if len(taken) < size:
            raise SplitError(f"the object ends within {what}")
        return taken


def _recordio(blocks: Iterable[bytes], limit: int | None) -> Iterator[Record]:
    reader = _Reader(blocks)
    while head := reader.read(4):
        bodies: list[bytes] = []
        frames: list[bytes] = []
        expected = (_WHOLE, _FIRST)
        while True:
            if len(head) < 4 or struct.unpack("<I", head)[0] != _RECORDIO_MAGIC:
                raise SplitError("not RecordIO: a record does not begin with its magic number")
            word = reader.exactly(4, "a RecordIO header")
            part, length = divmod(struct.unpack("<I", word)[0], 1 << 29)
            if part not in expected:
                raise SplitError("not RecordIO: the parts of a record are out of order")
            _check(sum(map(len, bodies)) + length, limit, "a record")
            padded = reader.exactly(length + -length % 4, "a RecordIO record")
            bodies.append(padded[:length])
            frames.append(head + word + padded)
            if part in (_WHOLE, _LAST):
                break
            expected = (_MIDDLE, _LAST)
            head = reader.exactly(4, "a RecordIO record of several parts")
        # A record is written in parts where its own bytes hold the magic number, which the parts then lack.
        yield Record(struct.pack("<I", _RECORDIO_MAGIC).join(bodies), b"".join(frames))


def _tfrecords(blocks: Iterable[bytes], limit: int | None) -> Iterator[Record]:
    reader = _Reader(blocks)
    while head := reader.read(12):
        if len(head) < 12:
            raise SplitError("the object ends within a TFRecord header")
        length, crc = struct.unpack("<QI", head)
        if _masked_crc(head[:8]) != crc:
            raise SplitError("not TFRecord: the checksum of a record's length is wrong")
        _check(length, limit, "a record")
        body = reader.exactly(length, "a TFRecord record")
        yield Record(body, head + body + reader.exactly(4, "a TFRecord record"))


def _masked_crc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + _CRC_MASK) & 0xFFFFFFFF


def _check(size: int, limit: int | None, what: str) -> None:
    if limit is not None and size > limit:
        raise SplitError(f"{what} is larger than MaxPayloadInMB ({limit} bytes)")


_SPLITTERS: dict[SplitType, Callable[[Iterable[bytes], int | None], Iterator[Record]]] = {
    "None": _whole,
    "Line": _lines,
    "RecordIO": _recordio,
    "TFRecord": _tfrecords,
}

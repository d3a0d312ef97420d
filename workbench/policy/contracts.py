"""Reads the JSON contract files that the policy commands take: topology, snapshot, requests and receipts.

An error names the file, the line where the JSON itself is broken, and else the field. Requests come as one JSON
document, or as JSON Lines, one a line; a stream of lines is read as it comes, so that its length does not matter.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, NoReturn, TypeVar

from functions.core.document import DocumentError
from functions.core.snapshot import Snapshot
from functions.core.topology import Topology
from workbench.errors import UserError
from workbench.policy.document import one_line, read_bytes

MAX_BYTES: Final = 64 * 2**20
"""Of one JSON document, so that a wrong file name cannot fill the memory."""
MAX_LINE_BYTES: Final = 2**20

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON value of a file, and the words for its place: `requests.jsonl:7`."""

    place: str
    value: object

    def read(self, how: Callable[[object], T]) -> T:
        """The value as a contract type. Raises `UserError` that names the place and the field."""
        try:
            return how(self.value)
        except DocumentError as error:
            raise UserError(one_line(f"{self.place}: {error}")) from None
        except RecursionError:
            raise UserError(f"{self.place}: nested too deeply") from None


def topology(source: str) -> Topology:
    """A topology file. Raises `UserError`."""
    return _whole(source).read(Topology.from_json)


def snapshot(source: str | None) -> Snapshot:
    """A snapshot file; without one, nothing is known of any lane. Raises `UserError`."""
    return Snapshot(taken_at=None) if source is None else _whole(source).read(Snapshot.from_json)


def records(source: str) -> Iterator[Record]:
    """The values of a JSON document or of JSON Lines, `-` for standard input. Raises `UserError`."""
    name = _name(source)
    try:
        with nullcontext(sys.stdin.buffer) if source == "-" else Path(source).open("rb") as file:
            yield from _records(file, name)
    except FileNotFoundError:
        raise UserError(f"{name}: there is no such file") from None
    except OSError as error:
        raise UserError(f"{name}: cannot be read: {error.strerror or error}") from None


def _records(file: IO[bytes], name: str) -> Iterator[Record]:
    lines = enumerate(_lines(file, name), 1)
    first = next(((number, line) for number, line in lines if line.strip()), None)
    if first is None:
        raise UserError(f"{name}: is empty: expected a JSON document, or one a line")
    number, line = first
    try:
        value = _json(line)
    except ValueError:  # the first line is no document by itself: the file may be one
        rest = _joined(line, (more for _, more in lines), name)
        yield Record(name, _parsed(rest, name, first_line=number))
        return
    yield Record(f"{name}:{number}", value)
    for number, line in lines:
        if line.strip():
            yield Record(f"{name}:{number}", _parsed(line, name, first_line=number))


def _lines(file: IO[bytes], name: str) -> Iterator[bytes]:
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise UserError(f"{name}:{number}: a line of more than {MAX_LINE_BYTES} bytes")
        yield line


def _joined(first: bytes, more: Iterable[bytes], name: str) -> bytes:
    parts, size = [first], len(first)
    for part in more:
        parts.append(part)
        size += len(part)
        if size > MAX_BYTES:
            _too_large(name)
    return b"".join(parts)


def _whole(source: str) -> Record:
    name = _name(source)
    content = read_bytes(source, MAX_BYTES)
    if len(content) > MAX_BYTES:
        _too_large(name)
    return Record(name, _parsed(content, name))


def _name(source: str) -> str:
    return "standard input" if source == "-" else one_line(source)


def _too_large(name: str) -> NoReturn:
    raise UserError(f"{name}: larger than {MAX_BYTES // 2**20} MiB")


def _parsed(content: bytes, name: str, first_line: int = 1) -> object:
    try:
        return _json(content)
    except json.JSONDecodeError as error:
        cause = f"not JSON: {error.msg}"
        raise UserError(f"{name}:{first_line + error.lineno - 1}:{error.colno}: {cause}") from None
    except UnicodeDecodeError as error:
        line = first_line + content[: error.start].count(b"\n")
        raise UserError(f"{name}:{line}: not UTF-8: byte 0x{content[error.start]:02x}") from None
    except ValueError as error:
        raise UserError(one_line(f"{name}:{first_line}: not JSON: {error}")) from None


def _json(content: bytes) -> object:
    try:
        value: object = json.loads(
            content.decode("utf-8-sig"), parse_constant=_no_constant, object_pairs_hook=_without_duplicates
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON value")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> Mapping[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twice!r} appears twice in one object")
    return found

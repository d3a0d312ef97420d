"""Reads an authored policy document and remembers where everything stands.

YAML whose scalars follow version 1.2's core schema: `22:00`, `yes`, `010` and `2026-12-01` are what they look like. One
document, at most 1 MiB of UTF-8; no anchors, aliases, tags, duplicate keys or keys that are not text: it means what it
shows, and it cannot expand. Whatever the bytes, there is a document or one `UnreadableError` that names the line.

The events come from libyaml where PyYAML has it (its own scanner takes ten seconds for a full MiB) and are walked
without recursion, so that depth is a rule of ours and not the interpreter's limit. The Pulumi program reads the same
language by itself (`infra/policy_document.py`, which may not be imported here); a test holds the two equal.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from functions.core.document import Path as KeyPath
from functions.core.document import show_path
from workbench.errors import UserError

MAX_BYTES: Final = 2**20
MAX_DEPTH: Final = 100
"""Mappings and lists within each other; the language itself needs fewer than 40."""
MAX_DIGITS: Final = 300
"""Of a whole number: a float, which is what a policy's numbers become, ends there."""

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNPRINTABLE: Final = re.compile(r"[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_BASED: Final = re.compile(r"0(?:o[0-7]+|x[0-9a-fA-F]+)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: Final[Mapping[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}

Place = tuple[int, int]
"""(line, column), both from 1."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong at a place of a document."""

    name: str
    line: int
    column: int
    path: str
    cause: str

    def __str__(self) -> str:
        """`file:line:column: path: cause`, one line whatever the document holds."""
        path = f"{one_line(self.path, 200)}: " if self.path else ""
        return f"{one_line(self.name)}:{self.line}:{self.column}: {path}{one_line(self.cause)}"


class UnreadableError(UserError):
    """The bytes are no document of ours."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Document:
    """A document as plain values, and the place of every key and list item."""

    name: str
    value: object
    places: Mapping[KeyPath, Place]

    def problem(self, path: KeyPath, cause: str) -> Problem:
        """What is wrong at `path`; a path that is not there is placed at what holds it."""
        known = path
        while known and known not in self.places:
            known = known[:-1]
        line, column = self.places.get(known, (1, 1))
        return Problem(self.name, line, column, show_path(path), cause)

    def content(self) -> bytes:
        """The document as AppConfig holds it and the router reads it: compact JSON with sorted keys."""
        return json.dumps(self.value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def read(source: str) -> Document:
    """The document of a file, or of standard input for `-`. Raises `UserError`, mostly `UnreadableError`."""
    name = "standard input" if source == "-" else source
    return parse(read_bytes(source, MAX_BYTES), name)


def read_bytes(source: str, limit: int) -> bytes:
    """The content of a file, or of standard input for `-`, cut one byte above `limit`. Raises `UserError`."""
    try:
        if source == "-":
            return sys.stdin.buffer.read(limit + 1)
        with Path(source).open("rb") as file:
            return file.read(limit + 1)
    except FileNotFoundError:
        raise UserError(f"{one_line(source)}: there is no such file") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UserError(f"{one_line(source)}: cannot be read: {reason}") from None


def parse(content: bytes, name: str) -> Document:
    """The document of these bytes. Raises `UnreadableError`."""
    if len(content) > MAX_BYTES:
        raise UnreadableError(Problem(name, 1, 1, "", f"larger than {MAX_BYTES} bytes (1 MiB)"))
    text = _decode(content, name)
    reader = _Reader(name)
    try:
        for event in yaml.parse(text, _LOADER):
            reader.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        cause = ": ".join(str(part) for part in (error.context, error.problem) if part)
        raise UnreadableError(Problem(name, line, column, "", f"not YAML: {cause}")) from None
    except yaml.YAMLError as error:
        raise UnreadableError(Problem(name, 1, 1, "", f"not YAML: {error}")) from None
    return Document(name, reader.root, reader.places)


def one_line(text: str, limit: int = 400) -> str:
    """`text` without line breaks or control characters, cut to `limit` characters."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in cut)


def _decode(content: bytes, name: str) -> str:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        before = content[: error.start].decode(errors="replace")
        raise UnreadableError(_at(name, before, f"not UTF-8: byte 0x{content[error.start]:02x}")) from None
    found = _UNPRINTABLE.search(text)
    if found:
        cause = f"character U+{ord(found[0]):04X} is not allowed in a document"
        raise UnreadableError(_at(name, text[: found.start()], cause))
    return text


def _at(name: str, before: str, cause: str) -> Problem:
    return Problem(name, before.count("\n") + 1, len(before) - before.rfind("\n"), "", cause)


@dataclass(slots=True)
class _Open:
    """A mapping or list whose end has not come yet."""

    value: dict[str, object] | list[object]
    path: KeyPath
    key: str | None = None
    """The key of a mapping that waits for its value."""


@dataclass(slots=True)
class _Reader:
    """Builds values and places from one event after another."""

    name: str
    root: object = None
    places: dict[KeyPath, Place] = field(default_factory=dict)
    documents: int = 0
    stack: list[_Open] = field(default_factory=list)

    def take(self, event: Any) -> None:
        """One more event of PyYAML (which is not typed)."""
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise self._refusal(event, "anchors and aliases are not allowed: write the value where it is meant")
        if getattr(event, "tag", None) is not None:
            raise self._refusal(event, f"tags are not allowed, found {event.tag!r}")
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.MappingStartEvent):
            self._open(event, {})
        elif isinstance(event, yaml.SequenceStartEvent):
            self._open(event, [])
        elif isinstance(event, yaml.CollectionEndEvent):
            self.stack.pop()
        elif isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise self._refusal(event, "a second document begins; a file holds one")

    def _scalar(self, event: Any) -> None:
        top = self.stack[-1] if self.stack else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            self._key(event, top, top.value)
        else:
            self._put(event, self._plain(event) if event.implicit[0] else event.value)

    def _key(self, event: Any, top: _Open, mapping: dict[str, object]) -> None:
        key = self._plain(event) if event.implicit[0] else event.value
        if not isinstance(key, str):
            raise self._refusal(event, f"a key must be text: quote {event.value!r}")
        if key in mapping:
            first = self.places[(*top.path, key)][0]
            raise self._refusal(event, f"key {key!r} appears twice, first in line {first}")
        top.key = key
        self.places[(*top.path, key)] = _place(event)

    def _open(self, event: Any, value: dict[str, object] | list[object]) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise self._refusal(event, f"nested more than {MAX_DEPTH} levels deep")
        self.stack.append(_Open(value, self._put(event, value)))

    def _put(self, event: Any, value: object) -> KeyPath:
        """Set `value` where it belongs; its path."""
        if not self.stack:
            self.root = value
            self.places[()] = _place(event)
            return ()
        top = self.stack[-1]
        if isinstance(top.value, list):
            path = (*top.path, len(top.value))
            self.places[path] = _place(event)
            top.value.append(value)
            return path
        if top.key is None:
            raise self._refusal(event, "a key must be text")
        path = (*top.path, top.key)
        top.value[top.key] = value
        top.key = None
        return path

    def _plain(self, event: Any) -> object:
        """What an unquoted scalar is by YAML 1.2's core schema (.inf and .nan are text: no policy needs them)."""
        text: str = event.value
        if text in _WORDS:
            return _WORDS[text]
        if _INTEGER.fullmatch(text) or _BASED.fullmatch(text):
            if len(text) > MAX_DIGITS:
                raise self._refusal(event, f"a number of {len(text)} characters is too long")
            return int(text, 0 if text[1:2] in ("o", "x") else 10)
        if _FLOAT.fullmatch(text):
            number = float(text)
            if number in (float("inf"), float("-inf")):
                raise self._refusal(event, f"the number {text} is too large")
            return number
        return text

    def _refusal(self, event: Any, cause: str) -> UnreadableError:
        line, column = _place(event)
        return UnreadableError(Problem(self.name, line, column, "", cause))


def _place(event: Any) -> Place:
    return event.start_mark.line + 1, event.start_mark.column + 1

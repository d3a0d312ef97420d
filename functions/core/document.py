"""Reads plain JSON-like values strictly: every error names the place and the cause.

A contract file or policy arrives as nested mappings, lists and scalars. `Fields` reads one mapping key by key;
`path` is kept as a tuple, so that a tool which knows the source text can turn it into a line number. `Problems` lets
reading go on after an error, so that one look finds them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, ParamSpec, TypeVar

Path = tuple[str | int, ...]
LARGEST: Final = 2.0**53
"""The largest magnitude of a number: a float skips whole numbers above it, and products of a few still fit a float."""
_SHOWN: Final = 20
"""Choices that an error lists."""
_END_OF_TIME: Final = 253_402_300_800.0
"""The year 10000 in Unix seconds, to which a float rounds the last microseconds before it."""
P = ParamSpec("P")
T = TypeVar("T")

_NAMES: Final = {dict: "a mapping", list: "a list", str: "text", bool: "a yes/no value", type(None): "nothing"}


class DocumentError(ValueError):
    """A document cannot be read. `path` is where, `cause` is why."""

    def __init__(self, path: Path, cause: str) -> None:
        super().__init__(f"{show_path(path)}: {cause}" if path else cause)
        self.path = path
        self.cause = cause


def show_path(path: Path) -> str:
    """`("rules", 2, "when")` as `rules[2].when`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def kind_of(value: object) -> str:
    """What a value is, in words fit for an error message."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "a number"
    return _NAMES.get(type(value), f"a {type(value).__name__}")


def as_text(value: object, path: Path) -> str:
    """Non-empty text, else `DocumentError`."""
    if not isinstance(value, str):
        raise DocumentError(path, f"expected text, found {kind_of(value)}")
    if not value:
        raise DocumentError(path, "expected text, found an empty one")
    return value


def as_number(value: object, path: Path, *, at_least: float | None = None, above: float | None = None) -> float:
    """A number of a sane magnitude within the stated bounds, else `DocumentError`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DocumentError(path, f"expected a number, found {kind_of(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise DocumentError(path, "expected a finite number")
    if abs(number) > LARGEST:
        raise DocumentError(path, f"expected a number of at most {LARGEST:.0f}, found {number:g}")
    if at_least is not None and number < at_least:
        raise DocumentError(path, f"must be at least {at_least:g}, found {number:g}")
    if above is not None and number <= above:
        raise DocumentError(path, f"must be above {above:g}, found {number:g}")
    return number


def as_integer(value: object, path: Path, *, at_least: int | None = None) -> int:
    """A whole number, else `DocumentError`."""
    number = as_number(value, path, at_least=at_least)
    if number != int(number):
        raise DocumentError(path, f"expected a whole number, found {number:g}")
    return int(number)


def as_list(value: object, path: Path) -> Sequence[object]:
    """A list, else `DocumentError`."""
    if not isinstance(value, list | tuple):
        raise DocumentError(path, f"expected a list, found {kind_of(value)}")
    return value


def as_choice(value: object, path: Path, choices: Sequence[str], what: str = "value") -> str:
    """One of `choices`, else `DocumentError` naming them all."""
    text = as_text(value, path)
    if text not in choices:
        raise DocumentError(path, f"unknown {what} {text[:60]!r} (known: {_listed(choices)})")
    return text


def _listed(choices: Sequence[str]) -> str:
    """The choices, or the first of very many: an error stays a line."""
    shown = ", ".join(choices[:_SHOWN])
    return shown if len(choices) <= _SHOWN else f"{shown} and {len(choices) - _SHOWN} more"


def as_time(value: object, path: Path) -> float:
    """An ISO 8601 moment with an offset (`2026-12-01T02:00:00Z`) as Unix seconds, else `DocumentError`."""
    text = as_text(value, path)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise DocumentError(path, f"expected an ISO 8601 time, found {text!r}") from None
    if moment.tzinfo is None:
        raise DocumentError(path, f"time {text!r} names no time zone (append Z for UTC)")
    try:
        at = moment.astimezone(UTC).timestamp()
    except OverflowError:
        at = _END_OF_TIME
    if at >= _END_OF_TIME:
        raise DocumentError(path, f"time {text!r} is out of range")
    return at


def show_time(at: float) -> str:
    """Unix seconds as ISO 8601 in UTC, with as many decimals as needed."""
    moment = datetime.fromtimestamp(at, UTC)
    return moment.replace(tzinfo=None).isoformat(timespec="auto") + "Z"


@dataclass(frozen=True, slots=True)
class Fields:
    """One mapping of a document, read key by key."""

    values: Mapping[str, object]
    path: Path

    @classmethod
    def of(cls, value: object, path: Path = ()) -> Fields:
        """The mapping at `path`. Raises `DocumentError` when it is none, or a key is not text."""
        if not isinstance(value, dict) and not isinstance(value, Mapping):  # the second alone takes five times as long
            raise DocumentError(path, f"expected a mapping, found {kind_of(value)}")
        for key in value:
            if not isinstance(key, str):
                raise DocumentError(path, f"key {key!r} is not text (quote it)")
        return cls(value, path)

    def at(self, key: str) -> Path:
        """Where `key` lies."""
        return (*self.path, key)

    def unknown(self, known: Sequence[str]) -> list[DocumentError]:
        """An error for each key outside `known`."""
        cause = f"unknown key (known here: {', '.join(known)})"
        return [DocumentError(self.at(key), cause) for key in self.values if key not in known]

    def require(self, key: str) -> object:
        """The value of `key`, else `DocumentError`."""
        if key not in self.values:
            raise DocumentError(self.path, f"key {key!r} is missing")
        return self.values[key]

    def get(self, key: str) -> object:
        """The value of `key`, or None."""
        return self.values.get(key)

    def text(self, key: str) -> str:
        """Required text."""
        return as_text(self.require(key), self.at(key))

    def text_or(self, key: str, default: str) -> str:
        """Text, or `default` when absent or null."""
        value = self.values.get(key)
        return default if value is None else as_text(value, self.at(key))

    def number(self, key: str, *, at_least: float | None = None, above: float | None = None) -> float:
        """Required number."""
        return as_number(self.require(key), self.at(key), at_least=at_least, above=above)

    def number_or_none(self, key: str, *, at_least: float | None = None) -> float | None:
        """Number, or None when absent or null."""
        value = self.values.get(key)
        return None if value is None else as_number(value, self.at(key), at_least=at_least)

    def number_or(self, key: str, default: float, *, at_least: float | None = None) -> float:
        """Number, or `default` when absent or null."""
        value = self.values.get(key)
        return default if value is None else as_number(value, self.at(key), at_least=at_least)

    def integer(self, key: str, *, at_least: int | None = None) -> int:
        """Required whole number."""
        return as_integer(self.require(key), self.at(key), at_least=at_least)

    def integer_or(self, key: str, default: int, *, at_least: int | None = None) -> int:
        """Whole number, or `default` when absent or null."""
        value = self.values.get(key)
        return default if value is None else as_integer(value, self.at(key), at_least=at_least)

    def fields(self, key: str) -> Fields:
        """Required mapping."""
        return Fields.of(self.require(key), self.at(key))

    def fields_or_empty(self, key: str) -> Fields:
        """Mapping, or an empty one when absent or null."""
        value = self.values.get(key)
        return Fields({}, self.at(key)) if value is None else Fields.of(value, self.at(key))

    def items(self, key: str) -> list[tuple[object, Path]]:
        """The elements of a list with their places; none when absent or null."""
        value = self.values.get(key)
        if value is None:
            return []
        return [(item, (*self.path, key, i)) for i, item in enumerate(as_list(value, self.at(key)))]

    def schema(self, wanted: str) -> None:
        """Refuse a document of another schema than `wanted`."""
        found = self.text("schema")
        if found != wanted:
            raise DocumentError(self.at("schema"), f"expected {wanted!r}, found {found!r}")


class Problems:
    """Errors found so far. What could not be read is replaced by a stand-in, which never leaves a parser."""

    def __init__(self) -> None:
        """None yet."""
        self.found: list[DocumentError] = []

    def add(self, path: Path, cause: str) -> None:
        """Note an error."""
        self.found.append(DocumentError(path, cause))

    def only(self, fields: Fields, known: Sequence[str]) -> None:
        """Note every key outside `known`."""
        self.found += fields.unknown(known)

    def attempt(self, instead: T, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `read` gives, or `instead` with its error noted."""
        try:
            return read(*args, **kwargs)
        except DocumentError as error:
            self.found.append(error)
            return instead

    def each(self, items: Iterable[tuple[object, Path]], read: Callable[[Fields], T]) -> list[tuple[Path, T]]:
        """Read mappings one by one; only those without an error are returned, with their places."""
        clean: list[tuple[Path, T]] = []
        for item, path in items:
            before = len(self.found)
            try:
                value = read(Fields.of(item, path))
            except DocumentError as error:
                self.found.append(error)
                continue
            if len(self.found) == before:
                clean.append((path, value))
        return clean

    def in_order_of(self, document: object) -> list[DocumentError]:
        """The errors in the order in which the document's text names their places."""
        ranks: dict[int, dict[object, int]] = {}
        return sorted(self.found, key=lambda error: _position(document, error.path, ranks))


def _position(document: object, path: Path, ranks: dict[int, dict[object, int]]) -> tuple[float, ...]:
    """Where each step of `path` stands among its siblings; the whole comes after its parts.

    `ranks` keeps the places of a mapping's keys, by the mapping's id, so that many errors cost no square.
    """
    steps: list[float] = []
    for part in path:
        if isinstance(document, Mapping) and part in document:
            if id(document) not in ranks:
                ranks[id(document)] = {key: place for place, key in enumerate(document)}
            steps.append(ranks[id(document)][part])
            document = document[part]
        elif isinstance(document, list | tuple) and isinstance(part, int) and part < len(document):
            steps.append(part)
            document = document[part]
    return (*steps, math.inf)

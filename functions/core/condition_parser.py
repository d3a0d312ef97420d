"""Reads a rule's `when`: each key is one condition, several keys must all hold, no key always holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from functions.core.conditions import (
    AllOf,
    Always,
    AnyOf,
    Condition,
    ContentTypeIs,
    HeaderIs,
    LoadIn,
    Not,
    NumberIn,
    PathIs,
    Range,
    SignalOn,
    TextIs,
)
from functions.core.document import DocumentError, Fields, Path, as_choice, as_number, as_text
from functions.core.patterns import PathPattern
from functions.core.request import PRIORITIES, Priority
from functions.core.topology import LANES
from functions.core.units import duration_s, size_bytes

_KEYS: Final = (
    "path",
    "model",
    "tenant",
    "tier",
    "priority",
    "deadline_ms",
    "bytes",
    "content_type",
    "header",
    "load",
    "signal",
    "all",
    "any",
    "not",
)
_LATER: Final = ("clock", "weekday", "breaker")
_BOUNDS: Final = ("above", "below", "at_least", "at_most")
_SECRET_HEADERS: Final = ("authorization", "cookie", "x-api-key")
_DEEPEST: Final = 16
"""Levels of all, any and not: more than a person can read."""


@dataclass(frozen=True, slots=True)
class Names:
    """What the rest of the document declares."""

    tiers: tuple[str, ...]
    signals: tuple[str, ...]


def parse_condition(value: object, path: Path, names: Names, depth: int = 0) -> Condition:
    """The condition at `path`; None and `{}` always hold. Raises `DocumentError`."""
    if value is None:
        return Always()
    if depth > _DEEPEST:
        raise DocumentError(path, f"nested more than {_DEEPEST} levels deep")
    fields = Fields.of(value, path)
    fields.only(_KEYS, later=_LATER)
    parts = [_one(key, part, fields.at(key), names, depth) for key, part in fields.values.items()]
    if not parts:
        return Always()
    return parts[0] if len(parts) == 1 else AllOf(tuple(parts))


def _one(key: str, value: object, path: Path, names: Names, depth: int) -> Condition:
    match key:
        case "path":
            return PathIs(PathPattern.of(value, path))
        case "model" | "tenant":
            return TextIs("model" if key == "model" else "tenant", as_text(value, path))
        case "tier":
            return TextIs("tier", as_choice(value, path, names.tiers, "tier"))
        case "signal":
            return SignalOn(as_choice(value, path, names.signals, "signal"))
        case "priority":
            return _priority(value, path)
        case "deadline_ms":
            return NumberIn("deadline_ms", _range(Fields.of(value, path), _milliseconds))
        case "bytes":
            return NumberIn("bytes", _range(Fields.of(value, path), size_bytes))
        case "content_type":
            return ContentTypeIs(as_text(value, path).lower())
        case "header":
            return _header(Fields.of(value, path))
        case "load":
            return _load(Fields.of(value, path))
        case "not":
            return Not(parse_condition(value, path, names, depth + 1))
        case _:
            return _branches("any" if key == "any" else "all", value, path, names, depth)


def _branches(kind: Literal["all", "any"], value: object, path: Path, names: Names, depth: int) -> Condition:
    items = Fields({kind: value}, path[:-1]).items(kind)
    if not items:
        raise DocumentError(path, "expected at least one condition")
    parts = tuple(parse_condition(item, place, names, depth + 1) for item, place in items)
    return AnyOf(parts) if kind == "any" else AllOf(parts)


def _range(fields: Fields, read: Callable[[object, Path], float], *, beside: tuple[str, ...] = ()) -> Range:
    fields.only((*beside, *_BOUNDS))
    bounds = {key: read(fields.values[key], fields.at(key)) for key in _BOUNDS if key in fields.values}
    if not bounds:
        raise DocumentError(fields.path, f"expected one of {', '.join(_BOUNDS)}")
    found = Range(**bounds)
    low = max((bound for bound in (found.above, found.at_least) if bound is not None), default=None)
    high = min((bound for bound in (found.below, found.at_most) if bound is not None), default=None)
    if low is not None and high is not None and (low > high or (low == high and not found.has(low))):
        raise DocumentError(fields.path, "no value lies within these bounds")
    return found


def _milliseconds(value: object, path: Path) -> float:
    """A count of milliseconds, or a duration with its unit."""
    return duration_s(value, path) * 1000 if isinstance(value, str) else as_number(value, path, at_least=0)


def _rank(value: object, path: Path) -> float:
    return float(Priority.of(as_choice(value, path, PRIORITIES, "priority")))


def _fraction(value: object, path: Path) -> float:
    return as_number(value, path, at_least=0)


def _priority(value: object, path: Path) -> Condition:
    if isinstance(value, str):
        rank = _rank(value, path)
        return NumberIn("priority", Range(at_least=rank, at_most=rank))
    return NumberIn("priority", _range(Fields.of(value, path), _rank))


def _header(fields: Fields) -> Condition:
    if not fields.values:
        raise DocumentError(fields.path, "expected a header name and the value it must have")
    parts: list[Condition] = []
    for name, pattern in fields.values.items():
        if name.lower() in _SECRET_HEADERS:
            raise DocumentError(fields.at(name), "a rule may not look at credentials")
        parts.append(HeaderIs(name.lower(), as_text(pattern, fields.at(name))))
    return parts[0] if len(parts) == 1 else AllOf(tuple(parts))


def _load(fields: Fields) -> Condition:
    lane = as_choice(fields.require("lane"), fields.at("lane"), LANES, "lane")
    return LoadIn(lane, _range(fields, _fraction, beside=("lane",)))

"""Reads a rule's `when`: each key is one condition, several keys must all hold, no key always holds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from functions.core.conditions import (
    AllOf,
    Always,
    AnyOf,
    BreakerIs,
    ClockIn,
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
    WeekdayIn,
)
from functions.core.document import (
    LARGEST,
    DocumentError,
    Fields,
    Path,
    Problems,
    as_choice,
    as_list,
    as_number,
    as_text,
)
from functions.core.patterns import PathPattern
from functions.core.policy import MAX_DEADLINE_MS
from functions.core.request import PRIORITIES, Priority
from functions.core.snapshot import BREAKERS
from functions.core.topology import LANES
from functions.core.units import duration_s, size_bytes
from functions.core.wishes import TOKEN

KEYS: Final = (
    "path",
    "model",
    "tenant",
    "tier",
    "priority",
    "deadline_ms",
    "bytes",
    "content_type",
    "header",
    "clock",
    "weekday",
    "load",
    "signal",
    "breaker",
    "all",
    "any",
    "not",
)
BOUNDS: Final = ("above", "below", "at_least", "at_most")
WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
CLOCK: Final = r"([01][0-9]|2[0-3]):[0-5][0-9]|24:00"
SECRET_HEADERS: Final = ("authorization", "cookie", "proxy-authorization", "x-amz-security-token", "x-api-key")
DEEPEST: Final = 16
"""Levels of all, any and not: more than a person can read."""


@dataclass(frozen=True, slots=True)
class Names:
    """What the rest of the document declares, and where its errors go."""

    tiers: tuple[str, ...]
    signals: tuple[str, ...]
    problems: Problems


def parse_condition(value: object, path: Path, names: Names, depth: int = 0) -> Condition:
    """The condition at `path`; None and `{}` always hold. Errors within it are noted in `names.problems`."""
    if value is None:
        return Always()
    if depth > DEEPEST:
        raise DocumentError(path, f"nested more than {DEEPEST} levels deep")
    fields = Fields.of(value, path)
    names.problems.only(fields, KEYS)
    parts = [
        names.problems.attempt(_ALWAYS, _one, key, part, fields.at(key), names, depth)
        for key, part in fields.values.items()
        if key in KEYS
    ]
    if not parts:
        return _ALWAYS
    return parts[0] if len(parts) == 1 else AllOf(tuple(parts))


_ALWAYS: Final[Condition] = Always()


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
            return _deadline(Fields.of(value, path))
        case "bytes":
            return NumberIn("bytes", _range(Fields.of(value, path), size_bytes, whole_from=0))
        case "content_type":
            return ContentTypeIs(_content_type(as_text(value, path), path))
        case "header":
            return _header(Fields.of(value, path))
        case "clock":
            return _clock(Fields.of(value, path))
        case "weekday":
            return _weekday(value, path)
        case "load":
            return _load(Fields.of(value, path))
        case "breaker":
            return _breaker(Fields.of(value, path))
        case "not":
            return Not(parse_condition(value, path, names, depth + 1))
        case _:
            return _branches("any" if key == "any" else "all", value, path, names, depth)


def _branches(kind: Literal["all", "any"], value: object, path: Path, names: Names, depth: int) -> Condition:
    items = Fields({kind: value}, path[:-1]).items(kind)
    if not items:
        raise DocumentError(path, "expected at least one condition")
    parts = tuple(
        names.problems.attempt(_ALWAYS, parse_condition, item, place, names, depth + 1) for item, place in items
    )
    return AnyOf(parts) if kind == "any" else AllOf(parts)


def _content_type(pattern: str, path: Path) -> str:
    if ";" in pattern:
        raise DocumentError(path, "never holds: a content type's parameters do not count, leave out the ; and the rest")
    return pattern.lower()


def _range(
    fields: Fields,
    read: Callable[[object, Path], float],
    *,
    beside: tuple[str, ...] = (),
    whole_from: int | None = None,
    most: float = LARGEST,
) -> Range:
    """Bounds on a number of at least zero, or on whole numbers from `whole_from` to `most`: some must lie within."""
    for error in fields.unknown((*beside, *BOUNDS)):
        raise error
    bounds = {key: read(fields.values[key], fields.at(key)) for key in BOUNDS if key in fields.values}
    if not bounds:
        raise DocumentError(fields.path, f"expected one of {', '.join(BOUNDS)}")
    found = Range(**bounds)
    low = max(bound for bound in (found.above, found.at_least, whole_from or 0) if bound is not None)
    high = min(bound for bound in (found.below, found.at_most, most) if bound is not None)
    if whole_from is not None:
        low, high = math.ceil(low), math.floor(high)
        low, high = low + (low == found.above), high - (high == found.below)
    if low > high or (low == high and not found.has(low)):
        raise DocumentError(fields.path, "no value lies within these bounds")
    return found


def _deadline(fields: Fields) -> Condition:
    found = _range(fields, _milliseconds, whole_from=1)
    if (found.above is not None and found.above >= MAX_DEADLINE_MS) or (
        found.at_least is not None and found.at_least > MAX_DEADLINE_MS
    ):
        raise DocumentError(fields.path, f"never holds: deadlines are cut to {MAX_DEADLINE_MS} ms")
    return NumberIn("deadline_ms", found)


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
    return NumberIn("priority", _range(Fields.of(value, path), _rank, whole_from=0, most=Priority.HIGH))


def _header(fields: Fields) -> Condition:
    if not fields.values:
        raise DocumentError(fields.path, "expected a header name and the value it must have")
    asked: dict[str, Condition] = {}
    for written, pattern in fields.values.items():
        name, place = written.lower(), fields.at(written)
        if name in SECRET_HEADERS:
            raise DocumentError(place, "a rule may not look at credentials")
        if not _HEADER.fullmatch(name):
            raise DocumentError(place, "never holds: no header can have this name")
        if name in asked:
            raise DocumentError(place, "is given twice: the case of a header's name does not count")
        asked[name] = HeaderIs(name, as_text(pattern, place))
    parts = tuple(asked.values())
    return parts[0] if len(parts) == 1 else AllOf(parts)


def _clock(fields: Fields) -> Condition:
    for error in fields.unknown(("from", "to")):
        raise error
    start = _minute(fields.require("from"), fields.at("from"))
    end = _minute(fields.require("to"), fields.at("to"))
    if start % _DAY == end % _DAY:
        raise DocumentError(fields.path, "from and to are the same time (leave clock out to mean the whole day)")
    return ClockIn(start % _DAY, end)


def _minute(value: object, path: Path) -> int:
    """A time of day as its minute, 0–1440."""
    if not isinstance(value, str) or not _CLOCK.fullmatch(value):
        raise DocumentError(path, 'expected a time of day between "00:00" and "24:00", in quotes')
    return int(value[:2]) * 60 + int(value[3:])


def _weekday(value: object, path: Path) -> Condition:
    days = [
        WEEKDAYS.index(as_choice(day, (*path, i), WEEKDAYS, "weekday")) for i, day in enumerate(as_list(value, path))
    ]
    if not days:
        raise DocumentError(path, f"expected at least one of {', '.join(WEEKDAYS)}")
    return WeekdayIn(frozenset(days))


def _load(fields: Fields) -> Condition:
    lane = as_choice(fields.require("lane"), fields.at("lane"), LANES, "lane")
    return LoadIn(lane, _range(fields, _fraction, beside=("lane",)))


def _breaker(fields: Fields) -> Condition:
    for error in fields.unknown(("lane", "is")):
        raise error
    lane = as_choice(fields.require("lane"), fields.at("lane"), LANES, "lane")
    return BreakerIs(lane, as_choice(fields.require("is"), fields.at("is"), BREAKERS, "state"))


_DAY: Final = 1440
_CLOCK: Final = re.compile(CLOCK, re.ASCII)
_HEADER: Final = re.compile(TOKEN, re.ASCII)

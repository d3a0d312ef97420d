"""The JSONPath of batch transform's filters: the documented subset, and nothing beyond it. Pure.

`$`, `.name`, `*`, `['a','b']`, `[n,m]` (negative ones count from the end), `[start:end]`, and one range among indexes
(`[0,5:]`). Rules:
- one name or one index selects a value; several names select an object of them; several indexes, a range and `*` a
  list, and what follows a list is taken of each of its elements;
- a name that is not there, or an index outside the value, is an error, also as an explicit bound of a range;
- two ranges in one bracket are refused, as seen of the service (aws/sagemaker-python-sdk#1112).

Whether a range includes its end is open: the developer guide's worked example says so (`$[1:4]` is "the second through
fifth columns"), the JsonPath library that it refers to excludes it. The caller chooses.
Source: developer guide, "Associate Prediction Results with Input Records".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_NAME = re.compile(r"[^\s.\[\]'*,:$]+")
_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_QUOTED = re.compile(r"\s*'([^']*)'\s*")
_INDEX = re.compile(r"\s*(-?\d+)\s*")
_RANGE = re.compile(r"\s*(-?\d+)?\s*:\s*(-?\d+)?\s*")


class PathError(ValueError):
    """The path is no path, or does not fit the value; the message says why."""


@dataclass(frozen=True, slots=True)
class Names:
    """Members of an object."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """`start:end`; None is the first or the last element."""

    start: int | None
    end: int | None


@dataclass(frozen=True, slots=True)
class Positions:
    """Elements of an array."""

    parts: tuple[int | Range, ...]

    @property
    def single(self) -> bool:
        """Whether it selects one element by itself, and not a list."""
        return len(self.parts) == 1 and isinstance(self.parts[0], int)


@dataclass(frozen=True, slots=True)
class Every:
    """`*`."""


Step = Names | Positions | Every


@dataclass(frozen=True, slots=True)
class Path:
    """A parsed path."""

    text: str
    steps: tuple[Step, ...]
    inclusive: bool
    """Whether ranges include their end."""

    @property
    def whole(self) -> bool:
        """Whether it selects the value as it is."""
        return not self.steps

    def select(self, value: Any) -> Any:
        """What the path selects of a JSON value. Raises `PathError`."""
        nodes, listed = [value], False
        for step in self.steps:
            nodes = [selected for node in nodes for selected in self._apply(step, node)]
            listed = listed or isinstance(step, Every) or (isinstance(step, Positions) and not step.single)
        return nodes if listed else nodes[0]

    def _apply(self, step: Step, node: Any) -> Iterator[Any]:
        match step:
            case Names(names):
                yield self._members(names, node)
            case Positions(parts):
                if not isinstance(node, list):
                    raise PathError(f"{self.text}: an index needs an array")
                for part in parts:
                    yield from self._elements(part, node)
            case Every():
                if not isinstance(node, dict | list):
                    raise PathError(f"{self.text}: * needs an object or an array")
                yield from node.values() if isinstance(node, dict) else node

    def _members(self, names: tuple[str, ...], node: Any) -> Any:
        if not isinstance(node, dict):
            raise PathError(f"{self.text}: an attribute needs an object")
        if missing := [name for name in names if name not in node]:
            raise PathError(f"{self.text}: there is no attribute {missing[0]!r}")
        return node[names[0]] if len(names) == 1 else {name: node[name] for name in names}

    def _elements(self, part: int | Range, node: Sequence[Any]) -> Sequence[Any]:
        if isinstance(part, int):
            return [node[self._within(part, len(node))]]
        start = 0 if part.start is None else self._within(part.start, len(node))
        if part.end is None:
            return node[start:]
        if self.inclusive:
            return node[start : self._within(part.end, len(node)) + 1]
        # An end that is not included may lie just behind the last element.
        return node[start : part.end if part.end == len(node) else self._within(part.end, len(node))]

    def _within(self, index: int, size: int) -> int:
        if not -size <= index < size:
            raise PathError(f"{self.text}: index {index} is out of range for {size} elements")
        return index % size


def parse(text: str, *, inclusive: bool = True) -> Path:
    """A path from its text. Raises `PathError`."""
    stripped = text.strip()
    if not stripped.startswith("$"):
        raise PathError(f"Invalid JsonPath: {text}: a path begins with $")
    steps, at = [], 1
    while at < len(stripped):
        step, at = _step(stripped, at)
        steps.append(step)
    return Path(text, tuple(steps), inclusive)


def _step(text: str, at: int) -> tuple[Step, int]:
    # The guide writes `$.field.['a','b']`: a dot before a bracket says nothing.
    dotted = text[at] == "."
    at += dotted
    if text[at : at + 1] == "*" and dotted:
        return Every(), at + 1
    if dotted and (name := _NAME.match(text, at)):
        return Names((name[0],)), name.end()
    if bracket := _BRACKET.match(text, at):
        return _bracket(text, bracket[1]), bracket.end()
    raise PathError(f"Invalid JsonPath: {text}: unexpected {text[at : at + 1] or 'end'!r} at position {at}")


def _bracket(text: str, inside: str) -> Step:
    if inside.strip() == "*":
        return Every()
    parts = inside.split(",")
    if all(quoted := [_QUOTED.fullmatch(part) for part in parts]):
        return Names(tuple(match[1] for match in quoted if match))
    positions = tuple(_position(text, part) for part in parts)
    if sum(isinstance(position, Range) for position in positions) > 1:
        raise PathError(
            f"Invalid JsonPath: {text}: only single range filters of format (eg: [1:5]) are supported. "
            f"Format [{inside}] is not supported"
        )
    return Positions(positions)


def _position(text: str, part: str) -> int | Range:
    if index := _INDEX.fullmatch(part):
        return int(index[1])
    if ends := _RANGE.fullmatch(part):
        start, end = (None if bound is None else int(bound) for bound in ends.groups())
        return Range(start, end)
    raise PathError(f"Invalid JsonPath: {text}: {part.strip()!r} is neither an index, a range nor a quoted name")

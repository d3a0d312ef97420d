"""When a rule applies: small frozen conditions over the facts of one request, in three-valued logic.

A condition holds (True), does not (False), or cannot be told (None), as when the metrics it asks for are unknown.
`not` of unknown is unknown, `all` is false if one branch is, `any` is true if one is; a rule matches only on True.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from functions.core.patterns import PathPattern, media_type, wildcard_match
from functions.core.request import Priority


@dataclass(frozen=True, slots=True)
class Load:
    """A lane's load, 0 = idle and 1 = every slot busy. `exact` is False when only a lower bound is known."""

    value: float
    exact: bool = True


@dataclass(frozen=True, slots=True)
class LocalTime:
    """A moment in the policy's time zone."""

    weekday: int
    """Monday is 0."""
    minute: int
    """Of the day, 0–1439."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What conditions may ask about one request."""

    path: str
    model: str
    tenant: str
    tier: str
    priority: Priority
    deadline_ms: int
    bytes: int
    content_type: str | None
    headers: Mapping[str, str]
    latches: Mapping[str, bool | None]
    load: Callable[[str], Load | None]
    breakers: Mapping[str, str] = field(default_factory=dict)
    """By lane, of the model's lanes in this stage."""
    local: LocalTime | None = None
    """None: `now` lies outside the calendar."""


class Condition(Protocol):
    """One question about the facts."""

    def holds(self, facts: Facts) -> bool | None:
        """True, False, or None when it cannot be told."""
        ...


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds on a number; all that are given must hold."""

    above: float | None = None
    below: float | None = None
    at_least: float | None = None
    at_most: float | None = None

    def has(self, value: float) -> bool:
        """Whether `value` lies within."""
        return (
            (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
            and (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
        )

    def has_from(self, bound: float) -> bool | None:
        """Whether every (True), no (False) or some (None) value from `bound` upwards lies within."""
        if (self.below is not None and bound >= self.below) or (self.at_most is not None and bound > self.at_most):
            return False
        return True if self.below is None and self.at_most is None and self.has(bound) else None


@dataclass(frozen=True, slots=True)
class Always:
    """No condition."""

    def holds(self, facts: Facts) -> bool | None:  # noqa: ARG002 - the protocol's shape
        """Always."""
        return True


@dataclass(frozen=True, slots=True)
class PathIs:
    """The path matches a pattern."""

    pattern: PathPattern

    def holds(self, facts: Facts) -> bool | None:
        """Whether the path matches."""
        return self.pattern.match(facts.path) is not None


@dataclass(frozen=True, slots=True)
class TextIs:
    """The model, tenant or tier has a name."""

    fact: Literal["model", "tenant", "tier"]
    name: str

    def holds(self, facts: Facts) -> bool | None:
        """Whether the fact equals the name."""
        found = facts.model if self.fact == "model" else facts.tenant if self.fact == "tenant" else facts.tier
        return found == self.name


@dataclass(frozen=True, slots=True)
class NumberIn:
    """The priority granted, the deadline or the body's size lies in a range."""

    fact: Literal["priority", "deadline_ms", "bytes"]
    range: Range

    def holds(self, facts: Facts) -> bool | None:
        """Whether the fact lies within."""
        if self.fact == "priority":
            return self.range.has(facts.priority)
        return self.range.has(facts.bytes if self.fact == "bytes" else facts.deadline_ms)


@dataclass(frozen=True, slots=True)
class ContentTypeIs:
    """The content type matches a lower-case wildcard; parameters do not count."""

    pattern: str

    def holds(self, facts: Facts) -> bool | None:
        """Whether it matches; a request without one does not."""
        return facts.content_type is not None and wildcard_match(self.pattern, media_type(facts.content_type))


@dataclass(frozen=True, slots=True)
class HeaderIs:
    """A header, named in lower case, matches a wildcard."""

    name: str
    pattern: str

    def holds(self, facts: Facts) -> bool | None:
        """Whether it is there and matches."""
        value = facts.headers.get(self.name)
        return value is not None and wildcard_match(self.pattern, value)


@dataclass(frozen=True, slots=True)
class LoadIn:
    """A lane's load lies in a range."""

    lane: str
    range: Range

    def holds(self, facts: Facts) -> bool | None:
        """Whether it does; a lower bound alone may still decide."""
        load = facts.load(self.lane)
        if load is None:
            return None
        return self.range.has(load.value) if load.exact else self.range.has_from(load.value)


@dataclass(frozen=True, slots=True)
class SignalOn:
    """A latch is on."""

    name: str

    def holds(self, facts: Facts) -> bool | None:
        """The latch's state."""
        return facts.latches.get(self.name)


@dataclass(frozen=True, slots=True)
class BreakerIs:
    """A lane's breaker is in a state."""

    lane: str
    state: str

    def holds(self, facts: Facts) -> bool | None:
        """Whether it is; nobody knows the breaker of a lane that this stage lacks."""
        found = facts.breakers.get(self.lane)
        return None if found is None else found == self.state


@dataclass(frozen=True, slots=True)
class ClockIn:
    """The local time lies in [start, end), minutes of the day; an end before the start is the next day's."""

    start: int
    end: int

    def holds(self, facts: Facts) -> bool | None:
        """Whether it does."""
        if facts.local is None:
            return None
        minute = facts.local.minute
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end


@dataclass(frozen=True, slots=True)
class WeekdayIn:
    """Today, in local time, is one of some weekdays; Monday is 0."""

    days: frozenset[int]

    def holds(self, facts: Facts) -> bool | None:
        """Whether it is."""
        return None if facts.local is None else facts.local.weekday in self.days


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part holds."""

    parts: tuple[Condition, ...]

    def holds(self, facts: Facts) -> bool | None:
        """False if one part is, else None if one is, else True."""
        result: bool | None = True
        for part in self.parts:
            found = part.holds(facts)
            if found is False:
                return False
            if found is None:
                result = None
        return result


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one part holds."""

    parts: tuple[Condition, ...]

    def holds(self, facts: Facts) -> bool | None:
        """True if one part is, else None if one is, else False."""
        result: bool | None = False
        for part in self.parts:
            found = part.holds(facts)
            if found is True:
                return True
            if found is None:
                result = None
        return result


@dataclass(frozen=True, slots=True)
class Not:
    """A part does not hold."""

    part: Condition

    def holds(self, facts: Facts) -> bool | None:
        """The opposite; unknown stays unknown."""
        found = self.part.holds(facts)
        return None if found is None else not found


def leaves(condition: Condition) -> Iterator[Condition]:
    """Every question that a condition asks."""
    if isinstance(condition, AllOf | AnyOf):
        for part in condition.parts:
            yield from leaves(part)
    elif isinstance(condition, Not):
        yield from leaves(condition.part)
    else:
        yield condition

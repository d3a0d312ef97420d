"""Conditions: what each asks, in three-valued logic."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import pytest

from functions.core.condition_parser import Names, parse_condition
from functions.core.conditions import AllOf, AnyOf, Facts, Load, LocalTime, Not, Range
from functions.core.document import Problems
from functions.core.request import Priority

FACTS = Facts(
    path="/realtime/chat",
    model="chat",
    tenant="acme",
    tier="vip",
    priority=Priority.NORMAL,
    deadline_ms=800,
    bytes=2_000_000,
    content_type="Image/PNG; charset=binary",
    headers={"x-canary": "yes-1"},
    latches={"hot": True, "dark": None},
    load={"dedicated": Load(0.9), "serverless": Load(0.5, exact=False)}.get,
    breakers={"dedicated": "open", "serverless": "half_open"},
    local=LocalTime(weekday=5, minute=23 * 60 + 30),
)


def holds(condition: object, facts: Facts = FACTS) -> bool | None:
    notes = Problems()
    parsed = parse_condition(condition, ("when",), Names(("vip", "standard"), ("hot", "dark"), notes))
    assert not notes.found
    return parsed.holds(facts)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (None, True),
        ({}, True),
        ({"path": "/realtime/chat"}, True),
        ({"path": "/realtime/*"}, True),
        ({"path": "/{kind}/chat"}, True),
        ({"path": "/**"}, True),
        ({"path": "/realtime"}, False),
        ({"path": "/realtime/chat/"}, False),
        ({"model": "chat"}, True),
        ({"model": "other"}, False),
        ({"tenant": "acme"}, True),
        ({"tier": "standard"}, False),
        ({"priority": "normal"}, True),
        ({"priority": "low"}, False),
        ({"priority": {"at_most": "normal"}}, True),
        ({"priority": {"below": "normal"}}, False),
        ({"deadline_ms": {"below": 801}}, True),
        ({"deadline_ms": {"below": "800ms"}}, False),
        ({"deadline_ms": {"at_least": 800, "at_most": 800}}, True),
        ({"bytes": {"above": "2MB"}}, False),
        ({"bytes": {"at_least": "2MB"}}, True),
        ({"bytes": {"below": "2MiB"}}, True),
        ({"content_type": "image/*"}, True),
        ({"content_type": "IMAGE/png"}, True),
        ({"content_type": "text/*"}, False),
        ({"header": {"X-Canary": "yes-?"}}, True),
        ({"header": {"X-Canary": "yes-1", "x-other": "*"}}, False),
        ({"signal": "hot"}, True),
        ({"signal": "dark"}, None),
        ({"load": {"lane": "dedicated", "above": 0.8}}, True),
        ({"load": {"lane": "batch", "above": 0.8}}, None),
        ({"breaker": {"lane": "dedicated", "is": "open"}}, True),
        ({"breaker": {"lane": "serverless", "is": "open"}}, False),
        ({"breaker": {"lane": "batch", "is": "closed"}}, None),
        ({"clock": {"from": "23:30", "to": "24:00"}}, True),
        ({"clock": {"from": "22:00", "to": "23:30"}}, False),
        ({"clock": {"from": "22:00", "to": "05:00"}}, True),
        ({"clock": {"from": "23:31", "to": "05:00"}}, False),
        ({"weekday": ["sat", "sun"]}, True),
        ({"weekday": ["mon"]}, False),
        ({"tenant": "acme", "model": "chat"}, True),
        ({"tenant": "acme", "model": "other"}, False),
        ({"not": {"signal": "dark"}}, None),
        ({"not": {"tenant": "acme"}}, False),
        ({"any": [{"signal": "dark"}, {"tenant": "acme"}]}, True),
        ({"any": [{"signal": "dark"}, {"tenant": "x"}]}, None),
        ({"any": [{"tenant": "y"}, {"tenant": "x"}]}, False),
        ({"all": [{"signal": "dark"}, {"tenant": "acme"}]}, None),
        ({"all": [{"signal": "dark"}, {"tenant": "x"}]}, False),
    ],
)
def test_each_condition_asks_what_it_says(condition: object, expected: bool | None) -> None:
    """One row a condition."""
    assert holds(condition) is expected


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"above": 0.4}, True),
        ({"above": 0.6}, None),
        ({"below": 0.6}, None),
        ({"below": 0.5}, False),
        ({"at_most": 0.4}, False),
        ({"at_least": 0.5}, True),
        ({"above": 0.4, "below": 0.9}, None),
    ],
)
def test_a_load_that_is_a_lower_bound_decides_only_what_it_can(bounds: dict[str, float], expected: bool | None) -> None:
    """At least 0.5: above 0.4 for certain, below 0.5 never, the rest unknown."""
    assert holds({"load": {"lane": "serverless", **bounds}}) is expected


def test_what_is_absent_does_not_match() -> None:
    """No content type and no header: neither condition holds."""
    bare = replace(FACTS, content_type=None, headers={})
    assert holds({"content_type": "*"}, bare) is False
    assert holds({"header": {"x-canary": "*"}}, bare) is False


def test_outside_the_calendar_the_clock_is_unknown() -> None:
    """A moment that has no local time answers neither question."""
    timeless = replace(FACTS, local=None)
    assert holds({"clock": {"from": "01:00", "to": "05:00"}}, timeless) is None
    assert holds({"weekday": ["mon"]}, timeless) is None


@pytest.mark.parametrize(("minute", "inside"), [(119, False), (120, True), (299, True), (300, False)])
def test_a_clock_range_begins_with_from_and_ends_before_to(minute: int, inside: bool) -> None:
    """02:00 is inside, 05:00 is not; the same over midnight."""
    at = replace(FACTS, local=LocalTime(0, minute))
    assert holds({"clock": {"from": "02:00", "to": "05:00"}}, at) is inside
    assert holds({"clock": {"from": "05:00", "to": "02:00"}}, at) is not inside


@dataclass(frozen=True)
class Constant:
    value: bool | None

    def holds(self, facts: Facts) -> bool | None:
        return self.value


@pytest.mark.parametrize("values", list(itertools.product([True, False, None], repeat=3)))
def test_all_any_and_not_are_kleenes(values: tuple[bool | None, ...]) -> None:
    """`all` is the least of its parts and `any` the greatest, in the order false < unknown < true."""
    rank = {False: 0, None: 1, True: 2}
    parts = tuple(Constant(value) for value in values)
    assert AllOf(parts).holds(FACTS) is min(values, key=rank.__getitem__)
    assert AnyOf(parts).holds(FACTS) is max(values, key=rank.__getitem__)
    opposite = Not(AnyOf(parts)).holds(FACTS)
    assert opposite is AllOf(tuple(Not(part) for part in parts)).holds(FACTS)


def test_a_range_without_an_upper_bound_can_be_certain_from_below() -> None:
    """Only open ranges are decided by a lower bound."""
    assert Range(at_least=1).has_from(1) is True
    assert Range(above=1).has_from(1) is None
    assert Range(at_most=1).has_from(1) is None
    assert Range(at_most=1).has_from(1.1) is False
    assert Range(below=1).has_from(1) is False
    assert Range().has_from(1) is True


def test_a_load_that_is_known_decides_by_itself() -> None:
    """0.9 exactly is below 1 and not below 0.9; as a lower bound it could be anything above."""
    assert holds({"load": {"lane": "dedicated", "below": 1}}) is True
    assert holds({"load": {"lane": "dedicated", "at_most": 0.9}}) is True
    assert holds({"load": {"lane": "dedicated", "below": 0.9}}) is False

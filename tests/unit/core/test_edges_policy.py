"""Policies at the edge: rules and routes that can never be reached, and nights that are no ordinary ones."""

from __future__ import annotations

import itertools
import time
from datetime import datetime
from zoneinfo import ZoneInfo

import jsonschema  # type: ignore[import-untyped]  # its stubs are a package of their own, for one test
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.core.decide import decide
from functions.core.patterns import covers, wildcard_match
from functions.core.policy_parser import problems
from tests.unit.core.builders import IDLE, policy, policy_document, request, rules, topology
from tests.unit.core.refused import when
from tests.unit.core.test_schema import VALIDATOR

NEVER = "no value lies within these bounds"


@pytest.mark.parametrize(
    ("condition", "place", "cause"),
    [
        ({"priority": {"above": "high"}}, "priority", NEVER),
        ({"priority": {"below": "low"}}, "priority", NEVER),
        ({"priority": {"above": "low", "below": "normal"}}, "priority", NEVER),
        ({"bytes": {"below": 0}}, "bytes", NEVER),
        ({"bytes": {"above": 5, "below": 6}}, "bytes", NEVER),
        ({"bytes": {"above": 5.2, "at_most": 5.8}}, "bytes", NEVER),
        ({"deadline_ms": {"below": 1}}, "deadline_ms", NEVER),
        ({"deadline_ms": {"at_most": 0}}, "deadline_ms", NEVER),
        ({"deadline_ms": {"at_most": "0.5ms"}}, "deadline_ms", NEVER),
        ({"load": {"lane": "dedicated", "below": 0}}, "load", NEVER),
        (
            {"content_type": "text/plain; charset=utf-8"},
            "content_type",
            "never holds: a content type's parameters do not count, leave out the ; and the rest",
        ),
        ({"header": {"X Canary": "y"}}, "header.X Canary", "never holds: no header can have this name"),
        ({"header": {"x-canary:": "y"}}, "header.x-canary:", "never holds: no header can have this name"),
        ({"header": {"": "y"}}, "header.", "never holds: no header can have this name"),
        (
            {"header": {"X-Canary": "a", "x-canary": "b"}},
            "header.x-canary",
            "is given twice: the case of a header's name does not count",
        ),
    ],
)
def test_a_rule_that_can_never_match_is_refused(condition: dict[str, object], place: str, cause: str) -> None:
    """Sizes and deadlines are whole numbers, loads are not negative, priorities are three words."""
    found = problems(policy_document(**when(**condition)))
    assert [str(error) for error in found] == [f"rules[0].when.{place}: {cause}"]


@pytest.mark.parametrize(
    "condition",
    [
        {"priority": {"above": "normal"}},
        {"priority": {"at_most": "low"}},
        {"bytes": {"at_most": 0}},
        {"bytes": {"below": 1}},
        {"bytes": {"above": 5, "at_most": 6}},
        {"bytes": {"above": 5.2, "below": 6.1}},
        {"deadline_ms": {"at_most": 1}},
        {"deadline_ms": {"above": 28_999}},
        {"load": {"lane": "dedicated", "at_most": 0}},
        {"load": {"lane": "dedicated", "above": 5, "below": 6}},
        {"header": {"x-canary!#$%&'*+.^_`|~9": "*"}},
    ],
)
def test_a_rule_that_can_match_is_taken(condition: dict[str, object]) -> None:
    """A single value within the bounds is enough."""
    assert problems(policy_document(**when(**condition))) == []


@pytest.mark.parametrize(
    "parts",
    [
        when(header={"X Canary": "y"}),
        when(content_type="a/b;c"),
        when(bytes={"below": 1e300}),
        when(load={"lane": "dedicated", "above": 1e300}),
        {"defaults": {"deadline_ms": 1e300}},
        {"signals": {"s": {"lane": "dedicated", "metric": "errors", "above": -1e300, "for": "1m"}}},
    ],
)
def test_an_editor_marks_what_a_schema_can_see(parts: dict[str, object]) -> None:
    """The published schema refuses them as the parser does."""
    assert problems(policy_document(**parts))
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(policy_document(**parts))


def routes(*paths: str) -> dict[str, object]:
    return {"routes": [{"path": path, "model": "m"} for path in paths]}


@pytest.mark.parametrize(
    "paths",
    [
        ("/realtime/{model}", "/realtime/chat"),
        ("/realtime/*", "/realtime/{model}"),
        ("/**", "/"),
        ("/**", "/a/**"),
        ("/a/**", "/a"),
        ("/a/**", "/a/b/c"),
        ("/a/**", "/a/**/"[:-1]),
        ("/*/b", "/a/b"),
        ("/*/*/c/**", "/x/{y}/c/d"),
        ("/a//b", "/a//b"),
    ],
)
def test_a_route_behind_a_wider_one_is_never_reached(paths: tuple[str, str]) -> None:
    """The first match counts, so the narrow path stands before the wide one."""
    found = problems(policy_document(**routes("/other", *paths)))
    assert [error.path for error in found] == [("routes", 2, "path")]
    assert "never reached: routes[1]" in found[0].cause


def test_paths_that_overlap_in_very_many_ways_cost_no_time() -> None:
    """What begins in thousands of ways is not searched to its end; the order of a person's routes always is."""
    ways = ["/".join(parts) for parts in itertools.product("a*", repeat=12)]
    comb = sorted(ways, key=lambda way: way.count("*"))[:2_000]
    many = [*(f"/{way}/z" for way in comb), *(f"/{'a/' * 12}u{i}" for i in range(3_000))]
    began = time.perf_counter()
    assert problems(policy_document(**routes(*many))) == []
    assert time.perf_counter() - began < 3.0


def test_the_words_tell_equal_from_wider() -> None:
    """What a person reads."""
    (same,) = problems(policy_document(**routes("/a/*", "/a/{model}")))
    assert same.cause == "never reached: routes[0] has the same path"
    (wider,) = problems(policy_document(**routes("/a/*", "/a/b")))
    assert wider.cause == "never reached: routes[0] takes every path of '/a/b'"


@pytest.mark.parametrize(
    "paths",
    [
        ("/realtime/chat", "/realtime/{model}"),
        ("/a", "/a/**"),
        ("/a/*", "/a/**"),
        ("/a/*", "/a//"),
        ("/a/*", "/a/"),
        ("/a/b", "/a/*"),
        ("/a/*/c", "/a/b/d"),
        ("/a/b/**", "/a/**"),
        ("/a/*/**", "/a/**"),
        ("/*/b", "/a/*"),
    ],
)
def test_a_route_that_takes_what_the_first_leaves_is_taken(paths: tuple[str, str]) -> None:
    """`*` takes no empty segment, and no route takes what is longer than itself."""
    assert problems(policy_document(**routes(*paths))) == []


@pytest.mark.many
def test_ten_thousand_routes_are_told_apart_at_once() -> None:
    """A tree of segments, not a comparison of each with each."""
    began = time.perf_counter()
    many = routes(*(f"/{'abcdefghij'[i % 10]}/{i}/{{model}}" for i in range(10_000)), "/a/0/x")
    assert [error.path for error in problems(policy_document(**many))] == [("routes", 10_000, "path")]
    assert time.perf_counter() - began < 5.0


COMB = "*a" + "?" * 40 + "*"


@pytest.mark.parametrize(
    ("wide", "narrow", "covered"),
    [
        (COMB, "*a*b" * 120 + "?" * 40 + "*", True),
        (COMB, "*a*b" * 15 + "?" * 10, False),
        ("*" + "?" * 500 + "a" * 500, "a" * 1_024, True),
        ("*" + "a*" * 500, "a*" * 500, True),
        ("*" + "a?" * 400 + "*", "a*" * 400, False),
    ],
)
def test_two_patterns_are_compared_in_time_that_grows_with_their_lengths(wide: str, narrow: str, covered: bool) -> None:
    """No pair of patterns can stall the check of a policy, nor the router that reads it."""
    began = time.perf_counter()
    assert covers(wide, narrow) is covered
    assert time.perf_counter() - began < 2.0


def test_an_entry_with_several_claims_is_found_by_whichever_tells_most() -> None:
    """Thousands that share all but one claim are not compared with each other; the one that is covered is found."""
    claims = [{"iss": "https://login", "app": f"a{i}z", "team": "*"} for i in range(3_000)]
    claims.append({"iss": "https://login", "app": "a77z", "team": "ml", "sub": "x"})
    entries = [{"claim": claim, "tenant": "t", "tier": "vip"} for claim in claims]
    began = time.perf_counter()
    (found,) = problems(policy_document(tenants=entries))
    assert (found.path, found.cause) == (("tenants", 3_000), "never reached: tenants[77] covers it")
    assert time.perf_counter() - began < 3.0


WILDCARDS = st.text("ab*?", max_size=9)


@settings(max_examples=300)
@given(WILDCARDS, WILDCARDS)
def test_a_pattern_covers_another_exactly_when_no_text_tells_them_apart(wide: str, narrow: str) -> None:
    """Every text of `narrow` whose wildcards are filled from the letters of both and one that neither has."""
    runs = ["", *"abz", *("".join(two) for two in itertools.product("abz", repeat=2)), "z" * 12]
    choices: dict[str, list[str]] = {"*": runs, "?": ["z", "a", "b"]}
    texts = itertools.islice(itertools.product(*(choices.get(letter, [letter]) for letter in narrow)), 3_000)
    apart = any(not wildcard_match(wide, "".join(text)) for text in texts)
    assert not (apart and covers(wide, narrow))
    if narrow.count("*") + narrow.count("?") <= 2:
        assert covers(wide, narrow) is not apart


def rule_at(local: str, zone: str, condition: dict[str, object], fold: int = 0) -> bool:
    """Whether the condition holds at a local time."""
    by = policy(timezone=zone, rules=rules((condition, ["serverless"])))
    now = datetime.fromisoformat(local).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()
    return decide(request(), IDLE, by, topology(), now).rule == "r0"


NIGHT: dict[str, object] = {"clock": {"from": "02:00", "to": "05:00"}}
LATE: dict[str, object] = {"clock": {"from": "22:00", "to": "02:00"}, "weekday": ["sat"]}


@pytest.mark.parametrize(
    ("local", "fold", "inside"),
    [
        ("2027-03-28T01:59:59", 0, False),
        ("2027-03-28T03:00:00", 0, True),
        ("2027-03-28T04:59:59", 0, True),
        ("2027-03-28T05:00:00", 0, False),
        ("2026-10-25T02:30:00", 0, True),
        ("2026-10-25T02:30:00", 1, True),
        ("2026-10-25T01:59:59", 0, False),
    ],
)
def test_a_night_on_which_the_clocks_change(local: str, fold: int, inside: bool) -> None:
    """What the wall clock shows counts: a skipped hour never comes, a repeated one comes twice."""
    assert rule_at(local, "Europe/Berlin", NIGHT, fold) is inside


@pytest.mark.parametrize(
    ("local", "inside"),
    [
        ("2026-12-05T21:59:00", False),  # Saturday
        ("2026-12-05T22:00:00", True),
        ("2026-12-05T23:59:59", True),
        ("2026-12-06T00:00:00", False),
        ("2026-12-06T01:59:00", False),
        ("2026-12-05T00:30:00", True),
        ("2026-12-04T23:00:00", False),
    ],
)
@pytest.mark.parametrize("zone", ["Asia/Shanghai", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_the_weekday_is_that_of_the_moment(local: str, inside: bool, zone: str) -> None:
    """A range over midnight does not take its first day along: after midnight it is the next weekday."""
    assert rule_at(local, zone, LATE) is inside


@pytest.mark.parametrize(
    ("local", "inside"), [("2026-12-01T23:59:59", True), ("2026-12-01T00:00:00", False), ("2026-12-01T21:59:59", False)]
)
@pytest.mark.parametrize("end", ["24:00", "00:00"])
def test_midnight_may_be_written_in_two_ways(local: str, inside: bool, end: str) -> None:
    """`to: 24:00` and `to: 00:00` both end with the day."""
    assert rule_at(local, "Asia/Kathmandu", {"clock": {"from": "22:00", "to": end}}) is inside

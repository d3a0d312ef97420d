"""The policy document, field by field: what each means, what may be left out, and how far values may go."""

from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest

from functions.core.condition_parser import Names, parse_condition
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
from functions.core.document import Problems
from functions.core.latches import Signal
from functions.core.patterns import PathPattern
from functions.core.policy import Capture, Defaults, Experiment, Guard, Policy, Route, Rule, TenantEntry
from functions.core.policy_parser import BUILT_IN_ROUTE, parse_policy, problems
from functions.core.request import Priority
from tests.unit.core.builders import policy, policy_document
from tests.unit.core.refused import SIGNAL, tenants

LEAST = {"schema": "inferlane/policy/v1", "version": "1"}


def test_schema_and_version_alone_make_a_policy() -> None:
    """Everything else has its default."""
    assert parse_policy(LEAST) == Policy(
        version="1",
        timezone="UTC",
        zone=UTC,
        defaults=Defaults(
            order=("dedicated", "serverless"),
            deadline_ms=25_000,
            within_s=3600.0,
            tenant="anonymous",
            tier="standard",
            refuse_unknown=False,
        ),
        routes=(Route(PathPattern.of("/v1/models/{model}/invocations", ()), None),),
        tiers={"standard": Priority.NORMAL},
        tenants=(),
        signals={},
        rules=(),
        experiments=(),
        by_cost=False,
    )


def test_parts_with_nothing_in_them_are_parts_left_out() -> None:
    """`rules:` with nothing after it, as YAML reads it."""
    parts = ("timezone", "defaults", "routes", "tiers", "tenants", "signals", "rules", "experiments", "objective")
    assert parse_policy({**LEAST, **dict.fromkeys(parts)}) == parse_policy(LEAST)


def test_everything_a_policy_may_say_is_read() -> None:
    """One of each."""
    found = parse_policy(
        {
            "schema": "inferlane/policy/v1",
            "version": "7",
            "timezone": "Asia/Shanghai",
            "objective": "cost",
            "defaults": {
                "order": ["serverless"],
                "deadline_ms": 900,
                "within": "2h",
                "tenant": "guest",
                "tier": "high",
                "unknown": "refuse",
            },
            "routes": [
                {"path": "/a", "model": "m", "within": "10m"},
                {"path": "/b", "model": {"from_body": "engine"}, "prefer": "async"},
                {"path": "/c/{model}", "capture": {"share": "20%", "redact": ["/user/email", "/a~1b/~01/*/"]}},
                {"path": "/d", "model": "m", "capture": {"share": "100%", "redact": "body"}},
                {"path": "/e", "model": "m", "capture": {"share": "0%", "redact": None}},
                {"path": "/f", "model": "m", "capture": None},
            ],
            "tiers": {"low": {"max_priority": "low"}, "high": {"max_priority": "high"}},
            "tenants": [
                {"identity": "arn:*", "tenant": "t", "tier": "low", "cost_center": "ops"},
                {"claim": {"a": "x", "b": "*"}, "tenant": "u", "tier": "high"},
                {"api_key": "k-*", "tenant": "v", "tier": "high", "cost_center": None},
            ],
            "signals": {
                "hot": SIGNAL,
                "slow": {"lane": "serverless", "metric": "model_latency_p99_ms", "above": 500, "for": "30s"},
            },
            "rules": [
                {"id": "r", "when": {"tier": "low"}, "order": ["dedicated", "batch"], "within": "5m", "hedge": True},
                {"id": "s", "split": {"share": "25%", "order": ["serverless"]}},
            ],
            "experiments": [
                {
                    "id": "t",
                    "when": {"tenant": "u"},
                    "share": "50%",
                    "order": ["batch"],
                    "within": "1h",
                    "hedge": True,
                    "guard": {"max_error_rate": "1%", "max_late_rate": "0.5%"},
                },
                {"id": "u", "share": "1%", "order": ["batch"], "guard": {"max_late_rate": "2%"}},
            ],
        }
    )
    assert found == Policy(
        version="7",
        timezone="Asia/Shanghai",
        zone=ZoneInfo("Asia/Shanghai"),
        defaults=Defaults(("serverless",), 900, 7200.0, "guest", "high", refuse_unknown=True),
        routes=(
            Route(PathPattern.of("/a", ()), "m", 600.0),
            Route(PathPattern.of("/b", ()), None, None, "engine", prefer_async=True),
            Route(
                PathPattern.of("/c/{model}", ()),
                None,
                capture=Capture(0.2, (("user", "email"), ("a/b", "~1", "*", "")), bodies=True),
            ),
            Route(PathPattern.of("/d", ()), "m", capture=Capture(1.0, (), bodies=False)),
            Route(PathPattern.of("/e", ()), "m", capture=Capture(0.0)),
            Route(PathPattern.of("/f", ()), "m"),
            BUILT_IN_ROUTE,
        ),
        tiers={"low": Priority.LOW, "high": Priority.HIGH},
        tenants=(
            TenantEntry("t", "low", "ops", identity="arn:*"),
            TenantEntry("u", "high", None, claims=(("a", "x"), ("b", "*"))),
            TenantEntry("v", "high", None, api_key="k-*"),
        ),
        signals={
            "hot": Signal("dedicated", "cpu_percent", 85.0, 300.0, 70.0, 180.0),
            "slow": Signal("serverless", "model_latency_p99_ms", 500.0, 30.0, 500.0, 30.0),
        },
        rules=(
            Rule("r", TextIs("tier", "low"), ("dedicated", "batch"), 300.0, None, hedge=True),
            Rule("s", Always(), ("serverless",), None, 0.25, hedge=False),
        ),
        experiments=(
            Experiment(
                "t",
                Rule("experiment/t", TextIs("tenant", "u"), ("batch",), 3600.0, 0.5, hedge=True),
                Guard(0.01, 0.005),
            ),
            Experiment("u", Rule("experiment/u", Always(), ("batch",), None, 0.01), Guard(None, 0.02)),
        ),
        by_cost=True,
    )


def test_a_deadline_of_the_defaults_is_cut_like_any_other() -> None:
    """To 29 seconds."""
    assert policy(defaults={"deadline_ms": 29_001}).defaults.deadline_ms == 29_000
    assert policy(defaults={"deadline_ms": 1}).defaults.deadline_ms == 1


def test_values_at_their_limits_are_read() -> None:
    """The longest pattern, the longest signal, a dead band of no width, `refuse` and `serve`."""
    assert problems(policy_document(**tenants("x" * 1024))) == []
    hour = policy(signals={"s": {**SIGNAL, "for": "60m", "until_for": "60m", "until_below": 85}}).signals["s"]
    assert (hour.for_s, hour.until_for_s, hour.until_below) == (3600.0, 3600.0, 85.0)
    assert policy(defaults={"unknown": "serve"}).defaults.refuse_unknown is False


@pytest.mark.parametrize("name", ["Etc/GMT+5", "America/Argentina/Buenos_Aires", "America/Port-au-Prince", "EST5EDT"])
def test_any_zone_of_the_data_base_is_taken(name: str) -> None:
    """Up to three parts, with digits, signs and underscores."""
    assert policy(timezone=name).zone == ZoneInfo(name)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (None, Always()),
        ({}, Always()),
        ({"path": "/a/*"}, PathIs(PathPattern.of("/a/*", ()))),
        ({"model": "m"}, TextIs("model", "m")),
        ({"tenant": "t"}, TextIs("tenant", "t")),
        ({"tier": "vip"}, TextIs("tier", "vip")),
        ({"signal": "hot"}, SignalOn("hot")),
        ({"priority": "normal"}, NumberIn("priority", Range(at_least=1.0, at_most=1.0))),
        ({"priority": {"above": "low", "below": "high"}}, NumberIn("priority", Range(above=0.0, below=2.0))),
        ({"deadline_ms": {"below": 100}}, NumberIn("deadline_ms", Range(below=100.0))),
        (
            {"deadline_ms": {"at_least": "2s", "at_most": "29s"}},
            NumberIn("deadline_ms", Range(at_least=2000.0, at_most=29_000.0)),
        ),
        ({"deadline_ms": {"above": 28_999}}, NumberIn("deadline_ms", Range(above=28_999.0))),
        ({"deadline_ms": {"at_least": 29_000}}, NumberIn("deadline_ms", Range(at_least=29_000.0))),
        ({"deadline_ms": {"at_least": 0}}, NumberIn("deadline_ms", Range(at_least=0.0))),
        ({"bytes": {"above": "1KB", "at_most": 2000}}, NumberIn("bytes", Range(above=1000.0, at_most=2000.0))),
        ({"bytes": {"at_least": 5, "at_most": 5}}, NumberIn("bytes", Range(at_least=5.0, at_most=5.0))),
        ({"bytes": {"above": 5, "below": 7}}, NumberIn("bytes", Range(above=5.0, below=7.0))),
        ({"content_type": "Image/PNG"}, ContentTypeIs("image/png")),
        ({"header": {"X-A": "Yes"}}, HeaderIs("x-a", "Yes")),
        ({"header": {"X-A": "1", "x-b": "2"}}, AllOf((HeaderIs("x-a", "1"), HeaderIs("x-b", "2")))),
        ({"clock": {"from": "02:05", "to": "24:00"}}, ClockIn(125, 1440)),
        ({"clock": {"from": "24:00", "to": "05:59"}}, ClockIn(0, 359)),
        ({"weekday": ["sun", "mon", "sun"]}, WeekdayIn(frozenset({0, 6}))),
        ({"load": {"lane": "batch", "above": 0, "below": 0.5}}, LoadIn("batch", Range(above=0.0, below=0.5))),
        ({"breaker": {"lane": "external", "is": "half_open"}}, BreakerIs("external", "half_open")),
        ({"not": {"model": "m"}}, Not(TextIs("model", "m"))),
        ({"any": [{"model": "m"}]}, AnyOf((TextIs("model", "m"),))),
        ({"all": [{"model": "m"}, {}]}, AllOf((TextIs("model", "m"), Always()))),
        ({"model": "m", "tier": "vip"}, AllOf((TextIs("model", "m"), TextIs("tier", "vip")))),
    ],
)
def test_each_condition_is_read_as_what_it_asks(condition: object, expected: Condition) -> None:
    """Bounds as numbers, names without their case, times as minutes."""
    notes = Problems()
    assert parse_condition(condition, ("when",), Names(("vip",), ("hot",), notes)) == expected
    assert notes.found == []


def test_sixteen_levels_are_deep_enough() -> None:
    """The seventeenth is refused, by whichever of all, any and not it is begun."""
    for word in ("all", "any", "not"):
        condition: dict[str, object] = {"model": "m"}
        for _ in range(16):
            condition = {word: condition if word == "not" else [condition]}
        assert problems(policy_document(rules=[{"id": "r", "when": condition, "order": ["batch"]}])) == []
        condition = {word: condition if word == "not" else [condition]}
        found = problems(policy_document(rules=[{"id": "r", "when": condition, "order": ["batch"]}]))
        assert [error.cause for error in found] == ["nested more than 16 levels deep"]

"""Policy documents: what they mean, and how precisely a wrong one is refused."""

from __future__ import annotations

import contextlib
import itertools
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from functions.core.conditions import LocalTime
from functions.core.outlook import local_time
from functions.core.patterns import covers, wildcard_match
from functions.core.policy import Policy, PolicyError
from functions.core.policy_parser import parse_policy, problems
from functions.core.request import Priority
from tests.unit.core.builders import NOW, policy, policy_document, rules
from tests.unit.core.refused import REFUSED, SIGNAL, SPLIT, rule, tenants

POLICIES = Path(__file__).parents[3] / "policies"


@pytest.mark.parametrize("file", sorted(POLICIES.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_shipped_policy_is_valid(file: Path) -> None:
    """What lies in policies/ can be deployed as it is."""
    parsed = parse_policy(yaml.safe_load(file.read_text()))
    assert parsed.version
    assert parsed.model_of("/realtime/chat") == "moderation"


def test_a_model_is_named_by_the_path_or_by_the_body() -> None:
    """By neither where the path is no route, or the body does not say."""
    parsed = policy(routes=[{"path": "/v1/chat/completions", "model": {"from_body": "model"}}])
    assert parsed.model_of("/v1/chat/completions", "m") == "m"
    assert parsed.model_of("/v1/chat/completions") is None
    assert parsed.model_of("/v1/models/m/invocations", "other") == "m"
    assert parsed.model_of("/nowhere", "m") is None


def test_schema_and_version_are_enough() -> None:
    """The smallest document has the defaults of the design."""
    parsed = parse_policy({"schema": "inferlane/policy/v1", "version": "1"})
    assert parsed.defaults.order == ("dedicated", "serverless")
    assert parsed.defaults.deadline_ms == 25_000
    assert parsed.tiers == {"standard": Priority.NORMAL}
    assert (parsed.defaults.tenant, parsed.defaults.tier, parsed.timezone) == ("anonymous", "standard", "UTC")
    assert parsed.model_of("/v1/models/m/invocations") == "m"


def test_the_lowest_tier_is_the_default_one() -> None:
    """An unknown caller may ask for the least, whatever the tiers are called; of equals the first counts."""
    assert policy().defaults.tier == "internal"
    for names, lowest in (({"a": "high", "z": "low"}, "z"), ({"y": "normal", "x": "normal"}, "y")):
        tiers = {name: {"max_priority": cap} for name, cap in names.items()}
        assert policy(tiers=tiers, tenants=[]).defaults.tier == lowest


def test_routes_are_tried_in_order_and_the_built_in_one_last() -> None:
    """A document's route may name its model by a segment."""
    parsed = policy(routes=[{"path": "/a/{model}"}, {"path": "/a/**", "model": "x"}, {"path": "/b/**", "model": "y"}])
    assert [parsed.model_of(path) for path in ("/a/m", "/b", "/b/c/d", "/a/b/c")] == ["m", "y", "y", "x"]


@pytest.mark.parametrize(("parts", "place", "cause"), REFUSED)
def test_a_wrong_document_is_refused_with_place_and_cause(parts: dict[str, object], place: str, cause: str) -> None:
    """Nothing else is wrong with it; the message is the key's path and what a person reads there."""
    assert [str(error) for error in problems(policy_document(**parts))] == [f"{place}: {cause}"]
    with pytest.raises(PolicyError) as refused:
        policy(**parts)
    assert str(refused.value) == f"{place}: {cause}"


def test_all_errors_are_found_at_once_and_in_the_documents_order() -> None:
    """One look names every mistake, none twice, none that follows from another."""
    document = {
        "rules": [
            {"id": "a", "when": {"tier": "gold", "bytes": {"above": "2XB"}, "colour": 1}, "order": ["gpu"], "hedge": 1},
            {"id": "b", "order": ["dedicated"], "split": {"share": "200%", "order": []}},
            "c",
        ],
        "schema": "inferlane/policy/v1",
        "signals": {"s": {**SIGNAL, "above": "hot", "until_for": "2h", "lane": "gpu"}},
        "tiers": {"vip": {}, "low": {"max_priority": "none", "x": 1}},
        "tenants": [{"identity": "a", "api_key": "b", "tier": "x"}],
        "defaults": {"tier": "gold", "deadline_ms": 0, "unknown": "ask", "order": 1},
        "experiments": {},
        "routes": [{"path": "/a"}, {"path": "b"}],
        "objective": "speed",
        "version": 7,
    }
    assert [str(error).partition(": ")[0] for error in problems(document)] == [
        "rules[0].when.tier",
        "rules[0].when.bytes.above",
        "rules[0].when.colour",
        "rules[0].order[0]",
        "rules[0].hedge",
        "rules[1].order",
        "rules[1].split.share",
        "rules[1].split.order",
        "rules[2]",
        "signals.s.lane",
        "signals.s.above",
        "signals.s.until_for",
        "tiers.vip",
        "tiers.low.max_priority",
        "tiers.low.x",
        "tenants[0].tier",
        "tenants[0]",
        "tenants[0]",
        "defaults.tier",
        "defaults.deadline_ms",
        "defaults.unknown",
        "defaults.order",
        "experiments",
        "routes[0]",
        "routes[1].path",
        "objective",
        "version",
    ]
    with pytest.raises(PolicyError, match=r"^rules\[0\]\.when\.tier"):
        parse_policy(document)


@pytest.mark.parametrize(
    "identities",
    [("abc", "a*"), ("a?", "a*"), ("a*b", "a*"), ("*a", "a*"), ("a*c", "ab"), ("?", "*"), ("a", "b")],
)
def test_a_tenants_pattern_that_still_catches_something_is_fine(identities: tuple[str, str]) -> None:
    """Only what an earlier pattern wholly covers is never reached."""
    assert problems(policy_document(**tenants(*identities))) == []


@pytest.mark.many
def test_thousands_of_tenants_are_checked_in_a_moment() -> None:
    """By role, by key and by claim; the one that is covered is found among them."""
    entries: list[dict[str, object]] = [{"identity": f"arn:aws:iam::*:role/team-{i}-*"} for i in range(2_000)]
    entries += [{"api_key": f"*-{i:04}-*"} for i in range(2_000)]
    entries += [{"claim": {"client_id": f"app-{i}", "aud": "*"}} for i in range(2_000)]
    entries += [{"identity": "arn:aws:iam::1:role/team-7-x"}, {"claim": {"aud": "x", "client_id": "app-9", "sub": "?"}}]
    entries += [{"claim": {"client_id": "app-9"}}, {"api_key": "*"}, {"api_key": "?*"}]
    began = time.perf_counter()
    found = problems(policy_document(tenants=[{**entry, "tenant": "t", "tier": "vip"} for entry in entries]))
    assert [str(error) for error in found] == [
        "tenants[6000]: never reached: tenants[7] covers it",
        "tenants[6001]: never reached: tenants[4009] covers it",
        "tenants[6004]: never reached: tenants[6003] covers it",
    ]
    assert time.perf_counter() - began < 5


def test_an_error_lists_some_of_very_many_choices() -> None:
    """A line stays a line."""
    tiers = {f"t{i}": {"max_priority": "low"} for i in range(25)}
    found = problems(policy_document(tiers=tiers, tenants=[{"api_key": "a", "tenant": "t", "tier": "x" * 99}]))
    assert found[0].cause == f"unknown tier {'x' * 60!r} (known: {', '.join(list(tiers)[:20])} and 5 more)"


GLOBS = st.text("ab*?", max_size=5)


@given(GLOBS, GLOBS)
def test_covering_is_what_matching_says(wide: str, narrow: str) -> None:
    """Over every text of up to five of a, b and a third letter, and one that the answer depends on."""
    texts = ["".join(letters) for n in range(6) for letters in itertools.product("abz", repeat=n)]
    told = all(wildcard_match(wide, text) for text in texts if wildcard_match(narrow, text))
    if covers(wide, narrow):
        assert told
    elif len(wide) + len(narrow) <= 5:
        assert not told


QUESTIONS = st.one_of(
    st.builds(lambda glob: {"identity": glob}, GLOBS.filter(bool)),
    st.builds(lambda glob: {"api_key": glob}, GLOBS.filter(bool)),
    st.builds(lambda claims: {"claim": claims}, st.dictionaries(st.sampled_from("xy"), GLOBS.filter(bool), min_size=1)),
)


@given(st.lists(QUESTIONS, max_size=6))
def test_covered_entries_are_found_as_if_each_were_compared_with_each(asked: list[dict[str, object]]) -> None:
    """The index leaves nothing out."""

    def taken(by: dict[str, object], entry: dict[str, object]) -> bool:
        wide, narrow = (one.get("claim", one) for one in (by, entry))
        same = ("claim" in by) == ("claim" in entry)
        return same and all(name in narrow and covers(text, narrow[name]) for name, text in wide.items())  # type: ignore[attr-defined,operator,index]

    found = problems(policy_document(tenants=[{**entry, "tenant": "t", "tier": "vip"} for entry in asked]))
    expected = [i for i, entry in enumerate(asked) if any(taken(by, entry) for by in asked[:i])]
    assert [error.path for error in found] == [("tenants", i) for i in expected]


def test_splits_with_one_condition_are_not_unreachable() -> None:
    """Three weights over the same requests; only a rule that takes all ends it."""
    weights = [{"id": f"w{i}", "when": {"tier": "vip"}, "split": SPLIT} for i in range(3)]
    last = {"id": "rest", "when": {"tier": "vip"}, "order": ["dedicated"]}
    assert problems(policy_document(rules=[*weights, last])) == []
    again = problems(policy_document(rules=[*weights, last, {**last, "id": "again"}]))
    assert [str(error) for error in again] == ["rules[4].when: never reached: rule 'rest' has the same condition"]


def test_the_same_condition_in_another_order_is_the_same() -> None:
    """Keys and parts of all and any have no order."""
    first = {"tier": "vip", "any": [{"model": "a"}, {"not": {"model": "b"}}]}
    second = {"all": [{"any": [{"not": {"model": "b"}}, {"model": "a"}]}, {"tier": "vip"}, {}]}
    found = problems(policy_document(rules=rules((first, ["dedicated"]), (second, ["serverless"]))))
    assert [error.cause for error in found] == ["never reached: rule 'r0' has the same condition"]


@pytest.mark.parametrize(
    "second",
    [
        {"not": {"tenant": "b"}},
        {"any": [{"tenant": "a"}, {"tenant": "c"}]},
        {"any": [{"tenant": "a"}]},
        {"all": [{"tenant": "a"}, {"model": "m"}]},
    ],
)
def test_different_conditions_are_different(second: dict[str, object]) -> None:
    """Neither the words nor the number of parts alone make two alike."""
    first = [
        {"not": {"tenant": "a"}},
        {"any": [{"tenant": "a"}, {"tenant": "b"}]},
        {"all": [{"tenant": "a"}, {"tier": "vip"}]},
    ]
    for one in first:
        assert problems(policy_document(rules=rules((one, ["dedicated"]), (second, ["serverless"])))) == []


def test_a_policys_time_zone_comes_with_its_data() -> None:
    """Deciding reads no file; UTC needs none at all."""
    assert local_time(NOW, policy(timezone="Asia/Shanghai").zone) == LocalTime(0, 9 * 60)
    assert local_time(NOW, policy().zone) == LocalTime(0, 60)
    assert local_time(1e300, policy().zone) is None


@pytest.mark.parametrize("document", [None, [], "x", {}, {"schema": "inferlane/policy/v2"}, {1: 2}])
def test_what_is_no_policy_at_all_is_refused(document: object) -> None:
    """Anything but a mapping of the right schema."""
    with pytest.raises(PolicyError):
        parse_policy(document)


def test_nesting_without_end_is_refused() -> None:
    """A thousand levels of `not` are an error, not a crash."""
    condition: dict[str, object] = {"tenant": "a"}
    for _ in range(1000):
        condition = {"not": condition}
    with pytest.raises(PolicyError, match="nested more than 16 levels"):
        policy(**rule(when=condition))


def test_duplicate_rules_are_refused() -> None:
    """Two rules of one id could not be told apart in a receipt."""
    twice = [{"id": "r", "when": {"tenant": name}, "order": ["dedicated"]} for name in ("a", "b")]
    with pytest.raises(PolicyError, match=r"rules\[1\]\.id: 'r' is given twice \(first at rules\[0\]\)"):
        policy(rules=twice)


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = [
    *("experiments", "share", "split", "guard", "clock", "weekday", "breaker", "from", "to", "hedge", "prefer", "all"),
    *("capture", "redact"),
    *("schema", "version", "defaults", "routes", "tiers", "tenants", "signals", "rules", "order", "when", "id", "path"),
    *("model", "lane", "metric", "above", "for", "load", "any", "not", "priority", "bytes", "header"),
]
WORDS = ["dedicated", "serverless", "low", "5m", "2MB", "/a/{b}", "hot", "cpu_percent", "inferlane/policy/v1"]
near_miss = st.recursive(
    st.sampled_from(WORDS) | st.integers(-1, 100) | st.none(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@given(st.one_of(json_like, near_miss))
def test_any_json_like_value_is_a_policy_or_a_clean_error(value: object) -> None:
    """Parsing raises nothing but PolicyError."""
    for document in (value, {**policy_document(), "rules": value}, {**policy_document(), "signals": value}):
        with contextlib.suppress(PolicyError):
            assert isinstance(parse_policy(document), Policy)


@given(st.dictionaries(st.sampled_from(KEYS), near_miss, max_size=4))
def test_any_condition_is_read_or_refused_cleanly(condition: dict[str, object]) -> None:
    """A rule's `when` raises nothing but PolicyError."""
    with contextlib.suppress(PolicyError):
        assert isinstance(policy(**rule(when=condition)), Policy)

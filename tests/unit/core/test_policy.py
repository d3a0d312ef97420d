"""Policy documents: what they mean, and how precisely a wrong one is refused."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from functions.core.policy import Policy, PolicyError
from functions.core.policy_parser import parse_policy
from functions.core.request import Priority
from tests.unit.core.builders import policy, policy_document

POLICIES = Path(__file__).parents[3] / "policies"
SIGNAL = {"lane": "dedicated", "metric": "cpu_percent", "above": 85, "for": "5m", "until_below": 70, "until_for": "3m"}


def rule(**parts: object) -> dict[str, object]:
    return {"rules": [{"id": "r", "order": ["dedicated"], **parts}]}


def when(**condition: object) -> dict[str, object]:
    return rule(when=condition)


@pytest.mark.parametrize("file", sorted(POLICIES.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_shipped_policy_is_valid(file: Path) -> None:
    """What lies in policies/ can be deployed as it is."""
    parsed = parse_policy(yaml.safe_load(file.read_text()))
    assert parsed.version
    assert parsed.model_of("/realtime/chat") == "moderation"


def test_schema_and_version_are_enough() -> None:
    """The smallest document has the defaults of the design."""
    parsed = parse_policy({"schema": "inferlane/policy/v1", "version": "1"})
    assert parsed.defaults.order == ("dedicated", "serverless")
    assert parsed.defaults.deadline_ms == 25_000
    assert parsed.tiers == {"standard": Priority.NORMAL}
    assert (parsed.defaults.tenant, parsed.defaults.tier, parsed.timezone) == ("anonymous", "standard", "UTC")
    assert parsed.model_of("/v1/models/m/invocations") == "m"


def test_the_lowest_tier_is_the_default_one() -> None:
    """An unknown caller may ask for the least."""
    assert policy().defaults.tier == "internal"


def test_routes_are_tried_in_order_and_the_built_in_one_last() -> None:
    """A document's route may name its model by a segment."""
    parsed = policy(routes=[{"path": "/a/{model}"}, {"path": "/a/**", "model": "x"}, {"path": "/b/**", "model": "y"}])
    assert [parsed.model_of(path) for path in ("/a/m", "/b", "/b/c/d", "/a/b/c")] == ["m", "y", "y", "x"]


@pytest.mark.parametrize(
    ("parts", "place", "cause"),
    [
        ({"rulez": []}, "rulez", "unknown key"),
        ({"objective": "speed"}, "objective", "unknown objective 'speed'"),
        ({"version": 1}, "version", "expected text, found a number"),
        ({"timezone": "Mars/../Base"}, "timezone", "no time zone name"),
        ({"defaults": {"order": ["gpu"]}}, "defaults.order[0]", "unknown lane 'gpu'"),
        ({"defaults": {"order": []}}, "defaults.order", "at least one lane"),
        ({"defaults": {"order": ["dedicated", "dedicated"]}}, "defaults.order[1]", "given twice"),
        ({"defaults": {"deadline_ms": 0}}, "defaults.deadline_ms", "at least 1"),
        ({"defaults": {"deadline_ms": 10**400}}, "defaults.deadline_ms", "finite"),
        ({"defaults": {"within": "soon"}}, "defaults.within", "a duration such as"),
        ({"defaults": {"tier": "gold"}}, "defaults.tier", "unknown tier 'gold'"),
        ({"defaults": {"unknown": "maybe"}}, "defaults.unknown", "serve, refuse"),
        ({"tiers": {"a": {"max_priority": "urgent"}}, "tenants": []}, "tiers.a.max_priority", "low, normal, high"),
        ({"tenants": [{"tenant": "t", "tier": "vip"}]}, "tenants[0]", "exactly one of identity, claim, api_key"),
        ({"tenants": [{"api_key": "*", "tenant": "t", "tier": "gold"}]}, "tenants[0].tier", "unknown tier"),
        ({"tenants": [{"claim": {}, "tenant": "t", "tier": "vip"}]}, "tenants[0].claim", "a claim's name"),
        ({"routes": [{"path": "chat", "model": "m"}]}, "routes[0].path", "starts with /"),
        ({"routes": [{"path": "/a/**/b", "model": "m"}]}, "routes[0].path", "at the end"),
        ({"routes": [{"path": "/a"}]}, "routes[0]", "no {model} segment"),
        ({"signals": {"s": {**SIGNAL, "metric": "cpu"}}}, "signals.s.metric", "unknown metric 'cpu'"),
        ({"signals": {"s": {**SIGNAL, "until_below": 90}}}, "signals.s.until_below", "must not exceed"),
        ({"signals": {"s": {**SIGNAL, "for": "61m"}}}, "signals.s.for", "at most 60m"),
        ({"signals": {"s": {**SIGNAL, "for": "0s"}}}, "signals.s.for", "above zero"),
        ({"signals": {"s": {**SIGNAL, "for": 300}}}, "signals.s.for", "a duration such as"),
        ({"rules": {}}, "rules", "expected a list, found a mapping"),
        ({"rules": [{"order": ["dedicated"]}]}, "rules[0]", "'id' is missing"),
        ({"rules": [{"id": "r"}]}, "rules[0]", "'order' is missing"),
        (rule(id="default"), "rules[0].id", "reserved"),
        (rule(when=[]), "rules[0].when", "expected a mapping, found a list"),
        (when(colour="red"), "rules[0].when.colour", "unknown key"),
        (when(signal="hot"), "rules[0].when.signal", "unknown signal 'hot'"),
        (when(tier="gold"), "rules[0].when.tier", "unknown tier 'gold'"),
        (when(priority="urgent"), "rules[0].when.priority", "unknown priority"),
        (when(priority={"at_most": 1}), "rules[0].when.priority.at_most", "expected text"),
        (when(deadline_ms={}), "rules[0].when.deadline_ms", "above, below"),
        (when(deadline_ms=100), "rules[0].when.deadline_ms", "expected a mapping"),
        (when(bytes={"above": "2XB"}), "rules[0].when.bytes.above", "unknown unit 'XB'"),
        (when(bytes={"above": "2MB", "below": "1MB"}), "rules[0].when.bytes", "no value lies within"),
        (when(load={"above": 0.8}), "rules[0].when.load", "'lane' is missing"),
        (when(load={"lane": "gpu", "above": 1}), "rules[0].when.load.lane", "unknown lane"),
        (when(header={"Authorization": "x"}), "rules[0].when.header.Authorization", "credentials"),
        (when(header={}), "rules[0].when.header", "a header name"),
        (when(all=[]), "rules[0].when.all", "at least one condition"),
        (when(any=[{"tenant": "a"}, {"colour": 1}]), "rules[0].when.any[1].colour", "unknown key"),
        (when(**{"not": {"tier": "gold"}}), "rules[0].when.not.tier", "unknown tier"),
    ],
)
def test_a_wrong_document_is_refused_with_place_and_cause(parts: dict[str, object], place: str, cause: str) -> None:
    """The message begins with the key's path and says what is wrong."""
    with pytest.raises(PolicyError) as refused:
        policy(**parts)
    assert str(refused.value).startswith(f"{place}: ")
    assert cause in str(refused.value)


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

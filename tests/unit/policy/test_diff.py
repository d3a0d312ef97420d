"""What two policies differ in, and which decisions change between them."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from functions.core.decide import decide
from functions.core.decider import Decider
from functions.core.decision import Decision
from functions.core.receipt import Receipt
from functions.core.request import Request
from functions.core.snapshot import Snapshot
from tests.unit.core.builders import NOW, PATH, policy, policy_document, request, rules, topology
from workbench.policy.contracts import Record
from workbench.policy.diff import Change, changes
from workbench.policy.replay import SHOWN, Comparison, Scene, compare, read, stand_in

SCENE = Scene(topology(), Snapshot(None), NOW)


def said(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    return [str(change) for change in changes(before, after)]


def ruled(*texts: str) -> dict[str, object]:
    """A document with these rules, each as YAML flow."""
    return {"version": "a", "rules": [yaml.safe_load(text) for text in texts]}


def test_a_document_does_not_differ_from_itself() -> None:
    """No change, whatever is in it."""
    assert changes(policy_document(), policy_document()) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("{id: a, within: 1h, order: [batch]}", "{id: a, within: 60m, order: [batch]}"),
        ("{id: a, when: {bytes: {above: 2MB}}}", "{id: a, when: {bytes: {above: 2000000}}}"),
        ("{id: a, when: {deadline_ms: {below: 1s}}}", "{id: a, when: {deadline_ms: {below: 1000}}}"),
        ("{id: a, when: {}}", "{id: a}"),
        ("{id: a, when: {header: {X-Canary: y}}}", "{id: a, when: {header: {x-canary: y}}}"),
        ("{id: a, when: {weekday: [sat, sun]}}", "{id: a, when: {weekday: [sun, sat]}}"),
        ("{id: a, split: {share: 10%, order: [batch]}}", "{id: a, split: {share: 10.0%, order: [batch]}}"),
    ],
)
def test_what_means_the_same_is_no_difference(one: str, other: str) -> None:
    """Durations, sizes, shares, header names: the meaning counts, not the spelling."""
    assert said(ruled(one), ruled(other)) == []


def test_differences_are_told_by_name_and_field() -> None:
    """Version, defaults, tiers, tenants, signals, routes and rules, each in its own words."""
    before = policy_document(
        version="1",
        defaults={"deadline_ms": 25000},
        signals={"hot": {"above": 85, "for": "5m"}, "gone": {"above": 1}},
        routes=[{"path": "/a", "model": "m"}],
        rules=[{"id": "tight", "when": {"deadline_ms": {"below": 100}}, "order": ["dedicated"]}],
        tiers={"vip": {"max_priority": "high"}},
        tenants=[{"api_key": "vip-*", "tenant": "vip", "tier": "vip"}],
    )
    after = policy_document(
        version="2",
        defaults={"deadline_ms": 20000},
        signals={"hot": {"above": 80, "for": "300s"}},
        routes=[{"path": "/a", "model": "n"}, {"path": "/b", "model": "m"}],
        rules=[{"id": "tight", "when": {"deadline_ms": {"below": 200}}, "order": ["dedicated"]}],
        tiers={"vip": {"max_priority": "normal"}},
        tenants=[{"api_key": "vip-*", "tenant": "gold", "tier": "vip"}],
    )
    assert said(before, after) == [
        "version: 1 -> 2",
        "defaults.deadline_ms: 25000 -> 20000",
        "tier vip.max_priority: high -> normal",
        'signal gone: removed: {"above": 1}',
        "signal hot.above: 85 -> 80",
        "tenant api_key vip-*.tenant: vip -> gold",
        "route /a.model: m -> n",
        'route /b: added: {"path": "/b", "model": "m"}',
        'rule tight.when: {"deadline_ms": {"below": 100}} -> {"deadline_ms": {"below": 200}}',
    ]


def test_the_order_of_rules_counts() -> None:
    """One rule moved to the front is one change, not three."""
    before = ruled("{id: a}", "{id: b}", "{id: c}")
    after = ruled("{id: c}", "{id: a}", "{id: b}")
    assert said(before, after) == ["rule c: moved from place 3 to 1"]


@given(st.permutations("abcdef"))
def test_moving_what_is_called_moved_explains_the_order(order: list[str]) -> None:
    """Without the rules called moved, both documents have the rest in one order."""
    before, after = ruled(*(f"{{id: {c}}}" for c in "abcdef")), ruled(*(f"{{id: {c}}}" for c in order))
    moved = {change.name for change in changes(before, after)}
    assert [c for c in order if c not in moved] == sorted(set("abcdef") - moved)


def test_two_entries_of_one_name_are_told_apart() -> None:
    """Routes may repeat a path; each is compared with its own counterpart."""
    twice = {"version": "a", "routes": [{"path": "/a", "model": "m"}, {"path": "/a", "model": "n"}]}
    once = {"version": "a", "routes": [{"path": "/a", "model": "m"}]}
    assert changes(once, twice) == [Change("added", "route", "/a #2", None, None, {"path": "/a", "model": "n"})]


OLD = policy(rules=rules(({"priority": "low"}, ["serverless", "dedicated"])))
NEW = policy(rules=rules(({"priority": "low"}, ["dedicated"]), ({"bytes": {"above": 1000}}, ["serverless"])))


def asked(**parts: object) -> Record:
    return Record(
        "requests.jsonl:1",
        {
            "schema": "inferlane/request/v1",
            "path": PATH,
            "identity": {"kind": "api_key", "key_id": "demo-app"},
            **parts,
        },
    )


def test_changed_decisions_are_counted_by_kind() -> None:
    """Requests with the same change under the same rules are one kind, with an example."""
    low = {"x-inferlane-priority": "low"}
    records = [asked(id="1", headers=low), asked(id="2"), asked(id="3", headers=low), asked(id="4", bytes=2000)]
    found = compare(records, OLD, NEW, SCENE)
    assert (found.requests, found.changed, found.skipped) == (4, 3, 0)
    told = [(str(kind), number, found.examples[kind]) for kind, number in found.most_common()]
    assert told == [
        ("order [serverless, dedicated] -> [dedicated] (rule r0)", 2, "1"),
        ("order [dedicated, serverless] -> [serverless] (rule default -> r1)", 1, "4"),
    ]
    json.dumps(found.to_json())


def test_kinds_beyond_the_shown_are_still_counted() -> None:
    """A comparison keeps a bounded number of kinds, and counts every change."""
    found = Comparison()
    for i in range(SHOWN + 5):
        before, after = (decide(request(), SCENE.snapshot, p, SCENE.topology, NOW) for p in (OLD, OLD))
        found.add(str(i), before, _with_deadline(after, i + 1))
    assert (found.changed, len(found.kinds)) == (SHOWN + 5, SHOWN)


def _with_deadline(decision: Decision, deadline_ms: int) -> Decision:
    from dataclasses import replace

    return replace(decision, deadline_ms=deadline_ms)


def receipt(of: Request) -> dict[str, object]:
    """The receipt of a request decided by the old policy, as the router writes it."""
    at = 1_796_090_400.0
    made = Receipt(
        request=of,
        headers=Decider(OLD, SCENE.topology).looked_at(of.headers),
        at=at,
        decision=decide(of, SCENE.snapshot, OLD, SCENE.topology, NOW),
        attempts=(),
        status=200,
        lane=None,
        latency_s=0.1,
        decide_s=0.0,
        bytes_out=0,
        cost_usd=0.0,
        counterfactual_usd={},
        snapshot_age_s=None,
    )
    return made.to_json()


@pytest.mark.parametrize(
    "identity",
    [
        {"kind": "api_key", "key_id": "vip-app"},
        {"kind": "jwt", "claims": {"client_id": "acme"}},
        {"kind": "iam", "arn": "arn:aws:iam::123456789012:role/ops-night"},
        {"kind": "anonymous"},
    ],
)
def test_a_receipt_stands_for_its_request(identity: dict[str, object]) -> None:
    """Tenant, tier, priority, deadline and size come back from the receipt: the old policy decides the same."""
    headers = {"x-inferlane-priority": "high", "x-inferlane-deadline-ms": "900"}
    original = request(identity=identity, headers=headers, bytes=4711)
    found = read(receipt(original), OLD)
    assert found is not None
    rebuilt, at = found
    assert at == 1_796_090_400.0
    first, again = (decide(r, SCENE.snapshot, OLD, SCENE.topology, NOW).to_json() for r in (original, rebuilt))
    assert first == again


def test_a_tenant_that_is_gone_is_skipped() -> None:
    """Nobody can stand for a tenant that the old policy does not know."""
    made = receipt(request())
    stranger = {**made, "decision": {**made["decision"], "tenant": "left"}}  # type: ignore[dict-item]
    found = compare([Record("r:1", made), Record("r:2", stranger)], OLD, NEW, SCENE)
    assert (found.requests, found.skipped) == (2, 1)
    assert stand_in(OLD, "left", "vip", None) is None
    assert stand_in(OLD, "vip", "gone", "growth") is None

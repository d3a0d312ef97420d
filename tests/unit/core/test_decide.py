"""decide: which lanes, by which rule, with which reasons."""

from __future__ import annotations

import time

import pytest

from functions.core.decide import decide
from functions.core.decision import Decision, Rejected
from functions.core.policy import Policy
from functions.core.request import Priority, Request
from functions.core.snapshot import Snapshot
from functions.core.topology import Topology
from tests.unit.core.builders import (
    DEDICATED,
    IDLE,
    NOW,
    SERVERLESS,
    lane,
    points,
    policy,
    policy_document,
    request,
    rules,
    snapshot,
    topology,
)

SIGNALS = {
    "hot": {
        "lane": "dedicated",
        "metric": "cpu_percent",
        "above": 85,
        "for": "5m",
        "until_below": 70,
        "until_for": "3m",
    }
}


def choose(
    asked: Request | None = None,
    seen: Snapshot = IDLE,
    by: Policy | None = None,
    on: Topology | None = None,
    now: float = NOW,
) -> Decision:
    return decide(asked or request(), seen, by or policy(), on or topology(), now)


def reasons(decision: Decision) -> dict[str, str]:
    return {item.lane: item.reason for item in decision.rejected}


def test_without_rules_the_default_order_holds() -> None:
    """No rule: dedicated first, serverless behind it, rule `default`."""
    decision = choose()
    assert (decision.order, decision.rule, decision.shed) == (("dedicated", "serverless"), "default", None)
    assert (decision.tenant, decision.tier, decision.deadline_ms) == ("demo", "standard", 25_000)


def test_the_first_true_rule_wins() -> None:
    """Two rules hold: the earlier one decides."""
    by = policy(
        rules=rules(({"tenant": "acme"}, ["dedicated"]), ({"tenant": "demo"}, ["serverless"]), ({}, ["dedicated"]))
    )
    decision = choose(by=by)
    assert (decision.rule, decision.order) == ("r1", ("serverless",))
    assert decision.rejected == (Rejected("dedicated", "not in rule"),)


def test_an_unknown_condition_does_not_match_and_is_told() -> None:
    """Stale metrics: the rule on them is passed over and listed as unknown, whether negated or not."""
    by = policy(
        signals=SIGNALS, rules=rules(({"signal": "hot"}, ["serverless"]), ({"not": {"signal": "hot"}}, ["dedicated"]))
    )
    decision = choose(by=by, seen=snapshot(taken_at=NOW - 601, dedicated=lane()))
    assert (decision.rule, decision.unknown, decision.latches) == ("default", ("r0", "r1"), {"hot": None})


def test_a_hot_lane_sheds_low_priority_only() -> None:
    """Five minutes above 85 %: low priority goes to serverless, normal stays on the GPU."""
    by = policy(signals=SIGNALS, rules=rules(({"signal": "hot", "priority": "low"}, ["serverless", "dedicated"])))
    hot = snapshot(dedicated=lane({"cpu_percent": points(*[91.0] * 5)}), serverless=lane())
    low = request(headers={"X-Inferlane-Priority": "low"})
    assert choose(low, hot, by).order == ("serverless", "dedicated")
    assert choose(request(), hot, by).order == ("dedicated", "serverless")
    nearly = snapshot(dedicated=lane({"cpu_percent": points(*[91.0] * 4)}), serverless=lane())
    assert choose(low, nearly, by).order == ("dedicated", "serverless")


@pytest.mark.parametrize(
    ("asked", "tier_key", "granted"),
    [("high", "vip-1", "high"), ("high", "demo-1", "normal"), (None, "demo-1", "normal"), ("low", "vip-1", "low")],
)
def test_the_tier_caps_what_is_asked(asked: str | None, tier_key: str, granted: str) -> None:
    """Asked and granted are both told; granted never exceeds the tier."""
    headers = {"x-inferlane-priority": asked} if asked else {}
    decision = choose(request(headers=headers, identity={"kind": "api_key", "key_id": tier_key}))
    assert decision.to_json()["priority"] == {"asked": asked, "granted": granted}


def test_an_internal_caller_is_low_even_when_it_asks_nothing() -> None:
    """No priority asked: normal, capped by the tier."""
    decision = choose(request(identity={"kind": "iam", "arn": "arn:aws:sts::1:assumed-role/ops-night/job"}))
    assert (decision.tenant, decision.granted) == ("backoffice", Priority.LOW)


def test_deadlines_are_cut_to_what_the_gateway_can_hold() -> None:
    """A minute asked is 29 seconds granted."""
    assert choose(request(headers={"x-inferlane-deadline-ms": "60000"})).deadline_ms == 29_000
    assert choose(request(headers={"x-inferlane-deadline-ms": "90"})).deadline_ms == 90


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        ({"x-inferlane-priority": "urgent"}, "X-Inferlane-Priority"),
        ({"x-inferlane-deadline-ms": "soon"}, "X-Inferlane-Deadline-Ms"),
        ({"x-inferlane-deadline-ms": "0"}, "X-Inferlane-Deadline-Ms"),
        ({"x-inferlane-deadline-ms": "-5"}, "X-Inferlane-Deadline-Ms"),
        ({"x-inferlane-deadline-ms": "٣"}, "X-Inferlane-Deadline-Ms"),
        ({"prefer": "=oops"}, "Prefer"),
    ],
)
def test_a_malformed_wish_is_400(headers: dict[str, str], named: str) -> None:
    """The refusal names the header."""
    shed = choose(request(headers=headers)).shed
    assert shed is not None
    assert shed.status == 400
    assert named in shed.reason


def test_a_preference_that_no_lane_can_honour_is_ignored() -> None:
    """respond-async without a batch lane: answered synchronously."""
    assert choose(request(headers={"prefer": "respond-async, wait=10"})).shed is None


def test_unknown_path_and_model_are_404() -> None:
    """Neither a route nor a model: nothing to try."""
    for path in ("/nowhere", "/v1/models/nothing/invocations", "/v1/models//invocations"):
        shed = choose(request(path=path)).shed
        assert shed is not None
        assert shed.status == 404


def test_an_unknown_identity_is_refused_where_the_policy_says_so() -> None:
    """`unknown: refuse` is 403; otherwise the caller is `anonymous` in the lowest tier."""
    stranger = request(identity={"kind": "api_key", "key_id": "stranger"})
    served = choose(stranger)
    assert (served.tenant, served.tier) == ("anonymous", "internal")
    refused = choose(stranger, by=policy(defaults={"unknown": "refuse"}))
    assert refused.shed is not None
    assert refused.shed.status == 403


def test_absent_lanes_are_named() -> None:
    """A rule may name batch before the stage has it; an external lane that nothing executes is no lane yet."""
    by = policy(rules=rules(({}, ["batch", "serverless"])))
    assert reasons(choose(by=by)) == {"batch": "not in this stage", "dedicated": "not in rule"}
    on = topology(dedicated=DEDICATED, serverless=SERVERLESS, external={"kind": "external"})
    assert reasons(choose(on=on)) == {"external": "not in this stage"}
    assert reasons(choose(on=on, by=policy(defaults={"order": ["external", "serverless"]}))) == {
        "external": "not in this stage",
        "dedicated": "not in rule",
    }


def test_what_is_too_large_for_one_lane_goes_to_the_other() -> None:
    """5 MB passes serverless by; 7 MB fits nowhere and is 413 with the limit."""
    decision = choose(request(bytes=5_000_000))
    assert decision.order == ("dedicated",)
    assert "exceeds" in reasons(decision)["serverless"]
    shed = choose(request(bytes=7_000_000)).shed
    assert shed is not None
    assert (shed.status, shed.retry_after_s) == (413, None)
    assert "6291456" in shed.reason


def test_size_alone_must_drop_every_lane_for_413() -> None:
    """One lane too small and the other's breaker open: come back later."""
    seen = snapshot(dedicated=lane(breaker="open"), serverless=lane())
    shed = choose(request(bytes=5_000_000), seen).shed
    assert shed is not None
    assert (shed.status, shed.retry_after_s) == (429, 1)


def test_content_types_a_lane_does_not_serve_drop_it() -> None:
    """Patterns, without regard to case and parameters; absent means any."""
    on = topology(dedicated={**DEDICATED, "content_types": ["image/*"]}, serverless=SERVERLESS)
    assert choose(request(content_type="Image/PNG; q=1"), on=on).order == ("dedicated", "serverless")
    assert reasons(choose(request(content_type="text/plain"), on=on)) == {
        "dedicated": "content type text/plain is not served"
    }


def test_an_open_breaker_drops_its_lane_and_all_open_is_503() -> None:
    """half_open stays in the order."""
    one = snapshot(dedicated=lane(breaker="open"), serverless=lane(breaker="half_open"))
    assert choose(seen=one).order == ("serverless",)
    shed = choose(seen=snapshot(dedicated=lane(breaker="open"), serverless=lane(breaker="open"))).shed
    assert shed is not None
    assert shed.status == 503
    assert shed.retry_after_s


@pytest.mark.parametrize(
    ("in_flight", "instances", "dropped"), [(31, 4, False), (32, 4, True), (99, 3, False), (100, None, False)]
)
def test_dedicated_is_used_up_at_twice_its_slots_at_full_size(
    in_flight: int, instances: int | None, dropped: bool
) -> None:
    """Below the maximum of instances it can still grow."""
    decision = choose(seen=snapshot(dedicated=lane(in_flight=in_flight, instances=instances), serverless=lane()))
    assert ("dedicated" not in decision.order) is dropped


def test_serverless_is_used_up_at_its_concurrency() -> None:
    """20 of 20 in flight: the 21st would only be throttled."""
    by = policy(defaults={"order": ["serverless", "dedicated"]})
    assert choose(seen=snapshot(dedicated=lane(), serverless=lane(in_flight=20)), by=by).order == ("dedicated",)
    assert choose(seen=snapshot(dedicated=lane(), serverless=lane(in_flight=19)), by=by).order[0] == "serverless"


def test_a_lane_too_slow_for_the_deadline_is_dropped() -> None:
    """Largest of the last five P99 points plus overhead against the deadline."""
    slow = lane({"model_latency_p99_ms": points(9_999.0, 50.0, 50.0, 95.0, 50.0, 50.0)})
    hurried = request(headers={"x-inferlane-deadline-ms": "100"})
    decision = choose(hurried, snapshot(dedicated=slow, serverless=lane()))
    assert reasons(decision) == {"dedicated": "predicted P99 105 ms exceeds the deadline of 100 ms"}
    assert decision.predicted["dedicated"].p99_ms == 105.0


def test_a_cold_serverless_lane_is_predicted_with_its_cold_start() -> None:
    """No invocation in ten minutes adds cold_start_ms; one invocation removes it."""
    series = {"model_latency_p99_ms": points(400.0, *[400.0] * 11), "invocations": points(3.0, *[0.0] * 11)}
    cold = choose(seen=snapshot(serverless=lane(series)))
    assert cold.predicted["serverless"].p99_ms == 6_410.0
    warm = choose(seen=snapshot(serverless=lane({**series, "invocations": points(1.0)})))
    assert warm.predicted["serverless"].p99_ms == 410.0


def test_without_data_the_topologys_expectation_counts() -> None:
    """expected_p99_ms drops a lane; without it nothing is known and nothing is dropped."""
    on = topology(dedicated={**DEDICATED, "expected_p99_ms": 500}, serverless=SERVERLESS)
    decision = choose(request(headers={"x-inferlane-deadline-ms": "100"}), on=on)
    assert decision.order == ("serverless",)


def test_an_idle_slot_costs_nothing_and_a_full_lane_the_next_instance() -> None:
    """Marginal cost: 0 with a free slot, else a whole instance's time; serverless its own time."""
    times = {"model_latency_p50_ms": points(100.0)}
    free = choose(seen=snapshot(dedicated=lane(times, in_flight=3), serverless=lane(times)))
    assert free.predicted["dedicated"].cost_usd == 0.0
    assert free.predicted["serverless"].cost_usd == pytest.approx(0.1 * 0.00008)
    full = choose(seen=snapshot(dedicated=lane(times, in_flight=4), serverless=lane(times)))
    assert full.predicted["dedicated"].cost_usd == pytest.approx(0.1 * 1.408 / 3600)


def test_load_is_the_larger_of_known_and_measured() -> None:
    """Above 0.8 on either sheds; unknown metrics leave what is in flight as a lower bound."""
    by = policy(rules=rules(({"load": {"lane": "dedicated", "above": 0.8}}, ["serverless"])))
    measured = snapshot(dedicated=lane({"concurrency": points(1.0, 4.0)}, in_flight=0), serverless=lane())
    assert choose(seen=measured, by=by).rule == "r0"
    own = snapshot(taken_at=NOW - 900, dedicated=lane(in_flight=4), serverless=lane())
    assert choose(seen=own, by=by).rule == "r0"
    blind = snapshot(taken_at=NOW - 900, dedicated=lane(in_flight=1), serverless=lane())
    decision = choose(seen=blind, by=by)
    assert (decision.rule, decision.unknown) == ("default", ("r0",))


def test_the_decision_has_the_contracts_form() -> None:
    """Every field of inferlane/decision/v1, by its name."""
    document = choose().to_json()
    assert {
        "schema", "model", "order", "rule", "experiment", "tenant", "tier", "cost_center", "priority", "deadline_ms",
        "async", "within_s", "rejected", "latches", "predicted", "shed", "policy_version",
    } <= set(document)  # fmt: skip
    assert document["schema"] == "inferlane/decision/v1"
    assert document["async"] is False


def test_twenty_rules_are_decided_in_well_under_a_millisecond() -> None:
    """A guard against accidents, not the budget: that is measured by the benchmark."""
    by = policy(
        signals=SIGNALS,
        rules=[{"id": f"r{i}", "when": {"header": {"x-canary": f"v{i}"}}, "order": ["dedicated"]} for i in range(20)],
    )
    seen = snapshot(dedicated=lane({"cpu_percent": points(*[50.0] * 60)}), serverless=lane())
    asked = request()
    began = time.perf_counter()
    for _ in range(200):
        choose(asked, seen, by, on=_TOPOLOGY)
    assert (time.perf_counter() - began) / 200 < 0.002


_TOPOLOGY = topology()


def test_the_policy_document_of_the_builders_is_the_smallest_useful_one() -> None:
    """What the tests vary is visible in them."""
    assert set(policy_document()) == {"schema", "version", "tiers", "tenants"}

"""decide: which lanes, by which rule, with which reasons."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from functions.core.decide import decide
from functions.core.decision import Decision, Rejected, Shed
from functions.core.policy import Policy
from functions.core.request import Priority, Request
from functions.core.snapshot import Snapshot
from functions.core.topology import Topology
from tests.unit.core.builders import (
    BATCH,
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
    assert reasons(choose(on=on)) == {"external": "not in rule"}
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
    assert shed == Shed(503, "every lane's breaker is open", 5)


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


def test_a_slow_quarter_of_an_hour_does_not_shut_a_lane_for_an_hour() -> None:
    """P99 points older than ten minutes drop no lane: without traffic it has no newer ones to prove itself by."""
    hung = {"model_latency_p99_ms": points(60_000.0, 60_000.0, now=NOW - 1200), "cpu_percent": points(3.0)}
    decision = choose(request(), snapshot(dedicated=lane(hung), serverless=lane()))
    assert decision.order[0] == "dedicated"
    assert decision.predicted["dedicated"].p99_ms == 60_010.0
    tight = request(headers={"x-inferlane-deadline-ms": "5000"})
    cold = choose(tight, snapshot(dedicated=lane(), serverless=lane({**hung, "invocations": points(0.0)})))
    assert reasons(cold) == {"serverless": "predicted P99 6010 ms exceeds the deadline of 5000 ms"}


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


def test_a_full_lane_never_looks_cheaper_than_serverless() -> None:
    """The next instance is charged at least what serverless costs, and by the longest time known of the model."""
    times = {"model_latency_p50_ms": points(100.0)}
    dear = topology(dedicated=DEDICATED, serverless={**SERVERLESS, "usd_per_s": 1.0})
    full = choose(seen=snapshot(dedicated=lane(times, in_flight=4), serverless=lane()), on=dear)
    assert full.predicted["serverless"].cost_usd == pytest.approx(0.1)
    assert full.predicted["dedicated"].cost_usd == pytest.approx(0.1)
    blind = choose(seen=snapshot(dedicated=lane(in_flight=4), serverless=lane()))
    assert (blind.predicted["dedicated"].cost_usd, blind.predicted["serverless"].cost_usd) == (None, None)


WITH_BATCH = topology(dedicated=DEDICATED, serverless=SERVERLESS, batch=BATCH)


def test_a_rule_may_send_a_waiting_caller_to_batch() -> None:
    """`async` exactly when batch is first: no deadline then, and a time by which it is due."""
    by = policy(rules=[{"id": "night", "order": ["batch", "serverless"], "within": "2h"}])
    decision = choose(by=by, on=WITH_BATCH)
    assert (decision.order, decision.async_) == (("batch", "serverless"), True)
    assert (decision.deadline_ms, decision.within_s) == (None, 7200)
    assert reasons(decision) == {"dedicated": "not in rule"}


def test_batch_behind_a_waiting_lane_is_due_too() -> None:
    """The caller waits for the first lane; what falls through to batch has its time."""
    decision = choose(by=policy(defaults={"order": ["dedicated", "batch"], "within": "20m"}), on=WITH_BATCH)
    assert (decision.async_, decision.deadline_ms, decision.within_s) == (False, 25_000, 1200)


def test_within_comes_from_the_rule_then_the_route_then_the_defaults() -> None:
    """An hour where nobody says."""
    routes = [{"path": "/a", "model": "moderation", "within": "10m"}, {"path": "/b", "model": "moderation"}]
    own = rules(({"header": {"x-own": "1"}}, ["batch"]), ({}, ["batch"]))
    own[0]["within"] = "5m"  # type: ignore[index]
    by = policy(routes=routes, rules=own)
    asked = [request(path="/a", headers={"x-own": "1"}), request(path="/a"), request(path="/b")]
    assert [choose(one, by=by, on=WITH_BATCH).within_s for one in asked] == [300, 600, 3600]


@pytest.mark.parametrize("prefer", ["respond-async", "Respond-Async; x=1, wait=5", "handling=lenient,,respond-async"])
def test_respond_async_puts_batch_first(prefer: str) -> None:
    """When the model has it; the lanes of the rule stay behind it."""
    asked = request(headers={"prefer": prefer})
    assert choose(asked, on=WITH_BATCH).order == ("batch", "dedicated", "serverless")
    assert choose(asked).order == ("dedicated", "serverless")
    named = policy(defaults={"order": ["serverless", "batch"]})
    assert choose(asked, by=named, on=WITH_BATCH).order == ("batch", "serverless")


def test_a_route_may_prefer_async() -> None:
    """As if every caller of the path had asked."""
    by = policy(routes=[{"path": "/later", "model": "moderation", "prefer": "async"}])
    assert choose(request(path="/later"), by=by, on=WITH_BATCH).async_ is True
    assert choose(by=by, on=WITH_BATCH).async_ is False


@pytest.mark.parametrize(("deadline_ms", "dropped"), [("299999", True), ("300000", False)])
def test_a_deadline_that_batch_cannot_meet_drops_it(deadline_ms: str, dropped: bool) -> None:
    """Only one that the caller states, uncut, against the start of a job."""
    asked = request(headers={"prefer": "respond-async", "x-inferlane-deadline-ms": deadline_ms})
    decision = choose(asked, on=WITH_BATCH)
    assert ("batch" not in decision.order) is dropped
    assert decision.async_ is not dropped
    if dropped:
        assert reasons(decision)["batch"] == "a job's start takes 300000 ms, the deadline asked is 299999 ms"


def test_batch_is_dropped_for_size_type_and_breaker_like_any_lane() -> None:
    """A body that only batch takes goes there."""
    on = topology(dedicated=DEDICATED, serverless=SERVERLESS, batch={**BATCH, "content_types": ["application/json"]})
    by = policy(defaults={"order": ["dedicated", "batch"]})
    assert choose(request(bytes=50_000_000), by=by, on=on).order == ("batch",)
    assert "batch" in reasons(choose(request(bytes=200_000_000), by=by, on=on))
    assert reasons(choose(request(content_type="image/png"), by=by, on=on))["batch"].startswith(
        "content type image/png"
    )
    broken = snapshot(dedicated=lane(), batch=lane(breaker="open"))
    assert reasons(choose(seen=broken, by=by, on=on))["batch"] == "breaker open"


def test_cost_never_defers_a_waiting_caller() -> None:
    """Batch is cheap; it competes only where the rule has it first, and stays first where the caller asked for it."""
    times = {"model_latency_p50_ms": points(100.0)}
    full = snapshot(dedicated=lane(times, in_flight=4), serverless=lane(times))
    waiting = policy(objective="cost", defaults={"order": ["dedicated", "batch", "serverless"]})
    assert choose(seen=full, by=waiting, on=WITH_BATCH).order == ("serverless", "dedicated", "batch")
    deferred = policy(objective="cost", defaults={"order": ["batch", "serverless", "dedicated"]})
    assert choose(seen=full, by=deferred, on=WITH_BATCH).order == ("batch", "serverless", "dedicated")
    idle = snapshot(dedicated=lane(times, in_flight=0), serverless=lane(times))
    assert choose(seen=idle, by=deferred, on=WITH_BATCH).order == ("dedicated", "batch", "serverless")
    asked = request(headers={"prefer": "respond-async"})
    assert choose(asked, idle, deferred, WITH_BATCH).order == ("batch", "dedicated", "serverless")


def test_unknown_costs_come_after_known_ones_and_a_full_lane_last() -> None:
    """No service time: the rule's order among the unknown; 16 of 16 slots at the most instances goes last."""
    by = policy(objective="cost", defaults={"order": ["serverless", "dedicated"]})
    assert choose(by=by).order == ("dedicated", "serverless")
    full = snapshot(dedicated=lane(in_flight=16, instances=4), serverless=lane())
    assert choose(seen=full, by=policy(objective="cost")).order == ("serverless", "dedicated")
    growing = snapshot(dedicated=lane(in_flight=12, instances=3), serverless=lane())
    assert choose(seen=growing, by=policy(objective="cost")).order == ("dedicated", "serverless")


def test_by_cost_batch_stays_behind_a_full_lane_too() -> None:
    """A caller who waits may still be answered there; nobody answers from a queue."""
    by = policy(objective="cost", defaults={"order": ["serverless", "batch", "dedicated"]})
    full = snapshot(dedicated=lane(in_flight=16, instances=4), serverless=lane())
    assert choose(seen=full, by=by, on=WITH_BATCH).order == ("serverless", "dedicated", "batch")


def test_experiments_come_before_rules_until_they_stop() -> None:
    """A share of what matches; the rest, and everything after it stopped, goes on to the rules."""
    trial = {"id": "t", "when": {"tenant": "demo"}, "share": "100%", "order": ["serverless"], "hedge": True}
    by = policy(rules=rules(({}, ["dedicated"])), experiments=[{**trial, "guard": {"max_late_rate": "1%"}}])
    decision = choose(by=by)
    assert (decision.rule, decision.experiment, decision.hedge) == ("experiment/t", "t", True)
    stopped = replace(IDLE, stopped=frozenset({"t"}))
    assert (choose(seen=stopped, by=by).rule, choose(seen=stopped, by=by).experiment) == ("r0", None)
    none = policy(experiments=[{**trial, "share": "0%", "guard": {"max_late_rate": "1%"}}])
    assert choose(by=none).rule == "default"


def test_a_split_passes_on_what_it_does_not_take_and_a_retry_lands_alike() -> None:
    """By the idempotency key where there is one, else by the request's id."""
    split = {"id": "half", "split": {"share": "50%", "order": ["serverless"]}}
    by = policy(rules=[split, {"id": "rest", "order": ["dedicated"]}])
    found = {i: choose(request(id=f"r-{i}"), by=by).rule for i in range(40)}
    assert set(found.values()) == {"half", "rest"}
    for i, rule in found.items():
        retried = request(id="another", headers={"idempotency-key": f"r-{i}"})
        assert choose(retried, by=by).rule == rule


def test_what_is_claimed_beyond_the_identity_is_refused_and_told() -> None:
    """The request is served at its own tier; a true claim is no offence."""
    headers = {"x-inferlane-priority": "high", "x-inferlane-tier": "vip", "x-inferlane-tenant": "acme"}
    decision = choose(request(headers={**headers, "x-inferlane-cost-center": "growth"}))
    assert (decision.tier, decision.tenant, decision.granted) == ("standard", "demo", Priority.NORMAL)
    assert decision.claims_refused == ("priority", "tier", "tenant", "cost_center")
    assert decision.to_json()["claims_refused"] == ["priority", "tier", "tenant", "cost_center"]
    honest = {"x-inferlane-priority": "normal", "x-inferlane-tier": "standard", "x-inferlane-tenant": "demo"}
    assert choose(request(headers=honest)).claims_refused == ()


def test_a_body_that_names_no_model_is_400_and_an_unknown_one_404() -> None:
    """The route says from which key."""
    by = policy(routes=[{"path": "/v1/chat/completions", "model": {"from_body": "model"}}])
    for named, status, words in ((None, 400, "'model'"), ("x", 404, "no model")):
        shed = choose(replace(request(path="/v1/chat/completions"), model=named), by=by).shed
        assert shed is not None
        assert shed.status == status
        assert words in shed.reason


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
    """Every field of inferlane/decision/v1, by its name and with what it means."""
    times = {"model_latency_p50_ms": points(100.0), "model_latency_p99_ms": points(400.0), "invocations": points(1.0)}
    by = policy(
        signals=SIGNALS,
        rules=[
            {"id": "r0", "when": {"signal": "hot"}, "order": ["serverless"]},
            {"id": "r1", "when": {"tenant": "vip"}, "order": ["batch", "serverless"], "within": "2h", "hedge": True},
        ],
    )
    asked = request(
        identity={"kind": "api_key", "key_id": "vip-1"},
        headers={"x-inferlane-priority": "high", "x-inferlane-tenant": "acme"},
    )
    seen = snapshot(serverless=lane(times))
    document = choose(asked, seen, by, WITH_BATCH).to_json()
    assert document == {
        "schema": "inferlane/decision/v1",
        "model": "moderation",
        "order": ["batch", "serverless"],
        "rule": "r1",
        "experiment": None,
        "tenant": "vip",
        "tier": "vip",
        "cost_center": "growth",
        "priority": {"asked": "high", "granted": "high"},
        "deadline_ms": None,
        "async": True,
        "within_s": 7200.0,
        "hedge": True,
        "claims_refused": ["tenant"],
        "rejected": [{"lane": "dedicated", "reason": "not in rule"}],
        "latches": {"hot": None},
        "predicted": {
            "dedicated": {"p99_ms": None, "cost_usd": 0.0},
            "serverless": {"p99_ms": 410.0, "cost_usd": pytest.approx(0.000008)},
            "batch": {"p99_ms": None, "cost_usd": pytest.approx(0.1 * 0.204 / 3600)},
        },
        "shed": None,
        "unknown": ["r0"],
        "policy_version": "test.1",
    }
    assert choose(request(bytes=7_000_000)).to_json()["shed"] == {
        "status": 413,
        "reason": "the body exceeds the limit of 6291456 bytes",
        "retry_after_s": None,
    }


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


def test_conditions_see_the_model_and_the_breakers() -> None:
    """What admission found and what the snapshot says."""
    by = policy(
        rules=rules(
            ({"breaker": {"lane": "dedicated", "is": "half_open"}}, ["serverless"]),
            ({"model": "moderation"}, ["dedicated"]),
        )
    )
    assert choose(by=by).rule == "r1"
    assert choose(seen=snapshot(dedicated=lane(breaker="half_open"), serverless=lane()), by=by).rule == "r0"


def test_a_lane_exactly_as_fast_as_the_deadline_serves() -> None:
    """Above, not at: 90 ms and 10 of overhead for a deadline of 100."""
    seen = snapshot(dedicated=lane({"model_latency_p99_ms": points(90.0)}), serverless=lane())
    assert "dedicated" in choose(request(headers={"x-inferlane-deadline-ms": "100"}), seen).order


def test_a_shed_request_is_told_why() -> None:
    """Every lane with its reason; without a content type, that it is absent."""
    on = topology(dedicated={**DEDICATED, "content_types": ["image/*"]}, serverless=SERVERLESS)
    seen = snapshot(dedicated=lane(), serverless=lane(in_flight=20))
    shed = choose(request(content_type=None), seen, on=on).shed
    assert shed is not None
    assert shed.reason == "dedicated: content type absent is not served; serverless: used up: 20 in flight of 20"
    broken = choose(seen=snapshot(dedicated=lane(breaker="open"), serverless=lane(breaker="open"))).shed
    assert broken is not None
    assert broken.reason == "every lane's breaker is open"


def test_a_lane_takes_a_body_of_exactly_its_limit() -> None:
    """One byte more goes elsewhere."""
    assert choose(request(bytes=4_194_304)).order == ("dedicated", "serverless")
    assert choose(request(bytes=4_194_305)).order == ("dedicated",)


def test_a_lane_that_is_absent_does_not_count_among_the_reasons() -> None:
    """Of those that are there, all are too small: 413, or all broken: 503."""
    by = policy(defaults={"order": ["batch", "serverless"]})
    assert choose(request(bytes=4_194_305), by=by).shed == Shed(413, "the body exceeds the limit of 4194304 bytes")
    broken = snapshot(serverless=lane(breaker="open"))
    assert choose(seen=broken, by=by).shed == Shed(503, "every lane's breaker is open", 5)
    nothing = choose(by=policy(defaults={"order": ["batch", "external"]})).shed
    assert nothing == Shed(429, "batch: not in this stage; external: not in this stage", 1)


def test_content_types_of_a_lane_that_takes_what_has_none() -> None:
    """A pattern of one letter or more does not match an absent type; `*` does."""
    bare = request(content_type=None)
    for pattern, order in (("*", ("dedicated", "serverless")), ("?*", ("serverless",)), ("xxxx", ("serverless",))):
        on = topology(dedicated={**DEDICATED, "content_types": [pattern]}, serverless=SERVERLESS)
        assert choose(bare, on=on).order == order

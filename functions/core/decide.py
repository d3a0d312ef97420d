"""decide(request, snapshot, policy, topology, now) → Decision. Pure and total: it reads no clock and never raises.

Steps: route and identity → wishes, capped by the tier → first rule that is true → drop lanes that cannot serve, each
with its reason → what is left, in the rule's order → nothing left: shed, with a status, a reason and when to return.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from functions.core.conditions import Facts, Load
from functions.core.decision import Decision, Rejected, Shed
from functions.core.estimates import Prediction, instances, load, predict
from functions.core.identity import Caller, identify
from functions.core.latches import latches
from functions.core.patterns import media_type, wildcard_match
from functions.core.policy import DEFAULT_RULE, Policy
from functions.core.policy_parser import MAX_DEADLINE_MS
from functions.core.request import Request, WishError, Wishes, read_wishes
from functions.core.snapshot import Snapshot
from functions.core.topology import DedicatedLane, DeferredLane, SyncLane, Topology

_RETRY_BUSY_S: Final = 1
_RETRY_BROKEN_S: Final = 5


class _Cause(Enum):
    """Why a lane cannot serve, as far as the answer to the caller depends on it."""

    ABSENT = "absent"
    BROKEN = "broken"
    TOO_LARGE = "too large"
    UNFIT = "unfit"


@dataclass(frozen=True, slots=True)
class _Drop:
    lane: str
    cause: _Cause
    reason: str


def decide(request: Request, snapshot: Snapshot, policy: Policy, topology: Topology, now: float) -> Decision:
    """Choose the lanes for one request. `now` is Unix seconds."""
    caller = identify(request.identity, policy)
    model = policy.model_of(request.path)
    if model is None:
        return _refuse(policy, caller, None, Shed(404, "no route has this path"))
    if caller is None:
        return _refuse(policy, caller, model, Shed(403, "this identity has no entry in the policy"))
    if model not in topology.models:
        return _refuse(policy, caller, model, Shed(404, "no model has this name"))
    try:
        wishes = read_wishes(request.headers)
    except WishError as error:
        return _refuse(policy, caller, model, Shed(400, str(error)))
    return _choose(request, snapshot, policy, topology, now, model, caller, wishes)


def _choose(
    request: Request,
    snapshot: Snapshot,
    policy: Policy,
    topology: Topology,
    now: float,
    model: str,
    caller: Caller,
    wishes: Wishes,
) -> Decision:
    lanes = topology.sync_lanes(model)
    facts = Facts(
        path=request.path,
        model=model,
        tenant=caller.tenant,
        tier=caller.tier,
        priority=caller.grant(wishes.priority),
        deadline_ms=min(wishes.deadline_ms or policy.defaults.deadline_ms, MAX_DEADLINE_MS),
        bytes=request.bytes,
        content_type=request.content_type,
        headers=request.headers,
        latches=latches(policy.signals, snapshot, model, now, lanes),
        load=lambda name: _load(lanes, name, model, snapshot, now),
    )
    rule, wanted, unknown = _first_rule(policy, facts)
    predicted = predict(lanes, model, snapshot, now)
    drops = [drop for name in wanted if (drop := _drop(name, lanes, facts, snapshot, predicted, now)) is not None]
    dropped = {drop.lane for drop in drops}
    order = tuple(name for name in wanted if name not in dropped)
    unnamed = [
        Rejected(name, "not in this stage" if isinstance(lane, DeferredLane) else "not in rule")
        for name, lane in topology.models[model].items()
        if name not in wanted
    ]
    return Decision(
        model=model,
        order=order,
        rule=rule,
        tenant=caller.tenant,
        tier=caller.tier,
        cost_center=caller.cost_center,
        asked=wishes.priority,
        granted=facts.priority,
        deadline_ms=facts.deadline_ms,
        rejected=(*(Rejected(drop.lane, drop.reason) for drop in drops), *unnamed),
        latches=facts.latches,
        predicted=predicted,
        shed=None if order else _shed(drops, request, lanes),
        policy_version=policy.version,
        unknown=unknown,
    )


def _first_rule(policy: Policy, facts: Facts) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The first rule that is true, its lanes, and the rules before it that could not be told."""
    unknown: list[str] = []
    for rule in policy.rules:
        found = rule.when.holds(facts)
        if found:
            return rule.id, rule.order, tuple(unknown)
        if found is None:
            unknown.append(rule.id)
    return DEFAULT_RULE, policy.defaults.order, tuple(unknown)


def _drop(
    name: str,
    lanes: dict[str, SyncLane],
    facts: Facts,
    snapshot: Snapshot,
    predicted: dict[str, Prediction],
    now: float,
) -> _Drop | None:
    lane = lanes.get(name)
    if lane is None:
        return _Drop(name, _Cause.ABSENT, "not in this stage")
    state = snapshot.lane(facts.model, name)
    if state.breaker == "open":
        return _Drop(name, _Cause.BROKEN, "breaker open")
    if facts.bytes > lane.max_bytes:
        return _Drop(name, _Cause.TOO_LARGE, f"body of {facts.bytes} bytes exceeds the lane's {lane.max_bytes}")
    if lane.content_types is not None and not _accepts(lane.content_types, facts.content_type):
        return _Drop(name, _Cause.UNFIT, f"content type {facts.content_type or 'absent'} is not served")
    in_flight = state.in_flight or 0
    if isinstance(lane, DedicatedLane):
        serving = instances(lane, state, now)
        if serving >= lane.max_instances and in_flight >= 2 * serving * lane.slots_per_instance:
            return _Drop(name, _Cause.UNFIT, f"used up: {in_flight} in flight at {serving} instances, the most")
    elif in_flight >= lane.max_concurrency:
        return _Drop(name, _Cause.UNFIT, f"used up: {in_flight} in flight of {lane.max_concurrency}")
    p99_ms = predicted[name].p99_ms
    if p99_ms is not None and p99_ms > facts.deadline_ms:
        reason = f"predicted P99 {p99_ms:.0f} ms exceeds the deadline of {facts.deadline_ms} ms"
        return _Drop(name, _Cause.UNFIT, reason)
    return None


def _accepts(patterns: Sequence[str], content_type: str | None) -> bool:
    found = media_type(content_type or "")
    return any(wildcard_match(pattern, found) for pattern in patterns)


def _load(lanes: dict[str, SyncLane], name: str, model: str, snapshot: Snapshot, now: float) -> Load | None:
    lane = lanes.get(name)
    return None if lane is None else load(lane, model, snapshot, now)


def _shed(drops: list[_Drop], request: Request, lanes: dict[str, SyncLane]) -> Shed:
    present = [drop for drop in drops if drop.cause is not _Cause.ABSENT]
    causes = {drop.cause for drop in present}
    if causes == {_Cause.TOO_LARGE}:
        limit = max(lanes[drop.lane].max_bytes for drop in present)
        return Shed(413, f"body of {request.bytes} bytes exceeds the limit of {limit}")
    if causes == {_Cause.BROKEN}:
        return Shed(503, "every lane's breaker is open", _RETRY_BROKEN_S)
    return Shed(429, "; ".join(f"{drop.lane}: {drop.reason}" for drop in drops), _RETRY_BUSY_S)


def _refuse(policy: Policy, caller: Caller | None, model: str | None, shed: Shed) -> Decision:
    return Decision(
        model=model,
        order=(),
        rule=DEFAULT_RULE,
        tenant=None if caller is None else caller.tenant,
        tier=None if caller is None else caller.tier,
        cost_center=None if caller is None else caller.cost_center,
        asked=None,
        granted=None,
        deadline_ms=None,
        rejected=(),
        latches={},
        predicted={},
        shed=shed,
        policy_version=policy.version,
    )

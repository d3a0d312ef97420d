"""decide(request, snapshot, policy, topology, now) → Decision. Pure and total: it reads no clock and never raises.

Steps: route, identity and wishes (`admission`) → what is believed of the lanes (`outlook`) → experiments, then the
first rule that is true and takes the request → an asked-for batch lane first → drop lanes that cannot serve, each with
its reason → order what is left by the rule, or by marginal cost → nothing left: shed, with a status, a reason and when
to return. `decider` gives the same answers without repeating what did not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from functions.core.admission import Terms, admit
from functions.core.conditions import Always, Facts
from functions.core.decision import Decision, Rejected, Shed
from functions.core.identity import identify
from functions.core.outlook import Outlook, look
from functions.core.patterns import media_type, wildcard_match
from functions.core.policy import DEFAULT_RULE, Policy, Rule
from functions.core.request import Request
from functions.core.shares import Share
from functions.core.snapshot import Snapshot
from functions.core.topology import BatchLane, ServingLane, Topology
from functions.core.wishes import IDEMPOTENCY_HEADER

_RETRY_BUSY_S: Final = 1
_RETRY_BROKEN_S: Final = 5
_BATCH: Final = "batch"


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


@dataclass(frozen=True, slots=True)
class Choice:
    """A rule that is true for a request, or the default."""

    rule: Rule
    experiment: str | None
    unknown: tuple[str, ...]
    """Rules before it that could not be told."""


def decide(request: Request, snapshot: Snapshot, policy: Policy, topology: Topology, now: float) -> Decision:
    """Choose the lanes for one request. `now` is Unix seconds."""
    terms = admit(request, identify(request.identity, policy), policy, topology)
    if isinstance(terms, Decision):
        return terms
    outlook = look(terms.model, snapshot, policy, topology, now)
    facts = facts_of(request, terms, outlook)
    key = request.headers.get(IDEMPOTENCY_HEADER, request.id)
    choice = next(
        choice
        for choice in choices(policy, facts, snapshot.stopped)
        if choice.rule.share is None or Share.of(choice.rule.share, choice.rule.id, facts.tenant).takes(key)
    )
    return conclude(choice, terms, facts, outlook, policy)


def facts_of(request: Request, terms: Terms, outlook: Outlook) -> Facts:
    """What conditions may ask about the request."""
    return Facts(
        path=request.path,
        model=terms.model,
        tenant=terms.caller.tenant,
        tier=terms.caller.tier,
        priority=terms.granted,
        deadline_ms=terms.deadline_ms,
        bytes=request.bytes,
        content_type=request.content_type,
        headers=request.headers,
        latches=outlook.latches,
        load=outlook.loads.get,
        breakers=outlook.breakers,
        local=outlook.local,
    )


def choices(policy: Policy, facts: Facts, stopped: frozenset[str]) -> Iterator[Choice]:
    """What may decide, in order: true experiments and rules that take a share, then one that takes all the rest."""
    unknown: list[str] = []
    trials = [(trial.rule, trial.id) for trial in policy.experiments if trial.id not in stopped]
    for rule, experiment in (*trials, *((rule, None) for rule in policy.rules)):
        found = rule.when.holds(facts)
        if found is None:
            unknown.append(rule.id)
        elif found:
            yield Choice(rule, experiment, tuple(unknown))
            if rule.share is None:
                return
    yield Choice(Rule(DEFAULT_RULE, Always(), policy.defaults.order), None, tuple(unknown))


def conclude(choice: Choice, terms: Terms, facts: Facts, outlook: Outlook, policy: Policy) -> Decision:
    """The decision when `choice` takes the request."""
    prefers_batch = (terms.wishes.respond_async or terms.route.prefer_async) and _BATCH in outlook.lanes
    wanted = _batch_first(choice.rule.order) if prefers_batch else choice.rule.order
    drops = [drop for name in wanted if (drop := _drop(name, terms, facts, outlook)) is not None]
    dropped = {drop.lane for drop in drops}
    order = tuple(name for name in wanted if name not in dropped)
    if policy.by_cost:
        order = _by_cost(order, outlook, pinned=prefers_batch)
    deferred = order[:1] == (_BATCH,)
    within_s = choice.rule.within_s or terms.route.within_s or policy.defaults.within_s
    unnamed = [Rejected(name, "not in rule") for name in outlook.named if name not in wanted]
    return Decision(
        model=terms.model,
        order=order,
        rule=choice.rule.id,
        experiment=choice.experiment,
        tenant=facts.tenant,
        tier=facts.tier,
        cost_center=terms.caller.cost_center,
        asked=terms.wishes.priority,
        granted=terms.granted,
        deadline_ms=None if deferred else terms.deadline_ms,
        async_=deferred,
        within_s=within_s if _BATCH in order else None,
        hedge=choice.rule.hedge,
        rejected=(*(Rejected(drop.lane, drop.reason) for drop in drops), *unnamed),
        latches=outlook.latches,
        predicted=outlook.predicted,
        shed=None if order else _shed(drops, outlook),
        policy_version=policy.version,
        claims_refused=terms.claims_refused,
        unknown=choice.unknown,
    )


def _batch_first(order: tuple[str, ...]) -> tuple[str, ...]:
    return (_BATCH, *(name for name in order if name != _BATCH))


def _by_cost(order: tuple[str, ...], outlook: Outlook, *, pinned: bool) -> tuple[str, ...]:
    """Cheapest first, of equal costs in the rule's order; unknown costs then, a full lane that cannot grow last.

    A caller who waits is not deferred to save money: batch competes only where the rule puts it first, stays first
    where the caller asked for it, and otherwise stays behind the lanes that answer.
    """
    deferred = order[:1] == (_BATCH,)

    def rank(name: str) -> tuple[int, float]:
        if name == _BATCH and (pinned or not deferred):
            return (-1 if deferred else 3), 0.0
        if name in outlook.exhausted:
            return 2, 0.0
        cost = outlook.predicted[name].cost_usd
        return (1, 0.0) if cost is None else (0, cost)

    return tuple(sorted(order, key=rank))


def _drop(name: str, terms: Terms, facts: Facts, outlook: Outlook) -> _Drop | None:
    """Why the lane cannot serve this request, or None. Reasons name the lane's limits, not the request's figures."""
    lane = outlook.lanes.get(name)
    if lane is None:
        return _Drop(name, _Cause.ABSENT, "not in this stage")
    if outlook.breakers[name] == "open":
        return _Drop(name, _Cause.BROKEN, "breaker open")
    if facts.bytes > lane.max_bytes:
        return _Drop(name, _Cause.TOO_LARGE, f"body exceeds the lane's limit of {lane.max_bytes} bytes")
    if lane.content_types is not None and not accepts(lane.content_types, facts.content_type):
        found = media_type(facts.content_type or "") or "absent"
        return _Drop(name, _Cause.UNFIT, f"content type {found} is not served")
    if name in outlook.used_up:
        return _Drop(name, _Cause.UNFIT, outlook.used_up[name])
    return _too_late(lane, terms, outlook)


def _too_late(lane: ServingLane, terms: Terms, outlook: Outlook) -> _Drop | None:
    """Batch answers to a deadline only where the caller states one; it is compared uncut."""
    if isinstance(lane, BatchLane):
        asked_ms = terms.wishes.deadline_ms
        if asked_ms is None or lane.startup_s * 1000 <= asked_ms:
            return None
        reason = f"a job's start takes {lane.startup_s * 1000:.0f} ms, the deadline asked is {asked_ms} ms"
        return _Drop(lane.name, _Cause.UNFIT, reason)
    p99_ms = outlook.predicted[lane.name].at_least_ms
    if p99_ms is None or p99_ms <= terms.deadline_ms:
        return None
    reason = f"predicted P99 {p99_ms:.0f} ms exceeds the deadline of {terms.deadline_ms} ms"
    return _Drop(lane.name, _Cause.UNFIT, reason)


def accepts(patterns: Sequence[str], content_type: str | None) -> bool:
    """Whether a lane that takes these types takes a body of this one."""
    found = media_type(content_type or "")
    return any(wildcard_match(pattern, found) for pattern in patterns)


def _shed(drops: list[_Drop], outlook: Outlook) -> Shed:
    present = [drop for drop in drops if drop.cause is not _Cause.ABSENT]
    causes = {drop.cause for drop in present}
    if causes == {_Cause.TOO_LARGE}:
        limit = max(outlook.lanes[drop.lane].max_bytes for drop in present)
        return Shed(413, f"the body exceeds the limit of {limit} bytes")
    if causes == {_Cause.BROKEN}:
        return Shed(503, "every lane's breaker is open", _RETRY_BROKEN_S)
    return Shed(429, "; ".join(f"{drop.lane}: {drop.reason}" for drop in drops), _RETRY_BUSY_S)

"""`decide` without repeating what did not change: for one policy and topology, the same answers in far less time.

Two requests get the same decision when they agree in everything that admission, conditions and lanes look at: path,
identity, wishes, the body's size between two limits that somebody names, media type, the headers that rules name. So a
decision is worked out once for such a group, a *shape*, and kept while its outlook holds (`outlook.holds_until`). Only
shares look at the single request: a shape holds the decision for each rule that may take it, and the hash picks one.

Everything is bounded and belongs to the instance; one instance serves one thread at a time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import ceil, floor
from typing import Final

from functions.core.admission import admit
from functions.core.conditions import ContentTypeIs, HeaderIs, NumberIn
from functions.core.decide import choices, conclude, facts_of
from functions.core.decision import Decision
from functions.core.identity import Caller, identify
from functions.core.outlook import Outlook, holds_until, look
from functions.core.patterns import media_type
from functions.core.policy import Policy
from functions.core.request import DEADLINE_HEADER, PRIORITY_HEADER, Request
from functions.core.shares import Share
from functions.core.snapshot import Snapshot
from functions.core.topology import Topology
from functions.core.wishes import (
    CLAIM_HEADERS,
    IDEMPOTENCY_HEADER,
    PREFER_HEADER,
    is_idempotency_key,
)

_MOST: Final = 4096
"""Shapes, and callers, that are kept; callers choose some of what makes a shape, so there must be an end."""
_FOREVER: Final = float("inf")


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a group of requests gets from `since` to `until`: the first branch that takes it, else `decision`."""

    since: float
    until: float
    branches: tuple[tuple[Share, Decision], ...]
    decision: Decision


class Decider:
    """Decides for one policy and topology. `decide(request, snapshot, now)` equals `decide.decide(…)`."""

    def __init__(self, policy: Policy, topology: Topology) -> None:
        """Nothing is worked out until the first request."""
        self.policy: Final = policy
        self.topology: Final = topology
        asked = tuple(policy.conditions())
        self._claims = tuple(sorted({name for entry in policy.tenants for name, _ in entry.claims}))
        self._headers = (
            *(PRIORITY_HEADER, DEADLINE_HEADER, PREFER_HEADER),
            *(header for _, header in CLAIM_HEADERS),
            *sorted({condition.name for condition in asked if isinstance(condition, HeaderIs)}),
        )
        self._looked_at = dict.fromkeys((IDEMPOTENCY_HEADER, *self._headers))
        self._sizes = _size_edges(policy, topology)
        self._by_type = any(isinstance(condition, ContentTypeIs) for condition in asked) or any(
            lane.content_types is not None
            for model in topology.models
            for lane in topology.serving_lanes(model).values()
        )
        self._snapshot: Snapshot | None = None
        self._shapes: dict[Hashable, _Shape] = {}
        self._outlooks: dict[str, tuple[float, float, Outlook]] = {}
        self._callers: dict[Hashable, Caller | None] = {}

    def decide(self, request: Request, snapshot: Snapshot, now: float) -> Decision:
        """Choose the lanes for one request. `now` is Unix seconds."""
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            self._shapes.clear()
            self._outlooks.clear()
        get = request.headers.get
        key = get(IDEMPOTENCY_HEADER)
        if key is None:
            key = request.id
        elif not is_idempotency_key(key):
            return self._work_out(request, snapshot, now).decision
        identity = request.identity
        claims = identity.claims
        group = (
            request.path,
            request.model,
            identity.arn,
            identity.key_id,
            tuple(map(claims.get, self._claims)) if claims else (),
            bisect_right(self._sizes, request.bytes),
            media_type(request.content_type) if self._by_type and request.content_type is not None else None,
            *map(get, self._headers),
        )
        shape = self._shapes.get(group)
        if shape is None or not shape.since <= now <= shape.until:
            shape = self._work_out(request, snapshot, now)
            if len(self._shapes) >= _MOST:
                self._shapes.clear()
            self._shapes[group] = shape
        for share, decision in shape.branches:
            if share.takes(key):
                return decision
        return shape.decision

    def looked_at(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Those of a request's headers that decisions look at; the others make no difference."""
        return {name: value for name, value in headers.items() if name in self._looked_at}

    def _work_out(self, request: Request, snapshot: Snapshot, now: float) -> _Shape:
        """What every request of this one's shape gets, taking `decide`'s own steps."""
        policy = self.policy
        terms = admit(request, self._caller(request), policy, self.topology)
        if isinstance(terms, Decision):
            return _Shape(-_FOREVER, _FOREVER, (), terms)
        since, until, outlook = self._outlook(terms.model, snapshot, now)
        facts = facts_of(request, terms, outlook)
        branches: list[tuple[Share, Decision]] = []
        for choice in choices(policy, facts, snapshot.stopped):
            decision = conclude(choice, terms, facts, outlook, policy)
            if choice.rule.share is not None:
                branches.append((Share.of(choice.rule.share, choice.rule.id, facts.tenant), decision))
        return _Shape(since, until, tuple(branches), decision)

    def _outlook(self, model: str, snapshot: Snapshot, now: float) -> tuple[float, float, Outlook]:
        known = self._outlooks.get(model)
        if known is not None and known[0] <= now <= known[1]:
            return known
        until = holds_until(model, snapshot, self.policy, self.topology, now)
        self._outlooks[model] = fresh = now, until, look(model, snapshot, self.policy, self.topology, now)
        return fresh

    def _caller(self, request: Request) -> Caller | None:
        identity = request.identity
        who = (identity.arn, identity.key_id, *map(identity.claims.get, self._claims))
        if who in self._callers:
            return self._callers[who]
        if len(self._callers) >= _MOST:
            self._callers.clear()
        self._callers[who] = caller = identify(identity, self.policy)
        return caller


def _size_edges(policy: Policy, topology: Topology) -> tuple[int, ...]:
    """The sizes in whole bytes at which some condition or lane may change its answer."""
    limits = {float(lane.max_bytes) for model in topology.models for lane in topology.serving_lanes(model).values()}
    for condition in policy.conditions():
        if isinstance(condition, NumberIn) and condition.fact == "bytes":
            bounds = condition.range
            limits |= {
                limit for limit in (bounds.above, bounds.below, bounds.at_least, bounds.at_most) if limit is not None
            }
    return tuple(sorted({edge for limit in limits for edge in (ceil(limit), floor(limit) + 1)}))

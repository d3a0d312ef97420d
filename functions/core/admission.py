"""Whether a request gets as far as the lanes: it names a route, a caller and a model, and its wishes are well formed.

Refused, in this order: 404 for a path that is no route, 403 for a caller whom the policy refuses, 400 for a body that
names no model where the route asks for one, 404 for an unknown model, 400 for a malformed wish. What is asked beyond
the tier is granted at the tier and told in `claims_refused`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from functions.core.decision import Decision, Shed, refusal
from functions.core.identity import Caller
from functions.core.policy import MAX_DEADLINE_MS, Policy, Route
from functions.core.request import Priority, Request
from functions.core.topology import Topology
from functions.core.wishes import CLAIM_HEADERS, WishError, Wishes, read_wishes


@dataclass(frozen=True, slots=True)
class Terms:
    """What an admitted request is and may have."""

    route: Route
    model: str
    caller: Caller
    wishes: Wishes
    granted: Priority
    deadline_ms: int
    claims_refused: tuple[str, ...]


def admit(request: Request, caller: Caller | None, policy: Policy, topology: Topology) -> Terms | Decision:
    """The terms of a request, or the decision that refuses it. `caller` is None for one whom the policy refuses."""
    route = policy.route_of(request.path)
    model = None if route is None else route.model_of(request.path, request.model)
    if route is None:
        return refusal(policy.version, caller, None, Shed(404, "no route has this path"))
    lanes = topology.models.get(model, ()) if model is not None else ()
    if caller is None:
        return refusal(policy.version, caller, model, Shed(403, "this identity has no entry in the policy"), lanes)
    if model is None:
        reason = f"the body must be JSON whose top-level key {route.model_from_body!r} names a model"
        return refusal(policy.version, caller, None, Shed(400, reason))
    if model not in topology.models:
        return refusal(policy.version, caller, model, Shed(404, "no model has this name"))
    try:
        wishes = read_wishes(request.headers)
    except WishError as error:
        return refusal(policy.version, caller, model, Shed(400, str(error)), lanes)
    deadline_ms = min(wishes.deadline_ms or policy.defaults.deadline_ms, MAX_DEADLINE_MS)
    refused = _refused(request.headers, wishes, caller)
    return Terms(route, model, caller, wishes, caller.grant(wishes.priority), deadline_ms, refused)


def _refused(headers: Mapping[str, str], wishes: Wishes, caller: Caller) -> tuple[str, ...]:
    """What was asked beyond what the identity may have."""
    proven = {"tier": caller.tier, "tenant": caller.tenant, "cost_center": caller.cost_center}
    claimed = [what for what, header in CLAIM_HEADERS if header in headers and headers[header] != proven[what]]
    above = wishes.priority is not None and wishes.priority > caller.cap
    return tuple((["priority"] if above else []) + claimed)

"""Admission: the order of refusals, their words, and the terms of who is let in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from functions.core.admission import Terms, admit
from functions.core.decision import Decision, Shed
from functions.core.identity import Caller
from functions.core.request import Priority, Request
from functions.core.wishes import Wishes
from tests.unit.core.builders import MODEL, PATH, policy, request, topology

CALLER = Caller("demo", "standard", "growth", Priority.NORMAL)
BY = policy(routes=[{"path": "/v1/chat/completions", "model": {"from_body": "model"}}])
CHAT = replace(request(path="/v1/chat/completions"), model=None)


def refused(asked: Request, caller: Caller | None = CALLER) -> Decision:
    found = admit(asked, caller, BY, topology())
    assert isinstance(found, Decision)
    return found


@pytest.mark.parametrize(
    ("asked", "caller", "model", "shed"),
    [
        (request(path="/nowhere"), None, None, Shed(404, "no route has this path")),
        (request(), None, MODEL, Shed(403, "this identity has no entry in the policy")),
        (CHAT, None, None, Shed(403, "this identity has no entry in the policy")),
        (CHAT, CALLER, None, Shed(400, "the body must be JSON whose top-level key 'model' names a model")),
        (replace(CHAT, model="x"), CALLER, "x", Shed(404, "no model has this name")),
        (
            request(path="/v1/models/x/invocations", headers={"prefer": "="}),
            CALLER,
            "x",
            Shed(404, "no model has this name"),
        ),
        (
            request(headers={"x-inferlane-priority": "urgent"}),
            CALLER,
            MODEL,
            Shed(400, "X-Inferlane-Priority must be one of low, normal, high"),
        ),
    ],
)
def test_refusals_in_their_order(asked: Request, caller: Caller | None, model: str | None, shed: Shed) -> None:
    """The first that applies is told, without a time to return."""
    found = refused(asked, caller)
    assert (found.model, found.shed, found.order, found.rule) == (model, shed, (), "default")
    assert (found.tenant, found.policy_version) == ("demo" if caller else None, "test.1")


def test_a_refusal_says_who_called_and_by_which_policy() -> None:
    """And nothing of lanes that nobody looked at."""
    assert refused(request(path="/nowhere")) == Decision(
        model=None,
        order=(),
        rule="default",
        tenant="demo",
        tier="standard",
        cost_center="growth",
        asked=None,
        granted=None,
        deadline_ms=None,
        rejected=(),
        latches={},
        predicted={},
        shed=Shed(404, "no route has this path"),
        policy_version="test.1",
    )
    assert refused(request(path="/nowhere")).to_json()["priority"] == {"asked": None, "granted": None}
    stranger = refused(request(), None)
    assert (stranger.tenant, stranger.tier, stranger.cost_center) == (None, None, None)


def test_the_terms_of_a_request_without_wishes() -> None:
    """Normal priority, the policy's deadline, nothing refused."""
    assert admit(request(), CALLER, BY, topology()) == Terms(
        route=BY.routes[-1],
        model=MODEL,
        caller=CALLER,
        wishes=Wishes(None, None, False),
        granted=Priority.NORMAL,
        deadline_ms=25_000,
        claims_refused=(),
    )


@pytest.mark.parametrize(
    ("headers", "granted", "deadline_ms", "claims_refused"),
    [
        ({"x-inferlane-priority": "low", "x-inferlane-deadline-ms": "29000"}, Priority.LOW, 29_000, ()),
        ({"x-inferlane-priority": "normal", "x-inferlane-deadline-ms": "29001"}, Priority.NORMAL, 29_000, ()),
        ({"x-inferlane-priority": "high", "x-inferlane-deadline-ms": "1"}, Priority.NORMAL, 1, ("priority",)),
        ({"x-inferlane-tier": "vip"}, Priority.NORMAL, 25_000, ("tier",)),
        ({"x-inferlane-tenant": "acme"}, Priority.NORMAL, 25_000, ("tenant",)),
        ({"x-inferlane-cost-center": "ops"}, Priority.NORMAL, 25_000, ("cost_center",)),
        (
            {"x-inferlane-tier": "standard", "x-inferlane-tenant": "demo", "x-inferlane-cost-center": "growth"},
            Priority.NORMAL,
            25_000,
            (),
        ),
    ],
)
def test_the_terms_of_a_request_with_wishes(
    headers: dict[str, str], granted: Priority, deadline_ms: int, claims_refused: tuple[str, ...]
) -> None:
    """Granted up to the tier, cut to the gateway's limit; of the claims only the false ones are told."""
    terms = admit(request(headers=headers), CALLER, BY, topology())
    assert isinstance(terms, Terms)
    assert (terms.granted, terms.deadline_ms, terms.claims_refused) == (granted, deadline_ms, claims_refused)


def test_the_first_route_that_matches_gives_the_terms() -> None:
    """Also where the path alone would fit the built-in one."""
    by = policy(routes=[{"path": PATH, "model": MODEL, "prefer": "async"}])
    terms = admit(request(), CALLER, by, topology())
    assert isinstance(terms, Terms)
    assert terms.route is by.routes[0]

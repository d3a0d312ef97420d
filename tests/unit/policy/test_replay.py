"""A receipt is enough to decide its request again: what the router writes down, read back, gives the same decision."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.answer import Call
from functions.core.decide import decide
from functions.core.document import DocumentError
from functions.core.identity import identify
from functions.core.policy import Policy
from functions.core.receipt import Receipt
from functions.core.request import Identity, Request
from functions.core.snapshot import Snapshot
from functions.core.topology import Topology
from functions.router import Router
from tests.unit.core.builders import IDLE, NOW, policy, request, rules, topology
from tests.unit.core.test_properties import TOPOLOGIES, policies, requests, snapshots
from tests.unit.handlers.fakes import FakeClock, FakeInvoker, FakePolicies, FakeSignals, healthy
from workbench.policy.replay import read, stand_in


def received(asked: Request, by: Policy, *, seen: Snapshot = IDLE, on: Topology | None = None) -> Receipt | None:
    """The router's receipt of a request; None where it writes none, as for a caller without identity."""
    clock = FakeClock(NOW)
    invoker = FakeInvoker(clock, {"dedicated": healthy(), "serverless": healthy()})
    router = Router(on or topology(), FakePolicies(by), FakeSignals(seen), invoker, clock)
    return router.answer(Call(asked, b"", None, 29.0)).receipt


@settings(max_examples=200, deadline=None)
@given(requests.filter(lambda asked: asked.id and asked.path), policies, snapshots, st.sampled_from(TOPOLOGIES))
def test_a_receipt_read_back_decides_the_same(asked: Request, by: Policy, seen: Snapshot, on: Topology) -> None:
    """Whatever the rules test, whatever was asked: the decision of the receipt is found again, to the last field."""
    receipt = received(asked, by, seen=seen, on=on)
    if receipt is None:
        return
    found = read(json.loads(json.dumps(receipt.to_json())), by)
    assert found is not None
    rebuilt, at = found
    assert at == pytest.approx(NOW)
    assert decide(rebuilt, seen, by, on, NOW) == receipt.decision


def test_what_only_the_body_or_a_header_tells_is_in_the_receipt() -> None:
    """The model that the body named, the idempotency key that draws a share, a header that a rule names; no other."""
    by = policy(
        routes=[{"path": "/v1/chat/completions", "model": {"from_body": "model"}}],
        rules=rules(({"header": {"x-canary": "yes"}}, ["serverless"])),
    )
    kept = {"x-canary": "yes", "idempotency-key": "k-1", "prefer": "wait=1"}
    sent = request(path="/v1/chat/completions", headers={**kept, "authorization": "secret", "user-agent": "x"})
    receipt = received(sent, by)
    assert receipt is not None
    document = receipt.to_json()
    assert document["headers"] == kept
    assert "secret" not in json.dumps(document)
    assert (document["method"], document["content_type"], document["model"]) == ("POST", "application/json", None)


@pytest.mark.parametrize("missing", ["headers", "method", "path", "at", "decision"])
def test_a_receipt_without_what_decides_is_refused(missing: str) -> None:
    """Rather an error that names the key than a decision about another request."""
    receipt = received(request(), policy())
    assert receipt is not None
    document = receipt.to_json()
    del document[missing]
    with pytest.raises(DocumentError, match=missing):
        read(document, policy())


TWINS = policy(
    tenants=[
        {"api_key": "a", "tenant": "first", "tier": "vip"},
        {"api_key": "a*", "tenant": "second", "tier": "vip", "cost_center": "one"},
        {"api_key": "b?*", "tenant": "second", "tier": "vip", "cost_center": "two"},
        {"claim": {"org": "c*"}, "tenant": "second", "tier": "standard"},
    ]
)


@pytest.mark.parametrize(
    "identity",
    [
        Identity("api_key", key_id="a"),
        Identity("api_key", key_id="a-7"),
        Identity("api_key", key_id="b-7"),
        Identity("jwt", claims={"org": "c"}),
        Identity("api_key", key_id="nobody-special"),
    ],
)
def test_who_stands_in_pays_from_the_same_purse(identity: Identity) -> None:
    """Tenant, tier and cost center, also where an earlier entry takes the pattern's shortest match."""
    caller = identify(identity, TWINS)
    assert caller is not None
    found = stand_in(TWINS, caller.tenant, caller.tier, caller.cost_center)
    assert found is not None
    assert identify(found, TWINS) == caller

"""The receipt: one line a request, with the decision and every attempt."""

from __future__ import annotations

import json
from dataclasses import replace

from functions.core.decide import decide
from functions.core.outcome import Kind
from functions.core.receipt import Attempt, Receipt
from tests.unit.core.builders import IDLE, NOW, policy, request, topology

FAILED = Attempt("dedicated", Kind.TIMEOUT, None, 0.001, 0.5, 0.5, 0.00012, detail="no answer")
HEDGE = Attempt("serverless", Kind.LOST, None, 0.3, 0.1, 5.0, None, detail="closed", hedge=True)
SERVED = Attempt("serverless", Kind.OK, 200, 0.501, 0.0421234, 10.0, 0.000003, detail="never shown")


def receipt(*attempts: Attempt) -> Receipt:
    return Receipt(
        request=request(path="/realtime/chat", headers={"user-agent": "x", "prefer": "wait=1"}),
        headers={"prefer": "wait=1"},
        at=NOW,
        decision=decide(request(), IDLE, policy(), topology(), NOW),
        attempts=attempts,
        status=200,
        lane="serverless",
        latency_s=0.5441239,
        decide_s=0.00002,
        bytes_out=64,
        cost_usd=0.000123,
        counterfactual_usd={"dedicated": 0.00001},
        snapshot_age_s=12.34567,
        breakers={"dedicated": "half_open", "serverless": "closed"},
    )


def test_a_receipt_is_one_line_of_json() -> None:
    """Milliseconds with three decimals, the moment in UTC, the policy's version."""
    document = receipt(FAILED, SERVED).to_json()
    assert "\n" not in json.dumps(document)
    assert (document["latency_ms"], document["decide_ms"], document["snapshot_age_s"]) == (544.124, 0.02, 12.346)
    assert (document["at"], document["policy_version"]) == ("2026-11-30T01:00:00Z", "test.1")
    assert document["counterfactual_usd"] == {"dedicated": 0.00001}


def test_a_receipt_holds_what_decides() -> None:
    """Of the request everything that a rule can test; of its headers only those it is given; the breakers."""
    document = receipt(SERVED).to_json()
    asked = {key: document[key] for key in ("request_id", "method", "path", "model", "content_type", "bytes_in")}
    assert asked == {
        "request_id": "r-1",
        "method": "POST",
        "path": "/realtime/chat",
        "model": None,
        "content_type": "application/json",
        "bytes_in": 812,
    }
    assert document["headers"] == {"prefer": "wait=1"}
    assert document["breakers"] == {"dedicated": "half_open", "serverless": "closed"}


def test_an_attempt_tells_why_it_failed_and_nothing_of_one_that_did_not() -> None:
    """`detail` only with a failure, `hedge` only with a hedge."""
    failed, hedge, served = (attempt.to_json() for attempt in (FAILED, HEDGE, SERVED))
    assert failed == {
        "lane": "dedicated",
        "outcome": "timeout",
        "status": None,
        "started_ms": 1.0,
        "duration_ms": 500.0,
        "timeout_ms": 500.0,
        "cost_usd": 0.00012,
        "detail": "no answer",
    }
    assert hedge["hedge"] is True
    assert "detail" not in served
    assert "hedge" not in served
    assert served["duration_ms"] == 42.123


def test_a_hedge_is_no_fallback() -> None:
    """Only attempts after a failed one count."""
    assert [receipt(*made).fallbacks for made in ((), (SERVED,), (FAILED, SERVED), (FAILED, HEDGE, SERVED))] == [
        0,
        0,
        1,
        1,
    ]


def test_without_a_snapshot_there_is_no_age() -> None:
    """Null, not zero."""
    assert replace(receipt(), snapshot_age_s=None).to_json()["snapshot_age_s"] is None


def test_hedges_and_fallbacks_count_apart() -> None:
    """A second try beside a running one is a hedge; one after a failure is a fallback."""
    assert (receipt(FAILED, SERVED).fallbacks, receipt(FAILED, SERVED).hedges) == (1, 0)
    assert (receipt(SERVED, HEDGE).fallbacks, receipt(SERVED, HEDGE).hedges) == (0, 1)


def test_a_receipt_says_this_and_nothing_else() -> None:
    """Every field of inferlane/receipt/v1; neither payload nor identity."""
    made = receipt(FAILED, SERVED)
    assert made.to_json() == {
        "schema": "inferlane/receipt/v1",
        "request_id": "r-1",
        "at": "2026-11-30T01:00:00Z",
        "method": "POST",
        "path": "/realtime/chat",
        "model": None,
        "content_type": "application/json",
        "headers": {"prefer": "wait=1"},
        "decision": made.decision.to_json(),
        "attempts": [FAILED.to_json(), SERVED.to_json()],
        "status": 200,
        "lane": "serverless",
        "latency_ms": 544.124,
        "decide_ms": 0.02,
        "bytes_in": 812,
        "bytes_out": 64,
        "cost_usd": 0.000123,
        "counterfactual_usd": {"dedicated": 0.00001},
        "snapshot_age_s": 12.346,
        "breakers": {"dedicated": "half_open", "serverless": "closed"},
        "policy_version": "test.1",
    }


def test_an_attempt_says_this_and_nothing_else() -> None:
    """A hedge that failed and an answer; no empty detail."""
    assert HEDGE.to_json() == {
        "lane": "serverless",
        "outcome": "lost",
        "status": None,
        "started_ms": 300.0,
        "duration_ms": 100.0,
        "timeout_ms": 5000.0,
        "cost_usd": None,
        "hedge": True,
        "detail": "closed",
    }
    assert SERVED.to_json() == {
        "lane": "serverless",
        "outcome": "ok",
        "status": 200,
        "started_ms": 501.0,
        "duration_ms": 42.123,
        "timeout_ms": 10_000.0,
        "cost_usd": 0.000003,
    }
    assert "detail" not in replace(FAILED, detail="").to_json()


def test_a_request_that_became_a_job_names_it() -> None:
    """Its id finds the record; the others have no such field."""
    assert replace(receipt(), job="0a" * 16).to_json()["job"] == "0a" * 16
    assert "job" not in receipt().to_json()

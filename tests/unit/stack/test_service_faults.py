"""Faults of the cloud's services: the table, and the form in which a service refuses."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from botocore.parsers import create_parser
from botocore.retries import standard

from workbench.stack.calls import Call
from workbench.stack.refusals import REFUSALS, Form, Refusal, answer
from workbench.stack.service_faults import ServiceFault, ServiceFaultError, ServiceFaults

PUT = Call("dynamodb", "PutItem", "inferlane-local-jobs")


def add(service: str = "dynamodb", kind: str = "throttle", **more: Any) -> ServiceFault:
    """A fault, put in force at 100."""
    return ServiceFaults().add({"service": service, "kind": kind, **more}, 100.0)


@pytest.mark.parametrize(
    ("narrowed", "concerned"),
    [
        ({}, True),
        ({"operations": ["PutItem", "UpdateItem"]}, True),
        ({"operations": ["GetItem"]}, False),
        ({"resource": "*-jobs"}, True),
        ({"resource": "*-runs"}, False),
        ({"service": "s3"}, False),
    ],
)
def test_which_calls(narrowed: dict[str, Any], concerned: bool) -> None:
    """A fault concerns calls of its service, operations and resources."""
    assert add(**narrowed).concerns(PUT) is concerned


def test_whose_calls() -> None:
    """A fault of a function's calls meets those that it makes; a kill meets functions only, and one call."""
    narrowed = add(function="inferlane-*-collect")
    assert [narrowed.meets(name, 0) for name in (None, "other", "inferlane-local-collect")] == [False, False, True]
    kill = add(kind="kill", function="collect", params={"call": 2})
    assert [kill.meets(name, 0) for name in (None, "collect", "collect", "collect")] == [False, False, True, False]


def test_shares_and_times() -> None:
    """A draw above the share is let through; after so many meetings all are."""
    fault = add(params={"percent": 30, "times": 1})
    assert [fault.meets(None, draw) for draw in (30, 29, 29)] == [False, True, False]
    assert fault.shown()["met"] == 1


def test_the_end_by_itself() -> None:
    """A fault with a duration is not in force any more when that is over."""
    faults = ServiceFaults()
    kept = faults.add({"service": "s3", "kind": "slow", "params": {"ms": 5}}, 100.0)
    faults.add({"service": "s3", "kind": "slow", "params": {"ms": 5, "seconds": 2}}, 100.0)
    assert (len(faults.all(101.9)), faults.all(102.0)) == (2, [kept])
    assert (faults.remove(kept.id), faults.remove(kept.id)) == (kept, None)


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        ([], "not a JSON object"),
        ({"service": "sns", "kind": "throttle"}, "service must be one of dynamodb, s3, sqs, firehose"),
        ({"service": "s3", "kind": "hang"}, "kind must be one of throttle, error"),
        ({"service": "s3", "kind": "throttle", "lane": "x"}, "unknown member 'lane'"),
        ({"service": "s3", "kind": "throttle", "operations": "PutObject"}, "operations must be a list"),
        ({"service": "s3", "kind": "throttle", "resource": 3}, "resource must be a text"),
        ({"service": "s3", "kind": "throttle", "code": "Slow"}, "s3 has for throttle: SlowDown"),
        ({"service": "s3", "kind": "slow", "code": "SlowDown", "params": {"ms": 1}}, "has no code"),
        ({"service": "s3", "kind": "slow"}, "slow needs ms"),
        ({"service": "s3", "kind": "throttle", "params": 3}, "params must be a JSON object"),
        ({"service": "s3", "kind": "throttle", "params": {"call": 3}}, "has no parameter 'call'"),
        ({"service": "s3", "kind": "throttle", "params": {"percent": True}}, "percent must be a number from 0 to 100"),
    ],
)
def test_requests_that_make_no_sense(request_: object, problem: str) -> None:
    """What cannot be done is refused, with what could."""
    with pytest.raises(ServiceFaultError, match=problem):
        ServiceFaults().add(request_, 0.0)


OPERATIONS = {"dynamodb": "PutItem", "s3": "PutObject", "sqs": "SendMessage", "firehose": "PutRecord"}


@pytest.mark.parametrize(
    ("service", "form", "refusal"),
    [(service, form, each) for service, forms in REFUSALS.items() for form, those in forms.items() for each in those],
    ids=lambda value: value.code if isinstance(value, Refusal) else str(value),
)
def test_forms(service: str, form: Form, refusal: Refusal) -> None:
    """botocore reads the code, and its retries take a throttle for one and a failure for transient."""
    model: Any = botocore.session.get_session().get_service_model(service)
    protocol = "rest-xml" if service == "s3" else "json"
    whole = answer(service, refusal)
    headers = {name.decode(): value.decode() for name, value in whole.headers}
    response = {"status_code": whole.status, "headers": headers, "body": whole.body, "context": {}}
    parsed = create_parser(protocol).parse(response, model.operation_model(OPERATIONS[service]).output_shape)
    assert parsed["Error"]["Code"] == refusal.code
    assert parsed["Error"]["Message"] == refusal.message
    throttled: Any = standard.ThrottledRetryableChecker
    transient: Any = standard.TransientRetryableChecker
    assert refusal.code in throttled._THROTTLED_ERROR_CODES or whole.status in transient._TRANSIENT_STATUS_CODES


def test_no_body_for_a_head() -> None:
    """A HEAD is refused by its status alone."""
    whole = answer("s3", REFUSALS["s3"]["throttle"][0], "HEAD")
    assert (whole.status, whole.body) == (503, b"")

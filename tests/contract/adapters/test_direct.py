"""AWS without an SDK: what is sent and understood is what boto3 sends and understands."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import boto3
import pytest
from botocore.config import Config

from functions.aws.direct import ConditionalCheckFailedError, Dynamo, Service, ServiceError
from functions.settings import AccessKeys
from tests.contract.adapters.stub import Received, Reply, Stub, unused_url

KEYS = AccessKeys("AKIDEXAMPLE", "secret", "token")
JSON = {"content-type": "application/x-amz-json-1.0"}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("get_item", {"TableName": "t", "Key": {"pk": {"S": "snapshot"}}}),
    (
        "put_item",
        {
            "TableName": "t",
            "Item": {"pk": {"S": "snapshot"}, "body": {"B": b"\x00\xff"}, "epoch": {"N": "3"}},
            "ConditionExpression": "attribute_not_exists(epoch) OR epoch < :mine",
            "ExpressionAttributeValues": {":mine": {"N": "3"}},
        },
    ),
    (
        "update_item",
        {
            "TableName": "t",
            "Key": {"pk": {"S": "marks"}},
            "UpdateExpression": "SET #a = :a REMOVE #b",
            "ExpressionAttributeNames": {"#a": "1|m|dedicated", "#b": "2|m|dedicated"},
            "ExpressionAttributeValues": {":a": {"N": "1.5"}},
            "ReturnValues": "UPDATED_NEW",
        },
    ),
]


def boto(url: str, service: str = "dynamodb") -> Any:
    return boto3.client(
        service,  # type: ignore[call-overload]
        region_name="us-east-1",
        endpoint_url=url,
        config=Config(retries={"total_max_attempts": 1}),
        aws_access_key_id=KEYS.access_key,
        aws_secret_access_key=KEYS.secret_key,
        aws_session_token=KEYS.token,
    )


def dynamo(url: str) -> Dynamo:
    return Dynamo(Service("dynamodb", "dynamodb", "us-east-1", KEYS, url=url, timeout_s=2))


def told(seen: Received) -> tuple[str, str, str, str, object]:
    """What matters of a request."""
    scope = seen.headers["authorization"].partition("Credential=")[2].partition(",")[0].split("/")
    target = seen.headers.get("x-amz-target", "")
    return seen.method, seen.path, target, "/".join(scope[2:]), json.loads(seen.body) if seen.body else None


@pytest.mark.parametrize(("operation", "asked"), CALLS, ids=[name for name, _ in CALLS])
def test_the_same_call_is_the_same_request(operation: str, asked: dict[str, Any]) -> None:
    """Method, path, target, scope of the signature, and the document."""
    with Stub(Reply(200, b"{}", JSON)) as stub:
        getattr(boto(stub.url), operation)(**asked)
        getattr(dynamo(stub.url), operation)(**asked)
    theirs, ours = stub.received
    assert told(ours) == told(theirs)
    assert ours.headers["content-type"] == theirs.headers["content-type"]
    assert ours.headers["x-amz-security-token"] == "token"


def test_the_same_answer_is_the_same_item() -> None:
    """Binary values are bytes, numbers stay text; an attribute named B is not taken for one."""
    item = {"pk": {"S": "x"}, "body": {"B": base64.b64encode(b"\x00\xff").decode()}, "B": {"N": "1"}}
    with Stub(Reply(200, json.dumps({"Item": item}).encode(), JSON)) as stub:
        theirs = boto(stub.url).get_item(**CALLS[0][1])["Item"]
        ours = dynamo(stub.url).get_item(**CALLS[0][1])["Item"]
    assert ours == theirs


def test_a_condition_that_does_not_hold_is_told_from_a_failure() -> None:
    """The one is an outcome, all else is an error that names status and code."""
    prefix = "com.amazonaws.dynamodb.v20120810#"
    failed = json.dumps({"__type": f"{prefix}ConditionalCheckFailedException", "message": "no"}).encode()
    throttled = json.dumps({"__type": f"{prefix}ThrottlingException", "message": "slow down"}).encode()
    with Stub(Reply(400, failed, JSON), Reply(400, throttled, JSON), Reply(500, b"oops"), Reply(200, b"[]")) as stub:
        made = dynamo(stub.url)
        with pytest.raises(ConditionalCheckFailedError):
            made.put_item()
        with pytest.raises(ServiceError, match="400 ThrottlingException: slow down"):
            made.put_item()
        with pytest.raises(ServiceError, match="500 without a code"):
            made.put_item()
        with pytest.raises(ServiceError, match="no JSON object"):
            made.put_item()


def test_appconfigs_calls_are_boto3s_as_well() -> None:
    """A token with characters that a query must encode, signed as it is sent."""
    token = "a+b/c=d e&f"
    headers = {"Next-Poll-Configuration-Token": "n", "Next-Poll-Interval-In-Seconds": "15"}
    with Stub(Reply(200, b"{}", headers)) as stub:
        boto(stub.url, "appconfigdata").get_latest_configuration(ConfigurationToken=token)
        service = Service("appconfig", "appconfigdata", "us-east-1", KEYS, url=stub.url, timeout_s=2)
        service.call("GET", "/configuration", {}, query={"configuration_token": token})
    theirs, ours = stub.received
    assert told(ours) == told(theirs)


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("us-east-1", "appconfigdata.us-east-1.amazonaws.com"),
        ("cn-north-1", "appconfigdata.cn-north-1.amazonaws.com.cn"),
    ],
)
def test_the_public_endpoint_is_boto3s(region: str, host: str) -> None:
    """Unless a URL overrides it."""
    made = Service("appconfig", "appconfigdata", region, KEYS, url=None, timeout_s=1)
    client = boto3.client("appconfigdata", region_name=region, aws_access_key_id="a", aws_secret_access_key="b")
    assert client.meta.endpoint_url == f"https://{host}" == f"https://{made.host}"


def test_an_idle_connection_that_the_service_closed_costs_no_failure() -> None:
    """The next call connects anew."""
    with Stub(Reply(200, b"{}", JSON, ending="close")) as stub:
        made = dynamo(stub.url)
        for _ in range(3):
            assert made.get_item() == {}
            time.sleep(0.1)  # idle: the service's close has arrived before the next call


def test_nobody_there_is_an_error_within_its_time() -> None:
    """For the caller to cope with."""
    with pytest.raises(ConnectionError):
        dynamo(unused_url()).get_item()


PASSING = {
    "throttled": Reply(400, b'{"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException"}', JSON),
    "crowded": Reply(429, b"{}", JSON),
    "failing": Reply(500, b'{"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError"}', JSON),
    "away": Reply(503, b"no document"),
    "reset": Reply(ending="reset_early"),
    "silent": Reply(200, b"{}", JSON, after_s=0.4),
    "none": Reply(ending="none"),
}


def persistent(url: str, timeout_s: float = 0.9) -> Dynamo:
    return Dynamo(Service("dynamodb", "dynamodb", "us-east-1", KEYS, url=url, timeout_s=timeout_s, attempts=3))


@pytest.mark.parametrize("kind", PASSING)
def test_who_only_reads_may_ask_for_more_attempts(kind: str) -> None:
    """What passes by itself costs the caller no failure, as it costs none of the SDK's; twice in a row neither."""
    with Stub(PASSING[kind], PASSING[kind], Reply(200, b'{"Item": {}}', JSON)) as stub:
        assert persistent(stub.url).get_item() == {"Item": {}}


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException", "ValidationException"])
def test_what_does_not_pass_is_not_asked_again(code: str) -> None:
    """Who may not read, or reads nothing, has the answer with the first attempt."""
    with Stub(Reply(400, json.dumps({"__type": f"x#{code}"}).encode(), JSON)) as stub:
        with pytest.raises(ServiceError, match=code):
            persistent(stub.url).get_item()
        assert len(stub.received) == 1


@pytest.mark.parametrize("kind", PASSING)
def test_attempts_end_and_in_their_time(kind: str) -> None:
    """Three, and no longer than one would have taken; the last failure is the caller's."""
    with Stub(PASSING[kind]) as stub:
        began = time.monotonic()
        with pytest.raises((OSError, ServiceError)):
            persistent(stub.url).get_item()
        assert time.monotonic() - began < 0.9 + 0.3
        assert kind == "reset" or len(stub.received) == 3


def test_one_attempt_is_one() -> None:
    """A write that was not answered may have been done."""
    with Stub(PASSING["failing"], Reply(200, b"{}", JSON)) as stub:
        with pytest.raises(ServiceError):
            dynamo(stub.url).put_item()
        assert len(stub.received) == 1


def test_keys_do_not_show() -> None:
    """Not in a log line that holds the settings by mistake."""
    assert "secret" not in repr(KEYS)
    assert "token" not in repr(KEYS).replace("token=", "")

"""Acceptance without an SDK: what is written, in which order, as boto3 writes it; and what is said of a failure."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from functions.aws.acceptance import DirectAcceptance
from functions.aws.job_items import decode, encode
from functions.aws.work_messages import INLINE_BYTES, read
from functions.batch_ports import BusyError, UnavailableError
from functions.bootstrap import acceptance
from functions.core.job import PROMOTED, Job, JobKey, Work
from functions.settings import AcceptanceSettings
from tests.contract.adapters.stub import Received, Reply, Stub, unused_url
from tests.contract.adapters.test_direct import JSON, KEYS, boto

KEY = JobKey("acme", "0" * 32)
WORK = Work(KEY, "m", "application/json", None, 1_700_000_000.25, 1_700_003_600.5, ("serverless",), b'{"text": "ok"}')
JOB = Job(KEY, "m", "f" * 64, 1_700_000_000.25, 1_700_003_600.5)
OK = Reply(200, b"{}", JSON)
QUEUE = "https://sqs.us-east-1.amazonaws.com/123456789012/inferlane-test-work"
PROMOTIONS = "https://sqs.us-east-1.amazonaws.com/123456789012/inferlane-test-promote"


def made(url: str) -> DirectAcceptance:
    return acceptance(AcceptanceSettings("jobs", QUEUE, "bucket", PROMOTIONS, url, url, url), "us-east-1", KEYS)


def told(seen: Received) -> tuple[str, str, str, object]:
    """What matters of a request."""
    scope = seen.headers["authorization"].partition("Credential=")[2].partition(",")[0].split("/")
    document = json.loads(seen.body) if seen.body.startswith(b"{") else seen.body
    return seen.method, seen.path, "/".join(scope[2:]), document


def item_reply(job: Job) -> Reply:
    wire = json.dumps({"Item": encode(job, 0)})
    return Reply(200, wire.encode(), JSON)


CONDITION = Reply(
    400,
    json.dumps(
        {"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", "message": "no"}
    ).encode(),
    JSON,
)


def test_message_first_record_second_as_boto3_sends_them() -> None:
    """SQS and DynamoDB get what boto3 would have sent; the message holds all that it takes to run the work."""
    with Stub(OK) as stub:
        assert made(stub.url).accept(WORK, JOB, 5) is None
        ours = list(stub.received)
        document: Any = json.loads(ours[0].body)
        boto(stub.url, "sqs").send_message(**document)
        boto(stub.url).put_item(TableName="jobs", Item=encode(JOB, 0), ConditionExpression="attribute_not_exists(id)")
        theirs = stub.received[2:]
    assert [told(seen) for seen in ours] == [told(seen) for seen in theirs]
    assert [seen.headers["x-amz-target"] for seen in ours] == [seen.headers["x-amz-target"] for seen in theirs]
    assert read(document["MessageBody"]) == WORK


def test_a_body_that_no_message_carries_goes_to_s3_first() -> None:
    """As boto3 puts it, under a key of its own for each content; the message names the object."""
    body = b"x" * (INLINE_BYTES + 1)
    with Stub(OK) as stub:
        made(stub.url).accept(replace(WORK, body=body), JOB, 5)
        put, sent, _ = stub.received
        made(stub.url).accept(replace(WORK, body=body[:-1] + b"y"), JOB, 5)
        other = stub.received[3]
        stub.script[:] = [Reply()]
        boto(stub.url, "s3").put_object(Bucket="bucket", Key=put.path.removeprefix("/bucket/"), Body=body)
        theirs = stub.received[6]
    assert (put.method, put.path, put.body) == (theirs.method, theirs.path, body)
    assert put.path.startswith(f"/bucket/batch/payloads/{KEY.id}-")
    assert put.headers["x-amz-content-sha256"]
    assert other.path != put.path
    work = read(json.loads(sent.body)["MessageBody"])
    assert work is not None
    assert (work.body, f"/bucket/{work.object}") == (None, put.path)


def test_what_promotion_answers_for_goes_to_its_queue() -> None:
    """With a second's delay, so that the record is there; the collector's queue hears nothing of it."""
    urgent = replace(JOB, run=PROMOTED)
    with Stub(OK) as stub:
        assert made(stub.url).accept(WORK, urgent, 5) is None
        sent, put = (json.loads(seen.body) for seen in stub.received)
        boto(stub.url, "sqs").send_message(**sent)
        assert told(stub.received[2]) == told(stub.received[0])
    assert (sent["QueueUrl"], sent["DelaySeconds"]) == (PROMOTIONS, 1)
    assert read(sent["MessageBody"]) == WORK
    assert decode(put["Item"]) == urgent


def test_nothing_urgent_is_taken_where_nothing_urgent_is_expected() -> None:
    """A record that says promoted must have its message in promotion's queue."""
    with Stub(OK) as stub:
        plain = acceptance(AcceptanceSettings("jobs", QUEUE, "bucket", None, stub.url, stub.url), "us-east-1", KEYS)
        with pytest.raises(UnavailableError):
            plain.accept(WORK, replace(JOB, run=PROMOTED), 5)
        assert stub.received == []


def test_the_bucket_is_in_the_public_host() -> None:
    """Path-style addresses are for what stands in for S3."""
    made_public = acceptance(AcceptanceSettings("jobs", QUEUE, "bucket"), "eu-central-1", KEYS)
    assert made_public._objects.host == "bucket.s3.eu-central-1.amazonaws.com"
    assert made_public._objects_path == ""


def test_a_record_that_exists_is_answered() -> None:
    """Whoever raced with the same key learns of the job that there is."""
    other = replace(JOB, fingerprint="e" * 64)
    with Stub(OK, CONDITION, item_reply(other)) as stub:
        assert made(stub.url).accept(WORK, JOB, 5) == other
    read_back = json.loads(stub.received[2].body)
    assert read_back["ConsistentRead"] is True


def test_a_record_is_found_or_not() -> None:
    """Read consistently."""
    with Stub(item_reply(JOB), OK) as stub:
        assert made(stub.url).find(KEY, 5) == JOB
        assert made(stub.url).find(KEY, 5) is None


def test_a_record_that_went_in_between_is_no_promise() -> None:
    """Expired between the write and the read: the caller is told to come again."""
    with Stub(OK, CONDITION, OK) as stub, pytest.raises(UnavailableError, match="gone"):
        made(stub.url).accept(WORK, JOB, 5)


THROTTLED = Reply(
    400, b'{"__type":"com.amazon.coral.availability#ThrottlingException","message":"Rate exceeded"}', JSON
)
SLOW = Reply(503, b'<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>k</Message></Error>')


@pytest.mark.parametrize(
    ("script", "kind", "said", "calls"),
    [
        ([THROTTLED], BusyError, "400 ThrottlingException: Rate exceeded", 1),
        ([OK, THROTTLED], BusyError, "ThrottlingException", 2),
        ([Reply(500, b"oops")], UnavailableError, "500 without a code", 1),
        ([Reply(429, b"{}")], BusyError, "429", 1),
        ([Reply(200, b"[]", JSON)], UnavailableError, "SendMessage answered no JSON object", 1),
        ([Reply(200, b"<html>", JSON)], UnavailableError, "JSONDecodeError", 1),
        ([OK, Reply(403, b'{"__type":"AccessDeniedException"}')], UnavailableError, "AccessDenied", 2),
        ([OK, CONDITION, Reply(200, b'{"Item":{"id":{"S":"x"}}}', JSON)], UnavailableError, "malformed", 3),
    ],
)
def test_what_fails_is_busy_or_unavailable(script: list[Reply], kind: type[Exception], said: str, calls: int) -> None:
    """At every step; nothing is written after a step that failed."""
    with Stub(*script) as stub:
        with pytest.raises(kind, match=said):
            made(stub.url).accept(WORK, JOB, 5)
        assert len(stub.received) == calls


def test_s3_asking_to_slow_down_is_busy_and_nothing_is_sent() -> None:
    """XML, of which only the code is read."""
    with Stub(SLOW) as stub, pytest.raises(BusyError, match="503 SlowDown: no message"):
        made(stub.url).accept(replace(WORK, body=b"x" * 200_000), JOB, 5)
    assert len(stub.received) == 1


def test_nobody_there_or_too_slow_is_unavailable() -> None:
    """The time given bounds the whole call, not each step of it."""
    with pytest.raises(UnavailableError):
        made(unused_url()).find(KEY, 1)
    with Stub(Reply(200, b"{}", JSON, after_s=0.3)) as stub, pytest.raises(UnavailableError, match="time"):
        made(stub.url).accept(WORK, JOB, 0.4)
    assert len(stub.received) == 2


def test_whatever_a_record_holds_comes_back() -> None:
    """The item that is written is the item that is read."""
    assert decode(encode(JOB, 0)) == JOB

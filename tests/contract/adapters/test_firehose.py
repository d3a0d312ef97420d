"""The capture stream over HTTP: one signed PutRecord, once, within its time."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator

import boto3
import pytest

from functions.aws.direct import Service, ServiceError
from functions.aws.firehose import FirehoseSink
from functions.ports import CaptureSink
from functions.settings import AccessKeys
from tests.contract.adapters.stub import Reply, Stub, unused_url

KEYS = AccessKeys("AKIAEXAMPLE", "secret", None)


def sink(url: str) -> CaptureSink:
    return FirehoseSink(Service("firehose", "firehose", "us-east-1", KEYS, url=url, timeout_s=5), "captures")


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub(Reply(200, b'{"RecordId":"1"}', {"content-type": "application/x-amz-json-1.1"})) as made:
        yield made


def test_a_record_is_put_as_firehose_reads_it(stub: Stub) -> None:
    """The stream's name and the line in Base64, signed for the service."""
    sink(stub.url).put(b'{"a":"\xc3\xbc"}\n', 1.0)
    (seen,) = stub.received
    assert (seen.method, seen.path) == ("POST", "/")
    assert seen.headers["x-amz-target"] == "Firehose_20150804.PutRecord"
    assert "/us-east-1/firehose/aws4_request" in seen.headers["authorization"]
    body = json.loads(seen.body)
    assert body["DeliveryStreamName"] == "captures"
    assert base64.b64decode(body["Record"]["Data"]) == b'{"a":"\xc3\xbc"}\n'


def test_the_call_is_the_one_that_the_sdk_makes(stub: Stub) -> None:
    """botocore's own request has the same target, type and members."""
    sink(stub.url).put(b"line\n", 1.0)
    client = boto3.client(
        "firehose", "us-east-1", endpoint_url=stub.url, aws_access_key_id="x", aws_secret_access_key="y"
    )
    client.put_record(DeliveryStreamName="captures", Record={"Data": b"line\n"})
    ours, theirs = stub.received
    assert json.loads(ours.body) == json.loads(theirs.body)
    for name in ("x-amz-target", "content-type"):
        assert ours.headers[name] == theirs.headers[name]


@pytest.mark.parametrize("status", [400, 500, 503])
def test_a_record_that_was_not_taken_is_an_error(status: int) -> None:
    """Throttled, unknown stream, broken: one try."""
    with Stub(Reply(status, b'{"__type":"ServiceUnavailableException"}')) as stub:
        with pytest.raises(ServiceError):
            sink(stub.url).put(b"line\n", 1.0)
        assert len(stub.received) == 1


def test_nothing_takes_longer_than_it_may() -> None:
    """A stream that does not answer, or cannot be reached, is given up in time."""
    with Stub(Reply(after_s=5)) as stub:
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            sink(stub.url).put(b"line\n", 0.1)
        assert time.monotonic() - began < 1
    with pytest.raises(OSError, match="Refused"):
        sink(unused_url()).put(b"line\n", 0.25)

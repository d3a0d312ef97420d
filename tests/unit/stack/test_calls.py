"""What a request to the offline cloud asks for is told from what the SDK sends."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.config import Config

from workbench.stack.calls import Call, call_of, service_of

URL = "http://127.0.0.1:9"


class Sent(Exception):  # noqa: N818 - not an error
    """The request, in place of an answer."""


def sent(service: str, operation: str, **parameters: Any) -> Call:
    """What is seen of a call that boto3 makes."""
    client: Any = boto3.client(
        service,  # type: ignore[call-overload]  # a variable
        endpoint_url=URL,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(s3={"addressing_style": "path"}),
    )

    def stop(request: Any, **_: Any) -> None:
        raise Sent(request)

    client.meta.events.register("before-send", stop)
    with pytest.raises(Sent) as caught:
        getattr(client, operation)(**parameters)
    request = caught.value.args[0]
    path, _, query = request.url.removeprefix(URL).partition("?")
    headers = [
        (name.encode(), value if isinstance(value, bytes) else value.encode())
        for name, value in request.headers.items()
    ]
    body = request.body if isinstance(request.body, bytes) else b""
    return call_of(request.method, path, query, headers, body)


@pytest.mark.parametrize(
    ("call", "seen"),
    [
        (
            sent("dynamodb", "get_item", TableName="jobs", Key={"id": {"S": "1"}}),
            Call("dynamodb", "GetItem", "jobs"),
        ),
        (
            sent("sqs", "send_message", QueueUrl=f"{URL}/000000000000/work", MessageBody="x"),
            Call("sqs", "SendMessage", "work"),
        ),
        (
            sent("firehose", "put_record", DeliveryStreamName="capture", Record={"Data": b"x"}),
            Call("firehose", "PutRecord", "capture"),
        ),
        (
            sent("s3", "put_object", Bucket="b", Key="batch/a b", Body=b"x"),
            Call("s3", "PutObject", "b/batch/a b", "PUT"),
        ),
        (sent("s3", "get_object", Bucket="b", Key="k"), Call("s3", "GetObject", "b/k", "GET")),
        (sent("s3", "head_object", Bucket="b", Key="k"), Call("s3", "HeadObject", "b/k", "HEAD")),
        (sent("s3", "list_objects_v2", Bucket="b"), Call("s3", "ListObjectsV2", "b", "GET")),
        (sent("s3", "get_bucket_versioning", Bucket="b"), Call("s3", "", "b", "GET")),
        (
            sent("s3", "delete_objects", Bucket="b", Delete={"Objects": [{"Key": "k"}]}),
            Call("s3", "DeleteObjects", "b", "POST"),
        ),
        (
            sent("s3", "upload_part", Bucket="b", Key="k", PartNumber=1, UploadId="u", Body=b"x"),
            Call("s3", "UploadPart", "b/k", "PUT"),
        ),
    ],
    ids=lambda value: value.operation or "setting" if isinstance(value, Call) else None,
)
def test_calls(call: Call, seen: Call) -> None:
    """Service, operation and resource, as boto3 puts them on the wire."""
    assert call == seen


def test_a_presigned_url() -> None:
    """A URL that is signed itself tells its service; what is not signed tells none."""
    credential = "X-Amz-Credential=test%2F20261201%2Fus-east-1%2Fs3%2Faws4_request"
    assert (service_of([], credential), service_of([], "a=b")) == ("s3", "")


@pytest.mark.parametrize("body", [b"", b"[1]", b'{"TableName": 3}', b"\xff"])
def test_a_body_that_names_nothing(body: bytes) -> None:
    """A call whose resource is not told has none."""
    assert call_of("POST", "/", "", [(b"X-Amz-Target", b"DynamoDB_20120810.ListTables")], body).resource == ""

"""How the services of the offline cloud refuse in AWS's own form, so that SDKs know the error and try again or do not.

throttle  DynamoDB of an on-demand table: ThrottlingException, of a provisioned one ProvisionedThroughputExceeded-
          Exception (400); S3: SlowDown (503); SQS: RequestThrottled (403); Firehose: ServiceUnavailableException (500)
error     the service's own failure (500): InternalServerError, InternalError, InternalFailure

Texts are those that clients have been seen to get: aws/aws-appsync-community#336 (on-demand), benhutchins/dyngoose#668
(provisioned), the API references of S3 and Firehose. DynamoDB says itself that a call which ends in its 500 may have
been carried out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal
from uuid import uuid4
from zlib import crc32

Form = Literal["throttle", "error"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error of a service: its code, its type on the wire, its words."""

    code: str
    status: int
    message: str
    namespace: str = ""
    """What stands before the code in `__type`."""
    fault: str = "Sender"
    """Whose, in SQS's older protocol."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole HTTP answer."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


_DYNAMODB = "com.amazonaws.dynamodb.v20120810#"
REFUSALS: Final[Mapping[str, Mapping[Form, tuple[Refusal, ...]]]] = {
    "dynamodb": {
        "throttle": (
            Refusal(
                "ThrottlingException",
                400,
                "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling "
                "your table or index so please try again shortly. If exceptions persist, check if you have a hot key: "
                "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html",
                _DYNAMODB,
            ),
            Refusal(
                "ProvisionedThroughputExceededException",
                400,
                "The level of configured provisioned throughput for the table was exceeded. Consider increasing your "
                "provisioning level with the UpdateTable API.",
                _DYNAMODB,
            ),
        ),
        "error": (
            Refusal(
                "InternalServerError",
                500,
                "The request processing has failed because of an unknown error, exception or failure.",
                _DYNAMODB,
            ),
        ),
    },
    "s3": {
        "throttle": (Refusal("SlowDown", 503, "Please reduce your request rate."),),
        "error": (Refusal("InternalError", 500, "We encountered an internal error. Please try again."),),
    },
    "sqs": {
        "throttle": (
            Refusal("RequestThrottled", 403, "The request was denied due to request throttling.", "com.amazonaws.sqs#"),
        ),
        "error": (
            Refusal(
                "InternalFailure",
                500,
                "The request processing has failed because of an unknown error, exception or failure.",
                fault="Receiver",
            ),
        ),
    },
    "firehose": {
        "throttle": (Refusal("ServiceUnavailableException", 500, "Slow down."),),
        "error": (Refusal("InternalFailure", 500, ""),),
    },
}
"""Service -> form -> its refusals, the usual one first."""


def answer(service: str, refusal: Refusal, method: str = "POST") -> Answer:
    """The refusal as the service sends it."""
    request_id = uuid4().hex.upper()
    if service == "s3":
        body = b"" if method == "HEAD" else _xml(refusal, request_id)
        kind = b"application/xml"
        extra = [(b"x-amz-request-id", request_id[:16].encode()), (b"x-amz-id-2", request_id.encode())]
    else:
        body = json.dumps({"__type": refusal.namespace + refusal.code, "message": refusal.message}).encode()
        kind = b"application/x-amz-json-1.1" if service == "firehose" else b"application/x-amz-json-1.0"
        extra = [(b"x-amzn-requestid", request_id.encode())]
    if service == "dynamodb":
        extra.append((b"x-amz-crc32", str(crc32(body)).encode()))
    if service == "sqs":
        extra.append((b"x-amzn-query-error", f"{refusal.code};{refusal.fault}".encode()))
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), *extra]
    return Answer(refusal.status, headers, body)


def _xml(refusal: Refusal, request_id: str) -> bytes:
    inner = f"<Code>{refusal.code}</Code><Message>{refusal.message}</Message>"
    inner += f"<RequestId>{request_id[:16]}</RequestId><HostId>{request_id}</HostId>"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<Error>{inner}</Error>'.encode()

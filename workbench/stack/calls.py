"""What a request to the offline cloud asks for: of which service, which operation, on which resource. Pure.

The service is the credential's scope, as AWS has it; the operation is the target header's, and S3's by its method; the
resource is the table, queue or stream that the body names, and S3's `bucket/key`. What is not told is an empty text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote

_SCOPE = re.compile(r"Credential=[^/,\s]+/\d+/[^/]+/([a-z0-9-]+)/aws4_request")
_NAMED_BY = ("TableName", "QueueUrl", "DeliveryStreamName")
_OF_KEYS = {"GET": "GetObject", "PUT": "PutObject", "HEAD": "HeadObject", "DELETE": "DeleteObject"}
_OF_BUCKETS = {"GET": "ListObjectsV2", "PUT": "CreateBucket", "HEAD": "HeadBucket", "DELETE": "DeleteBucket"}


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a service."""

    service: str
    operation: str
    resource: str
    method: str = "POST"


def service_of(headers: Iterable[tuple[bytes, bytes]], query: str) -> str:
    """The service that a request is signed for."""
    for name, value in headers:
        if name.lower() == b"authorization" and (scope := _SCOPE.search(value.decode("latin-1"))):
            return scope[1]
    presigned = parse_qs(query).get("X-Amz-Credential", [""])[0]
    parts = presigned.split("/")
    return parts[3] if len(parts) == 5 else ""


def call_of(method: str, path: str, query: str, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> Call:
    """The call that a request makes."""
    headers = list(headers)
    service = service_of(headers, query)
    if service == "s3":
        return Call(service, _s3_operation(method, path, query), unquote(path).lstrip("/"), method)
    target = next((value for name, value in headers if name.lower() == b"x-amz-target"), b"").decode("latin-1")
    return Call(service, target.rpartition(".")[2], _named(body), method)


def _s3_operation(method: str, path: str, query: str) -> str:
    """Of calls that concern a setting or a part of an upload, nothing but that they are neither of these."""
    _, _, key = path.lstrip("/").partition("/")
    asked = parse_qs(query, keep_blank_values=True)
    if method == "POST" and "delete" in asked:
        return "DeleteObjects"
    if {"uploads", "uploadId"} & asked.keys():
        return "UploadPart" if method == "PUT" else "MultipartUpload"
    if key:
        return _OF_KEYS.get(method, "")
    return _OF_BUCKETS.get(method, "") if not asked or "list-type" in asked else ""


def _named(body: bytes) -> str:
    try:
        document = json.loads(body)
    except ValueError:
        return ""
    if not isinstance(document, Mapping):
        return ""
    value = next((document[name] for name in _NAMED_BY if isinstance(document.get(name), str)), "")
    return str(value).rpartition("/")[2]

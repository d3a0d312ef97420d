"""AWS calls that a new instance makes before its first answer, without an SDK: AppConfigData, DynamoDB, SQS and S3.

Importing botocore and making two of its clients takes longer than all else that a cold start of the router does. These
services speak plain JSON over HTTP (S3, of which only writing an object is needed, plain HTTP), and the way to the
model (`signing`, `http1`) is there already; what is left is naming the operation and reading an error. One attempt,
within a time: whoever calls has a last good value, or a caller who is told to come again. Who has neither, and only
reads, asks for more attempts.

CloudWatch is read by one instance for all (`snapshot_store`), so that one imports the SDK; the others never do.
"""

from __future__ import annotations

import base64
import json
import random
import re
import time
from collections.abc import Mapping
from typing import Any, Final, Protocol
from urllib.parse import quote

from functions.aws.http1 import NotSentError, Peer, Response
from functions.aws.service_errors import is_busy
from functions.aws.signing import Credentials, Signer

_UNRESERVED: Final = "-_.~"
_XML_CODE: Final = re.compile(rb"<Code>([A-Za-z0-9]+)</Code>")
_PAUSE_S: Final = 0.05
"""Longest pause before a second attempt; it doubles with each. DynamoDB's SDKs begin with as much."""


class ServiceError(Exception):
    """A service refused, or failed; the message has its status and code."""

    def __init__(self, message: str, status: int = 0, code: str = "") -> None:
        """`status` 0: it answered with something else than was asked."""
        super().__init__(message)
        self.status = status
        self.code = code


class ConditionalCheckFailedError(ServiceError):
    """DynamoDB: the condition did not hold."""


class Items(Protocol):
    """DynamoDB on items, in boto3's words. A condition that does not hold raises `ConditionalCheckFailedError`."""

    def get_item(self, **asked: Any) -> Mapping[str, Any]:
        """GetItem."""
        ...

    def put_item(self, **asked: Any) -> Mapping[str, Any]:
        """PutItem."""
        ...

    def update_item(self, **asked: Any) -> Mapping[str, Any]:
        """UpdateItem."""
        ...


class Service:
    """One service of one region."""

    def __init__(
        self,
        name: str,
        host: str,
        region: str,
        credentials: Credentials,
        *,
        url: str | None,
        timeout_s: float,
        attempts: int = 1,
    ) -> None:
        """`name` as in its signatures, `host` as in its public endpoint, which `url` overrides.

        `attempts` share the time in equal parts; more than one is for reads alone, which may be repeated safely.
        """
        suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
        self._peer = Peer(url or f"https://{host}.{region}.{suffix}")
        self.host: Final = self._peer.host
        self._signer = Signer(name, region, self.host)
        self._credentials = credentials
        self._timeout_s = timeout_s
        self._attempts = attempts

    def call(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes = b"",
        *,
        query: Mapping[str, str] | None = None,
        ends: float | None = None,
    ) -> Response:
        """The answer of a 2xx. Raises `ServiceError`, or what the connection raises.

        `ends` is a reading of `time.monotonic()`, for a caller to whom the usual time does not suit.
        """
        ends = time.monotonic() + self._timeout_s if ends is None else ends
        for left in range(self._attempts, 1, -1):
            now = time.monotonic()
            try:
                return self._once(method, path, headers, body, query, now + (ends - now) / left)
            except (OSError, ServiceError) as error:
                if not _passing(error):
                    raise
            time.sleep(random.uniform(0, _PAUSE_S * 2 ** (self._attempts - left)))
        return self._once(method, path, headers, body, query, ends)

    def _once(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        query: Mapping[str, str] | None,
        ends: float,
    ) -> Response:
        pairs = sorted((query or {}).items())
        text = "&".join(f"{quote(name, safe=_UNRESERVED)}={quote(value, safe=_UNRESERVED)}" for name, value in pairs)
        keys = self._credentials.get_frozen_credentials()
        signed = self._signer.sign(path, body, headers, keys, time.time(), method=method, query=text)
        target = f"{path}?{text}" if text else path
        try:
            answer = self._peer.exchange(target, signed, body, ends, method)
        except NotSentError:  # an idle connection that the service had closed
            answer = self._peer.exchange(target, signed, body, ends, method)
        if not 200 <= answer.status < 300:
            raise _error(answer)
        return answer


def json_call(service: Service, target: str, asked: Mapping[str, Any], ends: float | None = None) -> dict[str, Any]:
    """One operation of a service that speaks AWS's JSON 1.0: `target` is version or service, a dot, and its name."""
    headers = {"content-type": "application/x-amz-json-1.0", "x-amz-target": target}
    answer = service.call("POST", "/", headers, json.dumps(asked, default=_text).encode(), ends=ends)
    found = json.loads(answer.body, object_hook=_bytes)
    if not isinstance(found, dict):
        raise ServiceError(f"{target.rpartition('.')[2]} answered no JSON object")
    return found


class Dynamo:
    """`Items` of one region; binary values are bytes."""

    def __init__(self, service: Service) -> None:
        """`service` is DynamoDB."""
        self._service = service

    def get_item(self, **asked: Any) -> dict[str, Any]:
        """GetItem."""
        return self._do("GetItem", asked)

    def put_item(self, **asked: Any) -> dict[str, Any]:
        """PutItem."""
        return self._do("PutItem", asked)

    def update_item(self, **asked: Any) -> dict[str, Any]:
        """UpdateItem."""
        return self._do("UpdateItem", asked)

    def _do(self, operation: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        return json_call(self._service, f"DynamoDB_20120810.{operation}", asked)


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    raise TypeError(f"{type(value).__name__} is no attribute value")


def _bytes(found: dict[str, object]) -> dict[str, object]:
    """An attribute value `{"B": text}` as bytes."""
    if len(found) == 1 and isinstance(text := found.get("B"), str):
        return {"B": base64.b64decode(text)}
    return found


def _passing(error: OSError | ServiceError) -> bool:
    """Whether the next attempt may fare better: no connection or no time, the service's own failure, or too much."""
    return not isinstance(error, ServiceError) or error.status >= 500 or error.status == 429 or is_busy(error.code)


def _error(answer: Response) -> ServiceError:
    code, message = _xml_error(answer.body) if answer.body.startswith(b"<") else _json_error(answer)
    kind = ConditionalCheckFailedError if code == "ConditionalCheckFailedException" else ServiceError
    text = f"{answer.status} {code or 'without a code'}: {message or 'no message'}"
    return kind(text, answer.status, code)


def _json_error(answer: Response) -> tuple[str, object]:
    try:
        document = json.loads(answer.body)
    except ValueError:
        document = {}
    found = document if isinstance(document, dict) else {}
    code = str(answer.headers.get("x-amzn-errortype") or found.get("__type") or "")
    return code.partition(":")[0].rpartition("#")[2], found.get("message") or found.get("Message")


def _xml_error(body: bytes) -> tuple[str, object]:
    """S3's; its message may name the object and is left out."""
    found = _XML_CODE.search(body)
    return ("", None) if found is None else (found[1].decode(), None)

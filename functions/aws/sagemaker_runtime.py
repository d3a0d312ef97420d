"""SageMaker's runtime as an `Invoker`: one signed HTTP request an attempt, on a pooled connection, never repeated.

A signed urllib3 request costs half of what the AWS client's `invoke_endpoint` does, and nothing here retries: a
repeated read timeout would run, and bill, the model again. The wire forms are mapped once, by `_ERRORS`:

* 424 ModelError: the container answered `OriginalStatusCode`. 4xx is the caller's and goes back with the container's
  own body; 429 and 503 are its full queue; 0 (it timed out) and other 5xx are upstream errors.
* 400 ThrottlingException (message null), 429 ModelNotReady, 503, 530, 500, 413, and ValidationError by its text.
* Everything about *us* (403, unknown endpoint) is upstream: never shown as the caller's fault.

The one exception to "never repeated": a connection that breaks *while the request is being written* has delivered an
incomplete request, which nothing can have run; it is sent once more on a fresh connection. A connection that closes
after the whole request was written is `lost`, since the model may have run. Connections idle for longer than the
service keeps them are dropped beforehand, which also covers a Lambda that was frozen in between.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

import urllib3
from urllib3.connection import HTTPConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
    SSLError,
)

from functions.aws.connections import NotSentError, connection_pool
from functions.aws.redaction import redacted
from functions.aws.signing import Signer
from functions.core.outcome import Kind, Outcome, classify_container_error
from functions.core.topology import SyncLane

if TYPE_CHECKING:
    from botocore.credentials import Credentials

_CONNECT_S: Final = 1.0
"""A service in the same region accepts within milliseconds; a dead one must not eat the fallback's time."""
_IDLE_S: Final = 20.0
_CHUNK: Final = 65536
_QUOTED: Final = re.compile(r'with message "(.*)"\. See https://', re.DOTALL)
_ERRORS: Final = {
    "ThrottlingException": Kind.THROTTLED,
    "ModelNotReadyException": Kind.NOT_READY,
    "ServiceUnavailable": Kind.UNREACHABLE,
    "ServiceUnavailableException": Kind.UNREACHABLE,
    "InternalFailure": Kind.UPSTREAM_ERROR,
    "InternalDependencyException": Kind.UPSTREAM_ERROR,
    "AccessDeniedException": Kind.UPSTREAM_ERROR,
    "413": Kind.TOO_LARGE,
}
_STATUSES: Final = {413: Kind.TOO_LARGE, 429: Kind.THROTTLED, 503: Kind.UNREACHABLE}
"""By status where the code is missing or unknown."""


class SageMakerRuntime:
    """Invokes endpoints of one region with the execution role's credentials."""

    def __init__(self, region: str, credentials: Credentials, base_url: str | None = None) -> None:
        """`base_url` overrides the region's public endpoint. No connection is made yet."""
        suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
        self._base = (base_url or f"https://runtime.sagemaker.{region}.{suffix}").rstrip("/")
        self._prefix = urlsplit(self._base).path
        self._signer = Signer("sagemaker", region, _host(self._base))
        self._credentials = credentials
        self._pool = connection_pool(self._base)
        self._used_at = time.monotonic()

    def invoke(
        self,
        lane: SyncLane,
        body: bytes,
        content_type: str | None,
        accept: str | None,
        timeout_s: float,
        headers: Mapping[str, str],
    ) -> Outcome:
        """One attempt (see `ports.Invoker`)."""
        ends = time.monotonic() + timeout_s
        path = f"/endpoints/{quote(lane.endpoint, safe='')}/invocations"
        try:
            signed = self._sign(path, body, _headers(content_type, accept, headers))
            self._drop_idle()
            try:
                response = self._send(path, body, signed, ends)
            except ProtocolError as error:
                if not isinstance(error.args[-1], NotSentError):
                    raise
                self._fresh_pool()
                response = self._send(path, body, signed, ends)
            status, found, data = response.status, response.headers, _read(response, ends)
        except Exception as error:
            return _transport_outcome(error)
        finally:
            self._used_at = time.monotonic()
        if 200 <= status < 300:
            return Outcome(Kind.OK, status, data, found.get("content-type"))
        return error_outcome(status, found.get("x-amzn-errortype"), data)

    def _sign(self, path: str, body: bytes, headers: dict[str, str]) -> dict[str, str]:
        credentials = self._credentials.get_frozen_credentials()
        return self._signer.sign(self._prefix + path, body, headers, credentials, time.time())

    def _send(self, path: str, body: bytes, headers: dict[str, str], ends: float) -> urllib3.BaseHTTPResponse:
        left = max(0.001, ends - time.monotonic())
        return self._pool.urlopen(
            "POST",
            self._prefix + path,
            body=body,
            headers=headers,
            retries=False,
            redirect=False,
            timeout=urllib3.Timeout(connect=min(_CONNECT_S, left), read=left, total=left),
            preload_content=False,
            decode_content=False,
        )

    def _drop_idle(self) -> None:
        if time.monotonic() - self._used_at > _IDLE_S:
            self._fresh_pool()

    def _fresh_pool(self) -> None:
        self._pool.close()
        self._pool = connection_pool(self._base)


def _host(url: str) -> str:
    """The Host header that the HTTP client sends for `url`: a default port is not named."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    host = f"[{host}]" if ":" in host else host
    return host if port is None or port == {"https": 443, "http": 80}[parts.scheme] else f"{host}:{port}"


def _headers(content_type: str | None, accept: str | None, more: Mapping[str, str]) -> dict[str, str]:
    headers = dict(more)
    if content_type is not None:
        headers["content-type"] = content_type
    if accept is not None:
        headers["accept"] = accept
    return headers


def _read(response: urllib3.BaseHTTPResponse, ends: float) -> bytes:
    """The whole body. Raises `TimeoutError` when it still comes at `ends`.

    A socket's timeout bounds one read, not the whole: it is shortened to what is left before each.
    """
    chunks: list[bytes] = []
    while True:
        left = ends - time.monotonic()
        if left <= 0:
            response.close()
            raise TimeoutError("the answer kept coming past the attempt's time")
        connection = response.connection
        if isinstance(connection, HTTPConnection) and connection.sock is not None:
            connection.sock.settimeout(left)
        chunk = response.read1(_CHUNK, decode_content=False)
        if not chunk:
            response.release_conn()
            return b"".join(chunks)
        chunks.append(chunk)


def _transport_outcome(error: Exception) -> Outcome:
    cause = redacted(error)
    if isinstance(error, ConnectTimeoutError | NewConnectionError | SSLError):
        return Outcome(Kind.UNREACHABLE, detail=cause)
    if isinstance(error, ReadTimeoutError | TimeoutError):
        return Outcome(Kind.TIMEOUT, detail=cause)
    if isinstance(error, ProtocolError) and isinstance(error.args[-1], NotSentError):
        return Outcome(Kind.UNREACHABLE, detail=cause)
    if isinstance(error, ProtocolError) and isinstance(error.args[-1], TimeoutError):
        return Outcome(Kind.TIMEOUT, detail=cause)
    if isinstance(error, HTTPError):
        return Outcome(Kind.LOST, detail=cause)
    return Outcome(Kind.UPSTREAM_ERROR, detail=cause)


def error_outcome(status: int, error_type: str | None, data: bytes) -> Outcome:
    """The outcome of a non-2xx answer. `error_type` is the header `x-amzn-ErrorType`."""
    document = _document(data)
    code = _code(error_type, document)
    message = str(document.get("message") or document.get("Message") or "")
    if code == "ModelError":
        return _model_error(document, message)
    detail = redacted(f"{status} {code or 'without a code'}: {message or 'no message'}")
    if code in ("ValidationError", "ValidationException") and "oversize body" in message:
        return Outcome(Kind.TOO_LARGE, status, detail=detail)
    kind = _ERRORS.get(code) or _STATUSES.get(status, Kind.UPSTREAM_ERROR)
    return Outcome(kind, status, detail=detail)


def _model_error(document: Mapping[str, object], message: str) -> Outcome:
    """The container's own refusal or failure. Its text may quote the payload, so the detail names the status only."""
    original = document.get("OriginalStatusCode")
    status = original if isinstance(original, int) and not isinstance(original, bool) else 0
    kind = classify_container_error(status)
    detail = f"424 ModelError: the container answered {status}"
    if kind is not Kind.CALLER_ERROR:
        return Outcome(kind, status or None, detail=detail)
    text = document.get("OriginalMessage")
    if not isinstance(text, str):
        quoted = _QUOTED.search(message)
        text = quoted[1] if quoted else ""
    return Outcome(kind, status, text.encode(), _guess_type(text), detail)


def _code(error_type: str | None, document: Mapping[str, object]) -> str:
    code = error_type or document.get("__type") or document.get("code") or ""
    return str(code).partition(":")[0].rpartition("#")[2]


def _document(data: bytes) -> dict[str, object]:
    try:
        document = json.loads(data)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _guess_type(text: str) -> str:
    """SageMaker drops the container's content type from errors; JSON can be told from its form."""
    try:
        json.loads(text)
    except ValueError:
        return "text/plain; charset=utf-8"
    return "application/json"

"""SageMaker's runtime as an `Invoker`: one signed HTTP request an attempt, on a pooled connection, never repeated.

Signed and sent directly (`signing`, `http1`) it costs a fifth of what the AWS client's `invoke_endpoint` does, and
nothing here retries: a repeated read timeout would run, and bill, the model again. The wire forms are mapped once, by
`_ERRORS`:

* 424 ModelError: the container answered `OriginalStatusCode`. 4xx is the caller's and goes back with the container's
  own body; 429 and 503 are its full queue; 0 (it timed out) and other 5xx are upstream errors.
* 400 ThrottlingException (message null), 429 ModelNotReady, 503, 530, 500, 413, and ValidationError by its text.
* Everything about *us* (403, unknown endpoint) is upstream: never shown as the caller's fault.

The one exception to "never repeated": a connection that breaks *while the request is being written* has delivered an
incomplete request, which nothing can have run; it is sent once more on another connection, within a budget. A
connection that closes after the whole request was written is `lost`, since the model may have run.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlsplit

from functions.aws.http1 import ConnectError, NotSentError, Peer, Response
from functions.aws.redaction import redacted
from functions.aws.signing import Credentials, Signer
from functions.core.budgets import RETRY_SHARE, Budget
from functions.core.outcome import Kind, Outcome, classify_container_error
from functions.core.topology import SyncLane

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
        self._peer = Peer(self._base)
        self._signer = Signer("sagemaker", region, self._peer.host)
        self._credentials = credentials
        self._retries = Budget(RETRY_SHARE, saved=1.0)
        self._paths: dict[str, str] = {}
        """Of the topology's endpoints."""

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
        path = self._paths.get(lane.endpoint)
        if path is None:
            path = f"{self._prefix}/endpoints/{quote(lane.endpoint, safe='')}/invocations"
            self._paths[lane.endpoint] = path
        try:
            response = self._send(path, body, _headers(content_type, accept, headers), ends)
        except Exception as error:
            return _transport_outcome(error)
        status, found = response.status, response.headers
        if 200 <= status < 300:
            return Outcome(Kind.OK, status, response.body, found.get("content-type"))
        return error_outcome(status, found.get("x-amzn-errortype"), response.body)

    def _send(self, path: str, body: bytes, headers: dict[str, str], ends: float) -> Response:
        credentials = self._credentials.get_frozen_credentials()
        signed = self._signer.sign(path, body, headers, credentials, time.time())
        self._retries.deposit()
        try:
            return self._peer.exchange(path, signed, body, ends)
        except NotSentError:
            if not self._retries.take():
                raise
            return self._peer.exchange(path, signed, body, ends)


def _headers(content_type: str | None, accept: str | None, more: Mapping[str, str]) -> dict[str, str]:
    headers = dict(more)
    if content_type is not None:
        headers["content-type"] = content_type
    if accept is not None:
        headers["accept"] = accept
    return headers


def _transport_outcome(error: Exception) -> Outcome:
    cause = redacted(error)
    if isinstance(error, ConnectError | NotSentError):
        return Outcome(Kind.UNREACHABLE, detail=cause)
    if isinstance(error, TimeoutError):
        return Outcome(Kind.TIMEOUT, detail=cause)
    if isinstance(error, OSError):
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

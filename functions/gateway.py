"""API Gateway's HTTP API, payload format 2.0, both ways: event → `Call`, `Answer` → response.

Body bytes are untouched: Base64 is undone on the way in, and used on the way out for whatever is not UTF-8 text.
The identity is what the gateway's authorizer put into `requestContext.authorizer`; no header is ever taken for it.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Final
from urllib.parse import quote

from functions.answer import Answer, Call, problem_answer
from functions.core.document import DocumentError, Fields
from functions.core.patterns import media_type
from functions.core.problem import Problem
from functions.core.request import ANONYMOUS, Identity, Request, read_claims

LARGEST_RESPONSE: Final = 6 * 1024 * 1024 - 64 * 1024
"""Lambda's 6 MiB limit on a response as JSON in UTF-8, less room for headers."""
_WIDEST: Final = 6
"""Bytes that one byte of text can become in JSON: a control character is written `\\u0001`."""
_SAFE: Final = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")
_PASSED_ON: Final = ("content-type", "accept")
_LONGEST_PASSED_ON: Final = 1024
"""SageMaker refuses longer ones as a wrong request, which must not look like a lane's failure."""
_TEXTUAL: Final = ("application/json", "application/problem+json", "application/jsonlines", "application/xml")


class EventError(ValueError):
    """The event is no HTTP API call of payload format 2.0."""


class HeaderError(ValueError):
    """A header that cannot be passed on to the model; the message is for the caller."""


def read_event(event: object, fallback_id: str, time_left_s: float) -> Call:
    """Translate an event. Raises `EventError`, or `HeaderError` for a header that no lane would take."""
    try:
        root = Fields.of(event)
        context = root.fields("requestContext")
        http = context.fields("http")
        sent = root.fields_or_empty("headers").values
        headers = {name.lower(): value if isinstance(value, str) else _joined(value) for name, value in sent.items()}
        body = _body(root)
        for name in _PASSED_ON:
            if name in headers:
                headers[name] = _sendable(name, headers[name])
        return Call(
            Request(
                id=context.text_or("requestId", fallback_id),
                method=http.text("method").upper(),
                path=_path(root.text("rawPath"), context.text_or("stage", "$default")),
                headers=headers,
                content_type=headers.get("content-type"),
                bytes=len(body),
                identity=_identity(context),
            ),
            body,
            headers.get("accept"),
            time_left_s,
        )
    except DocumentError as error:
        raise EventError(f"not an HTTP API event of payload format 2.0: {error}") from error


def read_parameters(event: object) -> dict[str, str]:
    """The query's parameters, decoded by the gateway. Raises `EventError`."""
    try:
        sent = Fields.of(event).fields_or_empty("queryStringParameters").values
    except DocumentError as error:
        raise EventError(f"not an HTTP API event of payload format 2.0: {error}") from error
    return {name: value if isinstance(value, str) else _joined(value) for name, value in sent.items()}


def write_answer(answer: Answer, request_id: str) -> dict[str, object]:
    """Translate an answer; one that Lambda could not return becomes a 502."""
    response = _response(answer)
    if not _fits(str(response["body"])):
        problem = Problem(502, "The model's answer is larger than this front door can return.", "response-too-large")
        return _response(problem_answer(request_id, problem))
    return response


def _response(answer: Answer) -> dict[str, object]:
    headers = {name: header_safe(value) for name, value in answer.headers.items()}
    if answer.content_type is not None:
        plain = answer.content_type.isascii() and answer.content_type.isprintable()  # it is the model's own
        headers["content-type"] = answer.content_type if plain else header_safe(answer.content_type)
    text = _text(answer.body, answer.content_type)
    if text is not None and not _fits(text):
        text = None  # full of quotes or line ends: Base64 may still fit
    return {
        "statusCode": answer.status,
        "headers": headers,
        "body": base64.b64encode(answer.body).decode("ascii") if text is None else text,
        "isBase64Encoded": text is None,
    }


def _fits(body: str) -> bool:
    """Whether Lambda can return the text, which travels as a JSON string."""
    if len(body) * _WIDEST <= LARGEST_RESPONSE:
        return True
    return len(json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")) <= LARGEST_RESPONSE


def _text(body: bytes, content_type: str | None) -> str | None:
    """The body as text when that loses nothing, else None."""
    kind = media_type(content_type or "")
    if body and not kind.startswith("text/") and kind not in _TEXTUAL and not kind.endswith("+json"):
        return None
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _body(root: Fields) -> bytes:
    body = root.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        raise DocumentError(root.at("body"), "expected text")
    if not root.get("isBase64Encoded"):
        return body.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DocumentError(root.at("body"), "is not Base64") from error


def _sendable(name: str, value: str) -> str:
    """The value as it is sent on. One that cannot be sent would fail on every lane, as if by the lanes' fault."""
    text = value.replace("\t", " ")  # white space as RFC 9110 has it
    if not text.isascii() or not text.isprintable():
        raise HeaderError(f"{name} holds more than printable ASCII")
    if len(text) > _LONGEST_PASSED_ON:
        raise HeaderError(f"{name} is longer than {_LONGEST_PASSED_ON} characters")
    return text


def _path(raw: str, stage: str) -> str:
    prefix = f"/{stage}"
    if stage != "$default" and (raw == prefix or raw.startswith(f"{prefix}/")):
        return raw[len(prefix) :] or "/"
    return raw


def _joined(value: object) -> str:
    """Format 2.0 joins repeated headers with commas already; a list is joined likewise."""
    return ",".join(str(item) for item in value) if isinstance(value, list) else str(value)


def _identity(context: Fields) -> Identity:
    authorizer = context.fields_or_empty("authorizer")
    iam = authorizer.fields_or_empty("iam")
    if iam.get("userArn") is not None:
        return Identity("iam", arn=iam.text("userArn"))
    jwt = authorizer.fields_or_empty("jwt")
    if jwt.get("claims") is not None:
        return Identity("jwt", claims=read_claims(jwt.fields("claims")))
    keys = authorizer.fields_or_empty("lambda")
    if keys.get("key_id") is not None:
        return Identity("api_key", key_id=keys.text("key_id"))
    return ANONYMOUS


def header_safe(text: str) -> str:
    """`text` as a header value: what is not printable ASCII is percent-encoded, so nothing can break the header."""
    if text.isascii() and text.isprintable() and "%" not in text:
        return text
    return quote(text, safe=_SAFE)

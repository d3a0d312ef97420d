"""What is kept of a request and its answer for the nightly recheck. A line of JSON, schema `inferlane/capture/v1`.

Neither tenant nor identity nor header is in it: who pays is enough to look at the verdicts by. Of the bodies:

| the route says  | the body is                          | kept                                         |
|-----------------|--------------------------------------|----------------------------------------------|
| `redact: body`  | anything                             | its size and type                            |
| pointers        | JSON, up to `LONGEST_TEXT`           | as text, without what they lead to           |
| pointers        | anything else                        | its size and type: they cannot be applied    |
| nothing         | text or JSON, up to `LONGEST_TEXT`   | as text, untouched                           |
| nothing         | anything else, up to `LONGEST_BYTES` | in Base64                                    |
| nothing         | larger                               | its size and type                            |

A line that Firehose would not take (`LONGEST_LINE`) is written without the bodies.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Final

from functions.core.patterns import is_json, media_type
from functions.core.policy import Capture
from functions.core.redaction import redact

SCHEMA: Final = "inferlane/capture/v1"
LONGEST_TEXT: Final = 256 * 1024
LONGEST_BYTES: Final = 100_000
LONGEST_LINE: Final = 1_000_000
"""Bytes; Firehose takes records of 1,000 KiB."""
_TEXTUAL: Final = ("application/xml", "application/jsonlines", "application/x-ndjson")


@dataclass(frozen=True, slots=True)
class Body:
    """One side of an exchange."""

    data: bytes
    content_type: str | None


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request that was answered with 200."""

    at: float
    """Unix seconds of its arrival."""
    request_id: str
    route: str
    """The route's pattern, never the path: a path may hold names."""
    model: str
    lane: str
    rule: str
    cost_center: str | None
    input: Body
    output: Body


def line_of(exchange: Exchange, capture: Capture) -> bytes:
    """The line, with its end."""
    line = _line(exchange, capture)
    return line if len(line) <= LONGEST_LINE else _line(exchange, Capture(capture.share, bodies=False))


def _line(exchange: Exchange, capture: Capture) -> bytes:
    document = {
        "schema": SCHEMA,
        "at": exchange.at,
        "request_id": exchange.request_id,
        "route": exchange.route,
        "model": exchange.model,
        "lane": exchange.lane,
        "rule": exchange.rule,
        "cost_center": exchange.cost_center,
        "content_type": exchange.input.content_type,
        "status": 200,
        "input": _kept(exchange.input, capture),
        "output": {**_kept(exchange.output, capture), "content_type": exchange.output.content_type},
    }
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass") + b"\n"


def _kept(body: Body, capture: Capture) -> dict[str, object]:
    """What is kept of a body (see the table)."""
    nothing: dict[str, object] = {"body": None, "bytes": len(body.data)}
    if not capture.bodies:
        return nothing
    text = _text(body) if len(body.data) <= LONGEST_TEXT else None
    if capture.pointers:
        left = redact(text, capture.pointers) if text is not None and is_json(body.content_type) else None
        if left is None:
            return nothing
        return {**nothing, "encoding": "text", "body": left, **({"redacted": True} if left != text else {})}
    if text is not None:
        return {**nothing, "encoding": "text", "body": text}
    if len(body.data) > LONGEST_BYTES:
        return nothing
    return {**nothing, "encoding": "base64", "body": base64.b64encode(body.data).decode("ascii")}


def _text(body: Body) -> str | None:
    """The body as text, where its type says that it is."""
    kind = media_type(body.content_type or "")
    if not (is_json(kind) or kind.startswith("text/") or kind in _TEXTUAL):
        return None
    try:
        return body.data.decode("utf-8")
    except UnicodeDecodeError:
        return None

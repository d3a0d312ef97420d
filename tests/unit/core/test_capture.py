"""The line that is kept of an exchange."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from functions.core.capture import LONGEST_BYTES, LONGEST_LINE, LONGEST_TEXT, Body, Exchange, line_of
from functions.core.policy import Capture
from tests.unit.core.builders import NOW

ALL = Capture(0.2)
NAMED = Capture(0.2, (("user", "email"),))
SIZES = Capture(0.2, bodies=False)
ASKED = Body(
    b'{"text": "gr\xc3\xbc\xc3\x9fe", "user": {"email": "ann@example.org"}}', "application/json; charset=utf-8"
)
EXCHANGE = Exchange(
    at=NOW + 0.123,
    request_id="r-1",
    route="/teams/{name}/ask",
    model="moderation",
    lane="dedicated",
    rule="default",
    cost_center="growth",
    input=ASKED,
    output=Body(b'{"label":"ok"}', "application/json"),
)


def kept(capture: Capture, **parts: Body) -> dict[str, Any]:
    line = line_of(replace(EXCHANGE, **parts), capture)  # type: ignore[arg-type]
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    found = json.loads(line)
    assert isinstance(found, dict)
    return found


def test_a_line_says_this_and_nothing_else() -> None:
    """Neither tenant, identity, path nor header."""
    assert kept(ALL) == {
        "schema": "inferlane/capture/v1",
        "at": NOW + 0.123,
        "request_id": "r-1",
        "route": "/teams/{name}/ask",
        "model": "moderation",
        "lane": "dedicated",
        "rule": "default",
        "cost_center": "growth",
        "content_type": "application/json; charset=utf-8",
        "status": 200,
        "input": {"body": ASKED.data.decode(), "bytes": len(ASKED.data), "encoding": "text"},
        "output": {"body": '{"label":"ok"}', "bytes": 14, "encoding": "text", "content_type": "application/json"},
    }


def test_what_is_named_is_gone_and_said_to_be() -> None:
    """From the body only; the size is what it was; a body without it is whole."""
    found = kept(NAMED)
    left = '{"text": "grüße", "user": {"email": null}}'
    assert found["input"] == {"body": left, "bytes": len(ASKED.data), "encoding": "text", "redacted": True}
    assert "redacted" not in found["output"]
    assert "ann@" not in json.dumps(found)


@pytest.mark.parametrize("side", ["input", "output"])
@pytest.mark.parametrize(
    "body",
    [
        Body(b"ann@example.org", "text/plain"),
        Body(b"{broken", "application/json"),
        Body(b"\xff", "application/json"),
        Body(b"{}", None),
        Body(b"{}\n{}", "application/jsonlines"),
        Body(b" " * (LONGEST_TEXT + 1) + b"{}", "application/json"),
    ],
    ids=["text", "no JSON", "no UTF-8", "no type", "lines", "large"],
)
def test_where_pointers_cannot_be_applied_nothing_is_kept(side: str, body: Body) -> None:
    """Only size and type."""
    found = kept(NAMED, **{side: body})[side]
    assert (found["body"], found["bytes"]) == (None, len(body.data))
    assert "encoding" not in found


def test_a_route_may_keep_sizes_only() -> None:
    """`redact: body`."""
    found = kept(SIZES)
    assert found["input"] == {"body": None, "bytes": len(ASKED.data)}
    assert found["output"] == {"body": None, "bytes": 14, "content_type": "application/json"}


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (Body(b"hello", "text/csv"), "text"),
        (Body(b"<a/>", "application/xml"), "text"),
        (Body(b"{}\n{}", "application/jsonlines"), "text"),
        (Body(b"{}", "application/vnd.x+json"), "text"),
        (Body(b"x" * LONGEST_TEXT, "text/plain"), "text"),
        (Body(b"\xff", "text/plain"), "base64"),
        (Body(b"plain", "image/png"), "base64"),
        (Body(b"plain", None), "base64"),
        (Body(b"\x00" * LONGEST_BYTES, "image/png"), "base64"),
        (Body(b"\x00" * (LONGEST_BYTES + 1), "image/png"), None),
        (Body(b"x" * (LONGEST_TEXT + 1), "text/plain"), None),
    ],
)
def test_text_is_kept_as_text_and_the_rest_in_base64_up_to_a_size(body: Body, encoding: str | None) -> None:
    """Beyond it, only size and type."""
    found = kept(ALL, input=body)["input"]
    assert (found.get("encoding"), found["bytes"]) == (encoding, len(body.data))
    if encoding is None:
        assert found["body"] is None
    else:
        read = found["body"].encode() if encoding == "text" else base64.b64decode(found["body"])
        assert read == body.data


def test_a_line_is_never_larger_than_the_stream_takes() -> None:
    """Text that grows sixfold when it is written as JSON goes without its bodies."""
    hostile = Body(b"\x01" * LONGEST_TEXT, "text/plain")
    assert len(line_of(replace(EXCHANGE, input=hostile), ALL)) <= LONGEST_LINE
    assert kept(ALL, input=hostile)["output"]["body"] is None
    assert kept(ALL, input=hostile)["input"] == {"body": None, "bytes": LONGEST_TEXT}


def test_a_line_is_as_short_as_json_can_be() -> None:
    """No spaces between tokens, characters as UTF-8; half a character in a name does not lose the line."""
    line = line_of(replace(EXCHANGE, rule="a\ud800"), ALL)
    assert line.startswith(b'{"schema":"inferlane/capture/v1","at":')
    assert "grüße".encode() in line
    assert json.loads(line)["rule"] == "a\ud800"


def test_the_longest_line_is_whole() -> None:
    """One byte more, and the bodies are left out."""

    def line(more: int) -> bytes:
        return line_of(replace(EXCHANGE, input=Body(b"\x01" * 150_000 + b"x" * more, "text/plain")), ALL)

    most = 90_000 + LONGEST_LINE - len(line(90_000))
    assert len(line(most)) == LONGEST_LINE
    assert len(line(most + 1)) < 1000

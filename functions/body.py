"""Finds the model that a JSON body names, for routes that ask for it (`model: {from_body: model}`).

Only the beginning is looked at, 64 KiB, since a body may hold megabytes of prompt or picture and stays untouched
anyway: members of the top-level object are read one by one until the key comes, and skipped without being kept. A key
that stands twice means its first value; what is no JSON object, or names no text, names no model.
"""

from __future__ import annotations

import json
import re
from typing import Final

LONGEST_LOOK: Final = 64 * 1024
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_DECODER: Final = json.JSONDecoder()


def named_in(body: bytes, key: str) -> str | None:
    """The text of the top-level `key`, or None."""
    text = body[:LONGEST_LOOK].decode("utf-8-sig", "replace")
    try:
        at = _skip(text, 0)
        if text[at] != "{":
            return None
        at = _skip(text, at + 1)
        while True:
            name, at = _DECODER.raw_decode(text, at)
            at = _skip(text, at)
            if not isinstance(name, str) or text[at] != ":":
                return None
            value, at = _DECODER.raw_decode(text, _skip(text, at + 1))
            if name == key:
                return value if isinstance(value, str) and value else None
            at = _skip(text, at)
            if text[at] != ",":
                return None
            at = _skip(text, at + 1)
    except (ValueError, IndexError, RecursionError):
        return None


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()

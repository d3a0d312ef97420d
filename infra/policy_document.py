"""The policy as the router reads it: authored YAML in, the same document as compact JSON out.

Scalars follow YAML 1.2's core schema, so `22:00`, `yes`, `010` and `2026-12-01` are what they look like. Anchors,
aliases, tags, duplicate keys and bottomless nesting are refused with their line: a document means what it shows. What
the keys mean is the router's business.

The `inferlane policy` commands read the same language with line and column of every key (workbench/policy/document.py,
which may not be imported here); a test holds the two equal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pulumi
import yaml

SCHEMA = "inferlane/policy/v1"
MAX_BYTES = 2**20
MAX_DEPTH = 100
MAX_DIGITS = 300

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNPRINTABLE = re.compile(r"[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


class PolicyDocumentError(pulumi.RunError):
    """The document is not one the router could read; the message has file, line and cause."""


class _Refusal(Exception):  # noqa: N818 - not an error of its own: it becomes one with the file's name
    def __init__(self, event: Any, cause: str) -> None:
        super().__init__(cause)
        self.line: int = event.start_mark.line + 1


def to_json(path: Path) -> str:
    """The document of a YAML file as JSON with sorted keys. Raises `PolicyDocumentError`."""
    content = path.read_bytes()
    if len(content) > MAX_BYTES:
        raise PolicyDocumentError(f"{path.name}: {len(content)} bytes, more than {MAX_BYTES}")
    try:
        document = _document(content.decode())
    except UnicodeDecodeError as error:
        raise PolicyDocumentError(f"{path.name}: not UTF-8 at byte {error.start}") from error
    except _Refusal as error:
        raise PolicyDocumentError(f"{path.name}:{error.line}: {error}") from error
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise PolicyDocumentError(f"{path.name}{line}: {error.problem}") from error
    except yaml.reader.ReaderError as error:
        raise PolicyDocumentError(f"{path.name}: character {error.position}: {error.reason}") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise PolicyDocumentError(f"{path.name}:1: not a policy document: it must be a mapping with `schema: {SCHEMA}`")
    if not isinstance(document.get("version"), str):
        raise PolicyDocumentError(f"{path.name}:1: `version` is missing or not text")
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def timezone(path: Path) -> str:
    """The time zone that the document's clocks go by; UTC where it names none. Raises `PolicyDocumentError`."""
    zone = json.loads(to_json(path)).get("timezone", "UTC")
    try:
        ZoneInfo(zone)
    except (TypeError, ValueError, ZoneInfoNotFoundError) as error:
        raise PolicyDocumentError(f"{path.name}: timezone {zone!r} is not one of the IANA database") from error
    return str(zone)


def _document(text: str) -> object:
    unprintable = _UNPRINTABLE.search(text)
    if unprintable:
        place, found = unprintable.start(), ord(unprintable[0])
        raise yaml.reader.ReaderError("policy", place, found, "unicode", "special characters are not allowed")
    events = (_plain_data(event) for event in yaml.parse(text, _LOADER))
    content = [e for e in (next(events, None), next(events, None)) if isinstance(e, yaml.DocumentStartEvent)]
    if not content:
        return None
    document = _node(next(events), events, 0)
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            raise _Refusal(event, "a second document begins; a file holds one")
    return document


def _plain_data(event: Any) -> Any:
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
        raise _Refusal(event, "anchors and aliases are not allowed")
    if getattr(event, "tag", None) is not None:
        raise _Refusal(event, "tags are not allowed")
    return event


def _node(event: Any, events: Iterator[Any], depth: int) -> object:
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event)
    if depth >= MAX_DEPTH:
        raise _Refusal(event, "nested too deeply")
    if isinstance(event, yaml.SequenceStartEvent):
        return [_node(item, events, depth + 1) for item in _until_end(events)]
    mapping: dict[str, object] = {}
    for item in _until_end(events):
        key = _scalar(item) if isinstance(item, yaml.ScalarEvent) else None
        if not isinstance(key, str):
            raise _Refusal(item, "a key must be text")
        if key in mapping:
            raise _Refusal(item, f"key {key!r} appears twice")
        mapping[key] = _node(next(events), events, depth + 1)
    return mapping


def _until_end(events: Iterator[Any]) -> Iterator[Any]:
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            return
        yield event


def _scalar(event: Any) -> object:
    text: str = event.value
    if not event.implicit[0]:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        if len(text) > MAX_DIGITS:
            raise _Refusal(event, f"a number of {len(text)} characters is too long")
        return int(text, 0 if text[1:2] in ("o", "x") else 10)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if number in (float("inf"), float("-inf")):
            raise _Refusal(event, f"the number {text} is too large")
        return number
    return text

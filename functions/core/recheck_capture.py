"""Reads captures: which request a line is of, what the heavy model is to judge of it, and what the light one said.

A capture is checkable when its body is JSON or JSON Lines, is whole (nothing was redacted that a verdict needs), is
small enough for the batch lane, and the light model's answer holds a verdict for each text. A verdict is an object with
a `label`, and as a rule a `score` from 0 to 1 and the `version` that gave it; an answer is one, or
`{"results": [...]}`. What else there is counts by its reason: what a recheck did not look at belongs in its report.

Redacted are parts that are null: the body, or the text in it. A body's JSON becomes one line: line breaks in JSON stand
between its tokens only, so they become spaces and nothing else changes.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from functions.core.document import Fields, as_number, as_time

JSON, JSON_LINES = "application/json", ("application/jsonlines", "application/x-ndjson")
_BREAKS: Final = str.maketrans({"\n": " ", "\r": " "})
_LONGEST: Final = 100
"""Characters of a name (route, version, label) that are kept: whoever wrote it, it ends up in a report."""


class Unchecked(StrEnum):
    """Why a captured request cannot be rechecked; the words are a report's."""

    REDACTED = "redacted"
    NOT_JSON = "not JSON"
    TOO_LARGE = "too large for the batch lane"
    NO_VERDICT = "no verdict in the answer"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a model said of one text."""

    label: str
    score: float | None
    version: str | None


@dataclass(frozen=True, slots=True)
class Stub:
    """Of a capture's line, what tells whose it is and when it was taken in (Unix seconds)."""

    request_id: str
    at: float


@dataclass(frozen=True, slots=True)
class Item:
    """One record for the heavy model, a line of JSON in UTF-8, and the light one's verdicts on it, in order."""

    line: bytes
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class Capture:
    """A checkable request."""

    request_id: str
    at: float
    route: str
    lane: str
    items: tuple[Item, ...]


def stub(line: bytes) -> Stub | None:
    """Whose line it is; None when it cannot be read."""
    try:
        return _stub(Fields.of(json.loads(line)))
    except (ValueError, RecursionError):  # a DocumentError is a ValueError
        return None


def read(line: bytes, largest: int) -> Capture | Unchecked:
    """A line of which `stub` could say whose it is. `largest`: bytes of a record that the batch lane takes."""
    fields = Fields.of(json.loads(line))
    asked, answered = _body(fields, "input"), _body(fields, "output")
    if asked is None or answered is None:
        return Unchecked.REDACTED
    kind = str(fields.get("content_type") or JSON).partition(";")[0].strip().lower()
    if kind != JSON and kind not in JSON_LINES:
        return Unchecked.NOT_JSON
    split = kind in JSON_LINES
    try:
        records = _records(asked, split=split)
    except ValueError:
        return Unchecked.NOT_JSON
    if any(len(record) > largest for record, _ in records):
        return Unchecked.TOO_LARGE
    if any(_redacted(value) for _, value in records):
        return Unchecked.REDACTED
    try:
        verdicts = [verdicts_of(value) for _, value in _records(answered, split=split)]
    except ValueError:
        return Unchecked.NO_VERDICT
    if not verdicts or len(verdicts) != len(records) or not all(verdicts):
        return Unchecked.NO_VERDICT
    items = tuple(Item(record, said) for (record, _), said in zip(records, verdicts, strict=True))
    whose = _stub(fields)
    return Capture(whose.request_id, whose.at, name(fields.get("route")), name(fields.get("lane")), items)


def verdicts_of(answer: object) -> tuple[Verdict, ...]:
    """The verdicts of an answer (parsed JSON), in order; none when it is none."""
    if not isinstance(answer, Mapping):
        return ()
    results = answer.get("results", [answer])
    if not isinstance(results, list):
        return ()
    found = [_verdict(result) for result in results]
    return tuple(verdict for verdict in found if verdict is not None) if all(found) else ()


def name(value: object) -> str:
    """A name as it was captured, fit to be written: text of bounded length, in whole characters."""
    return "none" if value in (None, "") else str(value)[:_LONGEST].encode(errors="replace").decode()


def texts_of(record: object) -> Sequence[str]:
    """The texts that a record (parsed JSON) asks about, in order; empty when it does not say them so."""
    if not isinstance(record, Mapping):
        return ()
    texts = record.get("texts", [record.get("text")])
    return texts if isinstance(texts, list) and all(isinstance(text, str) for text in texts) else ()


def _verdict(value: object) -> Verdict | None:
    label = value.get("label") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(label, str):
        return None
    version = value.get("version")
    return Verdict(name(label), _score(value.get("score")), None if version is None else name(version))


def _score(value: object) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1  # so neither is NaN
    return float(value) if known and isinstance(value, int | float) else None


def _stub(fields: Fields) -> Stub:
    at = fields.require("at")
    moment = as_time(at, fields.at("at")) if isinstance(at, str) else as_number(at, fields.at("at"), at_least=0)
    return Stub(name(fields.text("request_id")), moment)


def _body(fields: Fields, side: str) -> str | None:
    """Text of a captured body; None when it was redacted, an undecodable one reads as no JSON."""
    held = fields.get(side)
    body, encoding = (held.get("body"), held.get("encoding")) if isinstance(held, Mapping) else (held, None)
    if not isinstance(body, str):
        return None
    if encoding != "base64":
        return body
    try:
        return base64.b64decode(body, validate=True).decode("utf-8-sig")
    except (binascii.Error, ValueError):
        return "\N{REPLACEMENT CHARACTER}"


def _records(text: str, *, split: bool) -> list[tuple[bytes, object]]:
    """Each record of a body as one line, and its value. Raises ValueError."""
    parts = [part for part in text.split("\n") if part.strip()] if split else [text]
    try:
        return [(part.translate(_BREAKS).strip().encode(), json.loads(part)) for part in parts]
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _redacted(record: object) -> bool:
    """Whether the text is there, and null."""
    if not isinstance(record, Mapping):
        return False
    texts = record.get("texts")
    return ("text" in record and record["text"] is None) or (
        "texts" in record and (texts is None or (isinstance(texts, list) and None in texts))
    )

"""Work as a message: JSON that queue and promotion share, and where a body lies that no message can carry.

{"tenant", "id", "model", "content_type", "accept", "accepted_at_ms", "due_at_ms", "lanes", and one of "body" (Base64),
"key" (of an object in the data bucket) or "dataset" {"input", "output"}}; "fingerprint" as in its record. Unknown
members are ignored, so that a newer sender can add some.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from functions.aws.attributes import millis
from functions.core.job import Dataset, JobKey, Work

INLINE_BYTES: Final = 180_000
"""A larger body goes to S3: as Base64 it takes four thirds, and SQS carries 256 KiB."""


def payload_key(work: Work, body: bytes) -> str:
    """Where the body lies. By its content too: what is asked again under the same id must not overwrite it."""
    return f"batch/payloads/{work.key.id}-{hashlib.sha256(body).hexdigest()[:16]}"


def spilled(work: Work) -> tuple[Work, bytes] | None:
    """The work with its body left out, and the body to be written first; None: a message carries it."""
    body = work.body
    if body is None or len(body) <= INLINE_BYTES:
        return None
    return replace(work, body=None, object=payload_key(work, body)), body


def write(work: Work) -> str:
    """The message's text."""
    dataset = work.dataset
    document: dict[str, object] = {
        "tenant": work.key.tenant,
        "id": work.key.id,
        "model": work.model,
        "content_type": work.content_type,
        "accept": work.accept,
        "accepted_at_ms": millis(work.accepted_at),
        "due_at_ms": millis(work.due_at),
        "lanes": list(work.lanes),
    }
    if work.body is not None:
        document["body"] = base64.b64encode(work.body).decode("ascii")
    if work.object is not None:
        document["key"] = work.object
    if dataset is not None:
        document["dataset"] = {"input": dataset.input, "output": dataset.output}
    if work.fingerprint is not None:
        document["fingerprint"] = work.fingerprint
    return json.dumps(document, separators=(",", ":"))


def read(text: str) -> Work | None:
    """The work; None when the text is no message of ours."""
    try:
        document = json.loads(text)
        return _work(document) if isinstance(document, dict) else None
    except (KeyError, TypeError, ValueError, RecursionError, binascii.Error):
        return None


def _work(document: Mapping[str, object]) -> Work:
    lanes, dataset, body = document["lanes"], document.get("dataset"), document.get("body")
    if not isinstance(lanes, list):
        raise TypeError("lanes")
    return Work(
        key=JobKey(_text(document["tenant"]), _text(document["id"])),
        model=_text(document["model"]),
        content_type=_optional(document.get("content_type")),
        accept=_optional(document.get("accept")),
        accepted_at=_seconds(document["accepted_at_ms"]),
        due_at=_seconds(document["due_at_ms"]),
        lanes=tuple(_text(lane) for lane in lanes),
        body=None if body is None else base64.b64decode(_text(body), validate=True),
        object=_optional(document.get("key")),
        dataset=None if dataset is None else _dataset(dataset),
        fingerprint=_optional(document.get("fingerprint")),
    )


def _dataset(found: object) -> Dataset:
    if not isinstance(found, dict):
        raise TypeError("dataset")
    return Dataset(_text(found["input"]), _text(found["output"]))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("text")
    return value


def _optional(value: object) -> str | None:
    return None if value is None else _text(value)


def _seconds(value: object) -> float:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("milliseconds")
    return value / 1000

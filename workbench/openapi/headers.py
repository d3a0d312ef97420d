"""The headers of the front door: the wishes a request may carry, and what an answer tells of its way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from functions.core.policy import MAX_DEADLINE_MS
from functions.core.request import DEADLINE_HEADER, PRIORITIES, PRIORITY_HEADER
from functions.core.wishes import IDEMPOTENCY_HEADER, PREFER_HEADER


def _canonical(name: str) -> str:
    return "-".join(part.capitalize() for part in name.split("-"))


def _wish(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": _canonical(name), "in": "header", "description": description, "schema": schema}


WISHES: Final = [
    _wish(
        PRIORITY_HEADER,
        {"type": "string", "enum": list(PRIORITIES)},
        "How urgent the request is. Granted up to the tier's cap; normal if not said.",
    ),
    _wish(
        DEADLINE_HEADER,
        {"type": "integer", "minimum": 1, "maximum": 999_999_999_999},
        f"Milliseconds the caller can wait. Cut to {MAX_DEADLINE_MS} for one who waits, the policy's default if not "
        "said; for a job it can only shorten what the policy grants.",
    ),
    _wish(
        PREFER_HEADER,
        {"type": "string", "examples": ["respond-async"]},
        "RFC 7240. `respond-async` asks for an answer later (202 and a job); it is ignored where no lane can do that.",
    ),
    _wish(
        IDEMPOTENCY_HEADER,
        {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
        "Names the request: a repetition is treated like the first try, falls into the same share of a split, and "
        "finds the same job.",
    ),
]
"""Parameters of every invocation."""

_TEXT: Final = {"type": "string"}
_ALWAYS: Final = {"X-Request-Id": (_TEXT, "Finds the request in every log.")}
_DECIDED: Final = {
    "X-Inferlane-Rule": (_TEXT, "The rule that chose the lanes; `default` when none did."),
    "X-Inferlane-Policy": (_TEXT, "The version of the policy that decided."),
    "Server-Timing": (_TEXT, "Milliseconds to decide, and of each attempt with its lane."),
}
_SERVED: Final = {
    "X-Inferlane-Lane": (_TEXT, "The lane whose answer this is."),
    "X-Inferlane-Cost-Usd": (
        {"type": "string", "pattern": r"^[0-9]+\.[0-9]{9}$"},
        "What the attempts cost, estimated; absent where a price is not known.",
    ),
}
_PROMISED: Final = {
    "Location": ({"type": "string", "pattern": "^/v1/jobs/[0-9a-f]{32}$"}, "Where to ask for the job."),
}
_APPLIED: Final = {
    "Preference-Applied": ({"const": "respond-async"}, "RFC 7240: there where the caller preferred it."),
}
_RETRY: Final = {"Retry-After": ({"type": "integer", "minimum": 0}, "Seconds until another try may succeed.")}


def answer_headers(*, served: bool, retry_after: bool = False) -> dict[str, Any]:
    """Header objects of an answer: by a lane, or without one."""
    return _objects({**_ALWAYS, **_DECIDED, **(_SERVED if served else {}), **(_RETRY if retry_after else {})})


def deferred_headers() -> dict[str, Any]:
    """Header objects that a request's answer has besides a job's, when it became one."""
    return _objects({**_DECIDED, **_APPLIED})


def job_headers(*, accepted: bool = False, retry_after: bool = False) -> dict[str, Any]:
    """Header objects of an answer about a job."""
    return _objects({**_ALWAYS, **(_PROMISED if accepted else {}), **(_RETRY if retry_after else {})})


def _objects(found: Mapping[str, tuple[dict[str, Any], str]]) -> dict[str, Any]:
    return {name: {"schema": schema, "description": words} for name, (schema, words) in found.items()}

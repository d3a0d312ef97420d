"""Errors as `application/problem+json` (RFC 9457): what a caller may know, and nothing else.

Only fixed texts and decided reasons go in; never an endpoint's name, an account id or a trace.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from functions.core.receipt import Attempt

CONTENT_TYPE: Final = "application/problem+json"
_SLUGS: Final = {
    400: "bad-request",
    401: "unauthenticated",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    409: "conflict",
    410: "gone",
    413: "too-large",
    422: "unprocessable",
    429: "shed",
    500: "internal",
    502: "upstream-error",
    503: "unavailable",
    504: "timeout",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One error answer."""

    status: int
    detail: str
    slug: str = ""
    """Last part of `type`; by the status when empty."""
    retry_after_s: int | None = None
    attempts: Sequence[Attempt] = ()

    def body(self, request_id: str) -> bytes:
        """The JSON body."""
        document = {
            "type": f"urn:inferlane:problem:{self.slug or _SLUGS.get(self.status, 'error')}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "request_id": request_id,
            "attempts": [
                {"lane": item.lane, "outcome": item.kind.value, "duration_ms": round(item.duration_s * 1000, 3)}
                for item in self.attempts
            ],
        }
        return json.dumps(document, separators=(",", ":")).encode()

"""How a tenant pages through its jobs: the query's parameters, and the cursor from one page to the next.

A cursor is a place in time: when a job was accepted, and its id. It names no tenant, for that comes from the identity
alone; so one that was tampered with, or somebody else's, only begins elsewhere in the caller's own list.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from functions.core.job_view import Status

DEFAULT_LIMIT: Final = 50
LARGEST_LIMIT: Final = 200
ID: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
"""A job's id."""
_CURSOR: Final = re.compile(rf"([0-9]{{1,15}})\.({ID.pattern})", re.ASCII)
_LIMIT: Final = re.compile(r"[0-9]{1,9}", re.ASCII)

Place = tuple[int, str]
"""(accepted at, Unix milliseconds; id)."""


class QueryError(ValueError):
    """A parameter is malformed: the caller's fault (400). The message is for the caller."""


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked of a list."""

    limit: int = DEFAULT_LIMIT
    after: Place | None = None
    status: Status | None = None


def read_query(parameters: Mapping[str, str]) -> Query:
    """The query of these parameters; others are ignored. Raises `QueryError`."""
    limit = parameters.get("limit", str(DEFAULT_LIMIT))
    if not _LIMIT.fullmatch(limit) or not 1 <= int(limit) <= LARGEST_LIMIT:
        raise QueryError(f"limit must be a whole number from 1 to {LARGEST_LIMIT}.")
    status = parameters.get("status")
    if status is not None and status not in set(Status):
        raise QueryError(f"status must be one of {', '.join(Status)}.")
    cursor = parameters.get("cursor")
    return Query(
        int(limit), None if cursor is None else read_cursor(cursor), None if status is None else Status(status)
    )


def cursor_of(place: Place) -> str:
    """The cursor that continues after `place`."""
    return base64.urlsafe_b64encode(f"{place[0]}.{place[1]}".encode()).decode("ascii").rstrip("=")


def read_cursor(cursor: str) -> Place:
    """The place that a cursor stands for. Raises `QueryError`."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        text = ""
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise QueryError("cursor must be the next_cursor of an earlier page.")
    return int(found[1]), found[2]

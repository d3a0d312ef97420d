"""Which captures make up a day: its bounds in the policy's time zone, and the partitions that hold it.

Captures lie in partitions by the date and the hour at which they arrived, in that same zone. A request that came in
before midnight may be answered, and arrive, after it: so the hours that begin within `LATEST_S` after the day are read
too, and of all that lies there only what came in within the day counts. A day is from midnight to midnight, so it has
23 or 25 hours where the clocks change.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

LATEST_S: Final = 900.0
"""From a request's coming in to its capture's arrival, at most: Lambda's own time limit."""
_FIRST_YEAR, _LAST_YEAR = 1970, 9998
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


class DayError(ValueError):
    """Not a day, or not a time zone; the message says which and what is wanted."""


@dataclass(frozen=True, slots=True)
class Day:
    """A calendar day in a time zone."""

    date: str
    """`2026-12-01`."""
    zone: str
    """IANA name."""
    begins: float
    ends: float
    """Unix seconds; the end is not part of it."""
    partitions: tuple[str, ...]
    """Prefixes that hold its captures, below the model's."""

    def holds(self, at: float) -> bool:
        """Whether a moment (Unix seconds) lies in it."""
        return self.begins <= at < self.ends

    def hour(self, at: float) -> int:
        """Which hour of the clock a moment in it falls into, 0 to 23."""
        return datetime.fromtimestamp(at, _zone(self.zone)).hour


def day(text: str, zone: str) -> Day:
    """The day `text` (yyyy-MM-dd) in `zone` (an IANA name). Raises `DayError`."""
    where = _zone(zone)
    first = _date(text)
    begins, ends = (datetime(d.year, d.month, d.day, tzinfo=where) for d in (first, first + timedelta(days=1)))
    bounds = begins.timestamp(), ends.timestamp()
    after = (datetime.fromtimestamp(at, where) for at in (bounds[1], bounds[1] + LATEST_S))
    hours = dict.fromkeys(f"date={moment:%Y-%m-%d}/hour={moment:%H}/" for moment in after)
    return Day(text, zone, *bounds, (f"date={text}/", *hours))


def yesterday(now: float, zone: str) -> str:
    """The last day that is over at `now` (Unix seconds) in `zone`."""
    return (datetime.fromtimestamp(now, _zone(zone)).date() - timedelta(days=1)).isoformat()


def days_before(text: str, number: int) -> tuple[str, ...]:
    """The `number` days before a date, newest first."""
    first = _date(text)
    return tuple((first - timedelta(days=n)).isoformat() for n in range(1, number + 1))


def _date(text: str) -> date:
    """The date, within the years that a moment's arithmetic reaches in any zone."""
    try:
        found = date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        found = None
    if found is None or not _FIRST_YEAR <= found.year <= _LAST_YEAR:
        raise DayError(f"{text[:40]!r} is not a date such as 2026-12-01")
    return found


def _zone(name: str) -> tzinfo:
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise DayError(f"{name[:60]!r} is no time zone name (such as UTC or Asia/Shanghai)") from None

"""When a scheduled action is due: at(...), rate(...) and cron(...) with a time zone. Pure; times are epoch seconds.

at(yyyy-mm-ddThh:mm:ss)   once
rate(value unit)          at StartTime and every so often after it; without one, first a whole interval after creation
cron(min hour day-of-month month day-of-week year)
                          Quartz's fields: * , - / in all; L, L-3, LW, 15W and 6L, 6#3 for days; exactly one of the two
                          day fields is ?; days of the week are 1 (SUN) to 7

StartTime and EndTime bound recurring schedules. A local time that daylight saving skips is skipped; one that it repeats
is used once, the first time.

Sources: PutScheduledAction; Application Auto Scaling user guide, "Schedule recurring scaling actions using cron".
"""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

LAST_YEAR = 2199
_AT = re.compile(r"at\((\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})\)")
_RATE = re.compile(r"rate\(([1-9]\d*) (minute|hour|day)(s?)\)")
_CRON = re.compile(r"cron\(([^()]*)\)")
_UNITS = {"minute": 60, "hour": 3600, "day": 86_400}
_MONTHS = {name.upper(): number for number, name in enumerate(calendar.month_abbr) if name}
_DAYS = {name: number for number, name in enumerate(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"), start=1)}


class ScheduleError(ValueError):
    """The schedule cannot be understood; the message says why."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a schedule stands within: its creation, and StartTime and EndTime where given."""

    created: float
    start: float | None = None
    end: float | None = None


def next_fire(text: str, zone: str | None, bounds: Bounds, moment: float) -> float | None:
    """When the schedule is due next, after `moment`; None: never again. Raises `ScheduleError`."""
    local = _zone(zone)
    if match := _AT.fullmatch(text):
        due: float | None = _at(match[1], local)
        return due if due is not None and due > moment else None
    if match := _RATE.fullmatch(text):
        due = _rate(int(match[1]) * _UNITS[match[2]], bounds, moment)
    elif match := _CRON.fullmatch(text):
        # One instant before StartTime, so that a time that is StartTime itself is used.
        due = _cron(match[1]).after(max(moment, (bounds.start or -math.inf) - 1e-6), local)
    else:
        raise ScheduleError(f"Schedule must be at(...), rate(...) or cron(...) with six fields; got {text!r}.")
    return due if due is not None and (bounds.end is None or due <= bounds.end) else None


def _zone(name: str | None) -> ZoneInfo:
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ScheduleError(f"Timezone {name!r} is not known.") from error


def _at(text: str, zone: ZoneInfo) -> float | None:
    try:
        return _instant(datetime.fromisoformat(text), zone)
    except ValueError as error:
        raise ScheduleError(f"at({text}) is not a date and time: {error}.") from error


def _rate(period_s: int, bounds: Bounds, moment: float) -> float:
    if bounds.start is not None and moment < bounds.start:
        return bounds.start
    anchor = bounds.created if bounds.start is None else bounds.start
    return anchor + period_s * max(math.floor((moment - anchor) / period_s) + 1, 1)


def _instant(local: datetime, zone: ZoneInfo) -> float | None:
    """The epoch second of a local time; None when the clocks skip it."""
    aware = local.replace(tzinfo=zone)
    exists = aware.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == local
    return aware.timestamp() if exists else None


OnDay = Callable[[date], bool]


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed cron expression."""

    minutes: frozenset[int]
    hours: frozenset[int]
    months: frozenset[int]
    years: frozenset[int]
    on_day: OnDay

    def after(self, moment: float, zone: ZoneInfo) -> float | None:
        """The first time after `moment`."""
        first = datetime.fromtimestamp(max(moment, 0.0), zone).date()
        for day in self._days(first):
            for hour in sorted(self.hours):
                for minute in sorted(self.minutes):
                    due = _instant(datetime.combine(day, time(hour, minute)), zone)
                    if due is not None and due > moment:
                        return due
        return None

    def _days(self, first: date) -> Iterator[date]:
        for year in sorted(y for y in self.years if y >= first.year):
            for month in sorted(self.months):
                for number in range(1, calendar.monthrange(year, month)[1] + 1):
                    day = date(year, month, number)
                    if day >= first and self.on_day(day):
                        yield day


def _cron(text: str) -> Cron:
    fields = text.split()
    if len(fields) != 6:
        raise ScheduleError(f"Schedule must be at(...), rate(...) or cron(...) with six fields; got 'cron({text})'.")
    minute, hour, day, month, weekday, year = (f.upper() for f in fields)
    if (day == "?") == (weekday == "?"):
        raise ScheduleError(f"Exactly one of day of month and day of week must be ?; got 'cron({text})'.")
    return Cron(
        _numbers(minute, 0, 59),
        _numbers(hour, 0, 23),
        _numbers(month, 1, 12, _MONTHS),
        _numbers(year, 1970, LAST_YEAR),
        _day_of_month(day) if weekday == "?" else _day_of_week(weekday),
    )


def _numbers(field: str, least: int, most: int, names: dict[str, int] | None = None) -> frozenset[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, slash, step_text = part.partition("/")
        step = int(step_text) if slash and step_text.isdigit() else 1
        if span == "*":
            first, last = least, most
        elif "-" in span:
            first, last = (_number(end, names, field) for end in span.split("-", 1))
        else:
            first = _number(span, names, field)
            last = most if slash else first
        if (slash and not step_text.isdigit()) or step < 1 or not (least <= first <= most and least <= last <= most):
            raise ScheduleError(f"cron field {field!r} must be within {least} to {most}.")
        # FRI-MON goes round the end of the week.
        wrapped = [*range(first, most + 1), *range(least, last + 1)] if last < first else range(first, last + 1)
        found.update(list(wrapped)[::step])
    return frozenset(found)


def _number(text: str, names: dict[str, int] | None, field: str) -> int:
    if names and text in names:
        return names[text]
    if not text.isdigit():
        raise ScheduleError(f"cron field {field!r} has {text!r}, which is no number here.")
    return int(text)


def _last(day: date) -> date:
    return day.replace(day=calendar.monthrange(day.year, day.month)[1])


def _nearest_weekday(wanted: date) -> date:
    """That day, or the nearest Monday to Friday in the same month."""
    shift = {5: -1, 6: 1}.get(wanted.weekday(), 0)
    near = wanted + timedelta(days=shift)
    if near.month == wanted.month:
        return near
    return wanted + timedelta(days=2 if shift < 0 else -2)


def _day_of_month(field: str) -> OnDay:
    if field == "LW":
        return lambda day: day == _nearest_weekday(_last(day))
    if match := re.fullmatch(r"L(?:-(\d{1,2}))?", field):
        back = timedelta(days=int(match[1] or 0))
        return lambda day: day == _last(day) - back
    if match := re.fullmatch(r"(\d{1,2})W", field):
        (number,) = _numbers(match[1], 1, 31)
        return lambda day: number <= _last(day).day and day == _nearest_weekday(day.replace(day=number))
    numbers = _numbers(field, 1, 31)
    return lambda day: day.day in numbers


def _day_of_week(field: str) -> OnDay:
    if match := re.fullmatch(r"(\w+)#([1-5])", field):
        number, nth = _number(match[1], _DAYS, field), int(match[2])
        return lambda day: _weekday(day) == number and (day.day - 1) // 7 + 1 == nth
    if match := re.fullmatch(r"(\w+?)L", field):
        number = _number(match[1], _DAYS, field)
        return lambda day: _weekday(day) == number and day.day + 7 > _last(day).day
    numbers = _numbers("7" if field == "L" else field, 1, 7, _DAYS)
    return lambda day: _weekday(day) in numbers


def _weekday(day: date) -> int:
    return day.isoweekday() % 7 + 1

"""When scheduled actions are due."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.stack.sagemaker.scaling.timing import Bounds, ScheduleError, next_fire

GUIDE = "Application Auto Scaling user guide, Schedule recurring scaling actions using cron expressions"


def at(text: str) -> float:
    """Epoch seconds of a UTC time."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def fires(schedule: str, after: str, zone: str | None = None, count: int = 1, **bounds: str) -> list[str]:
    """The next times in UTC."""
    moment = at(after)
    limits = Bounds(moment, *(at(bounds[k]) if k in bounds else None for k in ("start", "end")))
    found: list[str] = []
    while len(found) < count and (due := next_fire(schedule, zone, limits, moment)) is not None:
        found.append(datetime.fromtimestamp(due, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
        moment = due
    return found


@pytest.mark.fidelity(
    "auto scaling", "cron schedules have Quartz's six fields and fire in their time zone", source=GUIDE
)
@pytest.mark.parametrize(
    ("schedule", "zone", "after", "expected"),
    [
        ("cron(0 8 ? * MON-FRI *)", None, "2026-11-27T08:00:00", ["2026-11-30T08:00:00", "2026-12-01T08:00:00"]),
        ("cron(0 8 ? * 2-6 *)", None, "2026-11-27T08:00:00", ["2026-11-30T08:00:00"]),
        ("cron(0 8 ? * MON-FRI *)", "Asia/Shanghai", "2026-11-30T00:00:00", ["2026-12-01T00:00:00"]),
        ("cron(30 9 * * ? *)", "America/New_York", "2026-10-31T13:30:00", ["2026-11-01T14:30:00"]),
        ("cron(0/15 * * * ? *)", None, "2026-01-01T00:10:00", ["2026-01-01T00:15:00", "2026-01-01T00:30:00"]),
        ("cron(5,35 22-23/1 * * ? *)", None, "2026-01-01T23:10:00", ["2026-01-01T23:35:00", "2026-01-02T22:05:00"]),
        ("cron(0 0 1 JAN,jul ? *)", None, "2026-01-01T00:00:00", ["2026-07-01T00:00:00", "2027-01-01T00:00:00"]),
        ("cron(0 12 L * ? *)", None, "2028-02-01T00:00:00", ["2028-02-29T12:00:00", "2028-03-31T12:00:00"]),
        ("cron(0 12 L-2 * ? *)", None, "2026-02-01T00:00:00", ["2026-02-26T12:00:00"]),
        ("cron(0 12 LW * ? *)", None, "2026-05-01T00:00:00", ["2026-05-29T12:00:00"]),
        ("cron(0 12 15W * ? *)", None, "2026-08-01T00:00:00", ["2026-08-14T12:00:00", "2026-09-15T12:00:00"]),
        ("cron(0 12 1W * ? *)", None, "2026-07-31T12:00:00", ["2026-08-03T12:00:00"]),
        ("cron(0 12 31W * ? *)", None, "2026-04-01T00:00:00", ["2026-05-29T12:00:00"]),
        ("cron(0 12 ? * 6L *)", None, "2026-11-01T00:00:00", ["2026-11-27T12:00:00", "2026-12-25T12:00:00"]),
        ("cron(0 12 ? * L *)", None, "2026-11-27T00:00:00", ["2026-11-28T12:00:00"]),
        ("cron(0 12 ? * 2#1 *)", None, "2026-11-03T00:00:00", ["2026-12-07T12:00:00"]),
        ("cron(0 12 ? * MON#5 *)", None, "2026-10-01T00:00:00", ["2026-11-30T12:00:00", "2027-03-29T12:00:00"]),
        ("cron(0 12 ? * FRI-MON *)", None, "2026-11-24T00:00:00", ["2026-11-27T12:00:00", "2026-11-28T12:00:00"]),
        ("cron(0 0 29 2 ? 2027-2032)", None, "2026-01-01T00:00:00", ["2028-02-29T00:00:00", "2032-02-29T00:00:00"]),
        ("cron(0 0 1 1 ? 2020)", None, "2026-01-01T00:00:00", []),
        ("cron(0 0 30 2 ? *)", None, "2026-01-01T00:00:00", []),
        # Daylight saving: 02:30 does not exist on 8 March 2026 in New York, and 01:30 exists twice on 1 November.
        ("cron(30 2 * * ? *)", "America/New_York", "2026-03-07T08:00:00", ["2026-03-09T06:30:00"]),
        (
            "cron(30 1 * * ? *)",
            "America/New_York",
            "2026-11-01T00:00:00",
            ["2026-11-01T05:30:00", "2026-11-02T06:30:00"],
        ),
        ("at(2026-12-01T09:00:00)", None, "2026-11-30T00:00:00", ["2026-12-01T09:00:00"]),
        ("at(2026-12-01T09:00:00)", "Pacific/Tahiti", "2026-11-30T00:00:00", ["2026-12-01T19:00:00"]),
        ("at(2026-12-01T09:00:00)", None, "2026-12-01T09:00:00", []),
        ("rate(5 minutes)", None, "2026-11-30T00:00:03", ["2026-11-30T00:05:03", "2026-11-30T00:10:03"]),
        ("rate(1 day)", None, "2026-11-30T00:00:00", ["2026-12-01T00:00:00"]),
    ],
)
def test_known_times(schedule: str, zone: str | None, after: str, expected: list[str]) -> None:
    """The next times of each kind of schedule."""
    count = len(expected) or 1
    assert fires(schedule, after, zone, count) == expected


@pytest.mark.fidelity(
    "auto scaling", "StartTime and EndTime bound a recurring schedule", source="botocore PutScheduledAction"
)
def test_bounds() -> None:
    """A rate begins at StartTime; nothing is due after EndTime; a cron time that is StartTime itself counts."""
    limits = {"start": "2026-12-01T12:00:00", "end": "2026-12-01T14:00:00"}
    now = "2026-11-30T00:00:00"
    hours = [f"2026-12-01T{hour}:00:00" for hour in (12, 13, 14)]
    assert fires("rate(1 hour)", now, count=9, **limits) == hours
    assert fires("cron(0 * * * ? *)", now, count=9, **limits) == hours


@pytest.mark.parametrize(
    ("schedule", "zone", "message"),
    [
        ("cron(0 8 * * *)", None, "with six fields; got 'cron(0 8 * * *)'"),
        ("every day", None, "Schedule must be at(...), rate(...) or cron(...)"),
        ("rate(0 minutes)", None, "Schedule must be"),
        ("at(2026-13-01T00:00:00)", None, "is not a date and time"),
        ("cron(0 8 * * MON *)", None, "Exactly one of day of month and day of week must be ?"),
        ("cron(0 8 ? * ? *)", None, "Exactly one of day of month and day of week must be ?"),
        ("cron(60 8 ? * 1 *)", None, "cron field '60' must be within 0 to 59"),
        ("cron(0/x 8 ? * 1 *)", None, "cron field '0/X' must be within"),
        ("cron(0 8 ? * MOO *)", None, "'MOO', which is no number here"),
        ("rate(1 hour)", "Mars/Olympus", "Timezone 'Mars/Olympus' is not known"),
    ],
)
def test_refusals(schedule: str, zone: str | None, message: str) -> None:
    """A schedule that cannot be understood is refused with the reason."""
    with pytest.raises(ScheduleError, match=re.escape(message)):
        next_fire(schedule, zone, Bounds(0.0), 0.0)


@given(
    schedule=st.sampled_from(["cron(0/7 3,9 ? * TUE-SAT *)", "cron(15 4 L * ? *)", "rate(7 minutes)", "rate(3 days)"]),
    zone=st.sampled_from(["UTC", "America/New_York", "Australia/Lord_Howe"]),
    moment=st.floats(1.5e9, 2.0e9),
)
def test_time_goes_forward(schedule: str, zone: str, moment: float) -> None:
    """The next time is after now, nothing is due between the two, and asking just before it gives it again."""
    bounds = Bounds(1.4e9)
    due = next_fire(schedule, zone, bounds, moment)
    assert due is not None
    assert due > moment
    assert next_fire(schedule, zone, bounds, (moment + due) / 2) == due

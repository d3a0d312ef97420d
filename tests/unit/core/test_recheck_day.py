"""A recheck's day: its bounds in a time zone, and where its captures lie."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.core.recheck_day import LATEST_S, DayError, day, days_before, yesterday


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def test_a_day_is_from_midnight_to_midnight_in_its_zone() -> None:
    """In Shanghai it begins at four in the afternoon of the day before, by UTC."""
    found = day("2026-12-01", "Asia/Shanghai")
    assert (found.begins, found.ends) == (at("2026-11-30T16:00:00Z"), at("2026-12-01T16:00:00Z"))
    assert found.holds(found.begins)
    assert not found.holds(found.ends)
    assert [found.hour(found.begins), found.hour(found.ends - 1)] == [0, 23]


def test_what_arrives_just_after_midnight_is_looked_for() -> None:
    """The partition of the day, and the first hour of the next."""
    assert day("2026-12-01", "UTC").partitions == ("date=2026-12-01/", "date=2026-12-02/hour=00/")


@pytest.mark.parametrize(
    ("date", "zone", "hours", "last"),
    [
        ("2026-03-29", "Europe/Berlin", 23, "date=2026-03-30/hour=00/"),
        ("2026-10-25", "Europe/Berlin", 25, "date=2026-10-26/hour=00/"),
        ("2026-09-05", "America/Santiago", 24, "date=2026-09-06/hour=01/"),
        ("2026-12-01", "Asia/Kathmandu", 24, "date=2026-12-02/hour=00/"),
    ],
)
def test_where_the_clocks_change_a_day_is_shorter_or_longer(date: str, zone: str, hours: int, last: str) -> None:
    """23 hours in spring, 25 in autumn; where midnight itself is skipped, the next day begins at one."""
    found = day(date, zone)
    assert found.ends - found.begins == hours * 3600
    assert found.partitions[-1] == last
    assert found.hour(found.ends - 1) == 23


@given(
    st.dates(datetime(1971, 1, 1).date(), datetime(2090, 1, 1).date()),
    st.sampled_from(["UTC", "Asia/Shanghai", "America/New_York", "Asia/Kathmandu"]),
)
def test_days_leave_no_gap_and_do_not_overlap(date: object, zone: str) -> None:
    """A day ends where the next one begins, and what is late by less than the bound lies in its partitions."""
    text = str(date)
    (before,) = days_before(text, 1)
    found = day(text, zone)
    assert day(before, zone).ends == found.begins
    late = datetime.fromtimestamp(found.ends + LATEST_S, ZoneInfo(zone))
    assert f"date={late:%Y-%m-%d}/hour={late:%H}/" in found.partitions


def test_yesterday_is_the_last_day_that_is_over() -> None:
    """At one in the morning in Shanghai it is not yet UTC's."""
    assert yesterday(at("2026-12-01T17:00:00Z"), "Asia/Shanghai") == "2026-12-01"
    assert yesterday(at("2026-12-01T17:00:00Z"), "UTC") == "2026-11-30"


def test_days_before_are_newest_first() -> None:
    """Over the end of a month."""
    assert days_before("2026-12-01", 2) == ("2026-11-30", "2026-11-29")


@pytest.mark.parametrize(
    "text", ["2026-12-32", "yesterday", "2026-12-1", "20261201", "٢٠٢٦-12-01", "0001-01-01", "9999-12-31", ""]
)
def test_what_is_no_date_is_refused(text: str) -> None:
    """With an example of one."""
    with pytest.raises(DayError, match="is not a date such as 2026-12-01"):
        day(text, "UTC")


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../etc/passwd", "/etc/passwd", ""])
def test_what_is_no_zone_is_refused(zone: str) -> None:
    """A path is none."""
    with pytest.raises(DayError, match="no time zone name"):
        day("2026-12-01", zone)

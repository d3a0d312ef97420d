"""The outlook: what is believed of a model's lanes, and until when the same holds."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from functions.core.conditions import Load, LocalTime
from functions.core.estimates import Prediction
from functions.core.outlook import Outlook, holds_until, local_time, look
from functions.core.policy import Policy
from functions.core.snapshot import LaneState, Series, Snapshot
from tests.unit.core.builders import (
    BATCH,
    DEDICATED,
    MODEL,
    NOW,
    SERVERLESS,
    lane,
    points,
    policy,
    rules,
    snapshot,
    topology,
)
from tests.unit.core.refused import SIGNAL

ALL = topology(dedicated=DEDICATED, serverless=SERVERLESS, batch=BATCH, external={"kind": "external"})


def test_a_look_gathers_what_a_decision_needs() -> None:
    """Every lane that can be chosen, with its latch, load, breaker, reason and prediction; all lanes by name."""
    seen = snapshot(
        dedicated=lane({"cpu_percent": points(*[91.0] * 5)}, in_flight=32, instances=4, breaker="half_open"),
        serverless=lane(in_flight=5),
        batch=lane(breaker="open"),
    )
    assert look(MODEL, seen, policy(signals={"hot": SIGNAL}), ALL, NOW) == Outlook(
        lanes=ALL.serving_lanes(MODEL),
        named=("dedicated", "serverless", "batch", "external"),
        latches={"hot": True},
        loads={"dedicated": Load(2.0), "serverless": Load(0.25)},
        breakers={"dedicated": "half_open", "serverless": "closed", "batch": "open"},
        used_up={"dedicated": "used up: 32 in flight at 4 instances, the most"},
        exhausted=frozenset({"dedicated"}),
        predicted={
            "dedicated": Prediction(None, None),
            "serverless": Prediction(None, None),
            "batch": Prediction(None, None),
        },
        local=LocalTime(weekday=0, minute=60),
    )


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (lane(in_flight=31, instances=4), None),
        (lane(in_flight=32, instances=4), "used up: 32 in flight at 4 instances, the most"),
        (lane(in_flight=40, instances=5), "used up: 40 in flight at 5 instances, the most"),
        (lane(in_flight=39, instances=5), None),
        (lane(in_flight=99, instances=3), None),
        (lane(instances=4), None),
        (lane(instances=0), None),
    ],
)
def test_dedicated_is_used_up_at_twice_its_slots_at_full_size(state: LaneState, reason: str | None) -> None:
    """Below the most instances it can grow."""
    assert look(MODEL, snapshot(dedicated=state), policy(), ALL, NOW).used_up.get("dedicated") == reason


def test_serverless_is_used_up_at_its_concurrency_and_batch_never() -> None:
    """The twenty-first would only be throttled; a queue takes any number."""
    seen = snapshot(serverless=lane(in_flight=20), batch=lane(in_flight=10**6))
    assert look(MODEL, seen, policy(), ALL, NOW).used_up == {"serverless": "used up: 20 in flight of 20"}
    assert look(MODEL, snapshot(serverless=lane(in_flight=19)), policy(), ALL, NOW).used_up == {}
    shut = topology(serverless={**SERVERLESS, "max_concurrency": 1})
    assert look(MODEL, snapshot(serverless=lane()), policy(), shut, NOW).used_up == {}


@pytest.mark.parametrize(
    ("now", "local"),
    [
        (0.0, LocalTime(3, 0)),
        (59.9, LocalTime(3, 0)),
        (60.0, LocalTime(3, 1)),
        (86_400.0 + 13 * 3600 + 45 * 60, LocalTime(4, 13 * 60 + 45)),
        (1e300, None),
        (float("nan"), None),
        (float("inf"), None),
    ],
)
def test_a_moment_is_a_weekday_and_a_minute(now: float, local: LocalTime | None) -> None:
    """1970 began on a Thursday; outside the calendar there is neither."""
    assert local_time(now, UTC) == local


def test_local_time_is_the_zones() -> None:
    """Half past five in India is midnight in London."""
    assert local_time(0.0, timezone(timedelta(hours=5, minutes=30))) == LocalTime(3, 330)
    assert local_time(0.0, ZoneInfo("America/New_York")) == LocalTime(2, 19 * 60)


CLOCK = policy(rules=rules(({"not": {"clock": {"from": "01:00", "to": "02:00"}}}, ["serverless"])))
WEEKDAY = policy(rules=rules(({"weekday": ["mon"]}, ["serverless"])))


@pytest.mark.parametrize("by", [CLOCK, WEEKDAY], ids=["clock", "weekday"])
@pytest.mark.parametrize(("second", "left_s"), [(0.0, 60.0), (20.0, 40.0), (20.25, 39.75), (59.5, 0.5)])
def test_where_the_time_of_day_counts_it_holds_until_the_minute_turns(by: Policy, second: float, left_s: float) -> None:
    """Less a millisecond."""
    found = holds_until(MODEL, Snapshot(NOW), by, ALL, NOW + second)
    assert found == pytest.approx(NOW + second + left_s - 0.001, abs=1e-5)


def test_where_it_does_not_count_the_minute_changes_nothing() -> None:
    """Then only the reading grows old."""
    found = holds_until(MODEL, Snapshot(NOW), policy(), ALL, NOW + 20)
    assert found == pytest.approx(NOW + 600 - 0.001, abs=1e-5)


def test_the_earlier_of_minute_and_edge_counts() -> None:
    """A reading that is ten minutes old within the minute."""
    found = holds_until(MODEL, Snapshot(NOW - 570), CLOCK, ALL, NOW)
    assert found == pytest.approx(NOW + 30 - 0.001, abs=1e-5)


ONE = Series(((NOW, 50.0),), 10.0)


@pytest.mark.parametrize(
    ("after_s", "until_s"),
    [(0, 10), (5, 10), (11, 600), (599, 600), (601, 3600), (3599, 3600), (3601, 3610), (3611, float("inf"))],
)
def test_a_point_turns_four_times_in_its_life(after_s: float, until_s: float) -> None:
    """It finishes after its period, is stale after ten minutes, and leaves the hour: by its stamp, then by its end."""
    seen = Snapshot(None, snapshot(serverless=LaneState({"cpu_percent": ONE})).models)
    found = holds_until(MODEL, seen, policy(), ALL, NOW + after_s)
    assert found == pytest.approx(NOW + until_s - 0.001, abs=1e-5)


def test_the_next_of_many_points_counts() -> None:
    """Over all lanes and series."""
    seen = Snapshot(
        None,
        snapshot(
            dedicated=LaneState({"a": Series(((NOW - 1000, 1.0), (NOW - 40, 1.0)), 60.0)}),
            serverless=LaneState({"b": Series(((NOW - 590, 1.0), (NOW + 5, 1.0)), 60.0)}),
        ).models,
    )
    assert holds_until(MODEL, seen, policy(), ALL, NOW) == pytest.approx(NOW + 10 - 0.001, abs=1e-5)
    assert holds_until(MODEL, seen, policy(), ALL, NOW + 10.5) == pytest.approx(NOW + 20 - 0.001, abs=1e-5)


@pytest.mark.parametrize("off_s", [-0.0009, -0.0005, 0.0, 0.0005, 0.0009])
def test_within_a_millisecond_of_an_edge_nothing_is_promised(off_s: float) -> None:
    """Beyond that moment, that is."""
    now = NOW + 600 + off_s
    assert holds_until(MODEL, Snapshot(NOW), policy(), ALL, now) == now
    assert holds_until(MODEL, Snapshot(NOW), policy(), ALL, NOW + 600.0015) == float("inf")
    assert holds_until(MODEL, Snapshot(NOW), policy(), ALL, NOW + 599.9) == pytest.approx(NOW + 599.999, abs=1e-5)


def test_a_zone_may_be_off_by_seconds() -> None:
    """As Monrovia was until 1972: its minute turns at another second."""
    off = replace(CLOCK, zone=timezone(timedelta(seconds=-20)))
    assert holds_until(MODEL, Snapshot(NOW), off, ALL, NOW) == pytest.approx(NOW + 20 - 0.001, abs=1e-5)

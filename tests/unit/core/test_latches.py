"""Latches: hysteresis replayed from points, by covered time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.core.latches import Signal, latches, replay
from functions.core.snapshot import LatchState, Series
from tests.unit.core.builders import MODEL, NOW, lane, points, snapshot

HOT = Signal("dedicated", "cpu_percent", above=85, for_s=300, until_below=70, until_for_s=180)


def on(values: Sequence[float], *, carried: bool = False, now: float = NOW, signal: Signal = HOT) -> bool:
    return replay(signal, points(*values), LatchState(carried), now).on


@pytest.mark.parametrize(("minutes", "state"), [(4, False), (5, True), (60, True)])
def test_it_trips_after_five_finished_minutes(minutes: int, state: bool) -> None:
    """Four points of a minute are not five minutes."""
    assert on([90.0] * minutes) is state


def test_an_unfinished_point_does_not_count() -> None:
    """A second before the fifth minute ends, it has not ended."""
    assert replay(HOT, points(*[90.0] * 5), None, NOW - 1).on is False


def test_exactly_the_threshold_is_not_above_it() -> None:
    """85 is not above 85, and 70 is not below 70."""
    assert on([85.0] * 30) is False
    assert on([70.0] * 30, carried=True) is True


def test_it_clears_after_three_minutes_below() -> None:
    """Two minutes below 70 leave it on, three turn it off."""
    assert on([90.0] * 5 + [60.0] * 2) is True
    assert on([90.0] * 5 + [60.0] * 3) is False


def test_values_between_break_a_run_and_turn_nothing() -> None:
    """80 is neither hot nor cool."""
    assert on([90.0] * 4 + [80.0] + [90.0] * 4) is False
    assert on([90.0] * 5 + [60.0] * 2 + [80.0] + [60.0] * 2) is True


@pytest.mark.parametrize(("missing", "state"), [(1, True), (2, True), (3, False)])
def test_a_gap_of_two_points_pauses_a_run_and_three_end_it(missing: int, state: bool) -> None:
    """Missing points neither enter nor exit; too many of them end the run."""
    stamps = [NOW - 60 * k for k in (1, 2)] + [NOW - 60 * (2 + missing + k) for k in (1, 2, 3)]
    assert replay(HOT, Series.of([(stamp, 90.0) for stamp in stamps]), None, NOW).on is state


def test_a_long_gap_never_turns_the_latch() -> None:
    """An hour's silence after it tripped: still on."""
    stamps = [NOW - 60 * k for k in range(50, 60)]
    assert replay(HOT, Series.of([(stamp, 90.0) for stamp in stamps]), None, NOW).on is True


def test_it_starts_from_the_carried_state() -> None:
    """What nothing in the window contradicts stays."""
    assert on([80.0] * 30, carried=True) is True
    assert on([80.0] * 30, carried=False) is False


def test_points_older_than_the_hour_are_forgotten() -> None:
    """Only what overlaps the last hour counts."""
    old = Series.of([(NOW - 3660 - 60 * k, 90.0) for k in range(1, 10)])
    assert replay(HOT, old, None, NOW).on is False


def test_an_hour_long_signal_can_trip_between_whole_minutes() -> None:
    """`for: 60m` needs sixty points whatever the second."""
    signal = Signal("dedicated", "cpu_percent", 85, 3600, 70, 60)
    assert replay(signal, points(*[90.0] * 60), None, NOW + 30).on is True


def test_of_equal_stamps_the_last_wins_and_order_does_not_matter() -> None:
    """A corrected point replaces its first value."""
    pairs = [(NOW - 60 * k, 90.0) for k in range(1, 6)]
    assert replay(HOT, Series.of([*reversed(pairs), (NOW - 60, 10.0)]), None, NOW).on is False


def test_the_series_own_period_counts() -> None:
    """Two ten-second points cover twenty seconds."""
    signal = Signal("dedicated", "cpu_percent", 85, 20, 70, 20)
    assert replay(signal, points(90.0, 90.0, period_s=10), None, NOW).on is True
    assert replay(signal, points(90.0, period_s=10), None, NOW).on is False


def test_an_unknown_lane_gives_an_unknown_latch() -> None:
    """A stale snapshot, a silent lane or an absent one: null, whatever was carried."""
    carried = {"hot": LatchState(True)}
    fresh = snapshot(latches=carried, dedicated=lane())
    assert latches({"hot": HOT}, fresh, MODEL, NOW, ["dedicated"]) == {"hot": True}
    assert latches({"hot": HOT}, fresh, MODEL, NOW + 661, ["dedicated"]) == {"hot": None}
    assert latches({"hot": HOT}, snapshot(latches=carried), MODEL, NOW, ["dedicated"]) == {"hot": None}


def test_a_latch_knows_since_when_it_is_on_or_off() -> None:
    """From the end of the point that turned it; else as carried."""
    hot = points(*[90.0] * 6)
    assert replay(HOT, hot, None, NOW) == LatchState(True, NOW - 60)
    cooled = points(*[90.0] * 5, *[60.0] * 4)
    assert replay(HOT, cooled, None, NOW) == LatchState(False, NOW - 60)
    assert replay(HOT, points(80.0), LatchState(True, 7.0), NOW) == LatchState(True, 7.0)
    assert replay(HOT, None, LatchState(True, 7.0), NOW) == LatchState(True, 7.0)
    assert replay(HOT, None, None, NOW) == LatchState(False, None)


def test_it_turns_as_often_as_the_hour_says() -> None:
    """On, off and on again; a run that turned it counts for nothing in the next."""
    assert on([90.0] * 5 + [60.0] * 3 + [90.0] * 4) is False
    assert on([90.0] * 5 + [60.0] * 3 + [90.0] * 5) is True
    quick = Signal("dedicated", "cpu_percent", above=85, for_s=120, until_below=85, until_for_s=120)
    assert replay(quick, points(*[90.0] * 2, *[60.0] * 2, *[90.0] * 1), None, NOW).on is False


@pytest.mark.parametrize(
    "before",
    [[], [80.0], [90.0] * 4 + [80.0], [90.0] * 6 + [60.0] * 3],
    ids=["nothing", "a value between", "a broken run", "a turn on and off"],
)
def test_a_run_begins_at_nothing(before: list[float]) -> None:
    """A second more than five minutes takes six points, whatever came before them."""
    signal = Signal("dedicated", "cpu_percent", above=85, for_s=301, until_below=70, until_for_s=180)
    assert on([*before, *[90.0] * 5], signal=signal) is False
    assert on([*before, *[90.0] * 6], signal=signal) is True


def test_after_a_long_gap_a_run_begins_at_nothing_too() -> None:
    """Nor does what lies before the hour end the replay."""
    signal = Signal("dedicated", "cpu_percent", above=85, for_s=301, until_below=70, until_for_s=180)
    long_ago = [(NOW - 7200, 90.0), (NOW - 1800, 90.0)]
    for count, state in ((5, False), (6, True)):
        late = [(NOW - 60 * k, 90.0) for k in range(1, count + 1)]
        assert replay(signal, Series.of(long_ago + late), None, NOW).on is state


def test_points_that_overlap_cover_their_time_once() -> None:
    """Nine points of a minute, half a minute apart, cover five minutes; eight do not."""
    nine = Series.of([(NOW - 60 - 30 * i, 90.0) for i in range(9)])
    assert replay(HOT, nine, None, NOW).on is True
    assert replay(HOT, Series(nine.points[1:]), None, NOW).on is False


@pytest.mark.parametrize(("gap_s", "state"), [(119.0, True), (120.0, True), (121.0, False)])
def test_a_run_survives_two_periods_of_silence(gap_s: float, state: bool) -> None:
    """Measured from the end of one point to the begin of the next."""
    before = [(NOW - 60 * k - gap_s - 120, 90.0) for k in (1, 2, 3)]
    after = [(NOW - 60 * k, 90.0) for k in (1, 2)]
    assert replay(HOT, Series.of(before + after), None, NOW).on is state


@pytest.mark.parametrize(("late_s", "state"), [(0.0, True), (0.1, False)])
def test_the_hour_begins_where_a_point_still_reaches_into_it(late_s: float, state: bool) -> None:
    """Five old points, the first of which ends just inside or just at the hour's begin."""
    old = Series.of([(NOW - 3659.9 + 60 * k, 90.0) for k in range(5)])
    assert replay(HOT, old, None, NOW + late_s).on is state


def test_only_lanes_of_this_stage_have_latches() -> None:
    """Also where the snapshot knows more, and for each signal by its own lane and metric."""
    signals = {
        "hot": HOT,
        "wait": Signal("serverless", "concurrency", above=5, for_s=60, until_below=5, until_for_s=60),
    }
    seen = snapshot(dedicated=lane({"cpu_percent": points(*[90.0] * 5)}), serverless=lane({"concurrency": points(4.0)}))
    assert latches(signals, seen, MODEL, NOW, ["dedicated", "serverless"]) == {"hot": True, "wait": False}
    assert latches(signals, seen, MODEL, NOW, ["serverless"]) == {"hot": None, "wait": False}
    assert latches({}, seen, MODEL, NOW, ["serverless"]) == {}


values = st.lists(st.one_of(st.none(), st.floats(0, 100)), min_size=1, max_size=60)


@given(values, st.integers(1, 10), st.integers(1, 10), st.sampled_from([10.0, 60.0]))
def test_turns_in_one_direction_are_for_plus_until_for_apart(
    seen: list[float | None], enter: int, leave: int, period_s: float
) -> None:
    """Replaying ever more of any series, two turns in the same direction keep their distance."""
    signal = Signal("dedicated", "cpu_percent", 60, enter * period_s, 40, leave * period_s)
    found = [(NOW + i * period_s, value) for i, value in enumerate(seen) if value is not None]
    turns: dict[bool, list[float]] = {True: [], False: []}
    state = False
    for i in range(1, len(seen) + 1):
        now = NOW + i * period_s
        after = replay(signal, Series.of(found, period_s), None, now).on
        if after != state:
            turns[after].append(now)
            state = after
    for times in turns.values():
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert all(gap >= signal.for_s + signal.until_for_s for gap in gaps)


@given(st.lists(st.floats(71, 99), min_size=1, max_size=60), st.integers(1, 20), st.booleans())
def test_noise_narrower_than_the_dead_band_turns_it_at_most_once(noise: list[float], enter: int, carried: bool) -> None:
    """What never falls below `until_below` can enter, never leave."""
    signal = Signal("dedicated", "cpu_percent", 85, enter * 60, 70, 60)
    states = [carried] + [
        replay(signal, points(*noise[:i], now=NOW + i * 60), LatchState(carried), NOW + i * 60).on
        for i in range(1, len(noise) + 1)
    ]
    assert sum(a != b for a, b in itertools.pairwise(states)) <= 1


@given(values, st.floats(0, 3600))
def test_replay_is_a_function_of_finished_points_alone(seen: list[float | None], ahead: float) -> None:
    """Points of the future change nothing."""
    past = [(NOW - 60 * (i + 1), value) for i, value in enumerate(seen) if value is not None]
    future = [(NOW + ahead, 100.0)]
    assert replay(HOT, Series.of(past), None, NOW) == replay(HOT, Series.of(past + future), None, NOW)

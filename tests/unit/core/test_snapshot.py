"""The snapshot: what it holds, what of it can be believed, and the words of a refusal."""

from __future__ import annotations

import pytest

from functions.core.snapshot import (
    LaneState,
    LatchState,
    ModelState,
    Series,
    Snapshot,
    SnapshotError,
)
from tests.unit.core.builders import MODEL, NOW, lane, points, snapshot

AT = "2026-12-01T02:00:00Z"
AT_S = 1_796_090_400.0
BASE = {"schema": "inferlane/snapshot/v1", "taken_at": AT}


def with_lane(**parts: object) -> dict[str, object]:
    return {**BASE, "models": {"m": {"lanes": {"d": parts}}}}


def test_everything_a_snapshot_may_say_is_read() -> None:
    """Both forms of a series, own latches and common ones, experiments."""
    found = Snapshot.from_json(
        {
            **BASE,
            "latches": {"hot": {"on": True, "since": AT}},
            "experiments": {"a": "stopped", "b": "running"},
            "models": {
                "m": {
                    "latches": {"cold": {"on": False}},
                    "lanes": {
                        "d": {
                            "period_s": 30,
                            "series": {"errors": [[AT, 1]], "throttles": {"period_s": 10, "points": [[AT, 2.5]]}},
                            "instances": 0,
                            "in_flight": 0,
                            "breaker": "half_open",
                        },
                        "e": {},
                    },
                }
            },
        }
    )
    assert found == Snapshot(
        taken_at=AT_S,
        models={
            "m": ModelState(
                lanes={
                    "d": LaneState(
                        series={"errors": Series(((AT_S, 1.0),), 30.0), "throttles": Series(((AT_S, 2.5),), 10.0)},
                        instances=0,
                        in_flight=0,
                        breaker="half_open",
                    ),
                    "e": LaneState({}, None, None, "closed"),
                },
                latches={"cold": LatchState(False, None)},
            )
        },
        latches={"hot": LatchState(True, AT_S)},
        stopped=frozenset({"a"}),
    )


def test_a_snapshot_is_written_in_the_contracts_form() -> None:
    """Series of the usual period as plain lists, others with theirs; nothing is left out."""
    seen = Snapshot(
        taken_at=AT_S,
        models={
            "m": ModelState(
                {"d": LaneState({"x": Series(((AT_S, 1.0),)), "y": Series(((AT_S, 2.0),), 10.0)}, 2, 3, "open")},
                {"own": LatchState(False)},
            )
        },
        latches={"hot": LatchState(True, AT_S)},
        stopped=frozenset({"b", "a"}),
    )
    assert seen.to_json() == {
        "schema": "inferlane/snapshot/v1",
        "taken_at": AT,
        "latches": {"hot": {"on": True, "since": AT}},
        "experiments": {"a": "stopped", "b": "stopped"},
        "models": {
            "m": {
                "latches": {"own": {"on": False, "since": None}},
                "lanes": {
                    "d": {
                        "series": {"x": [[AT, 1.0]], "y": {"period_s": 10.0, "points": [[AT, 2.0]]}},
                        "instances": 2,
                        "in_flight": 3,
                        "breaker": "open",
                    }
                },
            }
        },
    }
    assert Snapshot(None).to_json()["taken_at"] == "1970-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "expected a mapping, found a list"),
        ({"schema": "x"}, "schema: expected 'inferlane/snapshot/v1', found 'x'"),
        ({"schema": "inferlane/snapshot/v1"}, "key 'taken_at' is missing"),
        ({**BASE, "taken_at": 7}, "taken_at: expected text, found a number"),
        ({**BASE, "taken_at": "noon"}, "taken_at: expected an ISO 8601 time, found 'noon'"),
        ({**BASE, "models": []}, "models: expected a mapping, found a list"),
        ({**BASE, "models": {"m": []}}, "models.m: expected a mapping, found a list"),
        ({**BASE, "models": {"m": {"lanes": []}}}, "models.m.lanes: expected a mapping, found a list"),
        ({**BASE, "models": {"m": {"lanes": {"d": 7}}}}, "models.m.lanes.d: expected a mapping, found a number"),
        ({**BASE, "models": {"m": {"latches": {"x": {}}}}}, "models.m.latches.x: key 'on' is missing"),
        ({**BASE, "latches": []}, "latches: expected a mapping, found a list"),
        ({**BASE, "latches": {"hot": {"on": "yes"}}}, "latches.hot.on: expected true or false"),
        ({**BASE, "latches": {"hot": {"on": True, "since": 7}}}, "latches.hot.since: expected text, found a number"),
        ({**BASE, "experiments": []}, "experiments: expected a mapping, found a list"),
        (
            {**BASE, "experiments": {"a": "over"}},
            "experiments.a: unknown state 'over' (known: running, stopped)",
        ),
        (with_lane(period_s=0), "models.m.lanes.d.period_s: must be at least 0.001, found 0"),
        (with_lane(series=[]), "models.m.lanes.d.series: expected a mapping, found a list"),
        (with_lane(series={"x": 7}), "models.m.lanes.d.series.x: expected a list, found a number"),
        (with_lane(series={"x": {}}), "models.m.lanes.d.series.x: key 'points' is missing"),
        (
            with_lane(series={"x": {"points": [], "period_s": 0}}),
            "models.m.lanes.d.series.x.period_s: must be at least 0.001, found 0",
        ),
        (with_lane(series={"x": {"points": 7}}), "models.m.lanes.d.series.x.points: expected a list, found a number"),
        (with_lane(series={"x": [[AT, 1], 7]}), "models.m.lanes.d.series.x[1]: expected a list, found a number"),
        (
            with_lane(series={"x": [[AT, 1, 2]]}),
            "models.m.lanes.d.series.x[0]: expected [time, value], found 3 elements",
        ),
        (with_lane(series={"x": [[7, 1]]}), "models.m.lanes.d.series.x[0][0]: expected text, found a number"),
        (with_lane(series={"x": [[AT, "1"]]}), "models.m.lanes.d.series.x[0][1]: expected a number, found text"),
        (with_lane(instances=-1), "models.m.lanes.d.instances: must be at least 0, found -1"),
        (with_lane(in_flight=-1), "models.m.lanes.d.in_flight: must be at least 0, found -1"),
        (with_lane(in_flight=1.5), "models.m.lanes.d.in_flight: expected a whole number, found 1.5"),
        (
            with_lane(breaker="ajar"),
            "models.m.lanes.d.breaker: unknown value 'ajar' (known: closed, open, half_open)",
        ),
    ],
)
def test_what_is_no_snapshot_is_refused_in_these_words(document: object, message: str) -> None:
    """Place and cause."""
    with pytest.raises(SnapshotError) as refused:
        Snapshot.from_json(document)
    assert str(refused.value) == message


def test_a_series_that_states_no_period_has_its_lanes() -> None:
    """In either form."""
    series = Snapshot.from_json(with_lane(period_s=30, series={"x": [], "y": {"points": []}})).lane("m", "d").series
    assert (series["x"].period_s, series["y"].period_s) == (30.0, 30.0)


def test_the_shortest_period_is_a_millisecond() -> None:
    """Of a lane's series, and of one that states its own."""
    document = with_lane(period_s=0.001, series={"x": [], "y": {"period_s": 0.001, "points": []}})
    series = Snapshot.from_json(document).lane("m", "d").series
    assert (series["x"].period_s, series["y"].period_s) == (0.001, 0.001)


def test_a_point_is_finished_when_its_period_is_over() -> None:
    """At that very moment it counts; a moment before it does not."""
    series = points(1.0, 2.0)
    assert series.newest(NOW) == (NOW - 60, 2.0)
    assert series.newest(NOW - 0.001) == (NOW - 120, 1.0)
    assert series.newest(NOW - 60.001) is None
    assert series.finished(NOW) == ((NOW - 120, 1.0), (NOW - 60, 2.0))
    assert series.finished(NOW - 0.001) == ((NOW - 120, 1.0),)
    assert series.finished(NOW - 60.001) == ()


def test_points_are_kept_in_order_and_of_equal_stamps_the_last() -> None:
    """Whatever the order in which they were read."""
    assert Series.of([(2.0, 1.0), (1.0, 5.0), (2.0, 3.0)], 10.0) == Series(((1.0, 5.0), (2.0, 3.0)), 10.0)
    assert Series.of([]).period_s == 60.0


def test_a_value_is_fresh_for_ten_minutes() -> None:
    """By its stamp; a metric that nobody reported is not."""
    state = lane({"concurrency": points(3.0)})
    assert state.fresh("concurrency", NOW - 60 + 600) == 3.0
    assert state.fresh("concurrency", NOW - 60 + 600.1) is None
    assert state.fresh("instances", NOW) is None


def test_a_lanes_newest_stamp_is_that_of_any_series() -> None:
    """None of one without a finished point."""
    state = LaneState({"x": points(1.0), "y": points(1.0, now=NOW - 300), "z": points(1.0, now=NOW + 60)})
    assert state.newest_stamp(NOW) == NOW - 60
    assert LaneState().newest_stamp(NOW) is None


def test_metrics_are_known_while_reading_and_points_are_young() -> None:
    """Each up to ten minutes old."""
    old_reading = snapshot(taken_at=NOW - 600, dedicated=lane())
    assert old_reading.known(MODEL, "dedicated", NOW) is True
    assert old_reading.known(MODEL, "dedicated", NOW + 0.1) is False
    new_reading = snapshot(taken_at=NOW + 900, dedicated=lane())
    assert new_reading.known(MODEL, "dedicated", NOW + 540) is True
    assert new_reading.known(MODEL, "dedicated", NOW + 540.1) is False
    assert new_reading.known(MODEL, "serverless", NOW) is False
    assert new_reading.known("x", "dedicated", NOW) is False


def test_a_models_own_latch_comes_before_the_common_one() -> None:
    """And where neither is carried there is none."""
    seen = Snapshot(
        NOW,
        {MODEL: ModelState({}, {"hot": LatchState(False)})},
        latches={"hot": LatchState(True), "cold": LatchState(True)},
    )
    assert seen.latch(MODEL, "hot") == LatchState(False)
    assert seen.latch(MODEL, "cold") == LatchState(True)
    assert seen.latch("x", "hot") == LatchState(True)
    assert seen.latch("x", "none") is None


def test_own_requests_raise_one_lane_and_touch_nothing_else() -> None:
    """Other lanes, other models, series and latches stay as they were."""
    seen = Snapshot(
        NOW,
        {
            MODEL: ModelState(
                {"dedicated": lane(in_flight=1, breaker="open"), "serverless": lane(in_flight=9)},
                {"hot": LatchState(True)},
            ),
            "x": ModelState({"dedicated": lane()}),
        },
        latches={"cold": LatchState(True)},
        stopped=frozenset({"t"}),
    )
    raised = seen.with_in_flight({(MODEL, "serverless"): 9, (MODEL, "dedicated"): 2, ("new", "dedicated"): 1})
    assert raised.lane(MODEL, "dedicated") == lane(in_flight=2, breaker="open")
    assert raised.models[MODEL].lanes["serverless"] is seen.models[MODEL].lanes["serverless"]
    assert raised.models[MODEL].latches == {"hot": LatchState(True)}
    assert raised.models["x"] is seen.models["x"]
    assert raised.models["new"] == ModelState({"dedicated": LaneState(in_flight=1)})
    assert (raised.taken_at, raised.latches, raised.stopped) == (NOW, seen.latches, seen.stopped)
    assert seen.lane(MODEL, "dedicated").in_flight == 1, "the reading itself is not changed"
    assert seen.with_in_flight({(MODEL, "none"): 0}) == seen, "nothing in flight is nothing known"

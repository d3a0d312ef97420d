"""Estimates: load, P99, service time and marginal cost of one more request, each at its edges."""

from __future__ import annotations

import pytest

from functions.core.conditions import Load
from functions.core.estimates import (
    Prediction,
    at_least_ms,
    exhausted,
    instances,
    load,
    predict,
    predicted_p99_ms,
    service_s,
    slots,
)
from functions.core.snapshot import LaneState, Series, Snapshot
from functions.core.topology import DedicatedLane, ServerlessLane
from tests.unit.core.builders import BATCH, DEDICATED, MODEL, NOW, SERVERLESS, lane, points, snapshot, topology


def dedicated(**parts: object) -> DedicatedLane:
    found = topology(dedicated={**DEDICATED, **parts}).models[MODEL]["dedicated"]
    assert isinstance(found, DedicatedLane)
    return found


def serverless(**parts: object) -> ServerlessLane:
    found = topology(serverless={**SERVERLESS, **parts}).models[MODEL]["serverless"]
    assert isinstance(found, ServerlessLane)
    return found


def at(age_s: float, value: float) -> Series:
    """One point, finished, stamped so long ago."""
    return Series(((NOW - age_s, value),))


@pytest.mark.parametrize(
    ("state", "minimum", "count"),
    [
        (LaneState({"instances": points(3.0)}, instances=2), 1, 2),
        (LaneState({"instances": points(3.0)}, instances=0), 1, 0),
        (LaneState({"instances": points(2.6)}), 1, 3),
        (LaneState({"instances": points(0.2)}), 2, 1),
        (LaneState({"instances": at(600, 3.0)}), 1, 3),
        (LaneState({"instances": at(601, 3.0)}), 2, 2),
        (LaneState(), 2, 2),
        (LaneState(), 0, 1),
    ],
)
def test_instances_as_known_else_as_measured_else_as_promised(state: LaneState, minimum: int, count: int) -> None:
    """One that answers has one at least."""
    assert instances(dedicated(min_instances=minimum), state, NOW) == count


def test_slots_are_those_of_all_instances_or_the_concurrency() -> None:
    """Four each on dedicated; what serverless may run at once."""
    assert slots(dedicated(), LaneState(instances=3), NOW) == 12
    assert slots(serverless(max_concurrency=7), LaneState(instances=3), NOW) == 7


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (lane({"concurrency": points(2.0)}, in_flight=1, instances=1), Load(0.5, exact=True)),
        (lane({"concurrency": points(1.0)}, in_flight=3, instances=1), Load(0.75, exact=True)),
        (lane({"concurrency": points(1.0)}, instances=2), Load(0.125, exact=True)),
        (lane(in_flight=0, instances=1), Load(0.0, exact=True)),
        (lane(instances=1), None),
        (LaneState({"concurrency": at(700, 4.0)}, in_flight=1, instances=1), Load(0.25, exact=False)),
        (LaneState({"concurrency": at(700, 4.0)}, instances=1), None),
        (lane(in_flight=2, instances=0), Load(float("inf"), exact=True)),
        (lane(in_flight=0, instances=0), Load(float("inf"), exact=True)),
        (lane(instances=0), Load(float("inf"), exact=True)),
    ],
)
def test_load_is_the_larger_of_known_and_measured_over_all_slots(state: LaneState, expected: Load | None) -> None:
    """A lower bound where the metrics are old; nothing where nothing is known; without slots, full."""
    assert load(dedicated(), MODEL, snapshot(dedicated=state), NOW) == expected


@pytest.mark.parametrize(
    ("p99", "expected"),
    [
        (points(9_999.0, 50.0, 50.0, 95.0, 50.0, 50.0), 105.0),
        (points(50.0, 95.0), 105.0),
        (at(3599, 95.0), 105.0),
        (at(3600, 95.0), 333.0),
        (at(30, 95.0), 333.0),
        (Series(()), 333.0),
    ],
)
def test_the_p99_is_the_largest_of_five_points_of_the_hour_and_overhead(p99: Series, expected: float) -> None:
    """Else what the topology expects."""
    seen = snapshot(dedicated=LaneState({"model_latency_p99_ms": p99}))
    assert predicted_p99_ms(dedicated(expected_p99_ms=333), MODEL, seen, NOW) == expected


def test_without_a_series_or_a_young_reading_the_expectation_counts() -> None:
    """Up to ten minutes the reading is young; none at all is not."""
    told = dedicated(expected_p99_ms=333)
    slow = LaneState({"model_latency_p99_ms": points(95.0)})
    for estimate in (predicted_p99_ms, at_least_ms):
        assert estimate(told, MODEL, snapshot(dedicated=LaneState()), NOW) == 333.0
        assert estimate(told, MODEL, snapshot(taken_at=NOW - 600, dedicated=slow), NOW) == 105.0
        assert estimate(told, MODEL, snapshot(taken_at=NOW - 600.1, dedicated=slow), NOW) == 333.0
        assert estimate(told, MODEL, Snapshot(None), NOW) == 333.0
        assert estimate(dedicated(), MODEL, Snapshot(None), NOW) is None


@pytest.mark.parametrize(
    ("invocations", "cold"),
    [
        (points(1.0), False),
        (at(600, 1.0), False),
        (at(601, 1.0), True),
        (points(0.0), True),
        (points(1.0, 0.0), False),
        (at(30, 1.0), True),
        (None, True),
    ],
)
def test_serverless_is_cold_without_an_invocation_in_ten_minutes(invocations: Series | None, cold: bool) -> None:
    """Then its cold start comes on top of P99 and overhead, in both estimates."""
    series = {"model_latency_p99_ms": points(400.0), **({"invocations": invocations} if invocations else {})}
    seen = snapshot(serverless=LaneState(series), dedicated=LaneState(series))
    expected = 6_410.0 if cold else 410.0
    assert predicted_p99_ms(serverless(), MODEL, seen, NOW) == expected
    assert at_least_ms(serverless(), MODEL, seen, NOW) == expected
    assert predicted_p99_ms(dedicated(), MODEL, seen, NOW) == 410.0, "an instance is never cold"


@pytest.mark.parametrize(
    ("p99", "invocations", "expected"),
    [
        (at(600, 400.0), at(600, 1.0), 410.0),
        (at(601, 400.0), at(60, 1.0), 333.0),
        (at(601, 400.0), at(601, 1.0), 6_010.0),
        (at(9_000, 400.0), at(601, 1.0), 6_010.0),
        (at(30, 400.0), at(601, 1.0), 333.0),
        (points(*[900.0], *[400.0] * 5), points(1.0), 410.0),
        (points(400.0, 900.0, *[400.0] * 4), points(1.0), 910.0),
    ],
)
def test_a_lane_is_dropped_by_young_points_or_a_sure_cold_start(
    p99: Series, invocations: Series, expected: float
) -> None:
    """Older points count for nothing; a lane that never was measured is taken at its expectation."""
    seen = snapshot(serverless=LaneState({"model_latency_p99_ms": p99, "invocations": invocations}))
    assert at_least_ms(serverless(expected_p99_ms=333), MODEL, seen, NOW) == expected


def test_without_a_cold_start_an_old_point_tells_nothing() -> None:
    """`cold_start_ms: 0`: provisioned concurrency."""
    seen = snapshot(serverless=LaneState({"model_latency_p99_ms": at(601, 400.0)}))
    assert at_least_ms(serverless(cold_start_ms=0, expected_p99_ms=333), MODEL, seen, NOW) == 333.0
    fresh = snapshot(serverless=LaneState({"model_latency_p99_ms": at(60, 400.0)}))
    assert at_least_ms(serverless(cold_start_ms=0), MODEL, fresh, NOW) == 410.0


@pytest.mark.parametrize(
    ("p50", "seconds"),
    [(points(700.0, 250.0), 0.25), (at(3600, 250.0), 0.25), (at(3601, 250.0), None), (at(30, 250.0), None)],
)
def test_the_service_time_is_the_newest_median_of_the_hour(p50: Series, seconds: float | None) -> None:
    """In seconds."""
    seen = snapshot(dedicated=LaneState({"model_latency_p50_ms": p50}))
    assert service_s(dedicated(), MODEL, seen, NOW) == seconds
    assert service_s(serverless(), MODEL, seen, NOW) is None, "another lane's"


ALL = topology(dedicated=DEDICATED, serverless=SERVERLESS, batch=BATCH).serving_lanes(MODEL)
SECOND = {"model_latency_p50_ms": points(1000.0)}
HALF = {"model_latency_p50_ms": points(500.0)}


def costs(seen: Snapshot) -> dict[str, float | None]:
    return {name: found.cost_usd for name, found in predict(ALL, MODEL, seen, NOW).items()}


def test_a_lane_of_unknown_speed_is_taken_to_need_the_longest_of_the_others() -> None:
    """Here batch, which has no metrics: the second that serverless needs, not the half of dedicated."""
    seen = snapshot(dedicated=lane(HALF, in_flight=4), serverless=lane(SECOND))
    assert costs(seen) == {
        "dedicated": pytest.approx(0.5 * 1.408 / 3600),
        "serverless": pytest.approx(0.00008),
        "batch": pytest.approx(0.204 / 3600),
    }


def test_a_full_lane_costs_the_next_instance_and_never_less_than_spilling() -> None:
    """A second on a whole instance is dearer than on serverless; a hundredth of it is not."""
    assert costs(snapshot(dedicated=lane(SECOND, in_flight=4), serverless=lane(SECOND)))["dedicated"] == pytest.approx(
        1.408 / 3600
    )
    quick = {"model_latency_p50_ms": points(10.0)}
    assert costs(snapshot(dedicated=lane(quick, in_flight=4), serverless=lane(SECOND)))["dedicated"] == pytest.approx(
        0.00008
    )


def test_a_free_slot_costs_nothing() -> None:
    """Nor does a lane of which nobody knows that it is full."""
    assert costs(snapshot(dedicated=lane(SECOND, in_flight=3)))["dedicated"] == 0.0
    assert costs(snapshot(dedicated=lane(SECOND)))["dedicated"] == 0.0


def test_without_a_serverless_lane_there_is_nothing_to_spill_to() -> None:
    """A full lane costs its next instance, however little that is."""
    alone = topology(dedicated=DEDICATED).serving_lanes(MODEL)
    found = predict(alone, MODEL, snapshot(dedicated=lane(SECOND, in_flight=4)), NOW)
    assert found["dedicated"].cost_usd == pytest.approx(1.408 / 3600)


def test_what_is_not_known_of_anybody_has_no_cost() -> None:
    """A full lane then costs something unknown."""
    assert costs(snapshot(dedicated=lane(in_flight=4))) == {"dedicated": None, "serverless": None, "batch": None}


def test_without_a_price_of_serverless_a_full_lane_costs_its_instance() -> None:
    """Spilling is then no bound."""
    lanes = topology(dedicated=DEDICATED, serverless={**SERVERLESS, "usd_per_s": None}).serving_lanes(MODEL)
    found = predict(lanes, MODEL, snapshot(dedicated=lane(SECOND, in_flight=4)), NOW)
    assert found["dedicated"].cost_usd == pytest.approx(1.408 / 3600)
    assert found["serverless"].cost_usd is None


def test_a_prediction_holds_both_estimates_of_a_lane_that_answers() -> None:
    """Batch has neither."""
    series = {"model_latency_p99_ms": at(1200, 400.0)}
    seen = snapshot(dedicated=LaneState(series), serverless=LaneState(series), batch=LaneState(series))
    assert predict(ALL, MODEL, seen, NOW) == {
        "dedicated": Prediction(410.0, 0.0, None),
        "serverless": Prediction(6_410.0, None, 6_010.0),
        "batch": Prediction(None, None, None),
    }


@pytest.mark.parametrize(
    ("state", "is_exhausted"),
    [
        (lane(in_flight=15, instances=4), False),
        (lane(in_flight=16, instances=4), True),
        (lane(in_flight=20, instances=5), True),
        (lane(in_flight=12, instances=3), False),
        (lane(instances=4), False),
        (lane({"instances": points(4.0)}, in_flight=16), True),
        (lane({"instances": points(3.0)}, in_flight=16), False),
    ],
)
def test_a_full_lane_at_its_most_instances_is_exhausted(state: LaneState, is_exhausted: bool) -> None:
    """Neither a slot nor an instance to come."""
    assert exhausted(dedicated(), MODEL, snapshot(dedicated=state), NOW) is is_exhausted


def test_only_a_dedicated_lane_can_be_exhausted() -> None:
    """Serverless is throttled instead, and batch has a queue."""
    seen = snapshot(serverless=lane(in_flight=99), batch=lane(in_flight=99))
    assert [exhausted(ALL[name], MODEL, seen, NOW) for name in ("serverless", "batch")] == [False, False]


def test_points_of_an_old_reading_do_not_count_as_load() -> None:
    """However young they are: what is in flight here is then all that is known."""
    state = LaneState({"concurrency": points(4.0)}, in_flight=1, instances=1)
    assert load(dedicated(), MODEL, snapshot(taken_at=NOW - 601, dedicated=state), NOW) == Load(0.25, exact=False)

"""When a job is due, which lanes may answer it before that if batch cannot, and whether they have to at once."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.core.batch_plan import TICK_S
from functions.core.batch_plan import in_time as batch_in_time
from functions.core.deferral import QUICK_TRIES, due_at, lanes_in_time, moment_ms, pause_s, urgent
from functions.core.topology import BatchLane, SyncLane
from tests.unit.core.builders import BATCH, DEDICATED, MODEL, NOW, SERVERLESS, topology

LANES: Mapping[str, SyncLane] = topology(dedicated=DEDICATED, serverless=SERVERLESS).sync_lanes(MODEL)
DEFAULT = ("dedicated", "serverless")
TYPE = "application/json"


def in_time(*order: str, default: tuple[str, ...] = DEFAULT, size: int = 10) -> tuple[str, ...]:
    return lanes_in_time(order, default, LANES, size, TYPE)


def test_what_stands_behind_batch_comes_first() -> None:
    """In the decision's order, and nothing else with it."""
    assert in_time("dedicated", "batch", "serverless") == ("serverless",)
    assert in_time("batch", "dedicated", "serverless") == ("dedicated", "serverless")


def test_then_what_stands_before_it_may_have_come_back() -> None:
    """Batch last: the lanes that have just failed."""
    assert in_time("dedicated", "batch") == ("dedicated",)


def test_then_the_policys_default() -> None:
    """A rule that names nothing but batch still keeps its deadline."""
    assert in_time("batch") == ("dedicated", "serverless")


def test_then_all_of_the_model_serverless_first() -> None:
    """Where the default order is batch alone as well, or names what the model has not."""
    assert in_time("batch", default=("batch",)) == ("serverless", "dedicated")
    assert in_time("batch", "external", default=("external",)) == ("serverless", "dedicated")


def test_a_lane_that_cannot_serve_the_body_is_none_of_them() -> None:
    """By its size or its type; where none can, batch is all there is."""
    assert in_time("batch", "serverless", size=5_000_000) == ("dedicated",)
    assert in_time("batch", size=50_000_000) == ()
    images = topology(dedicated={**DEDICATED, "content_types": ["image/*"]}, serverless=SERVERLESS).sync_lanes(MODEL)
    assert lanes_in_time(("batch", "dedicated"), DEFAULT, images, 10, TYPE) == ("serverless",)
    assert lanes_in_time(("batch", "dedicated"), DEFAULT, images, 10, "image/png") == ("dedicated",)


@pytest.mark.parametrize(("asked_ms", "due_s"), [(None, 60.0), (1500, 1.5), (90_000, 60.0)])
def test_a_deadline_only_shortens(asked_ms: int | None, due_s: float) -> None:
    """The earlier of what is granted and what is asked."""
    assert due_at(NOW, 60.0, asked_ms) == NOW + due_s


BATCH_LANE: Mapping[str, object] = {**BATCH, "model_name": "m", "instance_type": "ml.c5.xlarge", "max_concurrent": 2}


def batch_lane(startup_s: float = 60.0, record_s: float = 1.0) -> BatchLane:
    """A lane that takes `startup_s`, and half of `record_s` for the first record."""
    lane = topology(batch={**BATCH_LANE, "startup_s": startup_s, "record_s": record_s}).batch_lane(MODEL)
    assert lane is not None
    return lane


def test_urgent_is_what_the_collectors_next_look_could_not_have_answered_in_time() -> None:
    """A tick until that look, one that the run may wait, start-up, and the record: at that moment it is in time."""
    lane = batch_lane()
    soonest = NOW + 2 * TICK_S + 60.0 + 0.5
    assert not urgent(soonest, lane, ("serverless",), NOW)
    assert urgent(soonest - 0.001, lane, ("serverless",), NOW)


def test_what_no_other_lane_may_answer_is_not_urgent() -> None:
    """It is batch's, however late."""
    assert not urgent(NOW + 1, batch_lane(), (), NOW)
    assert not urgent(NOW + 1, None, (), NOW)


def test_where_batch_can_start_nothing_all_is_urgent() -> None:
    """A lane that does not say what to run."""
    assert urgent(NOW + 86_400, None, ("serverless",), NOW)


@given(st.floats(0, 4000), st.floats(0, 900), st.floats(0, 60), st.floats(0, TICK_S))
def test_what_is_not_urgent_is_taken_by_the_next_look(
    within_s: float, startup_s: float, record_s: float, wait_s: float
) -> None:
    """Whenever within a tick that comes, the collector finds that the run it opens would answer in time."""
    lane = batch_lane(startup_s, record_s)
    if not urgent(NOW + within_s, lane, ("serverless",), NOW):
        assert batch_in_time(NOW + within_s, lane, 1, NOW + wait_s)


@pytest.mark.parametrize(
    ("left_s", "pause"),
    [(28.0, 3), (16.0, 2), (17.0, 2), (24.0, 3), (1.0, 2), (479.0, 59), (480.0, 60), (3600.0, 60), (0.0, 60), (-9, 60)],
)
def test_a_promoted_job_is_tried_again_after_an_eighth_of_its_time(left_s: float, pause: int) -> None:
    """Two seconds to a minute; past its deadline nothing hurries."""
    assert pause_s(NOW + left_s, 1, NOW) == pause


def test_after_some_tries_its_queue_sets_the_pace() -> None:
    """However near its deadline is."""
    assert pause_s(NOW + 28, QUICK_TRIES - 1, NOW) == 3
    assert pause_s(NOW + 28, QUICK_TRIES, NOW) is None
    assert pause_s(NOW - 28, QUICK_TRIES + 1, NOW) is None


@given(st.floats(20, 4000))
def test_every_promoted_job_has_several_tries(within_s: float) -> None:
    """All quick tries come before its deadline."""
    now = NOW
    for received in range(1, QUICK_TRIES):
        pause = pause_s(NOW + within_s, received, now)
        assert pause is not None
        now += pause
    assert now < NOW + within_s


@given(st.floats(0, 4e9))
def test_moments_are_whole_milliseconds(now: float) -> None:
    """So that what is stored as a number of them is the same moment; never later than `now`."""
    moment = moment_ms(now)
    assert round(moment * 1000) / 1000 == moment
    assert 0 <= now - moment < 0.0011

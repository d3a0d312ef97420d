"""When a job is due, and which lanes may answer it before that if batch cannot."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.core.deferral import due_at, lanes_in_time, moment_ms
from functions.core.topology import SyncLane
from tests.unit.core.builders import DEDICATED, MODEL, NOW, SERVERLESS, topology

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


@given(st.floats(0, 4e9))
def test_moments_are_whole_milliseconds(now: float) -> None:
    """So that what is stored as a number of them is the same moment; never later than `now`."""
    moment = moment_ms(now)
    assert round(moment * 1000) / 1000 == moment
    assert 0 <= now - moment < 0.0011

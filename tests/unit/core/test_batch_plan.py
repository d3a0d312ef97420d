"""When runs start, and what is too late for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from functions.core.batch_plan import (
    EMPTY_DATASET_S,
    EMPTY_S,
    FORMING_S,
    MOST_PARTS,
    SPARE_TICKS,
    TICK_S,
    abandoned,
    answered_at,
    in_time,
    overdue,
    predicted_run_s,
    takes_more,
    too_late_before,
    wants_start,
)
from functions.core.run import Form, Group, Part, Run, RunState
from functions.core.topology import BatchLane

NOW = 10_000.0
LANE = BatchLane(
    "batch",
    "batch",
    max_bytes=1000,
    startup_s=300.0,
    usd_per_instance_hour=0.2,
    content_types=None,
    target_records=100,
    max_wait_s=1800.0,
    record_s=2.0,
)


def run(
    *,
    records: int = 10,
    due_in_s: float = 1e6,
    age_s: float = 0.0,
    form: Form = "lines",
    parts: int = 1,
    **more: object,
) -> Run:
    """A gathering run of equal parts."""
    return replace(
        Run(
            "r",
            Group("m", "application/json", None, form),
            RunState.GATHERING,
            NOW - age_s,
            parts=tuple(Part(f"p{i}", records, 1, NOW + due_in_s) for i in range(parts)),
        ),
        **more,  # type: ignore[arg-type]
    )


def test_a_run_takes_its_records_over_all_that_works_at_once() -> None:
    """Instances times payloads at once; an unknown number of those is one."""
    assert predicted_run_s(LANE, 30) == 60.0
    assert predicted_run_s(replace(LANE, instance_count=3, max_concurrent=5), 30) == 4.0
    assert answered_at(LANE, 30, NOW) == NOW + 360.0


def test_a_record_is_in_time_when_the_next_tick_is_early_enough() -> None:
    """Start-up, the run, and a tick; to the second is in time."""
    assert TICK_S == 60.0
    assert in_time(NOW + 300 + 20 + 60, LANE, 10, NOW)
    assert not in_time(NOW + 300 + 20 + 59.9, LANE, 10, NOW)


def test_what_waits_is_taken_out_two_ticks_early() -> None:
    """What starts now needs no ticks; without a lane everything is too late."""
    assert SPARE_TICKS == 2
    assert too_late_before(LANE, 10, NOW, starts=True) == NOW + 320
    assert too_late_before(LANE, 10, NOW, starts=False) == NOW + 320 + 120
    assert too_late_before(None, 10, NOW, starts=False) == float("inf")


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (run(), False),
        (run(state=RunState.STARTING), True),
        (run(state=RunState.STARTING, parts=0), True),
        (run(state=RunState.RUNNING, due_in_s=0), False),
        (run(state=RunState.SETTLED, due_in_s=0), False),
        (run(parts=0, age_s=1e6), False),
        (run(records=99), False),
        (run(records=100), True),
        (run(age_s=1799.9), False),
        (run(age_s=1800.0), True),
        (run(records=0, parts=MOST_PARTS - 1), False),
        (run(records=0, parts=MOST_PARTS), True),
        (run(due_in_s=300 + 20 + 120), True),
        (run(due_in_s=300 + 20 + 120.1), False),
        (run(form="dataset"), True),
        (run(attempt=2, records=100, age_s=FORMING_S - 0.1, due_in_s=0), False),
        (run(attempt=2, age_s=FORMING_S), True),
    ],
)
def test_when_a_run_wants_to_start(made: Run, expected: bool) -> None:
    """Near its first deadline, full, old, or closed already; a child that is being formed waits for who forms it."""
    assert wants_start(made, LANE, NOW) is expected


def test_a_run_takes_parts_until_it_has_enough() -> None:
    """Of records, or of parts; without a lane only parts count."""
    assert takes_more(run(records=99), LANE)
    assert not takes_more(run(records=100), LANE)
    assert takes_more(run(records=100), None)
    assert not takes_more(run(records=0, parts=MOST_PARTS), None)
    assert MOST_PARTS == 200


def test_a_run_that_never_got_a_part_is_given_up() -> None:
    """After an hour; a data set's name must last as long as its message."""
    assert abandoned(run(parts=0, age_s=EMPTY_S), NOW)
    assert not abandoned(run(parts=0, age_s=EMPTY_S - 1), NOW)
    assert not abandoned(run(age_s=EMPTY_S), NOW)
    assert not abandoned(run(parts=0, age_s=EMPTY_S, state=RunState.STARTING), NOW)
    assert not abandoned(run(parts=0, age_s=EMPTY_DATASET_S - 1, form="dataset"), NOW)
    assert abandoned(run(parts=0, age_s=EMPTY_DATASET_S, form="dataset"), NOW)
    assert (FORMING_S, EMPTY_S, EMPTY_DATASET_S) == (900.0, 3600.0, 1_296_000.0)


def test_a_running_run_is_looked_at_when_it_should_have_ended() -> None:
    """By its own start; always where nothing is known of how long it takes."""
    begun = run(state=RunState.RUNNING, started_at=NOW - 320)
    assert overdue(begun, LANE, NOW)
    assert not overdue(begun, LANE, NOW - 0.1)
    assert overdue(replace(begun, started_at=None), LANE, NOW)
    assert overdue(replace(begun, started_at=NOW), None, NOW)
    assert overdue(replace(begun, started_at=NOW, group=Group("m", None, None, "dataset")), LANE, NOW)

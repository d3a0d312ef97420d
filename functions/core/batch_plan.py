"""When a run starts, what is too late for it, and how long it will take.

A run starts when its first record would else come too late, when it has as many records as it should, when it is old
enough, or when it can hold no more parts. Everything is looked at once a tick, so what is to be in time must be so with
ticks to spare: a start is due two of them early, and out of a run that has to wait a record is promoted as early, so
that whoever answers it instead has a tick left at least.
"""

from __future__ import annotations

from typing import Final

from functions.core.run import Run, RunState
from functions.core.topology import BatchLane

TICK_S: Final = 60.0
"""The collector's period."""
SPARE_TICKS: Final = 2
MOST_PARTS: Final = 200
"""A run's item stays far below DynamoDB's 400 KB."""
FORMING_S: Final = 900.0
"""Longer than a settler can live: a child that is older and still open was left behind."""
EMPTY_S: Final = 3600.0
"""A run that never got a part is closed then: no collector lives so long."""
EMPTY_DATASET_S: Final = 15 * 86_400.0
"""Longer than the queue keeps a data set's message, whose run has a name of its own and must not be used up."""


def predicted_run_s(lane: BatchLane, records: int) -> float:
    """How long the lane works on so many records after its start-up."""
    return records * lane.record_s / (lane.instance_count * max(1, lane.max_concurrent))


def answered_at(lane: BatchLane, records: int, now: float) -> float:
    """When the last of them is answered by a run that starts now."""
    return now + lane.startup_s + predicted_run_s(lane, records)


def in_time(due_at: float, lane: BatchLane, records: int, now: float) -> bool:
    """Whether a record taken in now can wait for the next tick in a run of so many."""
    return answered_at(lane, records, now) + TICK_S <= due_at


def too_late_before(lane: BatchLane | None, records: int, now: float, *, starts: bool) -> float:
    """Records due before this moment are taken out of a run of so many: it starts now, or has to wait.

    Without a lane it never starts.
    """
    if lane is None:
        return float("inf")
    return answered_at(lane, records, now) + (0 if starts else SPARE_TICKS * TICK_S)


def wants_start(run: Run, lane: BatchLane, now: float) -> bool:
    """Whether the run is to start, if there is room."""
    if run.state is RunState.STARTING:
        return True
    first_due = run.first_due
    if run.state is not RunState.GATHERING or first_due is None:
        return False
    if run.attempt > 1:
        return now - run.opened_at >= FORMING_S
    return (
        run.group.form == "dataset"
        or not takes_more(run, lane)
        or now - run.opened_at >= lane.max_wait_s
        or answered_at(lane, run.records, now) + SPARE_TICKS * TICK_S >= first_due
    )


def takes_more(run: Run, lane: BatchLane | None) -> bool:
    """Whether another part may go into a gathering run."""
    return len(run.parts) < MOST_PARTS and (lane is None or run.records < lane.target_records)


def abandoned(run: Run, now: float) -> bool:
    """Whether this run was opened and never got a part."""
    limit_s = EMPTY_DATASET_S if run.group.form == "dataset" else EMPTY_S
    return run.state is RunState.GATHERING and not run.parts and now - run.opened_at >= limit_s


def overdue(run: Run, lane: BatchLane | None, now: float) -> bool:
    """Whether a running run should have ended by now, so that its event may be lost."""
    if lane is None or run.started_at is None or run.group.form == "dataset":
        return True
    return now >= answered_at(lane, run.records, run.started_at)

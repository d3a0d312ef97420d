"""The audit: what is open, overdue or unaccounted for, and the end of what nobody will end."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from functions.audit import Auditor
from functions.batch_ports import Count
from functions.core.conservation import Census
from functions.core.job import PROMOTED, JobKey, JobState
from functions.core.run import RunState
from tests.unit.batch.world import World
from tests.unit.core.builders import NOW


def audit(world: World) -> Census:
    """One turn's."""
    return Auditor(world.ports, world.acceptances).audit()


def test_every_record_is_counted_by_its_state() -> None:
    """Accepted is the sum of all of them."""
    world = World()
    world.accept(1, 10)
    world.accept(2)
    cancelled = world.accept(3)
    world.cancel(cancelled)
    world.wait(10)
    world.collect()
    found = audit(world)
    assert found == Census(expired=1, cancelled=1, open=1)
    assert found.total == len(world.asked) == 3
    assert world.counts.by_model[None, Count.JOBS_OPEN] == 1
    assert world.counts.by_model[None, Count.JOBS_OVERDUE] == 0


def test_overdue_is_open_a_quarter_of_an_hour_past_the_deadline() -> None:
    """To the second."""
    world = World()
    world.accept(1, 100)
    world.wait(100 + 899)
    audit(world)
    assert world.counts.sums[Count.JOBS_OVERDUE] == 0
    world.wait(1)
    audit(world)
    assert world.counts.sums[Count.JOBS_OVERDUE] == 1


def test_what_was_accepted_is_held_against_what_is_there() -> None:
    """Over the last finished day, an hour back; more records than accepted are none missing."""
    world = World()
    hour = NOW // 3600 * 3600
    begin, end = hour - 25 * 3600, hour - 3600
    for number, at in enumerate((begin - 1, begin, end - 1, end), 1):
        key = world.accept(number)
        world.jobs.rows[key] = replace(world.jobs.rows[key], accepted_at=at)
    for accepted, missing in ((5.0, 3), (2.0, 0), (1.0, 0)):
        world.counts.sums.clear()
        world.acceptances.value = accepted
        audit(world)
        assert world.counts.sums[Count.JOBS_UNACCOUNTED] == missing
    assert world.acceptances.asked == [(begin, end)] * 3


@pytest.mark.parametrize("hours", [1, 6, 7, 24])
def test_every_hour_is_looked_at_whatever_the_time_between_two_audits(hours: int) -> None:
    """Each day begins no later than the one before ended."""
    world = World()
    world.accept(1, 1e9)
    for _ in range(5):
        audit(world)
        world.clock.advance(hours * 3600)
    asked = world.acceptances.asked
    assert len(asked) == 5
    assert all(begin <= before for (_, before), (begin, _) in pairwise(asked))


def test_without_the_front_doors_count_nothing_is_said_of_it() -> None:
    """No figure is better than a wrong one."""
    world = World()
    world.accept(1)
    audit(world)
    assert Count.JOBS_UNACCOUNTED not in world.counts.sums


def orphan(world: World, run: str | None) -> JobKey:
    """A job that this owner has an hour past its deadline."""
    key = world.accept(len(world.asked) + 1, 100)
    world.jobs.rows[key] = replace(world.jobs.rows[key], run=run)
    return key


def test_a_job_that_nobody_will_end_expires_an_hour_past_its_deadline() -> None:
    """Its message is lost, its run is settled, or there never was one; an open run's own is left to it."""
    world = World()
    world.accept(1)
    world.collect()
    (run,) = world.runs.rows.values()
    settled = replace(run, name="inferlane-test-settled", state=RunState.SETTLED)
    world.runs.add(settled)
    lost = [orphan(world, owner) for owner in (None, PROMOTED, settled.name, "inferlane-test-unknown")]
    kept = orphan(world, run.name)
    world.wait(100 + 3599)
    audit(world)
    assert {world.jobs.rows[key].state for key in lost} == {JobState.ACCEPTED}
    world.wait(1)
    found = audit(world)
    assert found.open == 6
    assert {world.jobs.rows[key].state for key in lost} == {JobState.EXPIRED}
    assert world.jobs.rows[kept].state is JobState.ACCEPTED
    assert world.counts.by_model[None, Count.JOBS_EXPIRED] == 4

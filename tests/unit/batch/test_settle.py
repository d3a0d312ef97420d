"""Settling: what becomes of each job of a run whose transform job ended."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from functions.batch_ports import Count, TransformStatus
from functions.core.job import PROMOTED, Dataset, Job, JobError, JobKey, JobState
from functions.core.run import Run, RunState, Tally, child_name
from tests.unit.batch.weather import Killed
from tests.unit.batch.world import World, batch_topology, image_body, json_body, mark
from tests.unit.core.builders import DEDICATED, MODEL, SERVERLESS, topology

NOW_OR_NEVER = batch_topology(max_wait_s=0)


def started(world: World, kinds: tuple[str, ...], **more: object) -> tuple[Run, list[JobKey]]:
    """A run of such jobs, at work."""
    keys = [
        world.accept(number, body=json_body(number, kind), **more)  # type: ignore[arg-type]
        for number, kind in enumerate(kinds, 1)
    ]
    world.collect()
    (run,) = world.runs.rows.values()
    assert run.state is RunState.RUNNING
    return run, keys


def ended(world: World, run: Run) -> Run:
    """The run after its transform job ended and was told of."""
    world.wait(world.transforms.takes_s)
    assert world.settle(run.name)
    return world.runs.rows[run.name]


def error(world: World, key: JobKey) -> JobError | None:
    """Why a job failed."""
    end = world.jobs.rows[key].end
    assert end is not None
    return end.error


def states(world: World, keys: list[JobKey]) -> list[JobState]:
    """Of the jobs, in order."""
    return [world.jobs.rows[key].state for key in keys]


def children(world: World, run: Run) -> list[Run]:
    """The runs that retry what it left."""
    return [child for child in world.runs.rows.values() if child.parent == run.name]


def test_every_job_gets_its_own_answer() -> None:
    """With lane, time and its share of what the transform job billed; the run is accounted for."""
    world = World(NOW_OR_NEVER)
    run, keys = started(world, ("ok", "polite", "ok"))
    run = ended(world, run)
    assert states(world, keys) == [JobState.DONE, JobState.FAILED, JobState.DONE]
    end = world.jobs.rows[keys[0]].end
    assert end is not None
    assert (end.lane, end.at) == ("batch", world.clock.now())
    assert end.cost_usd == pytest.approx(120 * 0.204 / 3600 / 3)
    assert end.result is not None
    assert end.result.content_type == "application/json"
    assert json.loads(end.result.body or b"")["of"] == mark(json_body(1))
    assert error(world, keys[1]) == JobError(422, f"refused {mark(json_body(2, 'polite'))}")
    assert (run.state, run.tally, run.settled_at) == (RunState.SETTLED, Tally(done=2, failed=1), world.clock.now())
    assert world.counts.sums[Count.JOBS_DONE] == 2
    assert world.counts.sums[Count.JOBS_FAILED] == 1
    assert (world.counts.sums[Count.RUN_UNACCOUNTED], world.counts.sums[Count.RUNS_FAILED]) == (0, 0)
    assert sorted(world.notices.ended) == sorted((key, world.jobs.rows[key].state) for key in keys)
    assert children(world, run) == []
    world.check()


def test_a_large_answer_is_an_object_of_its_own() -> None:
    """Above 4,000 bytes; nobody else's is in it."""
    world = World(NOW_OR_NEVER)
    run, keys = started(world, ("large", "ok"))
    ended(world, run)
    end = world.jobs.rows[keys[0]].end
    assert end is not None
    assert end.result is not None
    assert end.result.body is None
    assert end.result.object is not None
    assert end.result.size == len(world.objects.rows[end.result.object]) > 4000
    assert world.objects.types[end.result.object] == "application/json"
    world.check()


@pytest.mark.parametrize(("size", "inline"), [(4000, True), (4001, False)])
def test_an_answer_of_four_thousand_bytes_is_in_the_record(size: int, inline: bool) -> None:
    """One more and it is not."""
    world = World(NOW_OR_NEVER)
    world.transforms._answering = lambda _: b'"' + b"x" * (size - 2) + b'"'
    run, keys = started(world, ("ok",))
    ended(world, run)
    end = world.jobs.rows[keys[0]].end
    assert end is not None
    assert end.result is not None
    assert (end.result.body is not None) is inline


def test_objects_are_answered_by_objects() -> None:
    """Each as it came; one that the container broke on is nobody else's business."""
    world = World(NOW_OR_NEVER)
    kinds = ("ok", "bomb", "ok", "polite")
    keys = [world.accept(n, content_type="image/png", body=image_body(n, kind)) for n, kind in enumerate(kinds, 1)]
    world.collect()
    (run,) = world.runs.rows.values()
    run = ended(world, run)
    assert states(world, keys) == [JobState.DONE, JobState.ACCEPTED, JobState.DONE, JobState.FAILED]
    assert run.tally == Tally(done=2, failed=1, retried=1)
    assert world.counts.sums[Count.RUNS_FAILED] == 1
    (child,) = children(world, run)
    assert child.group == run.group
    ended(world, child)
    assert error(world, keys[1]) == JobError(422, "The model refused the request.")
    world.check()


def test_poison_sinks_itself_only() -> None:
    """Its file is tried again, each record alone, at once; then it fails for its own reason, and nobody else does."""
    world = World(NOW_OR_NEVER)
    run, keys = started(world, ("ok", "bomb", "polite", "large"))
    run = ended(world, run)
    assert states(world, keys) == [JobState.ACCEPTED] * 4
    (child,) = children(world, run)
    assert (run.state, run.tally) == (RunState.SETTLED, Tally(retried=4))
    assert (child.name, child.attempt, child.state) == (child_name(run.name, 0), 2, RunState.RUNNING)
    assert (child.group.form, child.group.content_type, child.records) == ("objects", "application/json", 4)
    spec = world.transforms.jobs[child.name].spec
    assert (spec.lines, spec.content_type, spec.accept, spec.strategy) == (
        False,
        "application/json",
        None,
        "SingleRecord",
    )
    child = ended(world, child)
    assert states(world, keys) == [JobState.DONE, JobState.FAILED, JobState.FAILED, JobState.DONE]
    assert child.tally == Tally(done=2, failed=2)
    assert world.counts.by_model[MODEL, Count.JOBS_RETRIED] == 4
    assert error(world, keys[1]) == JobError(422, "The model refused the request.")
    world.check()


def test_an_output_that_lacks_answers_says_nothing() -> None:
    """All of its file's records are tried again."""
    world = World(NOW_OR_NEVER)
    world.transforms.lose_next = 1
    run, keys = started(world, ("ok", "ok", "ok"))
    run = ended(world, run)
    assert run.tally == Tally(retried=3)
    (child,) = children(world, run)
    ended(world, child)
    assert states(world, keys) == [JobState.DONE] * 3


def test_what_is_left_and_due_expires_what_is_soon_due_is_promoted() -> None:
    """And the rest is tried again."""
    world = World(NOW_OR_NEVER)
    world.transforms.fail_next = 1
    due, soon, later = world.accept(1, 150), world.accept(2, 260), world.accept(3, 3000)
    alone = world.accept(4, 260, lanes=())
    world.collect()
    (run,) = world.runs.rows.values()
    world.wait(150)
    world.settle(run.name)
    run = world.runs.rows[run.name]
    assert world.jobs.rows[due].state is JobState.EXPIRED
    assert world.jobs.rows[soon].run == PROMOTED
    assert [work.key for work in world.promotions.works if work] == [soon]
    (child,) = children(world, run)
    assert [world.jobs.rows[key].run for key in (later, alone)] == [child.name] * 2
    assert run.tally == Tally(expired=1, promoted=1, retried=2)


def test_what_cannot_be_run_twice_fails_or_is_promoted() -> None:
    """When the fault is the service's, who may have another lane gets it; the others are told so."""
    world = World(NOW_OR_NEVER)
    world.transforms.fail_next = 2
    rich, poor = world.accept(1), world.accept(2, lanes=())
    world.collect()
    (run,) = world.runs.rows.values()
    run = ended(world, run)
    (child,) = children(world, run)
    child = ended(world, child)
    assert error(world, poor) == JobError(503, "The batch job could not be run.")
    assert world.jobs.rows[rich].run == PROMOTED
    assert child.tally == Tally(failed=1, promoted=1)
    world.promote()
    assert world.jobs.rows[rich].state is JobState.DONE
    world.check()


def test_what_is_due_when_nothing_could_be_run_fails() -> None:
    """Promotion would be too late as well."""
    world = World(NOW_OR_NEVER)
    world.transforms.fail_next = 2
    key = world.accept(1, 400)
    world.collect()
    (run,) = world.runs.rows.values()
    ended(world, run)
    (child,) = children(world, run)
    world.wait(400)
    world.settle(child.name)
    assert error(world, key) == JobError(503, "The batch job could not be run.")


def test_a_request_that_is_gone_cannot_be_tried_again() -> None:
    """It fails; the others of its run do not."""
    world = World(NOW_OR_NEVER)
    keys = [world.accept(n, content_type="image/png", body=image_body(n)) for n in (1, 2)]
    world.transforms.fail_next = 1
    world.collect()
    (run,) = world.runs.rows.values()
    del world.objects.rows[next(key for key in world.objects.rows if key.endswith("-0"))]
    run = ended(world, run)
    assert sorted(states(world, keys)) == [JobState.ACCEPTED, JobState.FAILED]
    failed = next(key for key in keys if world.jobs.rows[key].state is JobState.FAILED)
    assert error(world, failed) == JobError(500, "The stored request is gone.")
    assert run.tally == Tally(failed=1, retried=1)


def test_a_cancelled_job_gets_no_answer() -> None:
    """Nor is it told of."""
    world = World()
    keys = [world.accept(number) for number in (1, 2)]
    world.collect()
    (run,) = world.runs.rows.values()
    assert world.cancel(keys[0])
    world.wait(300)
    world.collect()
    run = ended(world, run)
    assert states(world, keys) == [JobState.CANCELLED, JobState.DONE]
    assert run.tally == Tally(done=1, foreign=1)
    assert world.notices.ended == [(keys[1], JobState.DONE)]
    world.check()


def test_an_answer_after_the_deadline_is_late() -> None:
    """Done all the same, and counted."""
    world = World(NOW_OR_NEVER)
    run, keys = started(world, ("ok",), within_s=130.0)
    world.wait(131)
    world.settle(run.name)
    assert world.jobs.rows[keys[0]].late
    assert world.counts.by_model[MODEL, Count.JOBS_LATE] == 1


def test_a_second_event_changes_nothing() -> None:
    """Nor one of a job that has not ended, of a run that gathers, or of none of ours."""
    world = World()
    world.accept(1)
    world.collect()
    (run,) = world.runs.rows.values()
    settler = world.settler()
    assert not settler.settle(run.name, lambda: 900.0)
    assert not settler.settle("inferlane-test-unknown", lambda: 900.0)
    world.wait(300)
    world.collect()
    assert not settler.settle(run.name, lambda: 900.0)
    world.wait(120)
    assert settler.settle(run.name, lambda: 900.0)
    rows, counts = dict(world.jobs.rows), dict(world.counts.sums)
    assert settler.settle(run.name, lambda: 900.0)
    assert (world.jobs.rows, dict(world.counts.sums)) == (rows, counts)


def test_an_event_may_come_before_the_run_says_that_it_runs() -> None:
    """The collector died after it had made the job."""
    world = World(NOW_OR_NEVER)
    run, (key,) = started(world, ("ok",))
    world.runs.rows[run.name] = replace(run, state=RunState.STARTING, started_at=None)
    assert not world.settler().settle(run.name, lambda: 900.0)
    assert world.runs.rows[run.name].state is RunState.RUNNING
    world.runs.rows[run.name] = replace(run, state=RunState.STARTING, started_at=None)
    run = ended(world, run)
    assert run.state is RunState.SETTLED
    assert world.jobs.rows[key].state is JobState.DONE


def test_a_run_without_a_transform_job_waits_and_then_has_failed() -> None:
    """SageMaker knows nothing of it a quarter of an hour after it was made."""
    world = World(NOW_OR_NEVER)
    run, keys = started(world, ("ok",))
    del world.transforms.jobs[run.name]
    world.wait(899)
    assert not world.settler().settle(run.name, lambda: 900.0)
    world.wait(1)
    assert world.settler().settle(run.name, lambda: 900.0)
    assert world.jobs.rows[keys[0]].run == child_name(run.name, 0)
    world.runs.rows[run.name] = replace(run, state=RunState.STARTING, started_at=None)
    assert not world.settler().settle(run.name, lambda: 900.0)


def test_a_stopped_job_is_settled_by_what_it_has_written() -> None:
    """Nothing: all is tried again."""
    world = World(NOW_OR_NEVER)
    run, keys = started(world, ("ok",))
    world.transforms.jobs[run.name].status = TransformStatus("Stopping")
    assert not world.settler().settle(run.name, lambda: 900.0)
    world.transforms.jobs[run.name].status = TransformStatus("Stopped", began=1.0, ended=2.0)
    assert world.settler().settle(run.name, lambda: 900.0)
    assert world.jobs.rows[keys[0]].run == child_name(run.name, 0)


@pytest.mark.parametrize("kinds", [("ok", "polite"), ("ok", "bomb", "ok")])
@pytest.mark.parametrize("step", range(24))
def test_a_settler_killed_at_any_step_is_simply_run_again(step: int, kinds: tuple[str, ...]) -> None:
    """Same ends, same tally, no record unaccounted for, nothing retried twice to its end."""
    world = World(NOW_OR_NEVER)
    run, keys = started(world, kinds)
    world.wait(120)
    world.weather.kill_in(step)
    try:
        world.settler().settle(run.name, lambda: 900.0)
    except Killed:
        world.weather.clear()
        world.check()
        assert world.settle(run.name)
    world.weather.clear()
    run = world.runs.rows[run.name]
    assert run.state is RunState.SETTLED
    expected = Tally(retried=3) if "bomb" in kinds else Tally(done=1, failed=1)
    assert run.tally == expected
    for child in children(world, run):
        if child.state is RunState.STARTING:
            world.collect()
        ended(world, child)
    assert not world.open()
    assert world.counts.sums[Count.RUN_UNACCOUNTED] == 0
    assert states(world, keys).count(JobState.FAILED) == 1
    world.check()


def test_a_settler_out_of_time_stops_between_parts() -> None:
    """And the next goes on."""
    world = World(batch_topology(max_wait_s=200))
    first = world.accept(1)
    world.collect()
    world.wait(100)
    second = world.accept(2)
    world.collect()
    world.wait(100)
    world.collect()
    (run,) = world.runs.rows.values()
    world.wait(120)
    left = [45.0, 44.9]
    assert not world.settler().settle(run.name, lambda: left.pop(0))
    assert states(world, [first, second]) == [JobState.DONE, JobState.ACCEPTED]
    assert world.settler().settle(run.name, lambda: 45.0)
    assert states(world, [first, second]) == [JobState.DONE, JobState.DONE]
    assert world.runs.rows[run.name].tally == Tally(done=2)


def test_a_settler_out_of_time_stops_before_it_retries() -> None:
    """What is left is the run's still."""
    world = World(NOW_OR_NEVER)
    world.transforms.fail_next = 1
    run, keys = started(world, ("ok",))
    world.wait(120)
    left = [300.0, 44.0]
    assert not world.settler().settle(run.name, lambda: left.pop(0))
    assert world.jobs.rows[keys[0]].run == run.name
    assert world.runs.rows[run.name].state is RunState.RUNNING


def test_a_record_that_was_gathered_but_not_claimed_is_the_runs() -> None:
    """Who gathered it stood still between the part and the claim, and claims in vain later."""
    world = World(NOW_OR_NEVER)
    run, keys = started(world, ("ok", "ok"))
    job = world.jobs.rows[keys[0]]
    world.jobs.rows[keys[0]] = replace(job, run=None)
    run = ended(world, run)
    assert states(world, keys) == [JobState.DONE] * 2
    assert run.tally == Tally(done=2)
    assert world.jobs.claim(keys, run.name, None) == set()


def test_a_child_takes_what_its_parent_still_has() -> None:
    """A settler stood still between the child's part and its claims, and the child ended before."""
    world = World(NOW_OR_NEVER)
    world.transforms.fail_next = 1
    run, keys = started(world, ("ok",))
    run = ended(world, run)
    (child,) = children(world, run)
    world.jobs.rows[keys[0]] = replace(world.jobs.rows[keys[0]], run=run.name)
    child = ended(world, child)
    assert states(world, keys) == [JobState.DONE]
    assert child.tally == Tally(done=1)


def test_what_was_left_goes_into_the_next_child_when_the_first_is_closed() -> None:
    """An earlier settler closed it and died."""
    world = World(NOW_OR_NEVER)
    world.transforms.fail_next = 1
    run, keys = started(world, ("ok",))
    closed = Run(
        child_name(run.name, 0), replace(run.group, form="objects"), RunState.STARTING, 0.0, 2, parent=run.name
    )
    world.runs.add(closed)
    run = ended(world, run)
    assert world.jobs.rows[keys[0]].run == child_name(run.name, 1)
    assert run.tally == Tally(retried=1)


def test_a_run_is_not_settled_while_it_answers_for_anything() -> None:
    """Claims for a child that had no effect are made in the next turn."""
    world = World(NOW_OR_NEVER)
    world.transforms.fail_next = 1
    run, keys = started(world, ("ok",))
    world.wait(120)
    claim = world.jobs.claim
    world.jobs.claim = lambda keys, run, held_by: set()  # type: ignore[method-assign]
    assert not world.settler().settle(run.name, lambda: 900.0)
    world.jobs.claim = claim  # type: ignore[method-assign]
    assert world.runs.rows[run.name].state is RunState.RUNNING
    assert world.settler().settle(run.name, lambda: 900.0)
    assert world.jobs.rows[keys[0]].run in {child.name for child in children(world, run)}


def test_a_child_waits_where_there_is_no_room() -> None:
    """Closed, for the collector to start; at the quota likewise, and without a lane."""
    for limit, quota in ((1, 100), (9, 0)):
        world = World(batch_topology(max_wait_s=0, max_jobs=limit))
        world.transforms.fail_next = 1
        run, _ = started(world, ("ok",))
        other = replace(run, name="inferlane-test-other")
        world.runs.add(other)
        world.transforms.quota = quota
        run = ended(world, run)
        (child,) = children(world, run)
        assert (run.state, child.state) == (RunState.SETTLED, RunState.STARTING)
    world = World(NOW_OR_NEVER)
    world.transforms.fail_next = 1
    run, keys = started(world, ("ok",), lanes=())
    world.topology = topology(dedicated=DEDICATED, serverless=SERVERLESS)
    run = ended(world, run)
    (child,) = children(world, run)
    assert child.state is RunState.STARTING
    assert world.jobs.rows[keys[0]].run == child.name


def test_without_its_lane_a_run_has_no_price() -> None:
    """Unknown is not zero; the answers count."""
    world = World(NOW_OR_NEVER)
    run, keys = started(world, ("ok",))
    world.topology = topology(dedicated=DEDICATED, serverless=SERVERLESS)
    ended(world, run)
    end = world.jobs.rows[keys[0]].end
    assert end is not None
    assert (end.state, end.cost_usd) == (JobState.DONE, None)


def test_an_index_that_is_gone_leaves_records_unaccounted_for() -> None:
    """Which is told, loudly."""
    world = World(NOW_OR_NEVER)
    run, _ = started(world, ("ok", "ok"))
    (index,) = world.objects.sizes(f"batch/{run.name}/index/")
    del world.objects.rows[index]
    run = ended(world, run)
    assert run.state is RunState.SETTLED
    assert world.counts.by_model[MODEL, Count.RUN_UNACCOUNTED] == 2
    assert world.log.lines[-1] == ("error", "records of a run are not accounted for", {"run": run.name, "lost": 2})


def data_set(world: World) -> tuple[Run, JobKey]:
    """A data set at work."""
    key = world.accept(1, dataset=Dataset("s3://lake/in/", "s3://lake/out"), content_type="text/csv", lanes=())
    world.collect()
    (run,) = world.runs.rows.values()
    return run, key


def test_a_data_set_is_done_when_its_transform_job_is() -> None:
    """Its output is where its caller wanted it; its cost is the whole job's."""
    world = World(batch_topology(instance_count=2))
    run, key = data_set(world)
    run = ended(world, run)
    end = world.jobs.rows[key].end
    assert end is not None
    assert (end.state, end.lane, end.result, end.error) == (JobState.DONE, "batch", None, None)
    assert end.cost_usd == pytest.approx(2 * 120 * 0.204 / 3600)
    assert run.tally == Tally(done=1)


def test_a_data_set_fails_with_its_transform_job() -> None:
    """It is not tried again: its caller looks at it."""
    world = World()
    world.transforms.fail_next = 1
    run, key = data_set(world)
    run = ended(world, run)
    assert error(world, key) == JobError(503, "The batch job could not be run.")
    assert (run.tally, children(world, run)) == (Tally(failed=1), [])


def test_a_promoted_jobs_batch_answer_comes_too_late() -> None:
    """Who took it over answers for it."""
    world = World(NOW_OR_NEVER)
    run, keys = started(world, ("ok", "ok"))
    world.jobs.claim(keys[:1], PROMOTED, run.name)
    run = ended(world, run)
    job: Job = world.jobs.rows[keys[0]]
    assert (job.state, job.run) == (JobState.ACCEPTED, PROMOTED)
    assert run.tally == Tally(done=1, promoted=1)

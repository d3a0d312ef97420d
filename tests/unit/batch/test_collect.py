"""The collector's turns: what becomes of each message, when runs start, and what is put off."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest

from functions.batch_ports import BusyError, Count, Received, TransformSpec, UnavailableError
from functions.core.job import PROMOTED, Dataset, JobError, JobKey, JobState
from functions.core.run import Group, Part, Run, RunState
from functions.core.shards import read_index
from functions.core.topology import BatchLane, Topology
from functions.start import Starter
from tests.unit.batch.weather import Killed
from tests.unit.batch.world import LANE, World, batch_topology, image_body, json_body
from tests.unit.core.builders import BATCH, DEDICATED, MODEL, SERVERLESS, topology


def only_run(world: World) -> Run:
    """The one there is."""
    (run,) = world.runs.rows.values()
    return run


def gather(world: World, count: int = 3, within_s: float = 3600.0) -> list[JobKey]:
    """So many jobs in a run."""
    keys = [world.accept(number, within_s) for number in range(1, count + 1)]
    assert world.collect()
    return keys


def state(world: World, key: JobKey) -> JobState:
    """A job's."""
    return world.jobs.rows[key].state


def test_json_jobs_become_lines_of_one_run() -> None:
    """Claimed by it, indexed in it, and gone from the queue."""
    world = World()
    keys = gather(world)
    run = only_run(world)
    assert (run.state, run.attempt, run.records) == (RunState.GATHERING, 1, 3)
    assert run.name.startswith("inferlane-test-")
    assert {world.jobs.rows[key].run for key in keys} == {run.name}
    (file,) = world.objects.sizes(f"batch/{run.name}/in/")
    assert file.endswith(".jsonl")
    assert world.objects.rows[file].splitlines() == [json_body(number) for number in (1, 2, 3)]
    (index,) = world.objects.sizes(f"batch/{run.name}/index/")
    assert [line.key for line in read_index(world.objects.rows[index])] == keys
    assert world.work.works == []
    assert world.counts.by_model[MODEL, Count.JOBS_GATHERED] == 3
    assert world.runs.held is None


def test_each_kind_has_a_run_of_its_own() -> None:
    """By content type; parameters and spaces of JSON make no difference."""
    world = World()
    world.accept(1)
    world.accept(2, content_type="application/json; charset=utf-8", body=json_body(2, wide=True))
    world.accept(3, content_type="image/png", body=image_body(3))
    world.accept(4, content_type="image/png", body=image_body(4))
    world.accept(5, content_type="image/jpeg", body=image_body(5))
    world.accept(6, body=b"no JSON at all")
    world.collect()
    groups = {run.group: run.records for run in world.runs.rows.values()}
    assert groups == {
        Group(MODEL, "application/json", None, "lines"): 2,
        Group(MODEL, "application/json", None, "objects"): 1,
        Group(MODEL, "image/png", None, "objects"): 2,
        Group(MODEL, "image/jpeg", None, "objects"): 1,
    }


def test_later_messages_join_the_run_that_gathers() -> None:
    """As another part of it, until it has as many as it should; then the next begins."""
    world = World(batch_topology(target_records=5, max_jobs=1, max_wait_s=9999))
    gather(world, 3)
    world.transforms.quota = 0
    for number in (11, 12):
        world.accept(number)
    world.collect()
    assert [part.records for part in only_run(world).parts] == [3, 2]
    world.accept(13)
    world.collect()
    assert sorted(run.records for run in world.runs.rows.values()) == [1, 5]


def test_a_run_that_was_closed_meanwhile_gets_nothing_more() -> None:
    """The records go into another, under a name that nobody has."""
    world = World()
    gather(world, 1)
    (first,) = world.runs.rows.values()
    key = world.accept(5)
    taken = Run("inferlane-test-taken", first.group, RunState.SETTLED, 0.0)
    world.runs.add(taken)
    collector = world.collector()
    collector._intake._new_id = iter(("taken", "free")).__next__
    add_part = world.runs.add_part

    def close(name: str, part: Part) -> bool:
        world.runs.move(first.name, RunState.GATHERING, RunState.STARTING, at=0.0)
        return add_part(name, part)

    world.runs.add_part = close  # type: ignore[method-assign]
    collector.run(lambda: 300.0)
    assert world.jobs.rows[key].run == "inferlane-test-free"
    assert world.runs.rows[first.name].records == 1
    assert world.runs.rows[taken.name] == taken


def test_a_lane_that_names_no_model_cannot_start_a_run() -> None:
    """It never comes to that: such a lane is none."""
    world = World()
    gather(world, 1)
    lane = topology(batch=BATCH).serving_lanes(MODEL)["batch"]
    assert isinstance(lane, BatchLane)
    with pytest.raises(ValueError, match="cannot run a transform job"):
        Starter(world.ports).begin(only_run(world), lane)


def test_a_body_in_s3_is_read_there() -> None:
    """And one that is gone fails its own job only."""
    world = World()
    there, gone = world.accept(1, apart=True), world.accept(2, apart=True)
    del world.objects.rows[next(key for key in world.objects.rows if gone.id in key)]
    world.collect()
    assert only_run(world).records == 1
    assert world.jobs.rows[there].run == only_run(world).name
    end = world.jobs.rows[gone].end
    assert end is not None
    assert end.error == JobError(500, "The stored request is gone.")
    assert world.work.works == []


def test_a_body_that_cannot_be_read_now_is_left_in_the_queue() -> None:
    """The others are taken."""
    world = World()
    world.accept(1)
    kept = world.accept(2, apart=True)
    get = world.objects.get

    def refuse(key: str) -> bytes | None:
        if "payloads" in key:
            raise UnavailableError("no answer")
        return get(key)

    world.objects.get = refuse  # type: ignore[method-assign]
    world.collect()
    assert only_run(world).records == 1
    assert [work.key for work in world.work.works if work] == [kept]
    assert world.counts.by_model[MODEL, Count.STEPS_PUT_OFF] == 1


@pytest.mark.parametrize("limits", [{"max_bytes": 99}, {"max_payload_mb": 1, "max_bytes": 2_000_000}])
def test_a_body_larger_than_the_container_takes_fails_alone(limits: dict[str, object]) -> None:
    """413: in a shard it would sink the file."""
    world = World(batch_topology(**limits))
    size = 100 if limits["max_bytes"] == 99 else 1_000_001
    large = world.accept(1, body=b'"' + b"x" * (size - 2) + b'"')
    fits = world.accept(2, body=b'"' + b"x" * (size - 3) + b'"')
    world.collect()
    end = world.jobs.rows[large].end
    assert end is not None
    assert end.error == JobError(413, "The body is larger than the batch lane takes.")
    assert world.jobs.rows[fits].run == only_run(world).name


def test_what_is_due_already_is_expired() -> None:
    """Never first in line."""
    world = World()
    key = world.accept(1, within_s=30)
    world.wait(30)
    world.collect()
    assert state(world, key) is JobState.EXPIRED
    assert (world.runs.rows, world.work.works, world.promotions.works) == ({}, [], [])
    assert world.counts.by_model[MODEL, Count.JOBS_EXPIRED] == 1
    assert world.notices.ended == [(key, JobState.EXPIRED)]


def test_what_batch_would_answer_too_late_is_promoted() -> None:
    """Start-up, the run and a tick; a second more is enough time."""
    world = World()
    late, early = world.accept(1, within_s=120.4), world.accept(2, within_s=121.0)
    world.collect()
    assert world.jobs.rows[late].run == PROMOTED
    assert [work.key for work in world.promotions.works if work] == [late]
    assert world.jobs.rows[early].run == only_run(world).name
    assert world.work.works == []
    assert world.counts.by_model[MODEL, Count.JOBS_PROMOTED] == 1


@pytest.mark.parametrize(
    ("lanes", "on"),
    [((), batch_topology()), (("serverless",), topology(dedicated=DEDICATED, batch=LANE))],
)
def test_without_another_lane_late_is_better_than_never(lanes: tuple[str, ...], on: Topology) -> None:
    """It is gathered all the same, and its run starts at once."""
    world = World(on)
    key = world.accept(1, within_s=90.0, lanes=lanes)
    world.collect()
    assert world.jobs.rows[key].run == only_run(world).name
    assert only_run(world).state is RunState.RUNNING


def test_messages_that_have_nothing_more_to_say_are_dropped() -> None:
    """Of jobs that ended, and of those that another answers for."""
    world = World()
    (key, gone, _) = gather(world)
    assert world.cancel(gone)
    for number in (1, 2):
        world.accept(number)
    world.collect()
    assert world.work.works == []
    assert world.counts.sums[Count.MESSAGES_DROPPED] == 2
    assert only_run(world).records == 3
    assert state(world, key) is JobState.ACCEPTED


def test_a_message_without_a_record_is_left_for_ten_minutes() -> None:
    """The record may come yet; later the caller was told that it failed."""
    world = World()
    world.accept(1, recorded=False)
    world.collect()
    world.wait(599)
    world.collect()
    assert len(world.work.works) == 1
    world.wait(120)
    world.collect()
    assert world.work.works == []
    assert world.jobs.rows == {}


def test_of_two_messages_without_a_record_the_younger_counts() -> None:
    """Its record may be on its way, whatever became of the first."""
    world = World()
    world.accept(1, recorded=False)
    world.wait(600)
    world.accept(1, recorded=False)
    world.collect()
    assert len(world.work.works) == 2


def test_a_message_that_cannot_be_read_is_left_to_the_dead_letters() -> None:
    """And counted; the others are taken."""
    world = World()
    world.work.garble()
    gather(world, 1)
    assert world.work.works == [None]
    assert world.counts.by_model[None, Count.MESSAGES_UNREADABLE] == 1


def test_the_same_message_twice_is_one_job() -> None:
    """Both copies are deleted."""
    world = World()
    world.accept(1)
    world.accept(1)
    world.collect()
    assert only_run(world).records == 1
    assert world.work.works == []


@pytest.mark.parametrize("first", ["own", "other"])
def test_of_two_callers_with_one_key_the_one_who_has_the_record_is_answered(first: str) -> None:
    """The other was refused; what it asked is dropped, whichever message comes first."""
    world = World()
    key = world.accept(1)
    (sent,) = world.work.works
    assert sent is not None
    own = replace(sent, fingerprint=world.jobs.rows[key].fingerprint)
    other = replace(sent, body=json_body(2), fingerprint="e" * 64)
    world.work.delete([received.receipt for received in world.work.receive(10)])
    world.work.send((own, other) if first == "own" else (other, own))
    world.collect()
    (file,) = world.objects.sizes(f"batch/{only_run(world).name}/in/")
    assert world.objects.rows[file].splitlines() == [json_body(1)]
    assert world.work.works == []


def test_what_a_refused_caller_asked_is_never_gathered() -> None:
    """Also when its message comes alone."""
    world = World()
    world.accept(1)
    (sent,) = world.work.works
    assert sent is not None
    world.work.delete([received.receipt for received in world.work.receive(10)])
    world.work.send((replace(sent, fingerprint="e" * 64),))
    world.collect()
    assert (world.runs.rows, world.work.works) == ({}, [])
    assert world.counts.sums[Count.MESSAGES_DROPPED] == 1


def test_a_run_starts_when_it_is_old_enough() -> None:
    """With the topology's words, over its own objects."""
    world = World(batch_topology(max_concurrent=3, max_payload_mb=7, instance_count=2))
    gather(world)
    world.wait(299)
    world.collect()
    assert world.transforms.jobs == {}
    world.wait(1)
    world.collect()
    run = only_run(world)
    assert run.state is RunState.RUNNING
    assert run.started_at == world.clock.now()
    assert world.transforms.jobs[run.name].spec == TransformSpec(
        name=run.name,
        model_name="moderation-1",
        input=f"s3://data/batch/{run.name}/in/",
        output=f"s3://data/batch/{run.name}/out",
        content_type="application/jsonlines",
        accept="application/jsonlines",
        lines=True,
        strategy="MultiRecord",
        instance_type="ml.c5.xlarge",
        instance_count=2,
        max_payload_mb=7,
        max_concurrent=3,
    )
    assert world.counts.by_model[MODEL, Count.RUNS_STARTED] == 1


def test_a_run_of_objects_sends_them_one_by_one() -> None:
    """As they are."""
    world = World(batch_topology(max_wait_s=0))
    world.accept(1, content_type="image/png", body=image_body(1))
    world.collect()
    spec = world.transforms.jobs[only_run(world).name].spec
    assert (spec.content_type, spec.accept, spec.lines, spec.strategy) == ("image/png", None, False, "SingleRecord")


def test_only_so_many_runs_run_at_once_the_most_urgent_first() -> None:
    """The others wait, and those of their records that cannot are promoted."""
    world = World(batch_topology(max_jobs=1, max_wait_s=0))
    patient = world.accept(1, within_s=3000)
    urgent = world.accept(2, content_type="image/png", body=image_body(2), within_s=2000)
    waiting = world.accept(3, content_type="image/gif", body=image_body(3), within_s=2900)
    world.collect()
    running = [run.group.content_type for run in world.runs.rows.values() if run.state is RunState.RUNNING]
    assert running == ["image/png"]
    world.transforms.takes_s = 1e9
    world.transforms.jobs[world.jobs.rows[urgent].run or ""].ends = 1e12
    for _ in range(49):
        world.minute()
    assert world.jobs.rows[patient].run == PROMOTED
    assert state(world, patient) is JobState.DONE
    assert state(world, waiting) is JobState.DONE
    assert {run.state for run in world.runs.rows.values()} == {RunState.RUNNING, RunState.SETTLED}
    assert world.counts.sums[Count.RUN_UNACCOUNTED] == 0
    world.check()


def test_at_the_accounts_quota_runs_wait_and_deadlines_hold() -> None:
    """A job that may not be made yet is as good as no room: nothing is lost, and the rest need not try."""
    world = World(batch_topology(max_wait_s=0))
    world.transforms.quota = 0
    key = world.accept(1, within_s=1000)
    world.accept(2, content_type="image/png", body=image_body(2), within_s=900)
    for _ in range(16):
        world.minute()
    assert world.transforms.jobs == {}
    end = world.jobs.rows[key].end
    assert end is not None
    assert (end.state, end.lane) == (JobState.DONE, "serverless")
    assert not world.open()
    assert 0 < world.counts.by_model[MODEL, Count.STEPS_PUT_OFF] <= 16


def test_a_run_goes_on_when_the_quota_allows() -> None:
    """A turn later."""
    world = World(batch_topology(max_wait_s=0))
    world.transforms.quota = 0
    gather(world)
    assert only_run(world).state is RunState.STARTING
    world.transforms.quota = 1
    world.minute()
    assert only_run(world).state is RunState.RUNNING


def test_out_of_a_run_that_waits_only_what_cannot_is_taken() -> None:
    """The bodies are read back, whole; for one that no message carries the queue sees to it."""
    world = World(batch_topology(max_jobs=1))
    body = b'{"n": 1, "pad": "' + b"x" * 180_000 + b'"}'
    large, small = world.accept(1, within_s=1000, body=body), world.accept(2, within_s=1000)
    other = world.accept(3, within_s=3000)
    world.collect()
    world.topology = topology(dedicated=DEDICATED, serverless=SERVERLESS, batch={**BATCH, "startup_s": 500})
    world.topology = batch_topology(startup_s=900)
    world.transforms.quota = 0
    world.collect()
    assert [work.key for work in world.promotions.works if work] == [large, small]
    first, second = (work for work in world.promotions.works if work is not None)
    assert (second.body, second.object) == (json_body(2), None)
    assert (first.body, first.object) == (body, None)
    assert second.due_at == world.jobs.rows[small].due_at
    assert (second.model, second.content_type, second.lanes) == (MODEL, "application/json", ("serverless", "dedicated"))
    assert world.jobs.rows[other].run == only_run(world).name


def test_an_object_is_promoted_where_it_lies() -> None:
    """It is not copied."""
    world = World()
    body = image_body(1)
    world.accept(1, within_s=1000, content_type="image/png", body=body)
    world.collect()
    world.topology = batch_topology(startup_s=950)
    world.transforms.quota = 0
    world.collect()
    (work,) = world.promotions.works
    assert work is not None
    assert work.object is not None
    assert work.object.startswith(f"batch/{only_run(world).name}/in/")
    assert world.objects.rows[work.object] == body


def test_without_a_lane_everything_is_promoted_or_expires() -> None:
    """A deploy took it away: nothing is lost."""
    world = World()
    keys = gather(world)
    alone = world.accept(9, lanes=(), within_s=1200)
    world.collect()
    world.topology = topology(dedicated=DEDICATED, serverless=SERVERLESS)
    world.accept(10)
    for _ in range(21):
        world.minute()
    assert {state(world, key) for key in keys} == {JobState.DONE}
    assert state(world, alone) is JobState.EXPIRED
    assert only_run(world).state is RunState.SETTLED
    assert not world.open()


def test_a_run_that_was_left_empty_is_written_off() -> None:
    """Without a transform job; every record accounted for."""
    world = World()
    keys = gather(world)
    world.cancel(keys[0])
    world.topology = topology(dedicated=DEDICATED, serverless=SERVERLESS)
    world.collect()
    run = only_run(world)
    assert (run.state, run.tally.promoted, run.tally.foreign, run.tally.total) == (RunState.SETTLED, 2, 1, 3)
    assert world.transforms.jobs == {}
    assert world.counts.by_model[MODEL, Count.RUN_UNACCOUNTED] == 0


def test_a_run_is_not_written_off_while_records_may_come_to_it() -> None:
    """A collector died between a part and its claims: the job comes again, and is the run's or another's then."""
    world = World()
    world.accept(1)
    world.weather.kill_in(10)
    assert not world.collect()
    world.weather.clear()
    run = only_run(world)
    assert run.records == 1
    assert next(iter(world.jobs.rows.values())).run is None
    world.topology = topology(dedicated=DEDICATED, serverless=SERVERLESS)
    world.wait(30)
    world.runs.held = None
    world.collect()
    assert only_run(world).state is RunState.GATHERING
    world.settle_down()


def test_a_run_that_grew_while_it_was_closed_is_not_written_off() -> None:
    """Another collector's part came in between: its records stay the run's."""
    world = World()
    gather(world, 1)
    run = only_run(world)
    world.topology = topology(dedicated=DEDICATED, serverless=SERVERLESS)
    move = world.runs.move

    def grow(name: str, before: RunState, after: RunState, **more: object) -> bool:
        world.runs.add_part(name, Part("late", 1, 1, 0.0))
        return move(name, before, after, **more)  # type: ignore[arg-type]

    world.runs.move = grow  # type: ignore[method-assign]
    world.collect()
    assert world.runs.rows[run.name].state is RunState.STARTING


def test_a_run_that_never_got_a_part_is_closed_after_an_hour() -> None:
    """A collector died as it had opened it."""
    world = World()
    world.runs.add(Run("inferlane-test-0", Group(MODEL, None, None, "lines"), RunState.GATHERING, world.clock.now()))
    world.wait(3599)
    world.collect()
    assert only_run(world).state is RunState.GATHERING
    world.wait(1)
    world.collect()
    assert only_run(world).state is RunState.SETTLED


def test_a_job_whose_event_was_lost_is_settled_by_the_collector() -> None:
    """When it should have ended."""
    world = World(batch_topology(max_wait_s=0))
    keys = gather(world)
    world.transforms.takes_s = 10
    world.wait(60)
    world.transforms.events.clear()
    world.collect()
    assert only_run(world).state is RunState.RUNNING
    world.wait(121)
    world.transforms.events.clear()
    world.collect()
    assert {state(world, key) for key in keys} == {JobState.DONE}


def test_a_job_that_has_time_is_not_asked_after() -> None:
    """Its event is on its way: SageMaker limits how often it may be asked."""
    world = World(batch_topology(max_wait_s=0))
    gather(world)
    asked: list[str] = []
    describe = world.transforms.describe
    world.transforms.describe = lambda name: asked.append(name) or describe(name)  # type: ignore[func-returns-value, method-assign]
    world.wait(61)
    world.collect()
    assert asked == []
    world.wait(1)
    world.collect()
    assert len(asked) == 1


def test_a_data_set_is_a_run_of_its_own_and_starts_at_once() -> None:
    """Over its own prefixes; its message finds the same run again."""
    world = World()
    data = Dataset("s3://lake/in/", "s3://lake/out/")
    key = world.accept(1, dataset=data, content_type="text/csv", lanes=())
    world.weather.kill_in(8)
    assert not world.collect()
    world.weather.clear()
    world.runs.held = None
    world.wait(130)
    world.collect()
    run = only_run(world)
    assert world.jobs.rows[key].run == run.name
    spec = world.transforms.jobs[run.name].spec
    assert (spec.input, spec.output, spec.content_type, spec.lines) == (data.input, data.output, "text/csv", True)
    assert world.work.works == []


def test_a_data_set_that_cannot_start_in_time_expires() -> None:
    """There is no other lane for it."""
    world = World()
    world.transforms.quota = 0
    key = world.accept(1, 600, dataset=Dataset("s3://lake/in/", "s3://lake/out/"), lanes=())
    for _ in range(11):
        world.minute()
    assert state(world, key) is JobState.EXPIRED


def test_a_turn_ends_before_its_time() -> None:
    """What is left is the next turn's."""
    world = World(batch_topology(max_wait_s=0))
    world.accept(1)
    world.collect(time_left_s=44.9)
    assert world.runs.rows == {}
    world.collect(time_left_s=45.0)
    assert only_run(world).state is RunState.RUNNING


def test_time_can_run_out_between_two_heaps() -> None:
    """The first is taken, the second is not."""
    world = World()
    for number in range(501):
        world.accept(number)
    left = [300.0, 44.0]
    world.collector().run(lambda: left.pop(0) if len(left) > 1 else left[0])
    assert only_run(world).records == 500
    assert len(world.work.works) == 1


def test_what_comes_while_the_queue_is_drained_is_the_next_turns() -> None:
    """A message a second for ever: the turn ends with what was there, and the one that came meanwhile."""
    world = World()
    world.accept(0)
    numbers = itertools.count(1)
    receive = world.work.receive

    def trickling(most: int) -> Sequence[Received]:
        world.clock.advance(1)
        world.accept(next(numbers))
        return receive(1)

    world.work.receive = trickling  # type: ignore[method-assign]
    world.collect()
    assert next(numbers) == 3
    assert only_run(world).records == 2


def test_a_long_queue_is_left_for_the_runs_in_between() -> None:
    """After half a minute of taking messages a run that is due to start does, and the taking goes on."""
    world = World(batch_topology(max_wait_s=20))
    for number in range(1100):
        world.accept(number)
    world.wait(1)
    world.work.batch = 500
    receive = world.work.receive

    def slow(most: int) -> Sequence[Received]:
        world.clock.advance(20)
        return receive(most)

    world.work.receive = slow  # type: ignore[method-assign]
    world.collect()
    assert sorted(run.records for run in world.runs.rows.values()) == [100, 1000]
    assert world.work.works == []


def test_a_lease_lasts_less_than_a_tick_and_is_kept_while_its_holder_works() -> None:
    """A killed collector keeps the next minute's from working at most once; one that lives longer keeps its lease."""
    world = World()
    world.accept(1)
    receive, until = world.work.receive, []

    def slow(most: int) -> Sequence[Received]:
        world.clock.advance(20)
        return receive(most)

    def left() -> float:
        assert world.runs.held is not None
        until.append(world.runs.held[1] - world.clock.now())
        return 900.0

    world.work.receive = slow  # type: ignore[method-assign]
    world.collector().run(left)
    assert min(until) > 0
    assert max(until) == 50
    assert world.runs.held is None


def test_who_has_lost_the_lease_leaves_off() -> None:
    """Another took it while a step hung: what is left in the queue is the other's."""
    world = World()
    for number in range(501):
        world.accept(number)
    receive = world.work.receive

    def hanging(most: int) -> Sequence[Received]:
        if world.runs.held is not None and world.runs.held[0] != "another":
            world.clock.advance(60)
            assert world.runs.lease("another", world.clock.now(), world.clock.now() + 50)
        return receive(most)

    world.work.receive = hanging  # type: ignore[method-assign]
    world.collect()
    assert only_run(world).records == 500
    assert len(world.work.works) == 1
    assert world.runs.held is not None


def test_who_cannot_tell_whether_the_lease_is_its_own_goes_on() -> None:
    """A table that refuses one write costs no work."""
    world = World()
    world.accept(1)
    take, receive = world.runs.lease, world.work.receive

    def once(owner: str, now: float, until: float) -> bool:
        if world.runs.held is not None:
            raise BusyError("slow down")
        return take(owner, now, until)

    def slow(most: int) -> Sequence[Received]:
        world.clock.advance(20)
        return receive(most)

    world.runs.lease, world.work.receive = once, slow  # type: ignore[method-assign]
    world.collect()
    assert only_run(world).records == 1


def test_large_bodies_make_small_heaps() -> None:
    """Memory is bounded by bytes, not by messages."""
    world = World()
    for number in range(3):
        world.accept(number, body=b'"' + b"%d" % number + b"x" * 5_900_000 + b'"', apart=True)
    world.collect()
    assert [part.records for part in only_run(world).parts] == [2, 1]


def test_only_who_holds_the_lease_works() -> None:
    """Another has it until it runs out."""
    world = World()
    assert world.runs.lease("another", world.clock.now(), world.clock.now() + 60)
    world.accept(1)
    world.collect()
    assert world.runs.rows == {}
    world.wait(60)
    world.collect()
    assert only_run(world).records == 1


def test_a_service_in_trouble_puts_its_steps_off() -> None:
    """The turn ends well, tells how many, and gives its lease back."""
    world = World()
    world.accept(1)

    def refuse(keys: object) -> None:
        raise UnavailableError("no answer")

    world.jobs.find = refuse  # type: ignore[assignment, method-assign]
    assert world.collect()
    assert world.counts.by_model[None, Count.STEPS_PUT_OFF] == 1
    assert world.log.lines == [
        ("warning", "step put off", {"step": "heap", "model": None, "cause": "no answer"}),
    ]
    assert world.runs.held is None
    assert len(world.work.works) == 1


def test_one_models_trouble_is_not_anothers() -> None:
    """A run that cannot be moved on keeps neither the others nor the queue waiting."""
    world = World(batch_topology(max_wait_s=0))
    gather(world, 1)
    world.wait(400)
    describe = world.transforms.describe

    def refuse(name: str) -> object:
        raise UnavailableError("no answer")

    world.transforms.describe = refuse  # type: ignore[assignment, method-assign]
    key = world.accept(5)
    world.collect()
    assert world.jobs.rows[key].run is not None
    assert world.counts.by_model[MODEL, Count.STEPS_PUT_OFF] >= 1
    world.transforms.describe = describe  # type: ignore[method-assign]


@pytest.mark.parametrize("step", range(14))
def test_a_collector_killed_at_any_step_loses_nothing(step: int) -> None:
    """Nor does anything run twice to its end."""
    world = World(batch_topology(max_wait_s=0))
    for number in (1, 2):
        world.accept(number)
    world.accept(3, within_s=100)
    world.weather.kill_in(step)
    with pytest.raises(Killed):
        world.collector().run(lambda: 300.0)
    world.weather.clear()
    world.check()
    world.settle_down()
    assert {job.state for job in world.jobs.rows.values()} <= {JobState.DONE, JobState.EXPIRED}


@pytest.mark.parametrize("quota", [0, 1, 100])
@pytest.mark.parametrize("startup_s", [0.0, 60.0])
def test_everybody_is_answered_in_time(quota: int, startup_s: float) -> None:
    """By batch where it is as fast as the topology says, else by a lane that answers at once; whoever has 2 minutes."""
    world = World(batch_topology(startup_s=startup_s, target_records=8))
    world.transforms.takes_s = startup_s + 2.0
    world.transforms.quota = quota
    for number in range(60):
        world.accept(number, within_s=130.0 + 61.7 * (number % 37))
        if number % 2:
            world.minute()
    for _ in range(45):
        world.minute()
        world.check()
    assert not world.open()
    assert not [job for job in world.jobs.rows.values() if job.late or job.state is not JobState.DONE]
    assert world.counts.sums[Count.JOBS_LATE] == 0
    assert (world.counts.sums[Count.JOBS_PROMOTED] == 60) == (quota == 0)

"""Promotion: a job that would come too late in batch is answered by another lane."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from functions.batch_ports import BusyError, Count
from functions.core.job import PROMOTED, UNKNOWN_S, Job, JobError, JobKey, JobState, Result, Work
from functions.core.outcome import Kind, Outcome
from functions.promote import RENEW_AFTER
from tests.unit.batch.world import World, batch_topology, json_body, mark
from tests.unit.core.builders import DEDICATED, MODEL, NOW, SERVERLESS, topology
from tests.unit.handlers.fakes import failing, hanging, healthy


def promoted(world: World, within_s: float = 100.0, kind: str = "ok") -> tuple[JobKey, Work]:
    """A job whose message is in promotion's queue, and its record says so."""
    key = world.accept(1, within_s, body=json_body(1, kind))
    world.collect()
    (work,) = world.promotions.works
    assert work is not None
    assert world.jobs.rows[key].run == PROMOTED
    return key, work


def test_a_lane_answers_in_time() -> None:
    """The first of the job's lanes that there is, with what its attempts cost."""
    world = World()
    key, work = promoted(world)
    assert world.promoter().promote(work, 1, 100.0)
    end = world.jobs.rows[key].end
    assert end is not None
    assert (end.state, end.lane) == (JobState.DONE, "serverless")
    assert end.cost_usd == pytest.approx(0.2 * 0.00008)
    assert end.at <= work.due_at
    assert end.result is not None
    assert end.result.content_type == "application/json"
    assert json.loads(end.result.body or b"")["of"] == mark(json_body(1))
    (seen,) = world.invoker.seen
    assert (seen.body, seen.content_type, seen.accept) == (json_body(1), "application/json", None)
    assert world.notices.ended == [(key, JobState.DONE)]
    assert world.counts.by_model[MODEL, Count.JOBS_DONE] == 1


def test_the_next_lane_answers_where_the_first_does_not() -> None:
    """In the job's order, and every attempt that ran is paid for."""
    world = World()
    key, work = promoted(world)
    world.invoker.lanes = {"serverless": failing(Kind.UPSTREAM_ERROR, 1.0, 500), "dedicated": healthy(2.0)}
    assert world.promoter().promote(work, 1, 100.0)
    end = world.jobs.rows[key].end
    assert end is not None
    assert end.lane == "dedicated"
    assert end.cost_usd == pytest.approx(1.0 * 0.00008 + 2.0 * 1.408 / 3600 / 4)


def test_a_lane_that_is_gone_is_passed_over() -> None:
    """A deploy took it away."""
    world = World()
    key, work = promoted(world)
    world.topology = topology(dedicated=DEDICATED)
    assert world.promoter().promote(work, 1, 100.0)
    end = world.jobs.rows[key].end
    assert end is not None
    assert end.lane == "dedicated"


def test_without_a_price_the_cost_is_unknown() -> None:
    """Not zero."""
    world = World(topology(dedicated={**DEDICATED, "usd_per_instance_hour": None}))
    key, work = promoted(world)
    assert world.promoter().promote(work, 1, 100.0)
    end = world.jobs.rows[key].end
    assert end is not None
    assert (end.state, end.cost_usd) == (JobState.DONE, None)


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b'{"error": "too long"}', "too long"),
        (b'{"detail": "a", "error": "b"}', "a"),
        (b'{"message": "m", "error": "b"}', "m"),
        (b'{"error": "%s"}' % (b"x" * 1001), "x" * 1000),
        (b"plain words", "plain words"),
        (b"x" * 1001, "x" * 1000),
        (b"\xff", "\ufffd"),
        (b"", "The model refused the request."),
        (b'{"error": ""}', "The model refused the request."),
        (b'{"error": {"code": 1}}', "The model refused the request."),
        (b"[1]", "The model refused the request."),
        (b"[" * 100_000, "[" * 1000),
    ],
)
def test_a_refusal_is_the_jobs_own_reason(body: bytes, detail: str) -> None:
    """The container's words where it says any, up to a thousand letters."""
    world = World()
    key, work = promoted(world)
    world.invoker.lanes["serverless"] = healthy(0.1, Outcome(Kind.CALLER_ERROR, 415, body, "application/json"))
    assert world.promoter().promote(work, 1, 100.0)
    end = world.jobs.rows[key].end
    assert end is not None
    assert (end.state, end.lane, end.error) == (JobState.FAILED, "serverless", JobError(415, detail))
    assert end.cost_usd == pytest.approx(0.1 * 0.00008)


def test_while_no_lane_answers_the_message_comes_again() -> None:
    """Until the job is due; then it has expired."""
    world = World()
    key, work = promoted(world)
    world.lanes_up = False
    promoter = world.promoter()
    assert not promoter.promote(work, 1, 100.0)
    assert world.jobs.rows[key].state is JobState.ACCEPTED
    world.clock.advance(work.due_at - world.clock.now() - 0.001)
    assert not promoter.promote(work, 2, 100.0)
    world.clock.advance(1)
    assert promoter.promote(work, 3, 100.0)
    assert world.jobs.rows[key].state is JobState.EXPIRED


def test_a_message_that_came_often_is_sent_anew() -> None:
    """So that an outage of the lanes makes no dead letters."""
    world = World()
    _, work = promoted(world)
    world.lanes_up = False
    assert not world.promoter().promote(work, RENEW_AFTER - 1, 100.0)
    assert world.promotions.works == [work]
    assert world.promoter().promote(work, RENEW_AFTER, 100.0)
    assert world.promotions.works == [work, work]


def test_an_attempt_ends_before_the_function_and_the_deadline_do() -> None:
    """Whichever is first; five seconds are for writing the answer."""
    for time_left_s, within_s in ((25.0, 100.0), (500.0, 20.0)):
        world = World(topology(serverless=SERVERLESS))
        world.invoker.lanes["serverless"] = hanging()
        _, work = promoted(world, within_s)
        began = world.clock.monotonic()
        assert not world.promoter().promote(work, 1, time_left_s)
        assert world.clock.monotonic() - began == pytest.approx(20.0)


def test_without_time_nothing_is_begun() -> None:
    """The message comes again."""
    world = World()
    _, work = promoted(world)
    assert not world.promoter().promote(work, 1, 5.0)
    assert world.invoker.seen == []


def test_a_second_message_changes_nothing() -> None:
    """Nor one of a job whose record has expired."""
    world = World()
    key, work = promoted(world)
    promoter = world.promoter()
    assert promoter.promote(work, 1, 100.0)
    before = world.jobs.rows[key]
    assert promoter.promote(work, 2, 100.0)
    assert world.jobs.rows[key] == before
    assert len(world.invoker.seen) == 1
    del world.jobs.rows[key]
    world.clock.advance(UNKNOWN_S)
    assert promoter.promote(work, 1, 100.0)


def test_a_message_that_precedes_its_record_comes_again() -> None:
    """Without a record it is kept for ten minutes, and no dead letter meanwhile; then it was never accepted."""
    world = World()
    key = world.accept(1, 28.0, recorded=False, guarded=True)
    (work,) = world.promotions.works
    assert work is not None
    world.clock.advance(1.0)
    world.promote()
    assert world.invoker.seen == []
    while world.clock.now() < NOW + UNKNOWN_S:
        assert world.promotions.works == [work]
        world.clock.advance(3.0)
        world.promote()
    world.clock.advance(60.0)
    world.promote()
    assert (world.promotions.works, world.promotions.dead) == ([], [])
    assert key not in world.jobs.rows


def test_a_record_that_comes_late_is_answered() -> None:
    """The message came before it: the next look, some seconds later, is in time."""
    world = World()
    key = world.accept(1, 28.0, recorded=False, guarded=True)
    world.promote()
    world.jobs.add(Job(key, MODEL, "f", NOW, NOW + 28.0, PROMOTED))
    world.clock.advance(4.0)
    world.promote()
    job = world.jobs.rows[key]
    assert (job.state, job.late) == (JobState.DONE, False)
    assert world.promotions.works == []


def test_half_a_minute_has_several_tries() -> None:
    """Neither lanes that are away, nor a table, keep the message hidden beyond its deadline."""

    def throttled(keys: Sequence[JobKey]) -> Mapping[JobKey, Job]:
        raise BusyError("slow down")

    for away in ("lanes", "table"):
        world = World()
        key, find = world.accept(1, 28.0, guarded=True), world.jobs.find
        for second in range(20):
            world.lanes_up = away != "lanes" or second >= 10
            world.jobs.find = throttled if away == "table" and second < 10 else find  # type: ignore[method-assign]
            world.promote()
            world.clock.advance(1.0)
        job = world.jobs.rows[key]
        assert (job.state, job.late) == (JobState.DONE, False), away


def test_another_callers_message_under_the_same_key_is_dropped() -> None:
    """Two raced with one key: what the record is not of is answered to nobody."""
    world = World()
    key, work = promoted(world)
    world.jobs.rows[key] = replace(world.jobs.rows[key], fingerprint="ours")
    promoter = world.promoter()
    assert promoter.promote(replace(work, fingerprint="theirs"), 1, 100.0)
    assert world.invoker.seen == []
    assert promoter.promote(replace(work, fingerprint="ours"), 1, 100.0)
    assert world.jobs.rows[key].state is JobState.DONE


def test_a_message_that_cannot_be_hidden_comes_again_by_itself() -> None:
    """Later than it should, which is said; after several tries that is what is wanted."""
    world = World()
    _, work = promoted(world)
    hidden: list[int] = []
    world.promotions.hide = lambda receipt, seconds: hidden.append(seconds)  # type: ignore[method-assign]
    promoter = world.promoter()
    promoter.put_off(work, "r", RENEW_AFTER)
    assert hidden == []
    promoter.put_off(work, "r", RENEW_AFTER - 1)
    assert hidden == [12]

    def throttled(receipt: str, seconds: int) -> None:
        raise BusyError("slow down")

    world.promotions.hide = throttled  # type: ignore[method-assign]
    promoter.put_off(work, "r", 1)
    assert world.log.lines == [("warning", "a message comes again later than it should", {"cause": "slow down"})]


def test_a_claim_that_was_not_made_is_made_here() -> None:
    """Who sent the message was killed before it; from the queue, or out of a run."""
    for owner in (None, "inferlane-test-run"):
        world = World()
        key, work = promoted(world)
        world.jobs.claim([key], owner or "", PROMOTED)
        if owner is None:
            world.jobs.rows[key] = replace(world.jobs.rows[key], run=None)
        assert world.promoter().promote(work, 1, 100.0)
        job = world.jobs.rows[key]
        assert (job.state, job.run) == (JobState.DONE, PROMOTED)


def test_a_claim_that_fails_leaves_the_message() -> None:
    """Somebody else changed the record between: the next look will tell."""
    world = World()
    key, work = promoted(world)
    world.jobs.claim([key], "inferlane-test-run", PROMOTED)
    world.jobs.claim = lambda keys, run, held_by: set()  # type: ignore[method-assign]
    assert not world.promoter().promote(work, 1, 100.0)
    assert world.invoker.seen == []


def test_a_body_in_s3_is_read_and_one_that_is_gone_fails_the_job() -> None:
    """With a reason of its own."""
    for there in (True, False):
        world = World()
        key = world.accept(1, 100.0, apart=True)
        world.collect()
        (work,) = world.promotions.works
        assert work is not None
        if not there:
            world.objects.rows.clear()
        assert world.promoter().promote(work, 1, 100.0)
        end = world.jobs.rows[key].end
        assert end is not None
        assert end.error == (None if there else JobError(500, "The stored request is gone."))
        assert end.state is (JobState.DONE if there else JobState.FAILED)


def test_a_large_answer_has_a_place_of_its_own() -> None:
    """Another promoter's answer, or batch's, is never written over it."""
    world = World()
    key, work = promoted(world, kind="large")
    promoter = world.promoter()
    assert promoter.promote(work, 1, 100.0)
    end = world.jobs.rows[key].end
    assert end is not None
    assert isinstance(end.result, Result)
    assert end.result.object is not None
    assert f"/{key.id}/{PROMOTED}-" in end.result.object
    world.check()


def test_a_lane_that_is_broken_is_not_tried_for_every_job() -> None:
    """One process keeps its breakers."""
    world = World(batch_topology())
    _, work = promoted(world)
    world.lanes_up = False
    promoter = world.promoter()
    for _ in range(40):
        promoter.promote(work, 1, 100.0)
    assert len(world.invoker.seen) < 40

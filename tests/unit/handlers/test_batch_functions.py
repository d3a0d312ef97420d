"""The batch lane's handlers: events in, use cases called, lines and failures out; nothing of a payload in either."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from functions.audit import Auditor
from functions.aws.work_messages import write
from functions.batch_bootstrap import AuditParts, CollectParts, NotifyParts, PromoteParts, SettleParts
from functions.batch_ports import BatchPorts, BusyError, UnavailableError
from functions.batch_settings import Webhook
from functions.core.job import PROMOTED, JobKey, JobState, Work
from functions.core.run import RunState
from functions.handlers import audit, collect, notify, promote, settle
from functions.handlers.turn import TurnError
from functions.notify import Notifier, read_notice, signature
from functions.promote import Promoter
from tests.unit.batch.world import World, json_body
from tests.unit.core.builders import MODEL, NOW
from tests.unit.handlers.fakes import FakeClock, FakeContext, FakeFunctionLog, FakeLog

CONTEXT = FakeContext(remaining_ms=300_000)
SECRET = "the caller's own words"


@pytest.fixture
def log() -> FakeFunctionLog:
    return FakeFunctionLog()


def said(log: FakeLog) -> str:
    """All of it, as it would lie in the log."""
    return json.dumps(log.lines)


def broken(world: World, port: str, error: Exception) -> BatchPorts:
    """The world's ports, one of which raises at whatever is asked of it."""

    class Broken:
        def __getattr__(self, name: str) -> Any:
            raise error

    return replace(world.ports, **{port: Broken()})


def test_collect_takes_the_time_it_has_and_says_that_it_worked(log: FakeFunctionLog) -> None:
    """A line for a turn, also for one in which nothing was to be done."""
    world = World()
    key = world.accept(1)
    collect.respond(CONTEXT, CollectParts(world.collector(), log))
    run = world.jobs.rows[key].run
    assert run is not None
    assert world.runs.rows[run].state is RunState.GATHERING
    collect.respond(FakeContext(remaining_ms=1000), CollectParts(world.collector(), log))
    assert [(level, message) for level, message, _ in log.lines] == [("info", "collect"), ("info", "collect")]
    assert SECRET not in said(log)


def event_of(name: object) -> dict[str, object]:
    """As EventBridge sends it; only the name is read."""
    detail = {"TransformJobName": name, "TransformJobStatus": "Completed"}
    return {"source": "aws.sagemaker", "detail-type": "SageMaker Transform Job State Change", "detail": detail}


def running(world: World) -> str:
    """A run whose transform job has ended."""
    world.accept(1, within_s=900)
    for _ in range(15):
        world.wait(60)
        world.collect()
        if world.transforms.events:
            break
    return world.transforms.events[0]


def test_settle_settles_the_run_that_an_event_names(log: FakeFunctionLog) -> None:
    """Once, however often it is told, alone or in a list."""
    world = World()
    name = running(world)
    parts = SettleParts(world.settler(), log)
    settle.respond([event_of(name), event_of(name)], CONTEXT, parts)
    settle.respond(event_of(name), CONTEXT, parts)
    assert {job.state for job in world.jobs.rows.values()} == {JobState.DONE}
    assert len(world.notices.ended) == 1
    assert [(extra["run"], extra["settled"]) for _, _, extra in log.lines] == [(name, True)] * 2


def test_settle_leaves_jobs_that_are_no_run_alone(log: FakeFunctionLog) -> None:
    """The nightly recheck's, say."""
    settle.respond(event_of("inferlane-test-nightly-20261130"), CONTEXT, SettleParts(World().settler(), log))
    assert log.lines[0][2]["settled"] is False


@pytest.mark.parametrize("event", [None, {}, [], {"detail": None}, {"detail": {"TransformJobName": 3}}, event_of("")])
def test_an_event_that_names_nothing_is_told_and_done_with(log: FakeFunctionLog, event: object) -> None:
    """Trying again would change nothing."""
    settle.respond(event, CONTEXT, SettleParts(World().settler(), log))
    assert [(level, message) for level, message, _ in log.lines] == [("warning", "an event names no transform job")]


def sqs_event(*bodies: str, receives: object = "1") -> dict[str, object]:
    """As an event source mapping hands it over."""
    return {
        "Records": [
            {
                "messageId": f"m{i}",
                "receiptHandle": f"r{i}",
                "body": body,
                "attributes": {"ApproximateReceiveCount": receives},
            }
            for i, body in enumerate(bodies)
        ]
    }


def promotable(world: World, number: int, within_s: float = 3600.0) -> Work:
    """A job that promotion answers for, and its message."""
    key = world.accept(number, within_s, body=json_body(number, SECRET))
    world.jobs.claim([key], PROMOTED, None)
    (work,) = [one for one in world.work.works if one is not None and one.key == key]
    return work


def test_promote_answers_each_message_and_names_those_that_must_come_again(log: FakeFunctionLog) -> None:
    """One that cannot be read comes again until it is a dead letter; it keeps no other from being answered."""
    world = World()
    works = [promotable(world, number) for number in (1, 2)]
    event = sqs_event(write(works[0]), '{"secret": "' + SECRET + '"}', write(works[1]))
    found = promote.respond(event, CONTEXT, PromoteParts(world.promoter(), log))
    assert found == {"batchItemFailures": [{"itemIdentifier": "m1"}]}
    assert {job.state for job in world.jobs.rows.values()} == {JobState.DONE}
    assert log.levels() == ["error", "info", "info"]
    assert SECRET not in said(log)
    assert works[0].key.tenant not in said(log)


def test_promote_begins_with_the_deadline_that_is_nearest(log: FakeFunctionLog) -> None:
    """In whatever order the messages came."""
    world = World()
    works = [promotable(world, number, within_s) for number, within_s in ((1, 900), (2, 30), (3, 300))]
    promote.respond(sqs_event(*map(write, works)), CONTEXT, PromoteParts(world.promoter(), log))
    assert [extra["job"] for _, _, extra in log.lines] == [works[i].key.id for i in (1, 2, 0)]


def test_what_must_come_again_does_so_before_its_deadline(log: FakeFunctionLog) -> None:
    """Where no lane answers, and where something fails; after several tries the queue's own time passes."""
    world = World()
    work = promotable(world, 1, 28)
    hidden: list[tuple[str, int]] = []
    world.promotions.hide = lambda receipt, seconds: hidden.append((receipt, seconds))  # type: ignore[method-assign]
    world.lanes_up = False
    promote.respond(sqs_event(write(work)), CONTEXT, PromoteParts(world.promoter(), log))
    promoter = Promoter(broken(world, "jobs", RuntimeError("!")), world.topology, world.invoker, new_id=world.new_id)
    promote.respond(sqs_event(write(work)), CONTEXT, PromoteParts(promoter, log))
    promote.respond(sqs_event(write(work), receives="6"), CONTEXT, PromoteParts(promoter, log))
    assert hidden == [("r0", 3), ("r0", 3)]


def test_while_no_lane_answers_a_message_comes_again(log: FakeFunctionLog) -> None:
    """Until it has come so often that it is sent anew, by the count that SQS gives; an odd one counts as the first."""
    world = World()
    world.lanes_up = False
    text = write(promotable(world, 1))
    parts = PromoteParts(world.promoter(), log)
    failed = {"batchItemFailures": [{"itemIdentifier": "m0"}]}
    assert promote.respond(sqs_event(text), CONTEXT, parts) == failed
    assert promote.respond(sqs_event(text, receives=None), CONTEXT, parts) == failed
    assert promote.respond(sqs_event(text, receives="9"), CONTEXT, parts) == {"batchItemFailures": []}
    assert len(world.promotions.works) == 1


def test_a_service_that_fails_fails_one_message_and_not_the_others(log: FakeFunctionLog) -> None:
    """Expected or not, it is logged without a value; the rest of the batch is answered."""
    world = World()
    text = write(promotable(world, 1))
    for error in (BusyError("slow down"), RuntimeError(SECRET)):
        ports = broken(world, "jobs", error)
        promoter = Promoter(ports, world.topology, world.invoker, new_id=world.new_id)
        parts = PromoteParts(promoter, log)
        assert promote.respond(sqs_event(text), CONTEXT, parts) == {"batchItemFailures": [{"itemIdentifier": "m0"}]}
    assert log.levels() == ["warning", "error"]
    assert log.lines[0][2]["cause"] == "slow down"
    assert "RuntimeError at" in str(log.lines[1][2]["trace"])
    assert SECRET not in said(log)


@pytest.mark.parametrize("event", [None, {}, {"Records": None}, {"Records": [None, 3]}])
def test_what_is_no_sqs_event_holds_no_messages(log: FakeFunctionLog, event: object) -> None:
    """And none of them failed."""
    assert promote.respond(event, CONTEXT, PromoteParts(World().promoter(), log)) == {"batchItemFailures": []}


def test_audit_says_what_it_counted(log: FakeFunctionLog) -> None:
    """The census is its answer, and in its line."""
    world = World()
    world.accept(1)
    census = audit.respond(AuditParts(Auditor(world.ports, world.acceptances), log))
    ((level, message, extra),) = log.lines
    assert (level, message) == ("info", "audit")
    assert extra["census"] == census == {"done": 0, "failed": 0, "expired": 0, "cancelled": 0, "open": 1}


@pytest.mark.parametrize("error", [BusyError("slow down"), RuntimeError(SECRET)])
def test_what_goes_wrong_is_raised_without_its_text(log: FakeFunctionLog, error: Exception) -> None:
    """So that Lambda tries again, and writes nothing of it into the log."""
    world = World()
    ports = broken(world, "jobs", error)
    with pytest.raises(TurnError) as raised:
        audit.respond(AuditParts(Auditor(ports, world.acceptances), log))
    assert raised.value.__suppress_context__
    assert SECRET not in str(raised.value) + said(log)
    assert len(log.lines) == 1


# Notices.


@dataclass
class Told:
    """A topic, webhooks and secrets in one."""

    announced: list[str] = field(default_factory=list)
    posted: list[tuple[str, bytes, Mapping[str, str]]] = field(default_factory=list)
    status: int = 200
    error: Exception | None = None

    def announce(self, subject: str, text: str) -> None:
        if self.error is not None:
            raise self.error
        self.announced.append(text)

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        if self.error is not None:
            raise self.error
        self.posted.append((url, body, headers))
        return self.status

    def read(self, name: str) -> bytes:
        return f"secret of {name}".encode()


HOOKS = {"acme": Webhook("https://acme.example/hook", "/acme")}


def notifier(told: Told, log: FakeFunctionLog, *, topic: bool = True) -> NotifyParts:
    return NotifyParts(Notifier(told if topic else None, HOOKS, told, told, FakeClock(NOW), log), log)


def notice(to: str = "webhook", tenant: str = "acme") -> str:
    return json.dumps({"to": to, "tenant": tenant, "jobs": [{"id": "x", "status": "done"}]})


def test_a_webhook_gets_ids_and_states_under_a_signature(log: FakeFunctionLog) -> None:
    """Neither whose, nor any answer; the same notice has the same id when it comes again."""
    told = Told()
    assert notify.respond(sqs_event(notice()), notifier(told, log)) == {"batchItemFailures": []}
    ((url, body, headers),) = told.posted
    assert url == "https://acme.example/hook"
    assert json.loads(body) == {"jobs": [{"id": "x", "status": "done"}]}
    assert headers["x-inferlane-notice"] == "m0"
    assert headers["x-inferlane-signature"] == signature(b"secret of /acme", int(NOW), body)
    assert log.levels() == ["info"]


def test_the_topic_is_told_whose_jobs_they_are(log: FakeFunctionLog) -> None:
    """So that a subscription can choose."""
    told = Told()
    notify.respond(sqs_event(notice("topic")), notifier(told, log))
    (text,) = told.announced
    assert json.loads(text) == {"notice": "m0", "tenant": "acme", "jobs": [{"id": "x", "status": "done"}]}
    assert told.posted == []


@pytest.mark.parametrize("status", [301, 307, 400, 404, 410, 500])
def test_any_other_answer_means_once_more(log: FakeFunctionLog, status: int) -> None:
    """A redirect too; the line says which notice, and what was answered."""
    found = notify.respond(sqs_event(notice()), notifier(Told(status=status), log))
    assert found == {"batchItemFailures": [{"itemIdentifier": "m0"}]}
    assert log.levels() == ["warning", "info"]
    assert log.lines[0][2] == {"notice": "m0", "status": status}


def test_one_receiver_that_fails_fails_alone(log: FakeFunctionLog) -> None:
    """A message that cannot be read as well; a notice that nobody waits for any more is dropped."""
    told = Told(error=UnavailableError("nobody there"))
    event = sqs_event(notice(), "{}", notice(tenant="stranger"), notice("topic"))
    found = notify.respond(event, notifier(told, log))
    assert found == {"batchItemFailures": [{"itemIdentifier": name} for name in ("m0", "m1", "m3")]}
    assert notify.respond(sqs_event(notice("topic")), notifier(told, log, topic=False)) == {"batchItemFailures": []}


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "null",
        '{"to":"pigeon","tenant":"t","jobs":[]}',
        '{"to":"topic","tenant":1,"jobs":[]}',
        '{"to":"topic","tenant":"t","jobs":[{"id":"x"}]}',
        '{"to":"topic","tenant":"t","jobs":3}',
        "[" * 100_000,
    ],
)
def test_what_is_no_notice_is_none(text: str) -> None:
    """Malformed, or a channel that there is not."""
    assert read_notice(text) is None


def test_keys_of_a_job_are_told_by_id_only(log: FakeFunctionLog) -> None:
    """The log may say which job; whose it is it never says."""
    world = World()
    key = world.accept(7, tenant="the-tenant")
    world.jobs.claim([key], PROMOTED, None)
    (work,) = [one for one in world.work.works if one is not None]
    promote.respond(sqs_event(write(work)), CONTEXT, PromoteParts(world.promoter(), log))
    assert log.lines[0][2]["job"] == key.id
    assert log.lines[0][2]["model"] == MODEL
    assert "the-tenant" not in said(log)
    assert key == JobKey("the-tenant", key.id)

"""The batch lane under faults: whatever is killed, refused, lost, doubled or replaced, each job ends once, as asked.

Requests go on coming until every fault has been seen to strike; then the faults end, and the accounts are made up: the
tenant's list, the records, the audit's census, the functions' own counts, the dead letters, and all of it once more
after everything that SageMaker and SQS said has been said again.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.e2e.batch_strikes import (
    Kill,
    Sabotage,
    Strikes,
    drained,
    eventually,
    hide,
    jobs_of,
    owners,
    redriving,
    runs_of,
    send_again,
    snatch,
)
from tests.e2e.batches import MODEL, Asked, Batches, Caller, batches, bulky, good, image, poison
from tests.e2e.test_batch import as_asked, assert_silent
from workbench.stack.cloud import Cloud
from workbench.stack.deployment import Deployment
from workbench.stack.faults import Faults
from workbench.stack.layout import Layout

TIGHT_S = 64
"""Too soon for a run, which needs a start-up of 5 s and two ticks of 60: promoted as it is accepted."""
SOON_S = 135
"""Enough for a run; but out of one that has to wait for more than some seconds it is promoted."""
HIDDEN_S = 15
"""How long queues hide what was received: shorter than a turn may take, so that messages come again under its hands."""
QUOTA = "ml.c5.xlarge for transform job usage"
JOBS, RUNS = "inferlane-{stack}-jobs", "inferlane-{stack}-runs"
UPDATE = "dynamodb:UpdateItem"
MODERATE_KILLS = [
    Kill("collect", "s3:PutObject", 2, "after", "*/batch/*/in/*"),
    Kill("collect", UPDATE, 8, "before", JOBS),
    Kill("settle", UPDATE, 10, "before", JOBS),
    Kill("settle", UPDATE, 3, "after", JOBS),
]
PROMOTING = Kill("collect", "sqs:SendMessageBatch", 1, "after")
ALL_KILLS = [
    *MODERATE_KILLS,
    Kill("collect", "dynamodb:PutItem", 1, "after", RUNS),
    Kill("collect", UPDATE, 2, "after", RUNS),
    Kill("collect", "sqs:DeleteMessageBatch", 1, "before"),
    Kill("collect", "sqs:DeleteMessageBatch", 1, "after"),
    PROMOTING,
    Kill("settle", "dynamodb:PutItem", 1, "after", RUNS),
    Kill("settle", "s3:PutObject", 1, "after"),
    Kill("settle", UPDATE, 1, "before", RUNS),
    Kill("promote", UPDATE, 1, "before", JOBS),
    Kill("promote", UPDATE, 1, "after", JOBS),
]
MODERATE_SABOTAGES = [
    (Sabotage("limit", {"times": 1}), Sabotage("events", {"delay_s": 9})),
    (Sabotage("slow", {"start_s": 12}),),
    (Sabotage("algorithm"), Sabotage("events", {"duplicate": 100, "shuffle_s": 4})),
    (Sabotage("internal"), Sabotage("events", {"drop": 100})),
]
"""For one run each. The first wave has as many kinds of request as make four. The late event comes first: others are
there to overtake it."""
ALL_SABOTAGES = [
    *MODERATE_SABOTAGES,
    (Sabotage("capacity"), Sabotage("events", {"duplicate": 100, "delay_s": 12})),
    (Sabotage("stop"), Sabotage("throttle", {"percent": 50})),
    (Sabotage("client"), Sabotage("events", {"drop": 50, "duplicate": 50, "shuffle_s": 10})),
    (Sabotage("errors", {"percent": 50, "status": 500}),),
    (Sabotage("internal", {"after_files": 1}), Sabotage("limit", {"times": 3})),
]


@dataclass
class Stream:
    """What one tenant sent, and what it was promised."""

    asked: dict[str, Asked] = field(default_factory=dict)
    """By the id of the job that was accepted."""
    refused: int = 0
    """How often acceptance was put off (503): nothing was promised then."""

    async def send(self, caller: Caller, batch: Sequence[Asked]) -> None:
        """Send these, each until it is accepted."""
        ids = await asyncio.gather(*(self._insist(caller, one) for one in batch))
        made = dict(zip(ids, batch, strict=True))
        assert len(made) == len(batch), "two requests were promised the same job"
        assert not made.keys() & self.asked.keys()
        self.asked |= made

    async def _insist(self, caller: Caller, one: Asked) -> str:
        while True:
            status, headers, body = await caller.call(
                "POST",
                f"/v1/models/{MODEL}/invocations",
                one.body,
                {"Content-Type": one.content_type, "Prefer": "respond-async", **one.headers},
            )
            if status == 202:
                return str(json.loads(body)["id"])
            assert status == 503, (status, body)
            assert "Retry-After" in headers
            self.refused += 1
            await asyncio.sleep(0.5)


def wave(first: int, count: int, tag: str) -> list[Asked]:
    """Requests of every kind: two forms of answer, images, poison, large answers, tight deadlines, keys on most."""
    made: list[Asked] = []
    for n in range(first, first + count):
        if n % 10 == 9:
            one = poison(n // 10)
        elif n % 20 == 5:
            one = good(n, **{"X-Inferlane-Deadline-Ms": str((TIGHT_S if n % 40 == 5 else SOON_S) * 1000)})
        elif n % 20 == 7:
            one = bulky(n, 5_000)
        elif n % 3 == 0:
            one = image(n)
        else:
            one = good(n, **({"Accept": "application/json"} if n % 2 else {}))
        key = {} if n % 4 == 2 else {"Idempotency-Key": f"{tag}-{n}"}
        made.append(replace(one, headers={**one.headers, **key}))
    return made


@contextmanager
def throttled(lane: Batches, faults: Faults, times: int, *, door: bool) -> Iterator[Callable[[], dict[str, int]]]:
    """S3, DynamoDB and SQS refuse a quarter of calls, so many of each sort; yields how many they have refused.

    Those of the functions that move jobs; with `door` also those by which the router accepts them.
    """
    jobs, runs = JOBS.format(stack=lane.stack), RUNS.format(stack=lane.stack)
    refuse: Callable[..., Mapping[str, Any]] = partial(faults.on_service, kind="throttle", percent=25, times=times)
    # Told apart by what they touch, which costs the host nothing; the emulated SageMaker reads inputs, writes outputs.
    started = {
        "inputs": refuse("s3", resource="*/batch/*/in/*", operations=["PutObject"]),
        "indexes": refuse("s3", resource="*/batch/*/index/*"),
        "outputs": refuse("s3", resource="*/batch/*/out/*", operations=["GetObject"]),
        "results": refuse("s3", resource="*/batch/results/*", operations=["PutObject"], percent=100, times=4),
        "jobs": refuse("dynamodb", resource=jobs, operations=["UpdateItem"]),
        "bulk reads": refuse("dynamodb", operations=["BatchGetItem"]),
        "runs": refuse("dynamodb", resource=runs, operations=["GetItem", "PutItem", "UpdateItem", "Query"]),
        "messages": refuse("sqs", operations=["ReceiveMessage", "DeleteMessageBatch", "SendMessageBatch"]),
    }
    if door:
        started["door's jobs"] = refuse("dynamodb", resource=jobs, operations=["GetItem", "PutItem"])
        started["door's messages"] = refuse("sqs", resource=f"inferlane-{lane.stack}-work", operations=["SendMessage"])

    def met() -> dict[str, int]:
        now = {fault["id"]: fault["met"] for fault in faults.active()}
        return {name: now[fault["id"]] for name, fault in started.items()}

    try:
        yield met
    finally:
        faults.quota(QUOTA, None)
        for fault in started.values():
            faults.clear(fault["id"])


@pytest.fixture(scope="module")
def lane(
    cloud: Cloud, layout: Layout, client: Callable[[str], Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Batches]:
    """A stack with a batch lane whose runs start soon, and whose queues hide messages for seconds only."""
    with batches(
        "strikes",
        tmp_path_factory.mktemp("strikes"),
        cloud,
        layout,
        client,
        batch={"startup_s": 5, "max_jobs": 3, "max_wait_s": 4},
        more={"inferlane:batch": {"collect_timeout_s": 60}},
    ) as made:
        for queue in ("work", "promote"):
            hide(made, queue, HIDDEN_S)
        yield made


@pytest.mark.drill  # a minute and a half, with the machine to itself
@pytest.mark.timeout(600)
async def test_whatever_fails_each_job_ends_once_with_its_own_answer(lane: Batches, faults: Faults) -> None:
    """Kills, failed jobs, events lost and late, throttling, redelivery and a deploy: every job ends once, as asked."""
    strikes = Strikes(lane, faults, list(MODERATE_KILLS), list(MODERATE_SABOTAGES))
    await stricken(lane, faults, strikes, "m", least=240, times=12, door=False, limit_s=200)


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_a_thousand_jobs_under_every_fault(lane: Batches, faults: Faults) -> None:
    """1,000 requests under all kills and sabotages, hundreds of calls refused, acceptance too: the same holds."""
    strikes = Strikes(lane, faults, list(ALL_KILLS), list(ALL_SABOTAGES))
    await stricken(lane, faults, strikes, "d", least=1000, times=120, door=True, limit_s=330)


async def stricken(
    lane: Batches,
    faults: Faults,
    strikes: Strikes,
    tag: str,
    *,
    least: int,
    times: int,
    door: bool,
    limit_s: float,
) -> None:
    """Send at least so many requests, and go on until every fault has struck; then hold every job to its end."""
    began = time.time()
    before = jobs_of(lane).keys()
    stream = Stream()
    copies: list[str] = []
    count, waits = 0, list[str]()
    async with Caller(lane, "red", at_once=8) as red:
        with lane.collecting(2.0):
            with throttled(lane, faults, times, door=door) as refused, strikes.striking():
                deploy = asyncio.create_task(asyncio.to_thread(deploy_in_flight, lane, strikes, tag, 5 if door else 6))
                # As many as are wanted at once; then a few of each kind, for more runs to take the faults.
                while count < least or (waits := missing(strikes, refused(), copies, deploy)):
                    assert time.time() - began < limit_s, f"has not struck: {waits}"
                    if waits == [str(PROMOTING)]:
                        faults.quota(QUOTA, 0)  # no run starts any more: what is due soon is promoted out of them
                    size = 40 if count < least else 10
                    await stream.send(red, wave(count, size, tag))
                    count += size
                    copies += await asyncio.to_thread(redelivered, lane)
                    await asyncio.sleep(0.0 if count < least else 2.0)
                throttles = refused()
            await deploy  # a job's faults hold until it has ended: that its start met one is not all
            with redriving(lane) as dead:
                try:
                    ends = await red.ended(list(stream.asked), limit_s)
                except AssertionError as error:
                    raise AssertionError(f"{error}; they are with {owners(lane)}; dead letters: {dead}") from None
            jobs = dict(zip(stream.asked, ends, strict=True))
            await asyncio.to_thread(settled, lane)
        faults.clear()
        listed = [job["id"] for job in await red.jobs()]
        assert_as_asked(stream.asked, jobs)
        assert len(listed) == len(set(listed))
        assert set(listed) - before == set(stream.asked), "what is listed is not what was accepted"
        assert_events(lane, strikes, began)
        records = assert_final(lane, copies)
        assert {id_: job["status"] for id_, job in jobs.items()} == {
            id_: records[id_]["state"]["S"] for id_ in stream.asked
        }
        again = await asyncio.gather(*map(red.job, jobs))
        assert {job["id"]: job.get("result") for job in again} == {id_: job.get("result") for id_, job in jobs.items()}
    assert_counted(lane, records.keys() - before, records, began)
    assert_dead_letters(lane, dead, stream.refused)
    census = lane.invoke("audit")
    assert census == {"done": 0, "failed": 0, "expired": 0, "cancelled": 0, "open": 0} | Counter(
        record["state"]["S"] for record in records.values()
    )
    assert_silent(lane, began, range(count))
    print(
        count,
        "requests;",
        throttles,
        "refused;",
        len(dead),
        "dead letters;",
        stream.refused,
        "put off at the door;",
        strikes.struck,
    )


def missing(
    strikes: Strikes, refused: Mapping[str, int], copies: Sequence[str], deploy: asyncio.Task[Deployment]
) -> list[str]:
    """What is still to happen."""
    found = [*strikes.left, *(f"{name} refused" for name, times in refused.items() if not times)]
    found += [] if len(copies) >= 5 else ["redelivery"]
    found += [] if deploy.done() and deploy.result() else ["deploy"]
    return found


def deploy_in_flight(lane: Batches, strikes: Strikes, tag: str, days: int) -> Deployment:
    """Deploy another package and other settings while the job that was made slow has not ended."""
    sagemaker = lane.client("sagemaker")

    def in_flight() -> bool:
        return any(
            job["TransformJobStatus"] == "InProgress"
            for run in strikes.of("slow")
            for job in sagemaker.list_transform_jobs(NameContains=run)["TransformJobSummaries"]
        )

    eventually(in_flight, 200, "a transform job is in flight")
    begun = time.time()
    deployed = lane.redeploy(f"another-{tag}", {"inferlane:batch": {"collect_timeout_s": 60, "job_days": days}})
    assert deployed.changed, "the deploy changed nothing"
    for run in strikes.of("slow"):
        job = sagemaker.describe_transform_job(TransformJobName=run)
        assert job["CreationTime"].timestamp() < begun
    return deployed


def redelivered(lane: Batches) -> list[str]:
    """Let some messages be received and left, and sent twice; the copies."""
    try:
        bodies = snatch(lane, "work", 5, 3)[:2]
        send_again(lane, "work", bodies)
    except ClientError:  # the queue throttles us, too
        return []
    return bodies


def settled(lane: Batches) -> None:
    """Wait until no run is left that answers for anything."""

    def holds() -> bool:
        return all(run["state"]["S"] == "settled" or not run.get("parts", {}).get("L") for run in runs_of(lane))

    eventually(holds, 60, "every run with a part is settled")


def assert_as_asked(asked: Mapping[str, Asked], jobs: Mapping[str, dict[str, Any]]) -> None:
    """Every job ended as its request had to; only a tight deadline may have passed."""
    wrong = [
        (one.body[:60], jobs[id_])
        for id_, one in asked.items()
        if not as_asked(one, jobs[id_])
        and not (jobs[id_]["status"] == "expired" and "X-Inferlane-Deadline-Ms" in one.headers)
    ]
    assert not wrong, (len(wrong), wrong[:3])
    lanes = Counter(job.get("lane") for job in jobs.values())
    assert min(lanes["batch"], lanes["serverless"]) > 0, lanes


def assert_events(lane: Batches, strikes: Strikes, since: float) -> None:
    """The transform jobs and their events fared as they were to, so that the run proves something."""
    owed = {
        run: 2 if one.params.get("duplicate") == 100 else 1
        for run, all_ in strikes.runs.items()
        for one in all_
        if one.kind == "events" and "drop" not in one.params
    }

    def told() -> bool:
        heard = settlings(lane, since)
        return all(len(heard.get(run, [])) >= times for run, times in owed.items())

    eventually(told, 30, "every event that is late or comes twice is heard")
    heard = settlings(lane, since)
    sagemaker = lane.client("sagemaker")
    jobs = {
        run["name"]["S"]: sagemaker.describe_transform_job(TransformJobName=run["name"]["S"])
        for run in runs_of(lane)
        if run.get("started_at") and float(run["opened_at"]["N"]) >= since * 1000
    }
    ended = {run: job["TransformEndTime"].timestamp() for run, job in jobs.items()}
    for run, sabotage in ((run, one) for run, all_ in strikes.runs.items() for one in all_):
        times, params = heard.get(run, []), sabotage.params
        if sabotage.kind == "events" and params.get("drop") == 100:
            assert not times, f"an event that was lost was heard: {sabotage}"
        elif sabotage.kind == "events" and params.get("duplicate") == 100:
            assert len(times) >= 2, f"an event that came twice was heard {len(times)} times: {sabotage}"
        elif sabotage.kind == "events" and "delay_s" in params:
            assert min(times) >= ended[run] + params["delay_s"] - 1, f"an event was not late: {sabotage}"
        elif sabotage.kind in _REASONS:
            status, words = _REASONS[sabotage.kind]
            found = jobs[run]["TransformJobStatus"], jobs[run].get("FailureReason", "")
            assert (found[0], found[1][: len(words)]) == (status, words), str(sabotage)
    order = sorted((min(times), ended[run]) for run, times in heard.items() if times and run in ended)
    overtaken = sum(later[1] < one[1] for one, later in pairwise(order))
    assert overtaken, "all events came in the order of the jobs' ends"
    assert len({job["ModelName"] for job in jobs.values()}) > 1, "the deploy replaced no model that jobs ran"


def settlings(lane: Batches, since: float) -> dict[str, list[float]]:
    """When the function `settle` was told of each run."""
    heard: defaultdict[str, list[float]] = defaultdict(list)
    for at, line in logged(lane, "settle", since):
        if line["message"] in ("settle", "settle put off"):
            heard[line["run"]].append(at)
    return dict(heard)


_REASONS: Mapping[str, tuple[str, str]] = {
    "algorithm": ("Failed", "AlgorithmError"),
    "client": ("Failed", "ClientError"),
    "internal": ("Failed", "InternalServerError"),
    "capacity": ("Failed", ""),
    "stop": ("Stopped", ""),
}


def assert_final(lane: Batches, copies: Sequence[str]) -> dict[str, dict[str, Any]]:
    """All that SageMaker and SQS said is said again, in another order: no record and no result changes. The records."""
    records, results = jobs_of(lane), results_of(lane)
    assert not [record for record in records.values() if record["state"]["S"] == "accepted"]
    runs = [run["name"]["S"] for run in runs_of(lane)]
    lane.invoke("settle", [{"detail": {"TransformJobName": run}} for run in reversed(runs)])
    send_again(lane, "promote", copies)
    send_again(lane, "work", copies)
    for _ in range(3):
        lane.invoke("collect")
    assert jobs_of(lane) == records, "a job that had ended has changed"
    assert results_of(lane) == results, "a result has changed, or another has come"
    given = [record["result"]["M"] for record in records.values() if "result" in record]
    named = {result["object"]["S"] for result in given if "object" in result}
    assert named, "no answer was large: the check proves nothing"
    assert named <= results.keys(), "a record names a result that is not there"
    return records


def results_of(lane: Batches) -> dict[str, tuple[str, Any]]:
    """Every result object with its digest and time."""
    s3 = lane.client("s3")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=data_bucket(lane), Prefix="batch/results/")
    return {each["Key"]: (each["ETag"], each["LastModified"]) for page in pages for each in page.get("Contents", [])}


def data_bucket(lane: Batches) -> str:
    """The stack's data bucket."""
    function = lane.client("lambda").get_function_configuration(FunctionName=f"inferlane-{lane.stack}-collect")
    return str(function["Environment"]["Variables"]["INFERLANE_DATA_BUCKET"])


def assert_counted(lane: Batches, ids: Iterable[str], records: Mapping[str, Mapping[str, Any]], since: float) -> None:
    """No end was counted twice, no run lacks a record, no function failed in a way that nobody foresaw."""
    counts: Counter[str] = Counter()
    for function in ("collect", "settle", "promote", "audit"):
        for _, line in logged(lane, function, since):
            assert line["level"] != "ERROR", line
            if line["message"] == "counts":
                counts.update({name: value for name, value in line.items() if isinstance(value, int | float)})
    ends = Counter(records[id_]["state"]["S"] for id_ in ids)
    for state in ("done", "failed", "expired"):
        assert counts[f"Jobs{state.title()}"] <= ends[state], (state, counts, ends)
    assert counts["RunUnaccounted"] == 0, counts
    assert counts["StepsPutOff"] > 0, "nothing that was refused was put off"
    assert counts["MessagesDropped"] > 0, "no message came twice"
    assert counts["JobsRetried"] > 0, counts


def logged(lane: Batches, function: str, since: float) -> Iterator[tuple[float, dict[str, Any]]]:
    """The lines that a function has written, with the time of each."""
    pages = (
        lane.client("logs")
        .get_paginator("filter_log_events")
        .paginate(logGroupName=f"/aws/lambda/inferlane-{lane.stack}-{function}", startTime=int(since * 1000))
    )
    for page in pages:
        for event in page["events"]:
            if event["message"].startswith("{"):
                yield event["timestamp"] / 1000, json.loads(event["message"])


def assert_dead_letters(lane: Batches, dead: Sequence[tuple[str, Mapping[str, Any] | None]], refused: int) -> None:
    """A dead message was put back, is of a job that has ended, or of one that nobody was promised.

    Messages are hidden for seconds here, so that ten receives in vain are soon through: with as many kills some jobs
    come to that, and end all the same; copies of messages, and the messages of jobs that were refused at the door, come
    to it at any time. A dead event is of a run that was settled.
    """
    records = jobs_of(lane)
    left = [
        (queue, records.get(json.loads(body)["id"]))
        for queue in ("work", "promote")
        for body in drained(lane, f"{queue}-dead")
    ]
    assert [record for _, record in left if record and record["state"]["S"] == "accepted"] == []
    never = [queue for queue, record in (*dead, *left) if record is None]
    assert len(never) <= refused, f"{len(never)} dead letters of jobs without a record, {refused} refused at the door"
    assert "promote" not in never
    states = {run["name"]["S"]: run["state"]["S"] for run in runs_of(lane)}
    for body in drained(lane, "settle-dead"):
        run = json.loads(body)["requestPayload"]["detail"]["TransformJobName"]
        assert states[run] == "settled", run

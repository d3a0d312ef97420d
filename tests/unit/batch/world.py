"""The batch lane whole, over fakes: what callers ask, what the functions do, and what must hold whenever one looks."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random

from functions.audit import Auditor
from functions.aws.work_messages import payload_key
from functions.batch_ports import BatchError, BatchPorts
from functions.collect import Collector
from functions.core.conservation import census
from functions.core.deferral import urgent
from functions.core.job import PROMOTED, Dataset, End, Job, JobKey, JobState, Work, fingerprint
from functions.core.outcome import Kind, Outcome
from functions.core.run import RunState
from functions.core.topology import Topology
from functions.promote import Promoter
from functions.settle import Settler
from tests.unit.batch.fakes import (
    FakeAcceptances,
    FakeCounts,
    FakeJobs,
    FakeNotices,
    FakeObjects,
    FakeQueue,
    FakeRuns,
    FakeTransforms,
    polite,
)
from tests.unit.batch.weather import Killed, Weather
from tests.unit.core.builders import BATCH, DEDICATED, MODEL, NOW, SERVERLESS, topology
from tests.unit.handlers.fakes import FakeClock, FakeInvoker, FakeLog, Invocation

STACK = "test"
LANES = ("serverless", "dedicated")
LANE: Mapping[str, object] = {
    **BATCH,
    "model_name": "moderation-1",
    "startup_s": 60,
    "max_wait_s": 300,
    "record_s": 1,
    "max_concurrent": 2,
}


def batch_topology(**changes: object) -> Topology:
    """Both lanes that answer at once, and a batch lane."""
    return topology(dedicated=DEDICATED, serverless=SERVERLESS, batch={**LANE, **changes})


def json_body(number: int, kind: str = "ok", *, wide: bool = False) -> bytes:
    """A JSON request like no other; `wide`: written over several lines."""
    return json.dumps({"n": number, "kind": kind}, indent=2 if wide else None).encode()


def image_body(number: int, kind: str = "ok") -> bytes:
    """Bytes that are no JSON, and no text either."""
    return b"\x89PNG\r\n\xff%d %s" % (number, kind.encode())


def mark(body: bytes) -> str:
    """What tells a request by its answer."""
    return hashlib.sha256(body.replace(b"\n", b" ").replace(b"\r", b" ")).hexdigest()


def model_answer(body: bytes) -> bytes | None:
    """The container's: `polite` is refused by itself, `bomb` takes the process down, `large` is answered at length."""
    if b"bomb" in body:
        return None
    if b"polite" in body:
        return polite(422, f"refused {mark(body)}")
    found = {"of": mark(body), "pad": "x" * (5000 if b"large" in body else 0)}
    return json.dumps(found).encode()


@dataclass(frozen=True)
class Asked:
    """What a caller was promised to get an answer to."""

    body: bytes
    lanes: tuple[str, ...]
    due_at: float


class World:
    """Everything there is, at one moment."""

    def __init__(self, on: Topology | None = None, seed: int = 0) -> None:
        self.clock = FakeClock(NOW)
        self.weather = Weather(seed)
        self.topology = on or batch_topology()
        self.jobs = FakeJobs(self.weather)
        self.runs = FakeRuns(self.weather)
        self.objects = FakeObjects(self.weather)
        self.work = FakeQueue(self.weather, self.clock, seed)
        self.promotions = FakeQueue(self.weather, self.clock, seed)
        self.transforms = FakeTransforms(self.weather, self.clock, self.objects, model_answer)
        self.notices = FakeNotices()
        self.counts = FakeCounts()
        self.log = FakeLog()
        self.acceptances = FakeAcceptances()
        self.lanes_up = True
        self.lane_takes_s = 0.2
        self.invoker = FakeInvoker(self.clock, dict.fromkeys(LANES, self._lane))
        self.ports = BatchPorts(
            self.jobs,
            self.runs,
            self.objects,
            self.work,
            self.promotions,
            self.transforms,
            self.notices,
            self.counts,
            self.clock,
            self.log,
        )
        self.asked: dict[JobKey, Asked] = {}
        self.ended: dict[JobKey, Job] = {}
        self._ids = 0
        self._random = Random(seed)

    def _lane(self, invocation: Invocation) -> tuple[Outcome, float]:
        if not self.lanes_up:
            return Outcome(Kind.UNREACHABLE), 0.1
        answer = model_answer(invocation.body)
        if answer is None:
            return Outcome(Kind.MODEL_ERROR, 500), self.lane_takes_s
        if b"inferlane_error" in answer:
            words = json.dumps({"error": f"refused {mark(invocation.body)}"}).encode()
            return Outcome(Kind.CALLER_ERROR, 422, words, "application/json"), self.lane_takes_s
        return Outcome(Kind.OK, 200, answer, "application/json"), self.lane_takes_s

    def new_id(self) -> str:
        """16 hex digits."""
        self._ids += 1
        return f"{self._ids:016x}"

    @contextmanager
    def calm(self) -> Iterator[None]:
        """What callers and tests do themselves never fails."""
        trouble, self.weather.trouble = self.weather.trouble, 0.0
        yield
        self.weather.trouble = trouble

    # What callers do

    def accept(
        self,
        number: int,
        within_s: float = 3600.0,
        *,
        body: bytes | None = None,
        content_type: str | None = "application/json",
        lanes: tuple[str, ...] = LANES,
        apart: bool = False,
        recorded: bool = True,
        dataset: Dataset | None = None,
        tenant: str | None = None,
        guarded: bool = False,
    ) -> JobKey:
        """Message first, record second, as acceptance does it. `apart`: the body is an object of its own.

        `guarded`: what is urgent is promoted at once; else it is left to the collector, as what was sent before a
        deploy that changed the lanes.
        """
        key = JobKey(tenant or f"t{number % 3}", f"{number:032x}")
        body = json_body(number) if body is None and dataset is None else body
        now = self.clock.now()
        message = Work(key, MODEL, content_type, None, now, now + within_s, lanes, body=body, dataset=dataset)
        if apart and body is not None:
            message = replace(message, body=None, object=payload_key(message, body))
            self.objects.put(message.object or "", body)
        at_once = guarded and urgent(message.due_at, self.topology.batch_lane(MODEL), lanes, now)
        (self.promotions if at_once else self.work).send((message,))
        if recorded:
            asked = fingerprint(MODEL, content_type, None, body or b"")
            run = PROMOTED if at_once else None
            job = Job(key, MODEL, asked, now, now + within_s, run, dataset=dataset)
            if self.jobs.add(job) is None:
                self.asked[key] = Asked(body or b"", lanes, now + within_s)
        return key

    def cancel(self, key: JobKey) -> bool:
        """As the jobs API does while a job is queued."""
        job = self.jobs.rows[key]
        run = self.runs.rows.get(job.run) if job.run is not None else None
        if job.run is not None and (run is None or run.state is not RunState.GATHERING):
            return False
        return bool(self.jobs.end({key: End(JobState.CANCELLED, self.clock.now())}, job.run))

    # What the functions do; each call is a process of its own

    def settler(self) -> Settler:
        return Settler(self.ports, self.topology, new_id=self.new_id)

    def collector(self) -> Collector:
        return Collector(self.ports, self.topology, self.settler(), stack=STACK, new_id=self.new_id)

    def promoter(self) -> Promoter:
        return Promoter(self.ports, self.topology, self.invoker, new_id=self.new_id)

    def collect(self, time_left_s: float = 300.0) -> bool:
        return self._process(lambda: self.collector().run(lambda: time_left_s))

    def settle(self, name: str, time_left_s: float = 900.0) -> bool:
        return self._process(lambda: self.settler().settle(name, lambda: time_left_s))

    def promote(self, most: int = 10) -> bool:
        """One batch of promotion's queue, through one promoter."""

        def work() -> None:
            promoter = self.promoter()
            for received, count in self.promotions.receive_counted(most):
                assert received.work is not None
                try:
                    handled = promoter.promote(received.work, count, 100.0)
                except BatchError:
                    handled = False
                if handled:
                    self.promotions.delete((received.receipt,))
                else:
                    promoter.put_off(received.work, received.receipt, count)

        return self._process(work)

    def audit(self) -> bool:
        return self._process(lambda: Auditor(self.ports, self.acceptances).audit())

    def _process(self, work: Callable[[], object]) -> bool:
        """Whether it came to its end."""
        try:
            work()
        except Killed:
            return False
        except BatchError:
            return False
        return True

    def wait(self, seconds: float) -> None:
        """Time goes on, and with it transform jobs."""
        self.clock.advance(seconds)
        self.transforms.pass_time()

    def minute(self) -> None:
        """What happens in a fair minute."""
        self.wait(60.0)
        for name in tuple(self.transforms.events):
            self.settle(name)
        self.transforms.events.clear()
        self.collect()
        self.promote(most=100)

    # What must hold

    def check(self) -> None:
        """At every moment: nothing lost, nothing twice, no answer crossed, nothing changed after its end."""
        found = census(_by_state(self.jobs.rows.values()))
        assert found.total == len(self.jobs.rows) == len(self.asked)
        for key, job in self.jobs.rows.items():
            before = self.ended.get(key)
            assert before is None or job == before, "an end is final"
            if job.end is None:
                assert self._is_owed(job), "somebody is going to end every open job"
            elif before is None:
                self.ended[key] = job
                self._check_end(key, job, job.end)

    def _is_owed(self, job: Job) -> bool:
        """Whether a message, or a run that is not settled, still stands for an open job."""
        if job.run is None or job.run == PROMOTED:
            queue = self.work if job.run is None else self.promotions
            return any(work is not None and work.key == job.key for work in (*queue.works, *queue.dead))
        run = self.runs.rows.get(job.run)
        return run is not None and run.state is not RunState.SETTLED

    def _check_end(self, key: JobKey, job: Job, end: End) -> None:
        asked = self.asked[key]
        if end.state is JobState.EXPIRED:
            assert end.at >= job.due_at
        if end.state is JobState.CANCELLED:
            assert end.result is None
        if end.state is JobState.FAILED:
            assert end.error is not None
            assert end.result is None
            own = end.error.detail == f"refused {mark(asked.body)}" and b"polite" in asked.body
            broken = b"bomb" in asked.body and end.error.detail.startswith("The model ")
            hit = job.run in self.transforms.failing
            assert own or broken or hit, "a job fails for its own reasons, or because nothing could be run twice"
        if end.state is JobState.DONE and job.dataset is None:
            assert end.result is not None
            if end.result.object is not None:
                self.objects.frozen.add(end.result.object)
            body = end.result.body if end.result.object is None else self.objects.rows[end.result.object]
            assert body is not None
            assert len(body) == end.result.size
            assert json.loads(body)["of"] == mark(asked.body), "everybody gets his own answer"
            if job.run == PROMOTED:
                assert end.lane in asked.lanes
                assert end.at <= job.due_at
            else:
                assert end.lane == "batch"

    def settle_down(self, hours: float = 8.0, tick_s: float = 300.0) -> None:
        """Fair weather, and time: then every job has ended."""
        self.weather.clear()
        self.runs.leases = True
        self.transforms.quota, self.transforms.fail_next, self.transforms.lose_next = 100, 0, 0
        self.work.unruly = self.promotions.unruly = False
        self.lanes_up = True
        turns = int(hours * 3600 / tick_s)
        for turn in range(turns):
            self.wait(tick_s)
            self.transforms.events.clear()  # all of them lost: the collector looks
            assert self.collect()
            assert self.promote(most=100)
            if turn % 12 == 11:
                assert self.audit()
            self.check()
            if not self.open():
                break
        assert not self.open(), "every accepted job ends"
        told = [key for key, _ in self.notices.ended]
        assert len(told) == len(set(told)), "nobody is told twice"

    def open(self) -> list[Job]:
        """Jobs that have not ended."""
        return [job for job in self.jobs.rows.values() if job.state is JobState.ACCEPTED]


def _by_state(jobs: Iterable[Job]) -> Counter[JobState]:
    return Counter(job.state for job in jobs)

"""Fakes of the batch lane's ports, in memory: they keep the ports' promises, and have the services' bad habits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from functions.batch_ports import BusyError, Page, Received, Sighting, TransformSpec, TransformStatus
from functions.core.job import End, Job, JobKey, JobState, Work
from functions.core.run import Part, Run, RunState, Tally
from functions.core.shards import ERROR, JSON_LINES
from functions.ports import Clock
from tests.unit.batch.weather import Weather

BUCKET = "data"
VISIBILITY_S = 120.0
MOST_RECEIVES = 16


class FakeJobs:
    """The jobs' table."""

    def __init__(self, weather: Weather) -> None:
        self._weather = weather
        self.rows: dict[JobKey, Job] = {}

    def add(self, job: Job) -> Job | None:
        with self._weather.step():
            found = self.rows.get(job.key)
            if found is None:
                self.rows[job.key] = job
        return found

    def find(self, keys: Sequence[JobKey]) -> Mapping[JobKey, Job]:
        assert len(set(keys)) == len(keys), "DynamoDB refuses a key that is asked for twice"
        with self._weather.step():
            return {key: self.rows[key] for key in keys if key in self.rows}

    def claim(self, keys: Sequence[JobKey], run: str, held_by: str | None) -> set[JobKey]:
        taken = set()
        for key in keys:
            with self._weather.step():
                job = self.rows.get(key)
                if job is not None and job.state is JobState.ACCEPTED and job.run in (held_by, run):
                    self.rows[key] = replace(job, run=run)
                    taken.add(key)
        return taken

    def end(self, ends: Mapping[JobKey, End], held_by: str | None) -> set[JobKey]:
        ended = set()
        for key, end in ends.items():
            with self._weather.step():
                job = self.rows.get(key)
                if job is not None and job.state is JobState.ACCEPTED and job.run == held_by:
                    self.rows[key] = replace(job, end=end)
                    ended.add(key)
        return ended

    def page(self, tenant: str, limit: int, after: tuple[int, str] | None = None) -> Page:
        def place(job: Job) -> tuple[int, str]:
            return round(job.accepted_at * 1000), job.key.id

        with self._weather.step():
            own = sorted((job for job in self.rows.values() if job.key.tenant == tenant), key=place, reverse=True)
        rest = [job for job in own if after is None or place(job) < after]
        return Page(tuple(rest[:limit]), place(rest[limit - 1]) if len(rest) > limit else None)

    def sightings(self) -> Iterator[Sighting]:
        with self._weather.step():
            rows = tuple(self.rows.values())
        return iter([Sighting(job.key, job.state, job.accepted_at, job.due_at, job.run) for job in rows])


class FakeRuns:
    """The runs' table."""

    def __init__(self, weather: Weather) -> None:
        self._weather = weather
        self.rows: dict[str, Run] = {}
        self.held: tuple[str, float] | None = None
        self.leases = True
        """False: everybody gets the lease, as when a collector outlives its own."""

    def add(self, run: Run) -> bool:
        with self._weather.step():
            if run.name in self.rows:
                return False
            self.rows[run.name] = run
            return True

    def find(self, name: str) -> Run | None:
        with self._weather.step():
            return self.rows.get(name)

    def open(self) -> tuple[Run, ...]:
        with self._weather.step():
            return tuple(run for _, run in sorted(self.rows.items()) if run.state is not RunState.SETTLED)

    def add_part(self, name: str, part: Part) -> bool:
        with self._weather.step():
            run = self.rows.get(name)
            if run is None or run.state is not RunState.GATHERING:
                return False
            if part.name not in {known.name for known in run.parts}:
                self.rows[name] = replace(run, parts=(*run.parts, part))
            return True

    def move(self, name: str, before: RunState, after: RunState, *, at: float, tally: Tally | None = None) -> bool:
        with self._weather.step():
            run = self.rows.get(name)
            if run is None or run.state is not before:
                return False
            moved = replace(run, state=after, tally=tally or run.tally)
            if after is RunState.RUNNING:
                moved = replace(moved, started_at=at)
            if after is RunState.SETTLED:
                moved = replace(moved, settled_at=at)
            self.rows[name] = moved
            return True

    def lease(self, owner: str, now: float, until: float) -> bool:
        with self._weather.step():
            if self.leases and self.held is not None and self.held[0] != owner and self.held[1] > now:
                return False
            self.held = (owner, until)
            return True

    def release(self, owner: str) -> None:
        with self._weather.step():
            if self.held is not None and self.held[0] == owner:
                self.held = None


class FakeObjects:
    """The data bucket."""

    def __init__(self, weather: Weather) -> None:
        self._weather = weather
        self.rows: dict[str, bytes] = {}
        self.types: dict[str, str | None] = {}
        self.frozen: set[str] = set()
        """Keys of answers that were given: they stay as they are."""

    def put(self, key: str, body: bytes, content_type: str | None = None) -> None:
        with self._weather.step():
            assert key not in self.frozen or body == self.rows[key], f"{key} is another now"
            self.rows[key] = body
            self.types[key] = content_type

    def put_all(self, objects: Mapping[str, bytes], content_type: str | None = None) -> None:
        for key, body in objects.items():
            self.put(key, body, content_type)

    def get(self, key: str) -> bytes | None:
        with self._weather.step():
            return self.rows.get(key)

    def get_all(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        with self._weather.step():
            return {key: self.rows[key] for key in keys if key in self.rows}

    def sizes(self, prefix: str) -> Mapping[str, int]:
        with self._weather.step():
            return {key: len(body) for key, body in sorted(self.rows.items()) if key.startswith(prefix)}

    def link(self, key: str, expires_s: int) -> str:
        return f"https://{BUCKET}.test/{key}?expires={expires_s}"

    def uri(self, key: str) -> str:
        return f"s3://{BUCKET}/{key}"


@dataclass
class _Message:
    work: Work | None
    sent_at: float
    visible_at: float
    receives: int = 0
    gone: bool = False


class FakeQueue:
    """SQS: in any order, at least once, and into the dead letters after so many receives."""

    def __init__(self, weather: Weather, clock: Clock, seed: int = 0) -> None:
        self._weather = weather
        self._clock = clock
        self._random = Random(seed)
        self._messages: list[_Message] = []
        self.dead: list[Work | None] = []
        self.batch = 10
        """What one receive brings at most."""
        self.unruly = False
        """Whether it delivers out of order, and some twice."""

    @property
    def works(self) -> list[Work | None]:
        """What is in it."""
        return [message.work for message in self._messages if not message.gone]

    def send(self, work: Sequence[Work]) -> None:
        for one in work:
            with self._weather.step():
                self._messages.append(_Message(one, self._clock.now(), self._clock.now()))

    def garble(self) -> None:
        """A message that nobody can read."""
        self._messages.append(_Message(None, self._clock.now(), self._clock.now()))

    def receive(self, most: int) -> Sequence[Received]:
        with self._weather.step():
            return [one for one, _ in self.receive_counted(min(most, self.batch))]

    def receive_counted(self, most: int) -> list[tuple[Received, int]]:
        """With how often each was received."""
        now = self._clock.now()
        self._messages = [message for message in self._messages if not message.gone]
        seen = [number for number, message in enumerate(self._messages) if message.visible_at <= now]
        if self.unruly:
            self._random.shuffle(seen)
        found = []
        for number in seen[:most]:
            message = self._messages[number]
            message.receives += 1
            if message.receives > MOST_RECEIVES:
                message.gone = True
                self.dead.append(message.work)
                continue
            if not (self.unruly and self._random.random() < 0.2):
                message.visible_at = now + VISIBILITY_S
            found.append((Received(message.work, str(id(message)), message.sent_at), message.receives))
        return found

    def delete(self, receipts: Sequence[str]) -> None:
        for receipt in receipts:
            with self._weather.step():
                for message in self._messages:
                    if str(id(message)) == receipt:
                        message.gone = True

    def hide(self, receipt: str, seconds: int) -> None:
        with self._weather.step():
            for message in self._messages:
                if str(id(message)) == receipt:
                    message.visible_at = self._clock.now() + seconds


Answering = Callable[[bytes], bytes | None]
"""A container: its answer to one record's bytes; None: it breaks, and with it whatever was sent along."""


@dataclass
class _Transform:
    spec: TransformSpec
    began: float
    ends: float
    status: TransformStatus | None = None


class FakeTransforms:
    """SageMaker: jobs run on the clock, and write their output when they end."""

    def __init__(self, weather: Weather, clock: Clock, objects: FakeObjects, answering: Answering) -> None:
        self._weather = weather
        self._clock = clock
        self._objects = objects
        self._answering = answering
        self.jobs: dict[str, _Transform] = {}
        self.quota = 100
        self.takes_s = 120.0
        self.failing: set[str] = set()
        """Jobs that fail as a whole, without any output."""
        self.fail_next = 0
        self.lose_next = 0
        """Jobs one of whose files will have an output of too few lines."""
        self.lossy: set[str] = set()
        self.events: list[str] = []
        """Names of jobs whose end nobody has been told of."""

    def create(self, spec: TransformSpec) -> None:
        with self._weather.step():
            if spec.name in self.jobs:
                return
            if sum(job.status is None for job in self.jobs.values()) >= self.quota:
                raise BusyError("the account's quota of transform jobs is reached")
            now = self._clock.now()
            self.jobs[spec.name] = _Transform(spec, now, now + self.takes_s)
            if self.fail_next:
                self.fail_next -= 1
                self.failing.add(spec.name)
            elif self.lose_next:
                self.lose_next -= 1
                self.lossy.add(spec.name)

    def describe(self, name: str) -> TransformStatus | None:
        with self._weather.step():
            job = self.jobs.get(name)
            if job is None:
                return None
            return job.status or TransformStatus("InProgress", began=job.began)

    def pass_time(self) -> None:
        """End the jobs whose time has come."""
        for name, job in self.jobs.items():
            if job.status is None and job.ends <= self._clock.now():
                self._end(name, job)
                self.events.append(name)

    def _end(self, name: str, job: _Transform) -> None:
        if name in self.failing:
            job.status = TransformStatus("Failed", "InternalServerError: We encountered an error", job.began, job.ends)
            return
        prefix = job.spec.input.removeprefix(f"s3://{BUCKET}/")
        target = job.spec.output.removeprefix(f"s3://{BUCKET}/")
        broken = 0
        for key, body in tuple(self._objects.rows.items()):
            if not key.startswith(prefix):
                continue
            answer = self._answer(job.spec, body)
            if answer is None:
                broken += 1
                continue
            if name in self.lossy and answer:
                self.lossy.discard(name)
                self.failing.add(name)
                answer = answer[: answer.rstrip(b"\n").rfind(b"\n") + 1] if job.spec.lines else None
            if answer is not None:
                self._objects.rows[f"{target}/{key.removeprefix(prefix)}.out"] = answer
        reason = "ClientError: See job logs for more information" if broken else None
        job.status = TransformStatus("Failed" if broken else "Completed", reason, job.began, job.ends)

    def _answer(self, spec: TransformSpec, body: bytes) -> bytes | None:
        if not spec.lines:
            return self._answering(body)
        assert spec.content_type == JSON_LINES
        found = [self._answering(line) for line in body.splitlines()]
        return None if None in found else b"".join(answer + b"\n" for answer in found if answer is not None)


@dataclass
class FakeNotices:
    """Keeps what it was told."""

    ended: list[tuple[JobKey, JobState]] = field(default_factory=list)

    def send(self, ended: Mapping[JobKey, JobState]) -> None:
        self.ended += ended.items()


@dataclass
class FakeCounts:
    """Sums by metric, and by model and metric."""

    sums: Counter[str] = field(default_factory=Counter)
    by_model: Counter[tuple[str | None, str]] = field(default_factory=Counter)

    def count(self, model: str | None, counts: Mapping[str, float]) -> None:
        for name, value in counts.items():
            self.sums[str(name)] += value  # type: ignore[assignment]
            self.by_model[model, str(name)] += value  # type: ignore[assignment]


@dataclass
class FakeAcceptances:
    """The front door's count, and what was asked of it."""

    value: float | None = None
    asked: list[tuple[float, float]] = field(default_factory=list)

    def accepted(self, begin: float, end: float) -> float | None:
        self.asked.append((begin, end))
        return self.value


def polite(status: int, detail: str) -> bytes:
    """How our containers refuse one record of many."""
    return b'{"%s":{"status":%d,"detail":"%s"}}' % (ERROR.encode(), status, detail.encode())

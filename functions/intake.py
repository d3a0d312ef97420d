"""Drains the queue: of every message's job it finds out what is to become, and sees to it.

Heap after heap, as long as time is left and no service is in trouble: of the messages that were there when the turn
began. What comes meanwhile is the next turn's, or a steady trickle would never let this one end. What has ended, or is
another's already, is dropped; what is due has expired; what would come too late in batch is promoted; the rest goes
into runs, with others of its kind. A message is deleted once somebody else answers for its job, never before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from functions.batch_ports import BatchPorts, Count, Received
from functions.core.batch_plan import in_time, takes_more
from functions.core.job import UNKNOWN_S, Dataset, Job, JobError, JobKey, JobState, Work, keyed_id
from functions.core.run import Group, Run, RunState
from functions.core.shards import Record, as_line, group_of, heaps
from functions.core.topology import BatchLane, Topology
from functions.endings import Ending, Endings
from functions.gather import Gatherer
from functions.rescue import Rescuer
from functions.steps import Steps

RESERVE_S: Final = 45.0
"""No new heap is begun with less: one takes seconds, unless S3 or DynamoDB slow down."""
DRAIN_S: Final = 30.0
"""Then the runs are looked at, whose deadlines near; it leaves a heap, too, time within a tick."""
_HEAP: Final = 500
_HEAP_BYTES: Final = 16_000_000
_TOO_LARGE: Final = JobError(413, "The body is larger than the batch lane takes.")
_GONE: Final = JobError(500, "The stored request is gone.")


@dataclass(slots=True)
class _Heap:
    """What is to become of some messages' jobs, by model and by group."""

    ends: defaultdict[str, list[Ending]] = field(default_factory=lambda: defaultdict(list))
    late: defaultdict[str, list[Work]] = field(default_factory=lambda: defaultdict(list))
    data_sets: list[tuple[Work, Dataset]] = field(default_factory=list)
    groups: defaultdict[Group, list[Record]] = field(default_factory=lambda: defaultdict(list))


class Intake:
    """One collector's; its turns share nothing but the records."""

    def __init__(self, ports: BatchPorts, topology: Topology, *, stack: str, new_id: Callable[[], str]) -> None:
        """`new_id` gives 16 hex digits that nobody had before."""
        self._ports = ports
        self._topology = topology
        self._stack = stack
        self._new_id = new_id
        self._endings = Endings(ports)
        self._gatherer = Gatherer(ports, new_id)
        self._rescuer = Rescuer(ports, topology)

    def drain(self, steps: Steps, time_left_s: Callable[[], float], since: float) -> tuple[bool, bool]:
        """Take heaps of what was sent before `since`; whether there were any, and whether to go on after a break."""
        found, before, began = False, steps.troubles, self._ports.clock.now()
        gathering: dict[Group, Run] = {}
        with steps.put_off("runs"):
            for run in self._ports.runs.open():
                if run.state is RunState.GATHERING and run.attempt == 1 and run.group.form != "dataset":
                    gathering[run.group] = run
        more = True
        while more and steps.troubles == before and time_left_s() >= RESERVE_S:
            if self._ports.clock.now() - began >= DRAIN_S:
                return found, True
            heap, more = self._receive(steps, since)
            if heap:
                found = True
                with steps.put_off("heap"):
                    self._take(steps, heap, gathering)
        return found, False

    def _receive(self, steps: Steps, since: float) -> tuple[list[Received], bool]:
        """Messages for one heap: as many as it takes, or as there are; and whether there may be more."""
        heap: list[Received] = []
        size = 0
        while len(heap) < _HEAP and size < _HEAP_BYTES:
            received: Sequence[Received] = ()
            with steps.put_off("receive"):
                received = self._ports.work.receive(_HEAP - len(heap))
            heap += received
            size += sum(len(one.work.body or b"") for one in received if one.work is not None)
            if all(one.sent_at > since for one in received):
                return heap, False
        return heap, True

    def _take(self, steps: Steps, received: Sequence[Received], gathering: dict[Group, Run]) -> None:
        """Find out what is to become of these messages' jobs, and see to it."""
        receipts: defaultdict[JobKey, list[str]] = defaultdict(list)
        works: defaultdict[JobKey, list[Work]] = defaultdict(list)
        sent: dict[JobKey, float] = {}
        unreadable = 0
        for one in received:
            if one.work is None:
                unreadable += 1
                continue
            works[one.work.key].append(one.work)
            receipts[one.work.key].append(one.receipt)
            sent[one.work.key] = max(one.sent_at, sent.get(one.work.key, one.sent_at))
        if unreadable:  # left to the queue's own dead letters, where a person can look at them
            self._ports.telemetry.count(None, {Count.MESSAGES_UNREADABLE: unreadable})
        jobs = self._ports.jobs.find(tuple(works))
        meant = {key: work for key, job in jobs.items() if (work := _meant(works[key], job)) is not None}
        dropped = [
            key
            for key in works
            if self._settled_elsewhere(jobs.get(key), sent[key]) or (key in jobs and key not in meant)
        ]
        self._delete(dropped, receipts)
        if dropped:
            self._ports.telemetry.count(None, {Count.MESSAGES_DROPPED: len(dropped)})
        free = [work for key, work in meant.items() if _free(jobs[key])]
        for heap in heaps(self._with_bodies(steps, free), lambda item: len(item[1] or b""), _HEAP, _HEAP_BYTES):
            self._share_out(steps, heap, receipts, gathering)

    def _settled_elsewhere(self, job: Job | None, sent_at: float) -> bool:
        """Whether a message has nothing more to say: its job has ended, is another's, or was never accepted.

        A job that a run or promotion answers for is in that run's input, or in promotion's queue: both are written
        before the record says so.
        """
        if job is None:
            return self._ports.clock.now() - sent_at >= UNKNOWN_S
        return not _free(job)

    def _delete(self, keys: Iterable[JobKey], receipts: Mapping[JobKey, Sequence[str]]) -> None:
        gone = [receipt for key in keys for receipt in receipts[key]]
        if gone:
            self._ports.work.delete(gone)

    def _with_bodies(self, steps: Steps, works: Sequence[Work]) -> Iterator[tuple[Work, bytes | None]]:
        """Each with its body, one read at a time; None where the object is gone. What cannot be read now is left."""
        for work in works:
            with steps.put_off("body", work.model):
                yield work, work.body if work.object is None else self._ports.objects.get(work.object)

    def _share_out(
        self,
        steps: Steps,
        heap: Sequence[tuple[Work, bytes | None]],
        receipts: Mapping[JobKey, Sequence[str]],
        gathering: dict[Group, Run],
    ) -> None:
        """Expire, promote, refuse or gather each; a step that is put off keeps no other from being taken."""
        found = _Heap()
        for work, body in heap:
            self._judge(work, body, found, gathering)
        for model, endings in found.ends.items():
            with steps.put_off("end", model):
                self._endings.end(model, endings, None, by="")
                self._delete([ending.key for ending in endings], receipts)
        for model, works in found.late.items():
            with steps.put_off("promote", model):
                self._rescuer.promote(model, works, None)
                self._delete([work.key for work in works], receipts)
        for work, data_set in found.data_sets:
            with steps.put_off("data set", work.model):
                self._delete(self._data_set(work, data_set), receipts)
        for group, records in found.groups.items():
            with steps.put_off("gather", group.model):
                self._delete(self._gather(group, records, gathering), receipts)

    def _judge(self, work: Work, body: bytes | None, found: _Heap, gathering: Mapping[Group, Run]) -> None:
        """What is to become of one job."""
        now = self._ports.clock.now()
        lane = self._topology.batch_lane(work.model)
        if work.due_at <= now:
            found.ends[work.model].append(Ending(work.key, work.due_at, JobState.EXPIRED))
        elif work.dataset is not None:
            found.data_sets.append((work, work.dataset))
        elif body is None:
            found.ends[work.model].append(Ending(work.key, work.due_at, JobState.FAILED, error=_GONE))
        elif lane is not None and len(body) > min(lane.max_bytes, lane.max_payload_mb * 1_000_000):
            found.ends[work.model].append(Ending(work.key, work.due_at, JobState.FAILED, error=_TOO_LARGE))
        else:
            self._place(work, body, lane, found, gathering, now)

    def _place(
        self,
        work: Work,
        body: bytes,
        lane: BatchLane | None,
        found: _Heap,
        gathering: Mapping[Group, Run],
        now: float,
    ) -> None:
        """Into a run of its kind, or to promotion when that would answer it too late."""
        line = as_line(work.content_type, work.accept, body)
        group = group_of(work.model, work.content_type, work.accept, line=line is not None)
        records = found.groups[group]
        before = gathering[group].records if group in gathering else 0
        late = lane is None or not in_time(work.due_at, lane, min(before + len(records) + 1, lane.target_records), now)
        if late and self._rescuer.promotable(work.model, work.lanes):
            found.late[work.model].append(work)
        else:
            records.append(Record(work.key, work.due_at, work.lanes, body if line is None else line))

    def _gather(self, group: Group, records: Sequence[Record], gathering: dict[Group, Run]) -> set[JobKey]:
        """Those that a run answers for now."""
        lane = self._topology.batch_lane(group.model)
        while records:
            run = gathering.get(group)
            if run is None or not takes_more(run, lane):
                run = self._new_run(group)
            taken = self._gatherer.into(run, records)
            if taken is not None:
                refreshed = self._ports.runs.find(run.name)
                gathering.pop(group, None)
                if refreshed is not None and refreshed.state is RunState.GATHERING:
                    gathering[group] = refreshed
                return taken
            gathering.pop(group, None)
        return set()

    def _new_run(self, group: Group) -> Run:
        while True:
            run = Run(f"inferlane-{self._stack}-{self._new_id()}", group, RunState.GATHERING, self._ports.clock.now())
            if self._ports.runs.add(run):
                return run

    def _data_set(self, work: Work, data_set: Dataset) -> set[JobKey]:
        """A run of its own, under a name that its message finds again: a whole data set is not to be run twice."""
        run = Run(
            f"inferlane-{self._stack}-{keyed_id(work.key.tenant, work.key.id)[:16]}",
            Group(work.model, work.content_type, work.accept, "dataset"),
            RunState.GATHERING,
            self._ports.clock.now(),
            input=data_set.input,
            output=data_set.output,
        )
        self._ports.runs.add(run)
        return self._gatherer.into(run, [Record(work.key, work.due_at, (), b"")]) or set()


def _meant(works: Iterable[Work], job: Job) -> Work | None:
    """The first of the messages under one key that is of this record; another caller's says something else."""
    return next((work for work in works if work.is_of(job)), None)


def _free(job: Job) -> bool:
    """Whether nobody answers for an accepted job yet."""
    return job.state is JobState.ACCEPTED and job.run is None

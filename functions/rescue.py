"""The deadline guard: takes out of a run what would come too late in it, to be answered by another lane in time.

A promotion is a message first and a claim second, as acceptance is: killed between the two, the promoter makes the
claim. So a record that says `promoted` has its message, and nothing waits for what nobody will do. What is due already
is expired, never promoted; what no other lane may answer stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from functions.batch_ports import BatchPorts, Count
from functions.core.job import PROMOTED, Job, JobKey, JobState, Work
from functions.core.run import Line, Run, index_prefix, input_prefix
from functions.core.shards import body_of, read_index
from functions.core.topology import Topology
from functions.endings import Endings


class Rescuer:
    """Promotes and expires through the ports."""

    def __init__(self, ports: BatchPorts, topology: Topology) -> None:
        """`topology` says which lanes there are."""
        self._ports = ports
        self._topology = topology
        self._endings = Endings(ports)

    def promotable(self, model: str, lanes: Iterable[str]) -> bool:
        """Whether any of the lanes that may answer it in time is there."""
        return not self._topology.sync_lanes(model).keys().isdisjoint(lanes)

    def promote(self, model: str, work: Sequence[Work], held_by: str | None) -> None:
        """Send these to be promoted, then claim them."""
        if work:
            self._ports.promotions.send(work)
            taken = self._ports.jobs.claim([one.key for one in work], PROMOTED, held_by)
            self._ports.telemetry.count(model, {Count.JOBS_PROMOTED: len(taken)})

    def promote_lines(self, run: Run, lines: Sequence[Line], jobs: Mapping[JobKey, Job]) -> bool:
        """Promote these records of one part of a run, whose bodies are read back; False when some are not there."""
        bodies = self.bodies(run, lines) if lines else {}
        keys = {line.key: line for line in lines}
        work = [self._work(run, line, jobs[key], bodies[key]) for key, line in keys.items() if key in bodies]
        self.promote(run.group.model, work, run.name)
        return len(work) == len(keys)

    def bodies(self, run: Run, lines: Sequence[Line]) -> dict[JobKey, bytes]:
        """The bodies of these records, as far as the run's input objects are there."""
        keys = {line.file: input_prefix(run.name) + line.file for line in lines}
        sources = self._ports.objects.get_all(tuple(keys.values()))
        found: dict[JobKey, bytes] = {}
        for line in lines:
            source = sources.get(keys[line.file])
            body = None if source is None else body_of(line, source)
            if body is not None:
                found[line.key] = body
        return found

    def rescue(self, run: Run, before: float) -> bool:
        """Expire what is due, promote what is due before `before`; False when that left the run nothing to do."""
        now = self._ports.clock.now()
        left = False
        for part in run.parts:
            if part.first_due >= before:
                left = True
                continue
            lines = self.index(run, part.name)
            near = {line.key: line for line in lines if line.due_at < before}
            left = left or len(near) < len(lines)
            found = self._ports.jobs.find(tuple(near))
            left = self._take(run, near, found, now) or left
        return left

    def index(self, run: Run, part: str) -> tuple[Line, ...]:
        """A part's lines; none where its index is gone."""
        index = self._ports.objects.get(index_prefix(run.name) + part)
        return () if index is None else read_index(index)

    def _take(self, run: Run, near: Mapping[JobKey, Line], found: Mapping[JobKey, Job], now: float) -> bool:
        """Whether anything of these stays with the run, or may yet come to it."""
        left = False
        due: dict[JobKey, float] = {}
        taken: list[Line] = []
        for key, job in found.items():
            line = near[key]
            if job.state is not JobState.ACCEPTED or job.run not in (run.name, run.parent):
                continue
            if job.run == run.parent:
                left = True
            elif line.due_at <= now:
                due[key] = line.due_at
            elif self.promotable(run.group.model, line.lanes):
                taken.append(line)
            else:
                left = True
        self._endings.expire(run.group.model, due, run.name)
        return not self.promote_lines(run, taken, found) or left

    def _work(self, run: Run, line: Line, job: Job, body: bytes) -> Work:
        """The message of a record that a run held. A body that is an object of its own is read where it lies."""
        place = input_prefix(run.name) + line.file if line.line is None else None
        group = run.group
        return Work(
            job.key,
            group.model,
            group.content_type,
            group.accept,
            job.accepted_at,
            job.due_at,
            line.lanes,
            body=body if place is None else None,
            object=place,
        )

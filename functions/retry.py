"""What a transform job left behind is tried once more: each record an object, so that poison sinks only itself.

Records that would come too late are promoted, those due already expire, the rest go into a child of the run. Records
that a child left behind have failed for good. Done again after a kill, what is the run's still goes into the same
child, or the next one where that was closed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from functions.account import Accountant
from functions.batch_ports import BatchPorts, BusyError, TransformStatus
from functions.core.batch_plan import in_time
from functions.core.job import JobError, JobKey, JobState
from functions.core.run import Line, Run, RunState, child_name, input_prefix
from functions.core.run_error import NOT_RUN_STATUS, run_error
from functions.core.shards import Record, heaps
from functions.core.topology import BatchLane, Topology
from functions.endings import Ending, Endings
from functions.gather import Gatherer
from functions.rescue import Rescuer
from functions.start import Starter

ATTEMPTS: Final = 2
_RESERVE_S: Final = 45.0
"""No new heap is begun with less."""
_HEAP: Final = 500
_HEAP_BYTES: Final = 16_000_000
_GONE: Final = JobError(500, "The stored request is gone.")


class Retrier:
    """Sees to what is left of a run, through the ports."""

    def __init__(self, ports: BatchPorts, topology: Topology, *, new_id: Callable[[], str]) -> None:
        """`new_id` gives 16 hex digits that nobody had before."""
        self._ports = ports
        self._topology = topology
        self._accountant = Accountant(ports)
        self._endings = Endings(ports)
        self._gatherer = Gatherer(ports, new_id)
        self._rescuer = Rescuer(ports, topology)
        self._starter = Starter(ports)

    def retry(self, run: Run, status: TransformStatus, left: Sequence[Line], time_left_s: Callable[[], float]) -> bool:
        """See to the lines that were left; False when time ran out."""
        files: defaultdict[str, list[Line]] = defaultdict(list)
        for line in left:
            files[line.file].append(line)
        sizes = self._ports.objects.sizes(input_prefix(run.name))
        for heap in heaps(files, lambda file: sizes.get(input_prefix(run.name) + file, 0), _HEAP, _HEAP_BYTES):
            if time_left_s() < _RESERVE_S:
                return False
            _, own = self._accountant.look(run, [line for file in heap for line in files[file]])
            lines = {line.key: line for line in own}
            if run.attempt >= ATTEMPTS:
                self._give_up(run, lines, run_error(status.status, status.failure_reason))
            else:
                self._again(run, lines, len(left))
        if run.attempt < ATTEMPTS:
            self._start_children(run)
        return True

    def _give_up(self, run: Run, lines: Mapping[JobKey, Line], error: JobError) -> None:
        """Fail these; but a job that could not be run says nothing of them: who may have another lane gets it."""
        now = self._ports.clock.now()
        other = [line for line in lines.values() if line.due_at > now] if error.status == NOT_RUN_STATUS else []
        other = [line for line in other if self._rescuer.promotable(run.group.model, line.lanes)]
        self._promote(run, other)
        gone = {line.key for line in other}
        self._fail(run, [line for line in lines.values() if line.key not in gone], error)

    def _promote(self, run: Run, lines: Sequence[Line]) -> None:
        jobs = self._ports.jobs.find([line.key for line in lines]) if lines else {}
        self._rescuer.promote_lines(run, [line for line in lines if line.key in jobs], jobs)

    def _fail(self, run: Run, lines: Sequence[Line], error: JobError) -> None:
        endings = [Ending(line.key, line.due_at, JobState.FAILED, error=error) for line in lines]
        self._endings.end(run.group.model, endings, run.name, by=run.name)

    def _again(self, run: Run, lines: Mapping[JobKey, Line], count: int) -> None:
        """Expire, promote or retry each of these records; `count` is how many there may be in the child."""
        now = self._ports.clock.now()
        lane = self._topology.batch_lane(run.group.model)
        due = {key: line.due_at for key, line in lines.items() if line.due_at <= now}
        self._endings.expire(run.group.model, due, run.name)
        waiting = [line for key, line in lines.items() if key not in due]
        late = [line for line in waiting if self._is_late(run, line, lane, count, now)]
        bodies = self._rescuer.bodies(run, waiting)
        self._fail(run, [line for line in waiting if line.key not in bodies], _GONE)
        self._promote(run, late)
        gone = {line.key for line in late}
        records = [
            Record(line.key, line.due_at, line.lanes, bodies[line.key])
            for line in waiting
            if line.key in bodies and line.key not in gone
        ]
        number = 0
        while records and self._gatherer.into(self._child(run, number), records) is None:
            number += 1

    def _is_late(self, run: Run, line: Line, lane: BatchLane | None, count: int, now: float) -> bool:
        soon = lane is None or not in_time(line.due_at, lane, count, now)
        return soon and self._rescuer.promotable(run.group.model, line.lanes)

    def _child(self, run: Run, number: int) -> Run:
        child = Run(
            child_name(run.name, number),
            replace(run.group, form="objects"),
            RunState.GATHERING,
            self._ports.clock.now(),
            attempt=run.attempt + 1,
            parent=run.name,
        )
        self._ports.runs.add(child)
        return child

    def _start_children(self, run: Run) -> None:
        """Close the run's children, and start them if there is room; else the collector does when there is."""
        lane = self._topology.batch_lane(run.group.model)
        number = 0
        while (child := self._ports.runs.find(child_name(run.name, number))) is not None:
            number += 1
            if child.state is RunState.GATHERING and self._starter.close(child) and lane is not None:
                self._begin(child, lane, run.name)

    def _begin(self, child: Run, lane: BatchLane, parent: str) -> None:
        running = [
            one
            for one in self._ports.runs.open()
            if one.group.model == child.group.model and one.state is RunState.RUNNING and one.name != parent
        ]
        if len(running) < lane.max_jobs:
            try:
                self._starter.begin(child, lane)
            except BusyError:
                return

"""The use case of the `settle` function: a transform job has ended, and every job of its run is told how.

An event only says where to look: SageMaker is asked what became of the job, the output objects say what became of each
record. Every end is conditional on this run's answering for the job, so that events may come twice, late, or not at all
(the collector looks as well), and a settling that was killed is simply done again.

A file whose output is there, with as many answers as it has records, is answered. One without took its records with it
for one poison record, or the whole job failed: `retry` sees to them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from functions.account import Accountant
from functions.batch_ports import BatchPorts, Count, TransformStatus
from functions.core.conservation import Fate, tally, unaccounted
from functions.core.job import JobState
from functions.core.pricing import record_cost_usd
from functions.core.run import Line, Run, RunState, output_prefix
from functions.core.run_error import run_error
from functions.core.shards import answer_type, answers, heaps, refusal
from functions.core.topology import Topology
from functions.endings import Answer, Ending, Endings
from functions.rescue import Rescuer
from functions.retry import Retrier

_RESERVE_S: Final = 45.0
"""No new part is begun with less."""
_GONE_S: Final = 900.0
"""A running run whose transform job SageMaker does not know after so long never will have one."""
_HEAP: Final = 1000
_HEAP_BYTES: Final = 32_000_000
_FATES: Final[Mapping[JobState, Fate]] = {JobState.DONE: "done", JobState.FAILED: "failed"}


@dataclass(slots=True)
class _Account:
    """What became of the lines looked at so far, and which are left."""

    fates: Counter[Fate] = field(default_factory=Counter)
    left: list[Line] = field(default_factory=list)
    """Whose file has no output, or a wrong one."""


class Settler:
    """Settles runs, any of them any number of times."""

    def __init__(self, ports: BatchPorts, topology: Topology, *, new_id: Callable[[], str]) -> None:
        """`new_id` gives 16 hex digits that nobody had before."""
        self._ports = ports
        self._topology = topology
        self._endings = Endings(ports)
        self._rescuer = Rescuer(ports, topology)
        self._accountant = Accountant(ports)
        self._retrier = Retrier(ports, topology, new_id=new_id)

    def settle(self, name: str, time_left_s: Callable[[], float]) -> bool:
        """Settle the run of this name, if its transform job has ended; whether it is settled now."""
        run = self._ports.runs.find(name)
        if run is None or run.state is RunState.GATHERING:
            return False
        if run.state is RunState.SETTLED:
            return True
        status = self._status(run)
        if status is None:
            return False
        if run.state is RunState.STARTING:
            self._ports.runs.move(name, RunState.STARTING, RunState.RUNNING, at=self._ports.clock.now())
        if status.status in ("InProgress", "Stopping"):
            return False
        account = _Account()
        if not self._answer(run, status, account, time_left_s):
            return False
        if account.left:
            if not self._retrier.retry(run, status, account.left, time_left_s):
                return False
            fates, own = self._accountant.look(run, account.left)
            if own:
                return False
            account.fates.update(fates)
        return self._close(run, RunState.RUNNING, account, failed=status.status != "Completed")

    def write_off(self, run: Run) -> bool:
        """Settle a closed run without a transform job, none of whose records is its own any more."""
        account = _Account()
        for part in run.parts:
            lines = self._rescuer.index(run, part.name)
            account.fates.update(self._accountant.look(run, lines)[0])
        return self._close(run, RunState.STARTING, account, failed=False)

    def _status(self, run: Run) -> TransformStatus | None:
        """What SageMaker says; a failure where it has known nothing for long enough."""
        status = self._ports.transforms.describe(run.name)
        if status is not None or run.started_at is None or self._ports.clock.now() - run.started_at < _GONE_S:
            return status
        return TransformStatus("Failed", "InternalServerError: the transform job is gone")

    def _answer(self, run: Run, status: TransformStatus, account: _Account, time_left_s: Callable[[], float]) -> bool:
        """End the jobs that the output answers, part by part; False when time ran out."""
        cost_usd = self._cost_usd(run, status)
        if run.group.form == "dataset":
            self._end_data_set(run, status, cost_usd, account)
            return True
        sizes = self._ports.objects.sizes(output_prefix(run.name))
        for part in run.parts:
            if time_left_s() < _RESERVE_S:
                return False
            files: defaultdict[str, list[Line]] = defaultdict(list)
            for line in self._rescuer.index(run, part.name):
                files[line.file].append(line)
            there = {file: size for file in files if (size := sizes.get(_output(run, file))) is not None}
            account.left += [line for file, lines in files.items() if file not in there for line in lines]
            for heap in heaps(there, there.__getitem__, _HEAP, _HEAP_BYTES):
                self._end_files(run, {file: files[file] for file in heap}, cost_usd, account)
        return True

    def _end_files(
        self, run: Run, files: Mapping[str, Sequence[Line]], cost_usd: float | None, account: _Account
    ) -> None:
        outputs = self._ports.objects.get_all([_output(run, file) for file in files])
        endings: list[tuple[Line, Ending]] = []
        for file, lines in files.items():
            output = outputs.get(_output(run, file))
            found = None if output is None else answers(output, lines)
            if found is None:
                account.left += lines
            else:
                endings += [
                    (line, _ending(run, line, answer, cost_usd)) for line, answer in zip(lines, found, strict=True)
                ]
        self._end(run, endings, account)

    def _end(self, run: Run, endings: Sequence[tuple[Line, Ending]], account: _Account) -> None:
        """End these and account for them: those that were not to be ended have another fate."""
        wanted = {ending.key: ending for _, ending in endings}
        lines = [line for line, _ in endings]
        ended = self._endings.end(run.group.model, wanted.values(), run.name, by=run.name)
        missed = [line for line in lines if line.key not in ended]
        if missed:
            fates, own = self._accountant.look(run, missed)
            account.fates.update(fates)
            again = {line.key: wanted[line.key] for line in own}
            ended |= self._endings.end(run.group.model, again.values(), run.name, by=run.name)
        account.fates.update(_FATES[wanted[line.key].state] for line in lines if line.key in ended)

    def _end_data_set(self, run: Run, status: TransformStatus, cost_usd: float | None, account: _Account) -> None:
        """Its one job is done when the transform job is: the output lies where its caller wanted it."""
        error = None if status.status == "Completed" else run_error(status.status, status.failure_reason)
        state = JobState.DONE if error is None else JobState.FAILED
        lines = [line for part in run.parts for line in self._rescuer.index(run, part.name)]
        endings = [(line, Ending(line.key, line.due_at, state, "batch", cost_usd, error=error)) for line in lines]
        self._end(run, endings, account)

    def _cost_usd(self, run: Run, status: TransformStatus) -> float | None:
        """Each record's share of the transform job."""
        lane = self._topology.batch_lane(run.group.model)
        if lane is None or status.began is None or status.ended is None:
            return None
        return record_cost_usd(lane, max(0.0, status.ended - status.began), run.records)

    def _close(self, run: Run, before: RunState, account: _Account, *, failed: bool) -> bool:
        found = tally(account.fates)
        now = self._ports.clock.now()
        if self._ports.runs.move(run.name, before, RunState.SETTLED, at=now, tally=found):
            lost = unaccounted(run, found)
            counts: dict[str, float] = {Count.RUN_UNACCOUNTED: lost, Count.RUNS_FAILED: failed}
            self._ports.telemetry.count(run.group.model, counts)
            if lost:
                self._ports.log.error("records of a run are not accounted for", extra={"run": run.name, "lost": lost})
        return True


def _output(run: Run, file: str) -> str:
    return f"{output_prefix(run.name)}{file}.out"


def _ending(run: Run, line: Line, answer: bytes, cost_usd: float | None) -> Ending:
    """What an answer says of its job."""
    error = refusal(answer)
    if error is not None:
        return Ending(line.key, line.due_at, JobState.FAILED, "batch", cost_usd, error=error)
    accept = run.group.accept if run.group.form == "objects" else None
    found = Answer(answer, answer_type(accept, answer))
    return Ending(line.key, line.due_at, JobState.DONE, "batch", cost_usd, answer=found)

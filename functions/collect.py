"""The use case of the `collect` function: every minute, runs move on and the queue is drained into new ones.

First the runs, since deadlines near: those that should have ended are looked at (an event may be lost), those that can
start do, and out of those that must wait is taken what would come too late. Then the queue (`intake`); then the runs
once more, for what the queue brought, and so in turns while it holds more than can be taken before deadlines near.

What a service refuses is put off to the next turn, and does not keep the others waiting. A lease lets one collector
work at a time, to no more end than thrift: every change is conditional (`lease`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from functions.batch_ports import BatchError, BatchPorts, BusyError
from functions.core.batch_plan import abandoned, overdue, too_late_before, wants_start
from functions.core.run import Run, RunState
from functions.core.topology import BatchLane, Topology
from functions.intake import RESERVE_S, Intake
from functions.lease import Lease
from functions.rescue import Rescuer
from functions.settle import Settler
from functions.start import Starter
from functions.steps import Steps


class Collector:
    """One collector; its turns share nothing but the records."""

    def __init__(
        self, ports: BatchPorts, topology: Topology, settler: Settler, *, stack: str, new_id: Callable[[], str]
    ) -> None:
        """`new_id` gives 16 hex digits that nobody had before."""
        self._ports = ports
        self._topology = topology
        self._settler = settler
        self._new_id = new_id
        self._intake = Intake(ports, topology, stack=stack, new_id=new_id)
        self._rescuer = Rescuer(ports, topology)
        self._starter = Starter(ports)

    def run(self, time_left_s: Callable[[], float]) -> None:
        """One turn. `time_left_s` says how long the function may still run."""
        now, lease = self._ports.clock.now(), Lease(self._ports, self._new_id())
        steps = Steps(self._ports)

        def left_s() -> float:
            return time_left_s() if lease.kept() else 0.0

        with steps.put_off("lease"):
            if not lease.taken():
                return
            try:
                self._advance(steps, left_s)
                more = True
                while more:
                    found, more = self._intake.drain(steps, left_s, now)
                    if found:
                        self._advance(steps, left_s)
            finally:
                lease.given_back()

    def _advance(self, steps: Steps, time_left_s: Callable[[], float]) -> None:
        """Every open run, those with the earliest deadline first."""
        runs: Sequence[Run] = ()
        with steps.put_off("runs"):
            runs = sorted(self._ports.runs.open(), key=lambda run: (run.first_due or 0.0, run.name))
        busy = Counter(run.group.model for run in runs if run.state is RunState.RUNNING)
        for run in runs:
            if time_left_s() < RESERVE_S:
                return
            model = run.group.model
            lane = self._topology.batch_lane(model)
            with steps.put_off("run", model):
                if run.state is not RunState.RUNNING:
                    room = lane is not None and busy[model] < lane.max_jobs
                    busy[model] += self._move_on(steps, run, lane if room else None, lane)
                elif overdue(run, lane, self._ports.clock.now()):
                    busy[model] -= self._settler.settle(run.name, time_left_s)

    def _move_on(self, steps: Steps, run: Run, free: BatchLane | None, lane: BatchLane | None) -> int:
        """Start a run on the lane if it is free, or see to those that cannot wait; how many places that took."""
        now = self._ports.clock.now()
        if abandoned(run, now):
            self._ports.runs.move(run.name, RunState.GATHERING, RunState.SETTLED, at=now)
            return 0
        starts = free is not None and wants_start(run, free, now)
        left = self._rescuer.rescue(run, too_late_before(lane, run.records, now, starts=starts))
        if run.parts and not left:
            self._write_off(run)
            return 0
        closed = self._closed(run) if starts else None
        if free is None or closed is None:
            return 0
        try:
            self._starter.begin(closed, free)
        except BatchError as error:
            steps.note("start", run.group.model, error)
            self._rescuer.rescue(closed, too_late_before(lane, closed.records, now, starts=False))
            return free.max_jobs if isinstance(error, BusyError) else 0  # at the quota the others need not try
        return 1

    def _closed(self, run: Run) -> Run | None:
        """The run as it will stay, with its last parts; None when it has moved on already."""
        if run.state is RunState.STARTING:
            return run
        return self._ports.runs.find(run.name) if self._starter.close(run) else None

    def _write_off(self, run: Run) -> None:
        """Close a run all of whose records were taken out of it, unless another part came in meanwhile."""
        closed = self._closed(run)
        if closed is not None and closed.parts == run.parts:
            self._settler.write_off(closed)

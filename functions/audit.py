"""The use case of the `audit` function: every few hours all records are counted, and held against what was accepted.

Two figures have an alarm. Overdue: jobs still open a quarter of an hour past their deadline, so somebody owes an end.
Unaccounted: what the front door counted as accepted within the last finished day, less the records of that day that
exist; whatever the time between two audits, up to a day, every hour is in the day of one of them. A job whose owner is
gone (its message among the dead letters, its run settled or never there) is ended as expired by the first audit that
finds it an hour past its deadline: what was accepted ends, whatever fails.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Final

from functions.batch_ports import Acceptances, BatchPorts, Count
from functions.core.conservation import Census, census
from functions.core.job import PROMOTED, JobKey, JobState
from functions.core.run import RunState
from functions.endings import Endings

OVERDUE_S: Final = 900.0
ORPHANED_S: Final = 3600.0
_HOUR_S: Final = 3600.0
_DAY_S: Final = 86_400.0


class Auditor:
    """Counts through the ports."""

    def __init__(self, ports: BatchPorts, acceptances: Acceptances) -> None:
        """`acceptances` is the front door's own count."""
        self._ports = ports
        self._acceptances = acceptances
        self._endings = Endings(ports)

    def audit(self) -> Census:
        """Count all records, tell it as metrics, and end the orphaned; what was counted, before that."""
        now = self._ports.clock.now()
        end = now // _HOUR_S * _HOUR_S - _HOUR_S  # metrics arrive minutes late
        begin = end - _DAY_S
        states: Counter[JobState] = Counter()
        overdue = within = 0
        orphans: defaultdict[str | None, dict[JobKey, float]] = defaultdict(dict)
        for seen in self._ports.jobs.sightings():
            states[seen.state] += 1
            within += begin <= seen.accepted_at < end
            if seen.state is JobState.ACCEPTED and now - seen.due_at >= OVERDUE_S:
                overdue += 1
                if now - seen.due_at >= ORPHANED_S:
                    orphans[seen.run][seen.key] = seen.due_at
        counts: dict[str, float] = {Count.JOBS_OPEN: states[JobState.ACCEPTED], Count.JOBS_OVERDUE: overdue}
        accepted = self._acceptances.accepted(begin, end)
        if accepted is not None:
            counts[Count.JOBS_UNACCOUNTED] = max(0.0, accepted - within)
        self._ports.telemetry.count(None, counts)
        for owner, due_at in orphans.items():
            if self._is_gone(owner):
                self._endings.expire(None, due_at, owner)
        return census(states)

    def _is_gone(self, owner: str | None) -> bool:
        """Whether nobody will end an overdue job of this owner's. A run that is open still does."""
        if owner is None or owner == PROMOTED:
            return True
        run = self._ports.runs.find(owner)
        return run is None or run.state is RunState.SETTLED

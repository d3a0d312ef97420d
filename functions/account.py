"""What became of lines of a run, by their records; and takes over those that were to be the run's and are not yet.

Who gathers writes the part first and claims second. Should the run end between the two, it claims for itself whatever
of its lines still is where it was taken from: so a settled run answers for no accepted job, ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from functions.batch_ports import BatchPorts
from functions.core.conservation import Fate, fate
from functions.core.job import Job, JobState
from functions.core.run import Line, Run, child_name

_CHILDREN: Final = 16
"""More than a run ever has: each is one that was closed while the run was being settled again."""


class Accountant:
    """Looks at records through the port."""

    def __init__(self, ports: BatchPorts) -> None:
        """`ports` are the batch lane's."""
        self._ports = ports

    def look(self, run: Run, lines: Sequence[Line]) -> tuple[Counter[Fate], list[Line]]:
        """How many of these lines had which fate, and those that `run` answers for."""
        jobs = self._ports.jobs.find(tuple(dict.fromkeys(line.key for line in lines)))
        waiting = [key for key, job in jobs.items() if _waits(job, run)]
        taken = self._ports.jobs.claim(waiting, run.name, run.parent) if waiting else set()
        children = frozenset(child_name(run.name, number) for number in range(_CHILDREN))
        fates: Counter[Fate] = Counter()
        own: list[Line] = []
        for line in lines:
            became = fate(jobs.get(line.key), run.name, children)
            if became is None or line.key in taken:
                own.append(line)
            else:
                fates[became] += 1
        return fates, own


def _waits(job: Job, run: Run) -> bool:
    return job.state is JobState.ACCEPTED and job.run == run.parent

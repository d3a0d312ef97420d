"""Puts jobs into a run, in the one order that loses none: the part's objects, the part in the run's item, the claims.

Killed between two of these, a job is still whoever's it was, who brings it again; a part whose claims were not made
holds lines that count for nothing, unless its run ends first and claims them itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from functions.batch_ports import BatchPorts, Count
from functions.core.job import JobKey
from functions.core.run import Run
from functions.core.shards import Record, shard


class Gatherer:
    """Writes parts through the ports."""

    def __init__(self, ports: BatchPorts, new_id: Callable[[], str]) -> None:
        """`new_id` gives 16 hex digits that nobody had before."""
        self._ports = ports
        self._new_id = new_id

    def into(self, run: Run, records: Sequence[Record]) -> set[JobKey] | None:
        """Those of `records` that `run` answers for now; None when it gathers no more, and nothing has changed.

        They are taken from the run's parent, or from nobody.
        """
        made = shard(run.name, run.group.form, self._new_id(), records)
        self._ports.objects.put_all(made.inputs, run.group.content_type)
        self._ports.objects.put(made.index_key, made.index)
        if not self._ports.runs.add_part(run.name, made.part):
            return None
        taken = self._ports.jobs.claim([record.key for record in records], run.name, run.parent)
        count = Count.JOBS_GATHERED if run.parent is None else Count.JOBS_RETRIED
        self._ports.telemetry.count(run.group.model, {count: len(taken)})
        return taken

"""Ends jobs: puts answers where they belong, writes the ends, tells and counts what was ended.

An answer of up to 4,000 bytes is in the record; a larger one is an object of its own, written before the end, so that
an end never names what is not there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from functions.batch_ports import BatchPorts, Count
from functions.core.job import End, JobError, JobKey, JobState, Result, result_key

INLINE: Final = 4000
"""Bytes of an answer that a record holds: a write of 4 KB costs four times one of 1 KB, an object's put five times."""
_COUNTS: Final[Mapping[JobState, Count]] = {
    JobState.DONE: Count.JOBS_DONE,
    JobState.FAILED: Count.JOBS_FAILED,
    JobState.EXPIRED: Count.JOBS_EXPIRED,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model answered to one job."""

    body: bytes
    content_type: str | None


@dataclass(frozen=True, slots=True)
class Ending:
    """How one job is to end, and by when it should have."""

    key: JobKey
    due_at: float
    state: JobState
    lane: str | None = None
    cost_usd: float | None = None
    answer: Answer | None = None
    error: JobError | None = None


class Endings:
    """Ends jobs through the ports."""

    def __init__(self, ports: BatchPorts) -> None:
        """`ports` are the batch lane's."""
        self._ports = ports

    def end(self, model: str | None, endings: Iterable[Ending], held_by: str | None, *, by: str) -> set[JobKey]:
        """End those that `held_by` answers for; which they were. `by` names who answered, for large answers' keys."""
        wanted = {ending.key: ending for ending in endings}
        if not wanted:
            return set()
        results = self._results(wanted.values(), by)
        at = self._ports.clock.now()
        ends = {
            key: End(ending.state, at, ending.lane, ending.cost_usd, results.get(key), ending.error)
            for key, ending in wanted.items()
        }
        ended = self._ports.jobs.end(ends, held_by)
        if ended:
            self._tell(model, [wanted[key] for key in ended], at)
        return ended

    def expire(self, model: str | None, due_at: Mapping[JobKey, float], held_by: str | None) -> set[JobKey]:
        """End as expired; which they were."""
        endings = [Ending(key, due, JobState.EXPIRED) for key, due in due_at.items()]
        return self.end(model, endings, held_by, by="")

    def _results(self, endings: Iterable[Ending], by: str) -> dict[JobKey, Result]:
        found: dict[JobKey, Result] = {}
        large: defaultdict[str | None, dict[str, bytes]] = defaultdict(dict)
        for ending in endings:
            answer = ending.answer
            if answer is None:
                continue
            if len(answer.body) <= INLINE:
                found[ending.key] = Result(answer.content_type, len(answer.body), body=answer.body)
            else:
                key = result_key(ending.key, by)
                large[answer.content_type][key] = answer.body
                found[ending.key] = Result(answer.content_type, len(answer.body), object=key)
        for content_type, objects in large.items():
            self._ports.objects.put_all(objects, content_type)
        return found

    def _tell(self, model: str | None, ended: list[Ending], at: float) -> None:
        self._ports.notices.send({ending.key: ending.state for ending in ended})
        counts: defaultdict[str, float] = defaultdict(float)
        for ending in ended:
            counts[_COUNTS[ending.state]] += 1
            if ending.state is JobState.DONE and at > ending.due_at:
                counts[Count.JOBS_LATE] += 1
        self._ports.telemetry.count(model, counts)

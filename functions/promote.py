"""The use case of the `promote` function: a job that would come too late in batch is answered by a lane that is there.

A message is here before its record says so: where the one who sent it was killed in between, the claim is made here.
One from acceptance is here before there is a record: it comes again until there is one, and after ten minutes without
it was never accepted. Of two callers who raced with one idempotency key, the record is one's, and the other's message
is dropped. Whatever answers first ends the job; a second message, or a batch answer that still comes, changes nothing.
While no lane answers, the message comes again, soon enough for several tries, until the job is due and expires.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from functions.batch_ports import BatchError, BatchPorts
from functions.core.deferral import QUICK_TRIES, pause_s
from functions.core.job import PROMOTED, UNKNOWN_S, Job, JobError, JobState, Work
from functions.core.outcome import Kind
from functions.core.topology import Topology
from functions.endings import Answer, Ending, Endings
from functions.execute import Execution, Payload, execute
from functions.health import Alone, Health
from functions.ports import Invoker

RENEW_AFTER: Final = QUICK_TRIES
"""Receives after which a message is sent anew: an outage of the lanes must not make dead letters of jobs."""
_RESERVE_S: Final = 5.0
"""Kept back from the function's own end, to write the answer."""
_DETAIL: Final = 1000
_WORDS: Final = ("detail", "message", "error")
"""Where containers put the words of an error."""
_GONE: Final = JobError(500, "The stored request is gone.")


class Promoter:
    """One process's; keeps the health of its lanes."""

    def __init__(self, ports: BatchPorts, topology: Topology, invoker: Invoker, *, new_id: Callable[[], str]) -> None:
        """`invoker` runs an attempt on a lane; `new_id` gives 16 hex digits that nobody had before."""
        self._ports = ports
        self._topology = topology
        self._invoker = invoker
        self._new_id = new_id
        self._endings = Endings(ports)
        self._health = Health(Alone(), ports.clock)

    def promote(self, work: Work, received_count: int, time_left_s: float) -> bool:
        """Answer one job; False when its message must come again. `time_left_s`: until the function ends.

        Raises `BatchError`, with the same meaning.
        """
        job = self._ports.jobs.find((work.key,)).get(work.key)
        if job is None:
            was_never = self._ports.clock.now() - work.accepted_at >= UNKNOWN_S
            return was_never or self._renewed(work, received_count)
        if job.state is not JobState.ACCEPTED or not work.is_of(job):
            return True
        if job.run != PROMOTED and not self._ports.jobs.claim((work.key,), PROMOTED, job.run):
            return False
        now = self._ports.clock.now()
        if job.due_at <= now:
            self._endings.expire(work.model, {work.key: job.due_at}, PROMOTED)
            return True
        body = self._ports.objects.get(work.object) if work.object is not None else work.body
        if body is None:
            self._end(work, Ending(work.key, job.due_at, JobState.FAILED, error=_GONE))
            return True
        done = self._execute(work, body, min(job.due_at - now, time_left_s - _RESERVE_S))
        ending = _ending(work, job, done)
        if ending is None:
            return self._renewed(work, received_count)
        self._end(work, ending)
        return True

    def put_off(self, work: Work, receipt: str, received_count: int) -> None:
        """Have a message that must come again do so in time for its job. At worst the queue's own time passes."""
        seconds = pause_s(work.due_at, received_count, self._ports.clock.now())
        if seconds is None:
            return
        try:
            self._ports.promotions.hide(receipt, seconds)
        except BatchError as error:
            self._ports.log.warning("a message comes again later than it should", extra={"cause": str(error)})

    def _execute(self, work: Work, body: bytes, deadline_s: float) -> Execution:
        known = self._topology.sync_lanes(work.model)
        began = self._ports.clock.monotonic()
        return execute(
            [known[name] for name in work.lanes if name in known],
            Payload(body, work.content_type, work.accept, {}),
            {},
            began=began,
            deadline=began + deadline_s,
            invoker=self._invoker,
            clock=self._ports.clock,
            watch=self._health.watch(work.model, {}),
        )

    def _renewed(self, work: Work, received_count: int) -> bool:
        """Whether a message that came often was sent anew, so that this one is done with."""
        if received_count < RENEW_AFTER:
            return False
        self._ports.promotions.send((work,))
        return True

    def _end(self, work: Work, ending: Ending) -> None:
        self._endings.end(work.model, (ending,), PROMOTED, by=f"{PROMOTED}-{self._new_id()}")


def _ending(work: Work, job: Job, done: Execution) -> Ending | None:
    """What a lane's final word means for the job; None: there is none. Every attempt's cost is the job's."""
    outcome, served = done.outcome, done.served
    if outcome is None or served is None:
        return None
    costs = [attempt.cost_usd for attempt in done.attempts]
    cost_usd = None if None in costs else sum(cost for cost in costs if cost is not None)
    if outcome.kind is Kind.OK:
        answer = Answer(outcome.body, outcome.content_type)
        return Ending(work.key, job.due_at, JobState.DONE, served.lane, cost_usd, answer=answer)
    error = JobError(outcome.status or 400, _words(outcome.body))
    return Ending(work.key, job.due_at, JobState.FAILED, served.lane, cost_usd, error=error)


def _words(body: bytes) -> str:
    """The container's own words for a refusal, which are its caller's to read, as far as there are any."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace").strip()[:_DETAIL] or "The model refused the request."
    for word in _WORDS:
        if isinstance(said, dict) and isinstance(said.get(word), str) and said[word]:
            return str(said[word])[:_DETAIL]
    return "The model refused the request."

"""Turns a request into a job: 202 and a promise, or the reason why there is none.

The order is what makes the promise good (see `ports.Acceptance`): the work first, its record second, the answer last.
So whatever was answered with 202 has both, and what failed on the way was promised to nobody. Its idempotency key finds
a record whose answer was lost.

What batch could not answer in time is promoted as it is accepted: its record says so, and its work goes to promotion's
queue instead of the collector's.

A key names one request of one tenant: the same again gets the same job, something else under it is refused (422).
Without a key the id is random.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from functions.answer import Answer, Call, document_answer, problem_answer
from functions.batch_ports import BatchError, UnavailableError
from functions.core.decision import Decision
from functions.core.deferral import due_at, lanes_in_time, moment_ms, urgent
from functions.core.document import show_time
from functions.core.identity import owner
from functions.core.job import PROMOTED, Job, JobKey, Work, fingerprint, keyed_id
from functions.core.job_view import status_of
from functions.core.policy import Policy
from functions.core.problem import Problem
from functions.core.request import Request
from functions.core.topology import Topology
from functions.core.wishes import IDEMPOTENCY_HEADER, read_wishes
from functions.ports import Acceptance, Clock, Log

JOBS_PATH: Final = "/v1/jobs"
RETRY_S: Final = 5
"""What hinders queue or table lasts seconds; a caller who comes back at once only adds to it."""
_LONGEST_S: Final = 5.0
"""Queue, table and store answer in tens of milliseconds; nobody should wait longer to be told that they do not."""

_SHORTEST_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Deferred:
    """The answer, with the job that it speaks of, if there is one."""

    answer: Answer
    job: str | None = None
    recorded: bool = False
    """Whether the job is new: counted once, however often it is asked for."""
    promoted: bool = False
    """Whether it is new and was promoted at once."""


class Deferral:
    """Accepts work that may wait."""

    def __init__(self, acceptance: Acceptance, clock: Clock, ids: Callable[[], str], log: Log) -> None:
        """`ids` gives 32 hex digits that nobody can guess."""
        self._acceptance = acceptance
        self._clock = clock
        self._ids = ids
        self._log = log

    def defer(self, call: Call, decision: Decision, policy: Policy, topology: Topology, time_left_s: float) -> Deferred:
        """Accept an admitted request with batch in its order."""
        request, model = call.request, decision.model or ""
        if not call.body:
            return Deferred(problem_answer(request.id, Problem(400, "Work that may wait needs a body.", "empty-body")))
        now = self._clock.now()
        wishes = read_wishes(request.headers)
        tenant = owner(request.identity, policy)
        key = request.headers.get(IDEMPOTENCY_HEADER)
        due = due_at(now, decision.within_s or policy.defaults.within_s, wishes.deadline_ms)
        known = topology.sync_lanes(model)
        lanes = lanes_in_time(decision.order, policy.defaults.order, known, len(call.body), request.content_type)
        work = Work(
            key=JobKey(tenant, self._ids() if key is None else keyed_id(tenant, key)),
            model=model,
            content_type=request.content_type,
            accept=call.accept,
            accepted_at=moment_ms(now),
            due_at=due,
            lanes=lanes,
            body=call.body,
            fingerprint=fingerprint(model, request.content_type, call.accept, call.body),
        )
        run = PROMOTED if urgent(due, topology.batch_lane(model), lanes, now) else None
        deferred = accept(self._acceptance, request, work, run, time_left_s, self._log)
        if deferred.job is None or not wishes.respond_async:
            return deferred
        headers = {**deferred.answer.headers, "preference-applied": "respond-async"}
        return replace(deferred, answer=replace(deferred.answer, headers=headers))


def accept(
    acceptance: Acceptance, request: Request, work: Work, run: str | None, time_left_s: float, log: Log
) -> Deferred:
    """Take `work`, or find the job that it is already. `run`: who answers for it from the start, if anybody."""
    asked = work.fingerprint or ""
    job = Job(work.key, work.model, asked, work.accepted_at, work.due_at, run, dataset=work.dataset)
    timeout_s = min(time_left_s, _LONGEST_S)
    try:
        if timeout_s < _SHORTEST_S:
            raise UnavailableError("there is no time left to accept it")
        found = acceptance.find(work.key, timeout_s) if IDEMPOTENCY_HEADER in request.headers else None
        if found is None:
            found = acceptance.accept(work, job, timeout_s)
    except BatchError as error:
        log.warning("a job was not accepted", extra={"request_id": request.id, "cause": str(error)})
        problem = Problem(503, "The request could not be accepted for later.", "not-accepted", retry_after_s=RETRY_S)
        return Deferred(problem_answer(request.id, problem))
    if found is not None and found.fingerprint != asked:
        words = "This Idempotency-Key was used before, for another request."
        return Deferred(problem_answer(request.id, Problem(422, words, "idempotency-key-reused")))
    is_new = found is None
    return Deferred(_promise(request, found or job), work.key.id, is_new, is_new and run == PROMOTED)


def _promise(request: Request, job: Job) -> Answer:
    """202 with the job's place, and how it stands as far as its record tells: of one that exists already, its end."""
    document = {
        "id": job.key.id,
        "status": str(status_of(job, None)),
        "deadline": show_time(job.due_at),
    }
    answer = document_answer(request, document, 202)
    return replace(answer, headers={**answer.headers, "location": f"{JOBS_PATH}/{job.key.id}"})

"""The use case of the `jobs` function: a tenant looks at its jobs, lists and cancels them, and has a data set run.

Whose a call is follows from its identity by the policy, exactly as for the router; the store finds nothing without
naming the tenant. So another tenant's job and one that never was are the same: 404, in the same words, and an id that
none could have is not even looked for.

Cancelling is possible until the job's run has started. It is a race with the collector that the record decides: ends
are conditional on who answered for it when it was looked at, so a job is cancelled or runs, never both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final, Protocol

from functions.answer import Answer, Call, document_answer, only, problem_answer
from functions.batch_ports import BatchError, BatchTelemetry, Count, Page
from functions.core.datasets import LARGEST_BODY, DatasetError, read_asked
from functions.core.deferral import due_at, moment_ms
from functions.core.document import show_time
from functions.core.identity import entry_of, identify, owner
from functions.core.job import End, Job, JobKey, JobState, Work, fingerprint, keyed_id
from functions.core.job_view import OPEN, Status, describe, run_of, status_of, wait_s, with_result
from functions.core.listing import ID, Place, Query, QueryError, cursor_of, read_query
from functions.core.policy import Policy
from functions.core.problem import Problem
from functions.core.request import Request
from functions.core.run import Run
from functions.core.topology import BatchLane, Topology
from functions.core.wishes import IDEMPOTENCY_HEADER, WishError, read_wishes
from functions.defer import JOBS_PATH, RETRY_S, accept
from functions.ports import Acceptance, Clock, Log, PolicySource

BATCHES_PATH: Final = "/v1/models/{model}/batches"
LARGEST_INLINE: Final = 64 * 1024
"""Bytes of a result that are part of the document; what is larger is read through a link."""
_FIRST_POLICY_S: Final = 10.0
_WITHIN_S: Final = 86_400.0
"""When a data set is due, unless the caller says sooner: it takes as long as it takes, and blocks nobody."""
_TRIES: Final = 3
"""Looks at a job that somebody else moved while it was being cancelled."""
_PAGES: Final = 10
"""Pages looked through for one page of one status."""
_UNKNOWN: Final = Problem(404, "No job has this id.")
_NO_PATH: Final = Problem(404, "No route has this path.")


class Records(Protocol):
    """The part of `batch_ports.JobStore` that is used."""

    def find(self, keys: Sequence[JobKey]) -> Mapping[JobKey, Job]:
        """Those that exist."""
        ...

    def end(self, ends: Mapping[JobKey, End], held_by: str | None) -> set[JobKey]:
        """Those that were ended by this call."""
        ...

    def page(self, tenant: str, limit: int, after: Place | None = None) -> Page:
        """At most `limit` of a tenant's jobs, newest first."""
        ...


class Runs(Protocol):
    """The part of `batch_ports.RunStore` that is used."""

    def find(self, name: str) -> Run | None:
        """The run."""
        ...


class Results(Protocol):
    """The part of `batch_ports.Objects` that is used."""

    def get(self, key: str) -> bytes | None:
        """Its bytes; None where there is none."""
        ...

    def link(self, key: str, expires_s: int) -> str:
        """A URL that reads this object, and nothing else, for so long."""
        ...


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where jobs, their runs and their results are."""

    jobs: Records
    runs: Runs
    results: Results


class Jobs:
    """Answers for a tenant's jobs."""

    def __init__(
        self,
        topology: Topology,
        policies: PolicySource,
        shelf: Shelf,
        acceptance: Acceptance,
        clock: Clock,
        ids: Callable[[], str],
        telemetry: BatchTelemetry,
        log: Log,
        *,
        datasets: Sequence[str] = (),
        link_s: int = 900,
    ) -> None:
        """`datasets` are the prefixes under which data sets may lie; `link_s` is how long a link to a result works."""
        self._topology = topology
        self._policies = policies
        self._shelf = shelf
        self._acceptance = acceptance
        self._clock = clock
        self._ids = ids
        self._telemetry = telemetry
        self._log = log
        self._datasets = datasets
        self._link_s = link_s

    def answer(self, call: Call, parameters: Mapping[str, str]) -> Answer:
        """Answer one call. `parameters` are its query's."""
        request = call.request
        try:
            answer = self._answer(call, parameters)
        except BatchError as error:
            self._log.warning("the jobs cannot be reached", extra={"request_id": request.id, "cause": str(error)})
            problem = Problem(503, "The jobs cannot be reached now.", retry_after_s=RETRY_S)
            answer = problem_answer(request.id, problem)
        return replace(answer, headers={**answer.headers, "cache-control": "no-store"})

    def _answer(self, call: Call, parameters: Mapping[str, str]) -> Answer:
        request = call.request
        if request.identity.kind == "anonymous":
            return problem_answer(request.id, Problem(401, "The call carries no identity that the gateway proved."))
        policy = self._policies.policy(self._clock.now(), min(_FIRST_POLICY_S, call.time_left_s / 2))
        if policy is None:
            problem = Problem(503, "There is no policy yet that could decide.", "no-policy", retry_after_s=5)
            return problem_answer(request.id, problem)
        if identify(request.identity, policy) is None:
            return problem_answer(request.id, Problem(403, "this identity has no entry in the policy"))
        tenant = owner(request.identity, policy)
        if request.path == JOBS_PATH:
            return only(request, "GET") or self._list(request, tenant, parameters)
        if request.path.startswith(f"{JOBS_PATH}/"):
            key = JobKey(tenant, request.path[len(JOBS_PATH) + 1 :])
            return only(request, "DELETE", "GET") or self._one(request, key)
        model = _model_of(request.path)
        if model is None:
            return problem_answer(request.id, _NO_PATH)
        return only(request, "POST") or self._run(call, model, policy)

    def _one(self, request: Request, key: JobKey) -> Answer:
        if not ID.fullmatch(key.id):
            return problem_answer(request.id, _UNKNOWN)
        return self._cancel(request, key) if request.method == "DELETE" else self._show(request, key)

    def _look(self, key: JobKey) -> tuple[Job, Status] | None:
        job = self._shelf.jobs.find([key]).get(key)
        return None if job is None else (job, self._statuses([job])[0])

    def _statuses(self, jobs: Sequence[Job]) -> list[Status]:
        """How each stands; a run that several are in is looked at once."""
        names = dict.fromkeys(name for job in jobs if (name := run_of(job)) is not None)
        runs: dict[str | None, Run | None] = {name: self._shelf.runs.find(name) for name in names}
        return [status_of(job, runs.get(run_of(job))) for job in jobs]

    def _show(self, request: Request, key: JobKey) -> Answer:
        seen = self._look(key)
        if seen is None:
            return problem_answer(request.id, _UNKNOWN)
        job, status = seen
        document = describe(job, status)
        if status in OPEN:
            answer = document_answer(request, document)
            return replace(answer, headers={**answer.headers, "retry-after": str(wait_s(job, self._clock.now()))})
        result = None if job.end is None else job.end.result
        if result is None:
            return document_answer(request, document)
        body = result.body
        if body is None and result.object is not None:
            if result.size > LARGEST_INLINE:
                until = show_time(moment_ms(self._clock.now() + self._link_s))
                link = self._shelf.results.link(result.object, self._link_s)
                return document_answer(request, {**document, "result_url": link, "result_url_expires_at": until})
            body = self._shelf.results.get(result.object)
        if body is None:
            return problem_answer(request.id, Problem(410, "The job's result is no longer kept."))
        return replace(document_answer(request, None), body=with_result(document, result, body))

    def _cancel(self, request: Request, key: JobKey) -> Answer:
        for _ in range(_TRIES):
            seen = self._look(key)
            if seen is None:
                return problem_answer(request.id, _UNKNOWN)
            job, status = seen
            if status is Status.CANCELLED:
                return document_answer(request, describe(job, status))
            if status is not Status.QUEUED:
                words = "The job runs already." if status is Status.RUNNING else "The job has ended."
                return problem_answer(request.id, Problem(409, words, f"job-{status}"))
            end = End(JobState.CANCELLED, moment_ms(self._clock.now()))
            if self._shelf.jobs.end({key: end}, job.run):
                return document_answer(request, describe(replace(job, end=end), Status.CANCELLED))
        problem = Problem(503, "The job is being moved; try again.", retry_after_s=1)
        return problem_answer(request.id, problem)

    def _list(self, request: Request, tenant: str, parameters: Mapping[str, str]) -> Answer:
        try:
            query = read_query(parameters)
        except QueryError as error:
            return problem_answer(request.id, Problem(400, str(error)))
        found, after = self._page(tenant, query)
        cursor = None if after is None else cursor_of(after)
        return document_answer(request, {"jobs": found, "next_cursor": cursor})

    def _page(self, tenant: str, query: Query) -> tuple[list[dict[str, object]], Place | None]:
        """Up to `limit` jobs of the status, and where to go on; fewer, when many others lie between them."""
        found: list[dict[str, object]] = []
        after = query.after
        for _ in range(_PAGES):
            page = self._shelf.jobs.page(tenant, query.limit, after)
            for job, status in zip(page.jobs, self._statuses(page.jobs), strict=True):
                if query.status in (None, status):
                    found.append(describe(job, status))
                if len(found) == query.limit:
                    return found, page.next if job is page.jobs[-1] else _place(job)
            after = page.next
            if after is None:
                break
        return found, after

    def _run(self, call: Call, model: str, policy: Policy) -> Answer:
        """Have a data set run as one job."""
        request = call.request
        if (problem := self._refusal(call, model, policy)) is not None:
            return problem_answer(request.id, problem)
        tenant = owner(request.identity, policy)
        try:
            asked = read_asked(call.body, self._datasets, tenant)
            wishes = read_wishes(request.headers)
        except DatasetError as error:
            return problem_answer(request.id, Problem(error.status, str(error)))
        except WishError as error:
            return problem_answer(request.id, Problem(400, str(error)))
        now = self._clock.now()
        key = request.headers.get(IDEMPOTENCY_HEADER)
        named = f"{asked.dataset.input}\n{asked.dataset.output}".encode()
        work = Work(
            key=JobKey(tenant, self._ids() if key is None else keyed_id(tenant, key)),
            model=model,
            content_type=asked.content_type,
            accept=asked.accept,
            accepted_at=moment_ms(now),
            due_at=due_at(now, _WITHIN_S, wishes.deadline_ms),
            lanes=(),
            dataset=asked.dataset,
            fingerprint=fingerprint(model, asked.content_type, asked.accept, named),
        )
        deferred = accept(self._acceptance, request, work, None, call.time_left_s, self._log)
        if deferred.recorded:
            self._telemetry.count(model, {Count.JOBS_ACCEPTED: 1})
        return deferred.answer

    def _refusal(self, call: Call, model: str, policy: Policy) -> Problem | None:
        """Why this caller cannot have a data set run on this model at all."""
        if entry_of(call.request.identity, policy) is None:
            return Problem(403, "Only a tenant that the policy lists may have a data set run.")
        lanes = self._topology.models.get(model)
        if lanes is None:
            return Problem(404, "no model has this name")
        if not any(isinstance(lane, BatchLane) for lane in lanes.values()):
            return Problem(404, "This model has no batch lane.")
        if len(call.body) > LARGEST_BODY:
            return Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body exceeds the limit of {LARGEST_BODY} bytes")
        return None


def _place(job: Job) -> Place:
    return round(job.accepted_at * 1000), job.key.id


def _model_of(path: str) -> str | None:
    """The model in `/v1/models/{model}/batches`."""
    match path.split("/"):
        case ["", "v1", "models", model, "batches"] if model:
            return model
    return None

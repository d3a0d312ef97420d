"""The jobs handler over fakes: a tenant's own jobs, and nobody else's."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.batch_ports import Count, UnavailableError
from functions.bootstrap import JobsParts
from functions.core.identity import owner
from functions.core.job import PROMOTED, Dataset, End, Job, JobError, JobKey, JobState, Result, keyed_id
from functions.core.policy import Policy
from functions.core.request import Identity
from functions.core.run import Group, Run, RunState
from functions.handlers.jobs import respond
from functions.jobs import LARGEST_INLINE, Jobs, Shelf
from tests.unit.core.builders import BATCH, DEDICATED, MODEL, NOW, SERVERLESS, policy, topology
from tests.unit.handlers.acceptances import FakeAcceptance
from tests.unit.handlers.events import event
from tests.unit.handlers.fakes import FakeClock, FakeContext, FakeFunctionLog, FakePolicies
from tests.unit.handlers.shelves import FakeCounts, FakeRecords, FakeResults, FakeRuns
from tests.unit.handlers.test_route import headers, problem

ID = "0123456789abcdef" * 2
RUN = "inferlane-test-0123456789abcdef"
STRANGER: dict[str, object] = {"lambda": {"key_id": "x-1"}}
BATCHES = f"/v1/models/{MODEL}/batches"
DATASETS = ("s3://data/shared/", "s3://data/tenants/{tenant}")
ASKED = {"input": "s3://data/tenants/demo/in/", "output": "s3://data/tenants/demo/out/"}


@dataclass
class Desk:
    """The handler over fakes."""

    parts: JobsParts
    records: FakeRecords
    runs: FakeRuns
    results: FakeResults
    acceptance: FakeAcceptance
    counts: FakeCounts
    log: FakeFunctionLog
    clock: FakeClock

    def call(
        self,
        path: str,
        method: str = "GET",
        *,
        query: dict[str, str] | None = None,
        body: object = None,
        who: dict[str, object] | None = None,
        **sent: str,
    ) -> dict[str, object]:
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in sent.items()}
        made = event(path, method, body=text, headers=named, authorizer=who or {"lambda": {"key_id": "demo-1"}})
        return respond({**made, "queryStringParameters": query}, FakeContext(), self.parts)

    def get(self, path: str, **more: Any) -> dict[str, Any]:
        response = self.call(path, **more)
        assert response["statusCode"] == 200, response["body"]
        assert headers(response)["cache-control"] == "no-store"
        found = json.loads(str(response["body"]))
        assert isinstance(found, dict)
        return found

    def add(self, id_: str = ID, tenant: str = "demo", **parts: Any) -> Job:
        job = Job(
            **{
                "key": JobKey(tenant, id_),
                "model": MODEL,
                "fingerprint": "f" * 64,
                "accepted_at": NOW,
                "due_at": NOW + 3600,
                **parts,
            }
        )
        self.records.records[job.key] = job
        return job


def desk(by: Policy | None = None, *, no_policy: bool = False) -> Desk:
    clock, log = FakeClock(NOW), FakeFunctionLog()
    records, runs, results = FakeRecords(), FakeRuns(), FakeResults()
    acceptance, counts = FakeAcceptance(), FakeCounts()
    jobs = Jobs(
        topology(dedicated=DEDICATED, serverless=SERVERLESS, batch=BATCH),
        FakePolicies(None if no_policy else by or policy()),
        Shelf(records, runs, results),
        acceptance,
        clock,
        lambda: "e" * 32,
        counts,
        log,
        datasets=DATASETS,
    )
    return Desk(JobsParts(jobs, log), records, runs, results, acceptance, counts, log, clock)


def run(state: RunState) -> Run:
    return Run(RUN, Group(MODEL, "application/json", None, "lines"), state, NOW)


def done(**result: Any) -> End:
    return End(JobState.DONE, NOW + 60, "batch", 1.5e-6, Result(**{"content_type": "application/json", **result}))


def lines(made: Desk) -> list[dict[str, object]]:
    """What was said of calls, without how long they took and which they were."""
    said = [extra for level, message, extra in made.log.lines if (level, message) == ("info", "jobs")]
    for extra in said:
        assert isinstance(extra["took_s"], float)
        assert extra["request_id"]
    return [{name: extra[name] for name in extra if name not in ("took_s", "request_id")} for extra in said]


def test_a_call_has_a_line_of_its_own() -> None:
    """What was asked, of which job, and with which status it was answered; neither whose nor what."""
    made = desk()
    made.add()
    made.call(f"/v1/jobs/{ID}")
    made.call(f"/v1/jobs/{ID}", "DELETE")
    made.call("/v1/jobs", query={"cursor": "a secret"})
    made.call("/v1/jobs/a secret")
    made.call(BATCHES, "POST", body=ASKED)
    made.call("/v1/a secret")
    assert lines(made) == [
        {"operation": "look", "job": ID, "status": 200},
        {"operation": "cancel", "job": ID, "status": 200},
        {"operation": "list", "status": 400},
        {"operation": "look", "status": 404},
        {"operation": "run", "job": "e" * 32, "status": 202},
        {"operation": "none", "status": 404},
    ]
    said = json.dumps(made.log.lines)
    assert not [text for text in ("demo", "s3://", "a secret") if text in said]


def test_a_call_that_cannot_be_read_has_a_line_too() -> None:
    """Of what it was nothing can be said."""
    made = desk()
    assert respond({}, FakeContext(), made.parts)["statusCode"] == 400
    assert lines(made) == [{"operation": "unreadable", "status": 400}]


def test_a_job_is_told_as_it_stands() -> None:
    """Before it runs: what it is, since when, until when, and when to look again."""
    made = desk()
    made.add()
    assert made.get(f"/v1/jobs/{ID}") == {
        "id": ID,
        "status": "queued",
        "model": MODEL,
        "accepted_at": "2026-11-30T01:00:00Z",
        "deadline": "2026-11-30T02:00:00Z",
    }
    response = made.call(f"/v1/jobs/{ID}")
    assert headers(response)["retry-after"] == "60"
    assert headers(response)["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("run_name", "state", "status"),
    [
        (None, None, "queued"),
        (PROMOTED, None, "running"),
        (RUN, None, "queued"),
        (RUN, RunState.GATHERING, "queued"),
        (RUN, RunState.STARTING, "queued"),
        (RUN, RunState.RUNNING, "running"),
        (RUN, RunState.SETTLED, "running"),
    ],
)
def test_an_open_job_is_queued_until_its_run_runs(run_name: str | None, state: RunState | None, status: str) -> None:
    """A promoted one runs at once; a run that nobody knows has not begun."""
    made = desk()
    made.add(run=run_name)
    if state is not None:
        made.runs.runs[RUN] = run(state)
    assert made.get(f"/v1/jobs/{ID}")["status"] == status


def test_a_done_job_carries_its_answer() -> None:
    """JSON as it is, to the digit; lane, cost and whether it came late."""
    made = desk()
    made.add(run=RUN, end=done(size=34, body=b' {"label":"ok","score":0.10,"n":1E2}\n'))
    response = made.call(f"/v1/jobs/{ID}")
    assert str(response["body"]).endswith(',"result": {"label":"ok","score":0.10,"n":1E2}\n}')
    assert json.loads(str(response["body"])) == {
        "id": ID,
        "status": "done",
        "model": MODEL,
        "accepted_at": "2026-11-30T01:00:00Z",
        "deadline": "2026-11-30T02:00:00Z",
        "ended_at": "2026-11-30T01:01:00Z",
        "lane": "batch",
        "cost_usd": 1.5e-6,
        "content_type": "application/json",
        "result": {"label": "ok", "score": 0.1, "n": 100.0},
    }
    assert "retry-after" not in headers(response)
    assert made.runs.asked == []
    made.add(due_at=NOW + 59, end=done(size=2, body=b"{}"))
    assert made.get(f"/v1/jobs/{ID}")["late"] is True


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("image/png", b"\x89PNG"),
        ("application/json", b"{broken"),
        ("application/json", b'{"a":NaN}'),
        ("application/json", b"\xff"),
        ("application/json", b"[" * 5000),
        ("application/json", b""),
        ("text/csv", b"1"),
        (None, b"{}"),
    ],
)
def test_what_is_no_json_is_in_base64(content_type: str | None, body: bytes) -> None:
    """Whatever the model calls it, it cannot break the document."""
    made = desk()
    made.add(end=done(content_type=content_type, size=len(body), body=body))
    found = made.get(f"/v1/jobs/{ID}")
    assert base64.b64decode(found["result_base64"]) == body
    assert found.get("content_type") == content_type
    assert "result" not in found


def test_a_result_in_an_object_is_told_inline_while_it_is_small() -> None:
    """Up to 64 KiB; beyond, through a link that says when it ends; one that is gone is 410."""
    made = desk()
    text = b'"' + b"x" * (LARGEST_INLINE - 2) + b'"'
    made.results.objects["k"] = text
    made.add(end=done(size=len(text), object="k"))
    assert made.get(f"/v1/jobs/{ID}")["result"] == "x" * (LARGEST_INLINE - 2)
    made.add(end=done(size=LARGEST_INLINE + 1, object="k"))
    found = made.get(f"/v1/jobs/{ID}")
    assert found["result_url"] == "https://bucket.example/k?expires=900"
    assert found["result_url_expires_at"] == "2026-11-30T01:15:00Z"
    assert "result" not in found
    made.add(end=done(size=2, object="gone"))
    response = made.call(f"/v1/jobs/{ID}")
    assert (response["statusCode"], problem(response)["type"]) == (410, "urn:inferlane:problem:gone")


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.EXPIRED, JobState.CANCELLED])
def test_a_job_that_came_to_nothing_says_why(state: JobState) -> None:
    """In words without any inside."""
    made = desk()
    error = JobError(422, "text: required") if state is JobState.FAILED else None
    made.add(end=End(state, NOW + 1, error=error))
    found = made.get(f"/v1/jobs/{ID}")
    assert found["status"] == str(state)
    assert found.get("error") == ({"status": 422, "detail": "text: required"} if error else None)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_anothers_job_is_as_unknown_as_none(method: str) -> None:
    """The same 404 in the same words, with an id that exists elsewhere, nowhere, or could not."""
    made = desk()
    job = made.add(tenant="vip")
    found = [problem(made.call(f"/v1/jobs/{id_}", method)) for id_ in (ID, "f" * 32, "x", "", "..", ID.upper())]
    assert [each["status"] for each in found] == [404] * 6
    assert all(each == found[0] for each in found)
    assert made.records.asked == [JobKey("demo", ID), JobKey("demo", "f" * 32)], "others are not even looked for"
    assert made.records.records[job.key] == job


def test_callers_without_an_entry_have_jobs_of_their_own() -> None:
    """Sharing the default tenant's name shows nobody's job to another."""
    made = desk()
    mine = owner(Identity("api_key", key_id="x-1"), policy())
    made.add(tenant=mine)
    assert made.get(f"/v1/jobs/{ID}", who=STRANGER)["id"] == ID
    assert made.get("/v1/jobs", who=STRANGER)["jobs"] != []
    other: dict[str, object] = {"lambda": {"key_id": "x-2"}}
    assert made.call(f"/v1/jobs/{ID}", who=other)["statusCode"] == 404
    assert made.get("/v1/jobs", who=other)["jobs"] == []


WISHES = ("x-inferlane-tenant", "x-inferlane-tier", "idempotency-key", "authorization", "x-api-key", "prefer", "cookie")


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.sampled_from(WISHES), st.sampled_from(["vip", "acme", "demo-1", "vip-1", ID, "*"])),
    st.dictionaries(st.sampled_from(["tenant", "cursor", "limit", "id"]), st.sampled_from(["vip", "1", "*", ID])),
    st.sampled_from([f"/v1/jobs/{ID}", "/v1/jobs", f"/v1/jobs/vip/{ID}", f"/v1/jobs/{ID}?tenant=vip", BATCHES]),
    st.sampled_from(["GET", "DELETE", "POST"]),
    st.sampled_from([{"lambda": {"key_id": "demo-1"}}, STRANGER, {"lambda": {"key_id": "x"}}]),
)
def test_no_wish_shows_anothers_job(
    wishes: dict[str, str], query: dict[str, str], path: str, method: str, who: dict[str, object]
) -> None:
    """Whatever headers, parameters and paths say: only the identity tells whose jobs are looked at."""
    made = desk()
    job = made.add(tenant="vip")
    made.add(tenant="vip", id_="a" * 32)
    sent = event(path, method, body='{"tenant":"vip"}', headers=wishes, authorizer=who)
    response = respond({**sent, "queryStringParameters": query}, FakeContext(), made.parts)
    assert ID not in str(response["body"])
    assert made.records.records[job.key] == job
    assert all(key.tenant != "vip" for key in made.records.asked)


def test_what_is_queued_can_be_cancelled_and_stays_so() -> None:
    """Before its run has started; once more is the same answer."""
    for name in (None, RUN):
        made = desk()
        made.runs.runs[RUN] = run(RunState.GATHERING)
        job = made.add(run=name)
        first = made.get(f"/v1/jobs/{ID}", method="DELETE")
        assert (first["status"], first["ended_at"]) == ("cancelled", "2026-11-30T01:00:00Z")
        assert made.records.records[job.key].end == End(JobState.CANCELLED, NOW)
        made.clock.advance(60)
        assert made.get(f"/v1/jobs/{ID}", method="DELETE") == first


@pytest.mark.parametrize(
    ("parts", "slug"),
    [
        ({"run": PROMOTED}, "job-running"),
        ({"run": RUN}, "job-running"),
        ({"end": done(size=2, body=b"{}")}, "job-done"),
        ({"end": End(JobState.FAILED, NOW)}, "job-failed"),
        ({"end": End(JobState.EXPIRED, NOW)}, "job-expired"),
    ],
)
def test_what_runs_or_has_ended_cannot_be_cancelled(parts: dict[str, Any], slug: str) -> None:
    """409, and it is left as it is."""
    made = desk()
    made.runs.runs[RUN] = run(RunState.RUNNING)
    job = made.add(**parts)
    response = made.call(f"/v1/jobs/{ID}", "DELETE")
    assert (response["statusCode"], problem(response)["type"]) == (409, f"urn:inferlane:problem:{slug}")
    assert made.records.records[job.key] == job


def test_a_job_that_moves_while_it_is_cancelled_is_looked_at_again() -> None:
    """Gathered in between: cancelled in its run. Promoted in between: it runs."""
    for moved_to, status in ((RUN, 200), (PROMOTED, 409)):
        made = desk()
        job = made.add()

        def move(made: Desk = made, job: Job = job, to: str = moved_to) -> None:
            if made.records.records[job.key].end is None:
                made.records.records[job.key] = replace(job, run=to)

        made.records.before_end = move
        assert made.call(f"/v1/jobs/{ID}", "DELETE")["statusCode"] == status


def test_a_job_that_never_stands_still_is_a_503() -> None:
    """After three looks the caller may try again."""
    made = desk()
    job = made.add()
    names = iter(f"{RUN}{n}" for n in range(9))
    made.records.before_end = lambda: made.records.records.update({job.key: replace(job, run=next(names))})
    response = made.call(f"/v1/jobs/{ID}", "DELETE")
    assert (response["statusCode"], headers(response)["retry-after"]) == (503, "1")


def many(made: Desk, count: int, tenant: str = "demo") -> list[str]:
    """Ids of jobs accepted one a second but for pairs, oldest first."""
    ids = [f"{n:032x}" for n in range(count)]
    for n, id_ in enumerate(ids):
        end = End(JobState.FAILED, NOW) if n % 10 == 0 else None
        made.add(id_, tenant, accepted_at=NOW + n // 2, end=end, run=None if n % 3 else RUN)
    return ids


@pytest.mark.parametrize("limit", ["1", "7", "24", "25", "200"])
def test_pages_go_through_all_jobs_newest_first(limit: str) -> None:
    """Each once, none missing, also where several came in one moment; results are not in a list."""
    made = desk()
    ids = many(made, 25)
    many(made, 5, "vip")
    found: list[str] = []
    query = {"limit": limit}
    while True:
        page = made.get("/v1/jobs", query=query)
        found += [job["id"] for job in page["jobs"]]
        if page["next_cursor"] is None:
            break
        query = {"limit": limit, "cursor": page["next_cursor"]}
    assert found == ids[::-1]
    assert "result" not in str(page)


@pytest.mark.parametrize("limit", ["1", "2", "3", "50"])
def test_a_list_of_one_status_is_gone_through_likewise(limit: str) -> None:
    """Pages may be short of what lies between, but end and miss nothing."""
    made = desk()
    ids = many(made, 40)
    made.runs.runs[RUN] = run(RunState.RUNNING)
    for status, wanted in (
        ("failed", [id_ for n, id_ in enumerate(ids) if n % 10 == 0]),
        ("running", [id_ for n, id_ in enumerate(ids) if n % 10 and n % 3 == 0]),
        ("cancelled", []),
    ):
        found: list[str] = []
        query = {"limit": limit, "status": status}
        for _ in range(200):
            page = made.get("/v1/jobs", query=query)
            assert {job["status"] for job in page["jobs"]} <= {status}
            found += [job["id"] for job in page["jobs"]]
            if page["next_cursor"] is None:
                break
            query = {**query, "cursor": page["next_cursor"]}
        assert found == wanted[::-1]


def test_a_run_of_many_is_looked_at_once() -> None:
    """A page costs a read for each of its runs."""
    made = desk()
    many(made, 25)
    made.get("/v1/jobs")
    assert made.runs.asked == [RUN]


@pytest.mark.parametrize(
    "query",
    [
        *({"limit": text} for text in ("0", "201", "x", "", "-1", "1.5", "٣", "9" * 400)),
        *({"status": text} for text in ("", "accepted", "DONE", "*")),
        *(
            {"cursor": text}
            for text in ("", "x", "====", "MS4y", "é", base64.b64encode(b"1.vip/" + b"0" * 32).decode())
        ),
    ],
)
def test_a_malformed_query_is_the_callers_fault(query: dict[str, str]) -> None:
    """400, and nothing is read."""
    made = desk()
    assert made.call("/v1/jobs", query=query)["statusCode"] == 400
    assert made.records.pages == 0


@given(st.integers(0, 10**15 - 1), st.text("0123456789abcdef", min_size=32, max_size=32))
def test_a_tampered_cursor_only_begins_elsewhere(at: int, id_: str) -> None:
    """Any place in any list leads to the caller's own jobs before it."""
    made = desk()
    mine = many(made, 5)
    many(made, 5, "vip")
    cursor = base64.urlsafe_b64encode(f"{at}.{id_}".encode()).decode().rstrip("=")
    page = made.get("/v1/jobs", query={"cursor": cursor})
    assert {job["id"] for job in page["jobs"]} <= set(mine)


def test_without_a_proven_identity_nobody_gets_in() -> None:
    """401; an identity that the policy refuses is 403; without a policy nobody can be told: 503."""
    made = desk()
    sent = event("/v1/jobs", "GET", body=None, authorizer=None)
    assert respond(sent, FakeContext(), made.parts)["statusCode"] == 401
    closed = desk(policy(defaults={"unknown": "refuse"}))
    assert closed.call("/v1/jobs", who=STRANGER)["statusCode"] == 403
    unknown = desk(no_policy=True).call("/v1/jobs")
    assert (unknown["statusCode"], headers(unknown)["retry-after"]) == (503, "5")


@pytest.mark.parametrize(
    ("path", "method", "allow"),
    [
        ("/v1/jobs", "POST", "GET"),
        ("/v1/jobs", "DELETE", "GET"),
        (f"/v1/jobs/{ID}", "PUT", "DELETE, GET"),
        (BATCHES, "GET", "POST"),
    ],
)
def test_another_method_is_405(path: str, method: str, allow: str) -> None:
    """And says which are answered."""
    response = desk().call(path, method)
    assert (response["statusCode"], headers(response)["allow"]) == (405, allow)


@pytest.mark.parametrize("path", ["/v1/jobsx", "/v1/models//batches", "/v1/models/a/b/batches", "/", "/v1/batches"])
def test_other_paths_are_not_ours(path: str) -> None:
    """404."""
    assert desk().call(path, "POST")["statusCode"] == 404


def test_a_table_that_fails_is_a_503_without_any_inside() -> None:
    """The log says why, the caller when to come back."""
    made = desk()
    made.records.broken = UnavailableError("500 InternalServerError")
    response = made.call(f"/v1/jobs/{ID}")
    assert (response["statusCode"], headers(response)["retry-after"]) == (503, "5")
    assert "500" not in str(response["body"])
    assert made.log.lines[0][:2] == ("warning", "the jobs cannot be reached")
    assert made.log.lines[0][2]["cause"] == "500 InternalServerError"


def test_a_bug_is_a_500_without_any_inside() -> None:
    """As everywhere at the front door; so is an event that none could read a 400."""
    made = desk()
    made.records.records[JobKey("demo", ID)] = "no job"  # type: ignore[assignment]
    assert made.call(f"/v1/jobs/{ID}")["statusCode"] == 500
    bad = {**event("/v1/jobs", "GET", body=None), "queryStringParameters": 7}
    assert respond(bad, FakeContext(), made.parts)["statusCode"] == 400


def test_a_data_set_becomes_a_job() -> None:
    """202 with its place; the queue gets the two prefixes, the audit a count, and nobody is promised a lane."""
    made = desk()
    response = made.call(BATCHES, "POST", body=ASKED)
    assert response["statusCode"] == 202
    assert json.loads(str(response["body"])) == {
        "id": "e" * 32,
        "status": "queued",
        "deadline": "2026-12-01T01:00:00Z",
    }
    assert headers(response)["location"] == f"/v1/jobs/{'e' * 32}"
    (work,) = made.acceptance.queue
    assert work.dataset == Dataset("s3://data/tenants/demo/in/", "s3://data/tenants/demo/out/")
    assert (work.key.tenant, work.model, work.body, work.lanes) == ("demo", MODEL, None, ())
    assert (work.content_type, work.accept) == ("application/jsonlines", None)
    assert made.acceptance.records[work.key].dataset == work.dataset
    assert made.counts.counted == [(MODEL, {Count.JOBS_ACCEPTED: 1})]


def test_a_data_set_is_told_where_it_came_from_and_went() -> None:
    """`input` from the start, `output` once it is there."""
    made = desk()
    dataset = Dataset("s3://data/shared/in", "s3://data/shared/out")
    made.add(dataset=dataset)
    assert made.get(f"/v1/jobs/{ID}")["input"] == dataset.input
    made.add(dataset=dataset, end=End(JobState.DONE, NOW + 9, "batch"))
    assert made.get(f"/v1/jobs/{ID}")["output"] == dataset.output


def test_a_data_sets_key_names_one_job() -> None:
    """The same again is the same job and counts once; another data set under it is refused."""
    made = desk()
    for _ in range(2):
        response = made.call(BATCHES, "POST", body=ASKED, idempotency_key="night", x_inferlane_deadline_ms="7200000")
        assert json.loads(str(response["body"]))["id"] == keyed_id("demo", "night")
        assert json.loads(str(response["body"]))["deadline"] == "2026-11-30T03:00:00Z"
    assert (len(made.acceptance.queue), len(made.counts.counted)) == (1, 1)
    other = {**ASKED, "output": "s3://data/tenants/demo/other/"}
    assert made.call(BATCHES, "POST", body=other, idempotency_key="night")["statusCode"] == 422


@pytest.mark.parametrize(
    ("who", "path", "body", "status"),
    [
        (STRANGER, BATCHES, {"input": "s3://data/shared/a", "output": "s3://data/shared/b"}, 403),
        (None, "/v1/models/other/batches", ASKED, 404),
        (None, BATCHES, "x" * 20_000, 413),
        (None, BATCHES, "{", 400),
        (None, BATCHES, {**ASKED, "output": "s3://data/tenants/vip/out"}, 403),
    ],
    ids=["stranger", "model", "large", "no JSON", "another's"],
)
def test_a_data_set_is_refused(who: dict[str, object] | None, path: str, body: object, status: int) -> None:
    """Nothing is queued."""
    made = desk()
    assert made.call(path, "POST", body=body, who=who)["statusCode"] == status
    assert made.acceptance.queue == []


def test_a_data_set_needs_a_batch_lane_and_well_formed_wishes() -> None:
    """404 for a model without one; 400 for a deadline that is none; 503 where nothing is accepted."""
    made = desk()
    assert made.call(BATCHES, "POST", body=ASKED, x_inferlane_deadline_ms="soon")["statusCode"] == 400
    made.acceptance.broken = UnavailableError("no answer")
    assert made.call(BATCHES, "POST", body=ASKED)["statusCode"] == 503
    assert made.counts.counted == []
    sync = Jobs(
        topology(dedicated=DEDICATED),
        FakePolicies(policy()),
        Shelf(made.records, made.runs, made.results),
        made.acceptance,
        made.clock,
        lambda: "e" * 32,
        made.counts,
        made.log,
    )
    made.parts = JobsParts(sync, made.log)
    assert made.call(BATCHES, "POST", body=ASKED)["statusCode"] == 404

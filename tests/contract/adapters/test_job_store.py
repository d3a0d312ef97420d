"""The JobStore contract, against the fake and against DynamoDB through moto."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.aws.job_items import ItemError, decode, encode
from functions.aws.job_store import DynamoJobs
from functions.batch_ports import BusyError, JobStore, Sighting, UnavailableError
from functions.core.job import PROMOTED, Dataset, End, Job, JobError, JobKey, JobState, Result
from tests.contract.adapters.batch_tables import JOBS, client_of, hasty_client_of, tables
from tests.contract.adapters.stub import Reply, Stub, unused_url
from tests.contract.adapters.test_snapshot_store import _credentials
from tests.unit.batch.fakes import FakeJobs
from tests.unit.batch.weather import Weather

__all__ = ["_credentials"]
NOW = 1_700_000_000.0
RUN, OTHER = "inferlane-test-0000000000000000", "inferlane-test-1111111111111111"
DONE = End(JobState.DONE, NOW + 60.125, "batch", 1.25e-7, Result("application/json", 2, b"{}"))


@pytest.fixture(params=["fake", "dynamodb"])
def jobs(request: pytest.FixtureRequest) -> Iterator[JobStore]:
    if request.param == "fake":
        yield FakeJobs(Weather())
        return
    with tables() as client:
        yield DynamoJobs(client, JOBS, 3600)


def job(number: int = 0, tenant: str = "acme", **more: Any) -> Job:
    return Job(JobKey(tenant, f"{number:032x}"), "m", "f" * 64, NOW + number, NOW + number + 3600, **more)


def test_a_new_record_is_found_under_its_key(jobs: JobStore) -> None:
    """And under no other tenant's."""
    one = job(1, dataset=Dataset("s3://b/in/", "s3://b/out/"))
    assert jobs.add(one) is None
    elsewhere = replace(one.key, tenant="other")
    assert jobs.find([one.key, elsewhere, job(2).key]) == {one.key: one}
    assert jobs.find([]) == {}


def test_a_record_that_exists_is_answered_and_left(jobs: JobStore) -> None:
    """Also when it has ended since."""
    one = job()
    jobs.add(one)
    assert jobs.add(replace(one, fingerprint="e" * 64)) == one
    jobs.end({one.key: DONE}, None)
    assert jobs.add(one) == replace(one, end=DONE)
    assert jobs.find([one.key]) == {one.key: replace(one, end=DONE)}


def test_a_claim_takes_what_the_holder_held(jobs: JobStore) -> None:
    """Neither what another holds, nor what has ended, nor what there is not."""
    held = [job(number) for number in range(4)]
    for one in held:
        jobs.add(one)
    free, others, ended, again = (one.key for one in held)
    jobs.claim([others], OTHER, None)
    jobs.end({ended: End(JobState.CANCELLED, NOW)}, None)
    jobs.claim([again], RUN, None)
    asked = [free, others, ended, again, job(9).key]
    assert jobs.claim(asked, RUN, None) == {free, again}
    assert jobs.claim(asked, RUN, None) == {free, again}, "a claim may be made again"
    assert jobs.claim(asked, PROMOTED, RUN) == {free, again}
    assert jobs.claim(asked, RUN, RUN) == set()
    assert {key.id[-1]: found.run for key, found in jobs.find(asked).items()} == {
        "0": PROMOTED,
        "1": OTHER,
        "2": None,
        "3": PROMOTED,
    }


ENDS = {
    "done": DONE,
    "far": End(JobState.DONE, NOW + 1, "batch", None, Result(None, 10_000, object="batch/results/x")),
    "failed": End(JobState.FAILED, NOW + 1, error=JobError(422, "no text")),
    "expired": End(JobState.EXPIRED, NOW + 1),
    "cancelled": End(JobState.CANCELLED, NOW + 1),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_an_end_is_final_and_keeps_its_holder(jobs: JobStore, end: End) -> None:
    """Only the holder's; a second one changes nothing; the record goes on naming who answered for it."""
    one = job()
    jobs.add(one)
    jobs.claim([one.key], RUN, None)
    assert jobs.end({one.key: end}, None) == set()
    assert jobs.end({one.key: end}, OTHER) == set()
    assert jobs.end({one.key: end, job(9).key: end}, RUN) == {one.key}
    assert jobs.end({one.key: replace(DONE, at=NOW + 999)}, RUN) == set()
    assert jobs.end({one.key: end}, RUN) == set()
    assert jobs.claim([one.key], PROMOTED, RUN) == set()
    assert jobs.find([one.key]) == {one.key: replace(one, run=RUN, end=end)}


def test_a_tenants_jobs_come_newest_first_page_by_page(jobs: JobStore) -> None:
    """Each once, also where two were accepted in the same millisecond; other tenants' never."""
    made = [replace(job(number), accepted_at=NOW + number // 2) for number in range(7)]
    for one in [*made, job(3, "other")]:
        jobs.add(one)
    seen: list[Job] = []
    after: tuple[int, str] | None = None
    pages = 0
    while pages == 0 or after is not None:
        page = jobs.page("acme", 2, after)
        seen += page.jobs
        after = page.next
        pages += 1
    assert pages == 4
    assert [one.accepted_at for one in seen] == sorted((one.accepted_at for one in made), reverse=True)
    assert {one.key for one in seen} == {one.key for one in made}
    assert len(seen) == 7
    assert jobs.page("nobody", 10).jobs == ()


def test_a_page_that_holds_all_has_no_next(jobs: JobStore) -> None:
    """To the last one; and a cursor whose job is gone still points between its neighbours."""
    made = [job(number) for number in range(3)]
    for one in made:
        jobs.add(one)
    assert jobs.page("acme", 3).next is None
    assert jobs.page("acme", 2).next == (int((NOW + 1) * 1000), made[1].key.id)
    assert jobs.page("acme", 2, (int((NOW + 1) * 1000) + 500, "gone")).jobs == (made[1], made[0])


def test_the_audit_sees_every_record(jobs: JobStore) -> None:
    """Whose, in which state, from when, due when, and who answers for it."""
    one, two = job(1), job(2, "other")
    jobs.add(one)
    jobs.add(two)
    jobs.claim([two.key], RUN, None)
    jobs.end({one.key: DONE}, None)
    assert set(jobs.sightings()) == {
        Sighting(one.key, JobState.DONE, one.accepted_at, one.due_at, None),
        Sighting(two.key, JobState.ACCEPTED, two.accepted_at, two.due_at, RUN),
    }


# What is DynamoDB's alone.


def test_many_keys_are_read_in_portions_of_a_hundred() -> None:
    """More than one portion, and as many ended."""
    with tables() as client:
        jobs = DynamoJobs(client, JOBS, 3600)
        made = [job(number) for number in range(120)]
        for one in made:
            client.put_item(TableName=JOBS, Item=encode(one, 0))
        keys = [one.key for one in made]
        assert len(jobs.find(keys)) == 120
        assert jobs.claim(keys, RUN, None) == set(keys)
        assert jobs.end(dict.fromkeys(keys, DONE), RUN) == set(keys)
        assert {sighting.state for sighting in jobs.sightings()} == {JobState.DONE}


def test_only_what_has_ended_expires() -> None:
    """After the time that records are kept."""
    with tables() as client:
        jobs = DynamoJobs(client, JOBS, 3600)
        one = job()
        jobs.add(one)
        asked: Any = {"TableName": JOBS, "Key": {"tenant": {"S": "acme"}, "id": {"S": one.key.id}}}
        assert "expires_at" not in client.get_item(**asked)["Item"]
        jobs.end({one.key: DONE}, None)
        assert client.get_item(**asked)["Item"]["expires_at"] == {"N": str(int(DONE.at) + 3600)}


def test_a_malformed_item_is_told_without_its_content() -> None:
    """Ours to mend."""
    with pytest.raises(ItemError, match="a job's item is malformed: KeyError"):
        decode({"tenant": {"S": "acme"}, "id": {"S": "x"}, "state": {"S": "accepted"}})
    with pytest.raises(ItemError, match="malformed: ValueError"):
        decode({**encode(job(), 0), "state": {"S": "lost"}})


TEXTS = st.text(max_size=20)
MILLIS = st.integers(0, 4_000_000_000_000).map(lambda millis: millis / 1000)
RESULTS = st.builds(
    Result, st.none() | TEXTS, st.integers(0, 10**9), body=st.none() | st.binary(max_size=50), object=st.none() | TEXTS
)
ENDINGS = st.builds(
    End,
    st.sampled_from([state for state in JobState if state is not JobState.ACCEPTED]),
    MILLIS,
    lane=st.none() | TEXTS,
    cost_usd=st.none() | st.integers(0, 10**9).map(lambda nano: nano / 1e9),
    result=st.none() | RESULTS,
    error=st.none() | st.builds(JobError, st.integers(400, 599), TEXTS),
)


@given(
    st.builds(
        Job,
        st.builds(JobKey, TEXTS, TEXTS),
        TEXTS,
        TEXTS,
        MILLIS,
        MILLIS,
        run=st.none() | TEXTS,
        end=st.none() | ENDINGS,
        dataset=st.none() | st.builds(Dataset, TEXTS, TEXTS),
    )
)
def test_whatever_a_record_holds_comes_back(one: Job) -> None:
    """Any text, any bytes, any end."""
    assert decode(encode(one, 0)) == one


CONDITION = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"


def refused(item: dict[str, Any]) -> Reply:
    body = json.dumps({"__type": CONDITION, "message": "The conditional request failed", "Item": item}).encode()
    return Reply(400, body, {"content-type": "application/x-amz-json-1.0"})


def over(stub: Stub, monkeypatch: pytest.MonkeyPatch, client: Callable[[str], Any] = client_of) -> DynamoJobs:
    monkeypatch.setenv("AWS_ENDPOINT_URL", stub.url)
    return DynamoJobs(client("dynamodb"), JOBS, 3600)


def wire(one: Job) -> dict[str, Any]:
    """The item without bytes, as JSON has it."""
    return {name: value for name, value in encode(one, 3600).items() if name != "result"}


def test_an_end_whose_answer_was_lost_was_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sent again by the client, refused, and the record says what we said: it was this call that ended it."""
    one = job(run=RUN)
    ended = wire(replace(one, end=DONE))
    with Stub(Reply(500, b"{}"), refused(ended)) as stub:
        assert over(stub, monkeypatch).end({one.key: DONE}, RUN) == {one.key}
    with Stub(refused(ended)) as stub:
        assert over(stub, monkeypatch).end({one.key: DONE}, RUN) == set(), "another call's"
    other = wire(replace(one, end=replace(DONE, at=NOW + 61)))
    with Stub(Reply(500, b"{}"), refused(other)) as stub:
        assert over(stub, monkeypatch).end({one.key: DONE}, RUN) == set()


def test_a_record_whose_answer_was_lost_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """As above."""
    one = job()
    with Stub(Reply(500, b"{}"), refused(wire(one))) as stub:
        assert over(stub, monkeypatch).add(one) is None
    with Stub(refused(wire(one))) as stub:
        assert over(stub, monkeypatch).add(one) == one


def test_keys_that_are_left_over_are_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """DynamoDB answers as much as it can at a time; for ever less, it is busy."""
    one, two = job(1), job(2)
    left = {JOBS: {"Keys": [{"tenant": {"S": "acme"}, "id": {"S": two.key.id}}], "ConsistentRead": True}}
    some = {"Responses": {JOBS: [wire(one)]}, "UnprocessedKeys": left}
    rest = {"Responses": {JOBS: [wire(two)]}, "UnprocessedKeys": {}}
    with Stub(*[Reply(200, json.dumps(body).encode()) for body in (some, rest)]) as stub:
        assert over(stub, monkeypatch).find([one.key, two.key]) == {one.key: one, two.key: two}
        assert json.loads(stub.received[1].body)["RequestItems"] == left
    none = {"Responses": {}, "UnprocessedKeys": left}
    with Stub(Reply(200, json.dumps(none).encode())) as stub, pytest.raises(BusyError, match="leaves keys"):
        over(stub, monkeypatch).find([two.key])


THROTTLED = Reply(400, b'{"__type":"x#ProvisionedThroughputExceededException","message":"slow down, 123456789012"}')


def test_errors_are_busy_or_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """After three attempts, without an account's number."""
    with Stub(THROTTLED) as stub:
        with pytest.raises(BusyError, match="slow down, <account>"):
            over(stub, monkeypatch).claim([job().key], RUN, None)
        assert len(stub.received) == 3
    missing = Reply(400, b'{"__type":"x#ResourceNotFoundException","message":"no table"}')
    with Stub(missing) as stub, pytest.raises(UnavailableError, match="no table"):
        next(over(stub, monkeypatch).sightings())
    monkeypatch.setenv("AWS_ENDPOINT_URL", unused_url())
    with pytest.raises(UnavailableError):
        DynamoJobs(hasty_client_of("dynamodb"), JOBS, 3600).page("acme", 1)


def test_after_a_failure_half_way_what_was_done_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing more is begun than was under way."""
    ok = Reply(200, b"{}")
    with Stub(ok, ok, THROTTLED) as stub:
        with pytest.raises(BusyError):
            over(stub, monkeypatch, hasty_client_of).claim([job(number).key for number in range(60)], RUN, None)
        assert len(stub.received) < 60

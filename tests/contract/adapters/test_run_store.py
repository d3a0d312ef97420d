"""The RunStore contract, against the fake and against DynamoDB through moto."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.aws.job_items import ItemError
from functions.aws.run_items import decode, encode
from functions.aws.run_store import DynamoRuns
from functions.batch_ports import RunStore
from functions.core.run import Group, Part, Run, RunState, Tally
from tests.contract.adapters.batch_tables import RUNS, client_of, tables
from tests.contract.adapters.stub import Reply, Stub
from tests.contract.adapters.test_job_store import refused
from tests.contract.adapters.test_snapshot_store import _credentials
from tests.unit.batch.fakes import FakeRuns
from tests.unit.batch.weather import Weather

__all__ = ["_credentials"]
NOW = 1_700_000_000.0
GROUP = Group("m", "application/json", None, "lines")
PART = Part("00", 10, 1234, NOW + 600.5)


@pytest.fixture(params=["fake", "dynamodb"])
def runs(request: pytest.FixtureRequest) -> Iterator[RunStore]:
    if request.param == "fake":
        yield FakeRuns(Weather())
        return
    with tables() as client:
        yield DynamoRuns(client, RUNS, 3600)


def run(number: int = 0, **more: Any) -> Run:
    return replace(Run(f"inferlane-test-{number:016x}", GROUP, RunState.GATHERING, NOW + number), **more)


def test_a_new_run_is_found_by_its_name(runs: RunStore) -> None:
    """Written once; one of the same name is left as it is."""
    one = run(1, attempt=2, parent="inferlane-test-p", parts=(PART,), input="s3://b/in", output="s3://b/out")
    assert runs.add(one) is True
    assert runs.add(replace(one, attempt=1)) is False
    assert runs.find(one.name) == one
    assert runs.find(run(2).name) is None


def test_a_gathering_run_takes_parts_each_once(runs: RunStore) -> None:
    """In order; the same name again changes nothing and is no failure."""
    one = run()
    runs.add(one)
    other = replace(PART, name="01", first_due=NOW + 300)
    assert [runs.add_part(one.name, part) for part in (PART, other, PART)] == [True, True, True]
    found = runs.find(one.name)
    assert found is not None
    assert found.parts == (PART, other)
    assert (found.records, found.first_due) == (20, NOW + 300)


def test_a_run_that_is_closed_takes_none(runs: RunStore) -> None:
    """Nor does one that there is not."""
    one = run()
    runs.add(one)
    runs.move(one.name, RunState.GATHERING, RunState.STARTING, at=NOW)
    assert runs.add_part(one.name, PART) is False
    assert runs.add_part(run(9).name, PART) is False
    assert runs.find(run(9).name) is None


def test_a_run_moves_on_from_where_it_is(runs: RunStore) -> None:
    """Not from elsewhere, and not twice; with its times and what became of its records."""
    one = run()
    runs.add(one)
    assert runs.move(one.name, RunState.STARTING, RunState.RUNNING, at=NOW) is False
    assert runs.move(one.name, RunState.GATHERING, RunState.STARTING, at=NOW + 1) is True
    assert runs.move(one.name, RunState.GATHERING, RunState.STARTING, at=NOW + 1) is False
    assert runs.move(one.name, RunState.STARTING, RunState.RUNNING, at=NOW + 2) is True
    tally = Tally(1, 2, 3, 4, 5, 6)
    assert runs.move(one.name, RunState.RUNNING, RunState.SETTLED, at=NOW + 3, tally=tally) is True
    assert runs.move(one.name, RunState.RUNNING, RunState.SETTLED, at=NOW + 4, tally=Tally()) is False
    assert runs.move(run(9).name, RunState.RUNNING, RunState.SETTLED, at=NOW) is False
    assert runs.find(one.name) == replace(
        one, state=RunState.SETTLED, started_at=NOW + 2, settled_at=NOW + 3, tally=tally
    )


def test_open_runs_are_those_not_settled(runs: RunStore) -> None:
    """In no order; one that had nothing to do is settled without a transform job."""
    for number in (2, 0, 1):
        runs.add(run(number))
    runs.add(run(3, state=RunState.SETTLED, settled_at=NOW))
    runs.add_part(run(1).name, PART)
    runs.move(run(1).name, RunState.GATHERING, RunState.STARTING, at=NOW)
    runs.move(run(2).name, RunState.GATHERING, RunState.SETTLED, at=NOW, tally=Tally())
    assert set(runs.open()) == {run(0), run(1, parts=(PART,), state=RunState.STARTING)}


def test_one_collector_at_a_time(runs: RunStore) -> None:
    """Who holds the lease may keep it; another takes it once it is given back or has run out; it is no run."""
    assert runs.lease("a", NOW, NOW + 60) is True
    assert runs.lease("b", NOW + 1, NOW + 61) is False
    assert runs.lease("a", NOW + 30, NOW + 90) is True
    runs.release("b")
    assert runs.lease("b", NOW + 60, NOW + 120) is False
    runs.release("a")
    assert runs.lease("b", NOW + 61, NOW + 121) is True
    assert runs.lease("c", NOW + 121, NOW + 181) is True
    runs.release("b")
    assert runs.lease("d", NOW + 122, NOW + 182) is False
    assert runs.open() == ()


# What is DynamoDB's alone.


def test_only_a_settled_run_expires() -> None:
    """And it is no more in the index of the open ones."""
    with tables() as client:
        store = DynamoRuns(client, RUNS, 3600)
        store.add(run())
        asked: Any = {"TableName": RUNS, "Key": {"name": {"S": run().name}}}
        before = client.get_item(**asked)["Item"]
        store.move(run().name, RunState.GATHERING, RunState.SETTLED, at=NOW)
        after = client.get_item(**asked)["Item"]
    assert ("open" in before, "expires_at" in before) == (True, False)
    assert ("open" in after, after["expires_at"]) == (False, {"N": str(int(NOW) + 3600)})


def test_a_move_whose_answer_was_lost_was_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sent again by the client and refused, while the item says what we said; a run's first writing likewise."""
    moved = encode(run(state=RunState.RUNNING, started_at=NOW + 5), 0)
    for script, found in (([Reply(500, b"{}"), refused(moved)], True), ([refused(moved)], False)):
        with Stub(*script) as stub:
            monkeypatch.setenv("AWS_ENDPOINT_URL", stub.url)
            store = DynamoRuns(client_of("dynamodb"), RUNS, 3600)
            assert store.move(run().name, RunState.STARTING, RunState.RUNNING, at=NOW + 5) is found
    with Stub(Reply(500, b"{}"), refused(json.loads(json.dumps(encode(run(), 0))))) as stub:
        monkeypatch.setenv("AWS_ENDPOINT_URL", stub.url)
        assert DynamoRuns(client_of("dynamodb"), RUNS, 3600).add(run()) is True


def test_a_malformed_item_is_told_without_its_content() -> None:
    """Ours to mend."""
    with pytest.raises(ItemError, match="a run's item is malformed: KeyError"):
        decode({"name": {"S": "x"}})


TEXTS = st.text(max_size=20)
MILLIS = st.integers(0, 4_000_000_000_000).map(lambda millis: millis / 1000)
COUNTS = st.integers(0, 10**6)
PARTS = st.lists(st.builds(Part, TEXTS, COUNTS, COUNTS, MILLIS), max_size=3, unique_by=lambda part: part.name)


@given(
    st.builds(
        Run,
        TEXTS,
        st.builds(Group, TEXTS, st.none() | TEXTS, st.none() | TEXTS, st.sampled_from(["lines", "objects", "dataset"])),
        st.just(RunState.SETTLED),
        MILLIS,
        attempt=st.integers(1, 2),
        parts=PARTS.map(tuple),
        started_at=st.none() | MILLIS,
        settled_at=MILLIS,
        tally=st.builds(Tally, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS),
        parent=st.none() | TEXTS,
        input=st.none() | TEXTS,
        output=st.none() | TEXTS,
    )
)
def test_whatever_a_run_holds_comes_back(one: Run) -> None:
    """Any group, any parts, any counts."""
    assert decode(encode(one, 0)) == one

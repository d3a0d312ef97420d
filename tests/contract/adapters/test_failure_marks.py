"""The FailureMarks contract, against the fake and against DynamoDB through moto."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from functions.aws.failure_marks import SharedMarks
from functions.ports import FailureMarks
from tests.contract.adapters.stub import unused_url
from tests.contract.adapters.test_snapshot_store import TABLE, Watched, _credentials, client, direct, items
from tests.unit.core.builders import MODEL, NOW
from tests.unit.handlers.fakes import FakeLog, FakeMarks

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

__all__ = ["_credentials", "client"]
KEY = (MODEL, "dedicated")
OTHER = ("a|b", "serverless")


def instance(made: object, owner: str = "one", log: FakeLog | None = None) -> SharedMarks:
    return SharedMarks(items(made), TABLE, owner=owner, log=log if log is not None else FakeLog())


@pytest.fixture(params=["fake", "dynamodb", "no table"])
def marks(request: pytest.FixtureRequest, client: DynamoDBClient) -> Iterator[FailureMarks]:
    if request.param == "fake":
        yield FakeMarks()
        return
    if request.param == "no table":
        client.delete_table(TableName=TABLE)
    yield instance(client)


def test_an_instance_neither_fails_nor_sees_its_own_mark(marks: FailureMarks) -> None:
    """The fake's promise and the adapter's, with and without a table."""
    marks.publish({KEY: NOW}, NOW)
    assert marks.marks(NOW, urgent=True) == {}


def test_others_see_a_mark_with_its_time(client: DynamoDBClient) -> None:
    """Any model's name, several at once."""
    instance(client, "one").publish({KEY: NOW - 1, OTHER: NOW - 2}, NOW)
    instance(client, "three").publish({KEY: NOW}, NOW)
    found = instance(client, "two").marks(NOW, urgent=False)
    assert {key: sorted(at) for key, at in found.items()} == {KEY: [NOW - 1, NOW], OTHER: [NOW - 2]}


def test_it_looks_seldom_while_all_is_well_and_often_while_a_lane_fails(client: DynamoDBClient) -> None:
    """Every 15 s, or every 2."""
    calm, urgent = Watched(client), Watched(client)
    a, b = instance(calm), instance(urgent)
    for second in range(60):
        a.marks(NOW + second, urgent=False)
        b.marks(NOW + second, urgent=True)
    assert (len(calm.calls), len(urgent.calls)) == (4, 30)


def test_a_thousand_instances_leave_a_small_item(client: DynamoDBClient) -> None:
    """Eight slots a lane."""
    for i in range(100):
        instance(client, f"i-{i}").publish({KEY: NOW + i}, NOW + i)
    item = client.get_item(TableName=TABLE, Key={"pk": {"S": "marks"}})["Item"]
    assert len(item) <= 2 + 8


def test_old_marks_go_with_the_next_write(client: DynamoDBClient) -> None:
    """Seen to be older than ten minutes."""
    instance(client, "one").publish({KEY: NOW}, NOW)
    later = instance(client, "two")
    assert later.marks(NOW + 700, urgent=True) == {}
    later.publish({OTHER: NOW + 700}, NOW + 700)
    item = client.get_item(TableName=TABLE, Key={"pk": {"S": "marks"}})["Item"]
    assert [name for name in item if "|" in name and MODEL in name] == []


def test_a_table_that_does_not_answer_is_asked_less_and_told_once(client: DynamoDBClient) -> None:
    """What was known serves on; calls in vain after pauses that double, one line a minute, no account id."""
    instance(client, "one").publish({KEY: NOW}, NOW)
    watched, log = Watched(client), FakeLog()
    mine = instance(watched, "two", log)
    assert mine.marks(NOW, urgent=True) == {KEY: [NOW]}
    watched.broken = True
    calls = len(watched.calls)
    assert all(mine.marks(NOW + second, urgent=True) == {KEY: [NOW]} for second in range(1, 59))
    mine.publish({KEY: NOW}, NOW + 59)
    assert len(watched.calls) - calls == 1 + 2 + 1  # looks at 2, 17 and 47 s, and the mark
    assert len(log.lines) == 1
    assert "123456789012" not in str(log.lines)
    calls = len(watched.calls)
    assert all(mine.marks(NOW + second, urgent=True) for second in range(60, 600))
    assert len(watched.calls) - calls <= 540 / 60 + 1
    watched.broken = False
    mine.marks(NOW + 660, urgent=True)
    calls = len(watched.calls)
    assert [mine.marks(NOW + second, urgent=True) for second in range(661, 669)]
    assert len(watched.calls) - calls == 4  # as often as ever


def test_nobody_there_is_no_failure() -> None:
    """Neither a mark left nor one found, and no error."""
    mine = SharedMarks(direct(unused_url()), TABLE, owner="a", log=FakeLog())
    mine.publish({KEY: NOW}, NOW)
    assert mine.marks(NOW, urgent=False) == {}

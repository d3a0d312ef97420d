"""The WorkQueue contract, against the fake and against SQS through moto; and the text of a message."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from functions.aws.work_messages import INLINE_BYTES, payload_key, read, write
from functions.aws.work_queue import SqsQueue
from functions.batch_ports import BusyError, UnavailableError, WorkQueue
from functions.core.job import Dataset, JobKey, Work
from tests.contract.adapters.batch_tables import client_of, hasty_client_of
from tests.contract.adapters.stub import Reply, Stub, unused_url
from tests.contract.adapters.test_snapshot_store import _credentials
from tests.unit.batch.fakes import FakeObjects, FakeQueue
from tests.unit.batch.weather import Weather
from tests.unit.handlers.fakes import FakeClock

__all__ = ["_credentials"]
NOW = 1_700_000_000.0


def work(number: int = 0, **more: Any) -> Work:
    made = Work(
        JobKey("acme", f"{number:032x}"), "m", "application/json", None, NOW, NOW + 3600.5, ("serverless",), b'{"a": 1}'
    )
    return replace(made, **more)


@pytest.fixture(params=["fake", "sqs"])
def queue(request: pytest.FixtureRequest) -> Iterator[WorkQueue]:
    objects = FakeObjects(Weather())
    if request.param == "fake":
        yield FakeQueue(Weather(), FakeClock(NOW))
        return
    with mock_aws():
        client = client_of("sqs")
        url = client.create_queue(QueueName="work")["QueueUrl"]
        yield SqsQueue(client, url, objects)


def drained(queue: WorkQueue, most: int = 1000) -> list[Work | None]:
    found: list[Work | None] = []
    while received := queue.receive(most):
        found += [one.work for one in received]
        queue.delete([one.receipt for one in received])
    return found


def test_what_was_sent_is_received_until_it_is_deleted(queue: WorkQueue) -> None:
    """All of it; perhaps twice, as SQS promises no more. An empty queue gives nothing."""
    sent = [work(number) for number in range(23)]
    queue.send(sent)
    queue.send([])
    assert set(drained(queue)) == set(sent)
    assert queue.receive(10) == []
    queue.delete([])


def test_no_more_is_received_than_was_asked_for(queue: WorkQueue) -> None:
    """One, and some."""
    queue.send([work(number) for number in range(40)])
    assert len(queue.receive(1)) == 1
    assert 1 <= len(queue.receive(25)) <= 25


def test_a_message_is_hidden_for_as_long_as_it_is_told(queue: WorkQueue) -> None:
    """Not at all: it is there again."""
    queue.send([work()])
    (first,) = queue.receive(10)
    assert queue.receive(10) == []
    queue.hide(first.receipt, 0)
    (again,) = queue.receive(10)
    assert again.work == first.work


# What is SQS's alone.


def test_a_message_says_when_it_was_sent() -> None:
    """To the millisecond, by SQS's clock."""
    with mock_aws():
        client = client_of("sqs")
        queue = SqsQueue(client, client.create_queue(QueueName="work")["QueueUrl"], FakeObjects(Weather()))
        queue.send([work()])
        (received,) = queue.receive(1)
    assert abs(received.sent_at - time.time()) < 30


def test_a_body_that_no_message_carries_goes_to_the_bucket_first() -> None:
    """A message names the object; ten large ones do not fit into one call, and are sent all the same."""
    objects = FakeObjects(Weather())
    with mock_aws():
        client = client_of("sqs")
        queue = SqsQueue(client, client.create_queue(QueueName="work")["QueueUrl"], objects)
        large = work(99, body=b"x" * (INLINE_BYTES + 1))
        whole = [work(number, body=b"x" * INLINE_BYTES) for number in range(3)]
        queue.send([large, *whole])
        found = {one.key: one for one in drained(queue) if one is not None}
    body = large.body
    assert body is not None
    key = payload_key(large, body)
    assert found[large.key] == replace(large, body=None, object=key)
    assert objects.rows == {key: body}
    assert [found[one.key] for one in whole] == whole


def test_a_message_that_cannot_be_read_is_received_without_work() -> None:
    """So that it can be told of."""
    with mock_aws():
        client = client_of("sqs")
        url = client.create_queue(QueueName="work")["QueueUrl"]
        client.send_message(QueueUrl=url, MessageBody="{")
        (received,) = SqsQueue(client, url, FakeObjects(Weather())).receive(1)
    assert received.work is None


def sqs(url: str, monkeypatch: pytest.MonkeyPatch) -> SqsQueue:
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    return SqsQueue(hasty_client_of("sqs"), "https://sqs.test/1/work", FakeObjects(Weather()))


def answered(document: object) -> Reply:
    return Reply(200, json.dumps(document).encode(), {"content-type": "application/x-amz-json-1.0"})


REFUSED = {"Failed": [{"Id": "1", "Code": "InternalError", "SenderFault": False}], "Successful": []}


def test_what_is_refused_of_a_batch_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone; after three times it has failed."""
    with Stub(answered(REFUSED), answered({"Successful": []})) as stub:
        sqs(stub.url, monkeypatch).send([work(0), work(1), work(2)])
        entries = [[entry["Id"] for entry in json.loads(seen.body)["Entries"]] for seen in stub.received]
        assert entries == [["0", "1", "2"], ["1"]]
    with Stub(answered(REFUSED)) as stub:
        with pytest.raises(UnavailableError, match="refused 1 messages of a batch: InternalError"):
            sqs(stub.url, monkeypatch).send([work(0), work(1)])
        assert len(stub.received) == 3
    throttled = {"Failed": [{"Id": "0", "Code": "RequestThrottled", "SenderFault": False}]}
    with Stub(answered(throttled)) as stub, pytest.raises(BusyError):
        sqs(stub.url, monkeypatch).send([work(0)])


def test_errors_are_busy_or_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is called."""
    throttled = Reply(400, b'{"__type":"com.amazonaws.sqs#RequestThrottled","message":"slow"}')
    with Stub(throttled) as stub:
        with pytest.raises(BusyError):
            sqs(stub.url, monkeypatch).receive(10)
        with pytest.raises(BusyError):
            sqs(stub.url, monkeypatch).delete(["r"])
        with pytest.raises(BusyError):
            sqs(stub.url, monkeypatch).hide("r", 3)
    with Stub(Reply(400, b'{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"no"}')) as stub:
        made = sqs(stub.url, monkeypatch)
        with pytest.raises(UnavailableError, match="QueueDoesNotExist"):
            made.send([work()])
    with pytest.raises(UnavailableError):
        sqs(unused_url(), monkeypatch).receive(1)


# The text of a message.

TEXTS = st.text(max_size=20)
MILLIS = st.integers(0, 4_000_000_000_000).map(lambda millis: millis / 1000)


@given(
    st.builds(
        Work,
        st.builds(JobKey, TEXTS, TEXTS),
        TEXTS,
        st.none() | TEXTS,
        st.none() | TEXTS,
        MILLIS,
        MILLIS,
        st.lists(TEXTS, max_size=3).map(tuple),
        body=st.none() | st.binary(max_size=50),
        object=st.none() | TEXTS,
        dataset=st.none() | st.builds(Dataset, TEXTS, TEXTS),
        fingerprint=st.none() | TEXTS,
    )
)
def test_whatever_work_holds_comes_back(one: Work) -> None:
    """Any text, any bytes; the message is ASCII, as SQS wants certain characters never."""
    assert write(one).isascii()
    assert read(write(one)) == one


@pytest.mark.parametrize(
    "change",
    [
        {"tenant": None},
        {"id": 1},
        {"lanes": "serverless"},
        {"lanes": [1]},
        {"due_at_ms": "soon"},
        {"due_at_ms": True},
        {"body": "no Base64!"},
        {"body": 1},
        {"dataset": "s3://b"},
        {"dataset": {"input": "s3://b"}},
        {"content_type": 1},
    ],
)
def test_what_is_no_work_of_ours_is_none(change: dict[str, object]) -> None:
    """Members of another kind, or missing; unknown ones are a newer sender's."""
    document = json.loads(write(work()))
    assert read(json.dumps(document | {"newer": 1})) == work()
    assert read(json.dumps(document | change)) is None
    assert read(json.dumps([document])) is None
    del document["model"]
    assert read(json.dumps(document)) is None
    assert read("[" * 100_000) is None

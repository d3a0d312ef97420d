"""What the bill takes the batch lane to do for each job, counted over the functions that do it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from functions.collect import Collector
from functions.core.job import End, JobKey
from functions.settle import Settler
from tests.unit.batch.world import STACK, World, batch_topology
from workbench.bench.batch_bill import Operations

JOBS = 1000


class Counted:
    """A port that counts what its calls are charged for, and passes them on."""

    def __init__(self, port: Any, counts: Counter[str]) -> None:
        self._port = port
        self._counts = counts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)


class CountedJobs(Counted):
    """DynamoDB: a unit for each record read or written."""

    def find(self, keys: Sequence[JobKey]) -> Any:
        self._counts["reads"] += len(keys)
        return self._port.find(keys)

    def claim(self, keys: Sequence[JobKey], run: str, held_by: str | None) -> Any:
        self._counts["writes"] += len(keys)
        return self._port.claim(keys, run, held_by)

    def end(self, ends: Mapping[JobKey, End], held_by: str | None) -> Any:
        self._counts["writes"] += len(ends)
        return self._port.end(ends, held_by)


class CountedObjects(Counted):
    """S3: a request for each object; a list costs what a put does."""

    def put(self, *arguments: Any) -> None:
        self._counts["puts"] += 1
        self._port.put(*arguments)

    def put_all(self, objects: Mapping[str, bytes], content_type: str | None = None) -> None:
        self._counts["puts"] += len(objects)
        self._port.put_all(objects, content_type)

    def get(self, key: str) -> Any:
        self._counts["gets"] += 1
        return self._port.get(key)

    def get_all(self, keys: Sequence[str]) -> Any:
        self._counts["gets"] += len(keys)
        return self._port.get_all(keys)

    def sizes(self, prefix: str) -> Any:
        self._counts["lists"] += 1
        return self._port.sizes(prefix)


class CountedQueue(Counted):
    """SQS: a request for each receive that brings something, and for each ten that are deleted."""

    def receive(self, most: int) -> Any:
        found = self._port.receive(most)
        self._counts["received"] += bool(found)
        return found

    def delete(self, receipts: Sequence[str]) -> None:
        self._counts["deleted"] += -(-len(receipts) // 10)
        self._port.delete(receipts)


@pytest.fixture(scope="module")
def counts() -> Counter[str]:
    """Of a thousand jobs that are gathered, run and settled in peace."""
    world, counts = World(batch_topology(target_records=JOBS, max_concurrent=1000)), Counter[str]()
    for number in range(JOBS):
        world.accept(number, within_s=6 * 3600.0)
    ports = dataclasses.replace(
        world.ports,
        jobs=CountedJobs(world.jobs, counts),
        objects=CountedObjects(world.objects, counts),
        work=CountedQueue(world.work, counts),
    )
    settler = Settler(ports, world.topology, new_id=world.new_id)
    collector = Collector(ports, world.topology, settler, stack=STACK, new_id=world.new_id)
    collector.run(lambda: 300.0)
    world.wait(600.0)
    for name in world.transforms.events:
        assert settler.settle(name, lambda: 300.0)
    assert not any(job.end is None for job in world.jobs.rows.values())
    counts["parts"] = sum(len(run.parts) for run in world.runs.rows.values())
    return counts


def test_a_job_costs_as_many_writes_and_reads_as_the_bill_says(counts: Counter[str]) -> None:
    """Acceptance writes the record and its index entry; the functions write a claim and an end, and read once."""
    accepted = 2
    assert accepted + counts["writes"] / JOBS == Operations().writes
    assert counts["reads"] / JOBS == Operations().reads


def test_a_job_costs_as_many_queue_requests_as_the_bill_says(counts: Counter[str]) -> None:
    """Sent by itself, received and deleted by ten."""
    assert 1 + (counts["received"] + counts["deleted"]) / JOBS == pytest.approx(Operations().queue_requests)


def test_a_part_costs_as_many_objects_as_the_bill_says(counts: Counter[str]) -> None:
    """500 records a part; beside what the functions read and write, the transform job reads each input, and answers."""
    parts = counts["parts"]
    assert JOBS / parts == Operations().part_records
    assert counts["puts"] / parts + 1 == Operations().part_puts
    assert counts["gets"] / parts + 1 == Operations().part_gets
    assert counts["lists"] <= 1

"""Faults that strike the batch lane one after another, each watched until it has: one that did not proves nothing.

A kill waits for its function to come to the place where it is to die; the next one of that function comes when it has.
A sabotage takes one run's transform job by name while the run still gathers, so that which runs fail, and how, is not
left to chance; it never takes a second attempt, after which a job has failed for good.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.e2e.batches import Batches, repeated
from workbench.stack.faults import Faults

LEASE = "~lease"


@dataclass(frozen=True)
class Kill:
    """A function's process ends at its n-th such call, before or after that is carried out."""

    function: str
    at: str
    call: int = 1
    when: Literal["before", "after"] = "before"
    resource: str | None = None
    """`{stack}` stands for the stack's name."""

    def __str__(self) -> str:
        return f"{self.function} killed {self.when} {self.at} number {self.call}"


@dataclass(frozen=True)
class Sabotage:
    """A fault of one run's transform job (see `sagemaker/transform/faults.py`)."""

    kind: str
    params: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind} {dict(self.params)}"


@dataclass
class Strikes:
    """What is to strike, what is under way, and what has struck."""

    lane: Batches
    faults: Faults
    kills: list[Kill]
    sabotages: list[tuple[Sabotage, ...]]
    """Each entry is for one run."""
    struck: list[str] = field(default_factory=list)
    runs: dict[str, tuple[Sabotage, ...]] = field(default_factory=dict)
    """By run."""
    troubles: list[BaseException] = field(default_factory=list)
    _under_way: dict[str, tuple[Kill, str]] = field(default_factory=dict)
    _injected: dict[str, tuple[str, Sabotage]] = field(default_factory=dict)
    """By fault: the run, and what is to happen to it."""

    @property
    def left(self) -> list[str]:
        """What has not struck yet."""
        assert not self.troubles, self.troubles
        kills = [*self.kills, *(kill for kill, _ in self._under_way.values())]
        sabotages = [*(one for entry in self.sabotages for one in entry), *(one for _, one in self._injected.values())]
        return [str(one) for one in (*kills, *sabotages)]

    def of(self, kind: str) -> list[str]:
        """The runs that were sabotaged so."""
        return [run for run, entry in self.runs.items() if any(one.kind == kind for one in entry)]

    @contextmanager
    def striking(self, every_s: float = 0.4) -> Iterator[None]:
        """Let them strike until the block ends."""

        def look() -> None:
            try:
                self._look()
            except Exception as error:
                self.troubles.append(error)  # the test, which reads what is left, need not wait for the end
                raise

        with repeated(look, every_s):
            yield

    def _look(self) -> None:
        met = {fault["id"]: fault["met"] for fault in self.faults.active()}
        for function, (kill, fault) in list(self._under_way.items()):
            if met[fault]:
                self.struck.append(str(kill))
                self.faults.clear(fault)
                del self._under_way[function]
                if function == "collect":
                    end_lease(self.lane)
        self._next_kills()
        if self.sabotages or self._injected:
            runs = runs_of(self.lane)
            self._judge(met, {run["name"]["S"] for run in runs if run["state"]["S"] == "settled"})
            self._next_sabotages(runs)

    def _judge(self, met: Mapping[str, Any], settled: Set[str]) -> None:
        """A run's events have fared as they were to when it is settled, anything else as soon as it was met.

        What a settled run came through without, by chance or because it came too late, is for another run.
        """
        for fault, (run, one) in list(self._injected.items()):
            if run not in settled and (one.kind == "events" or not met[fault]):
                continue
            del self._injected[fault]
            if met[fault]:
                self.struck.append(str(one))
            else:
                self.faults.clear(fault)
                self.runs[run] = tuple(other for other in self.runs[run] if other is not one)
                self.sabotages.append((one,))

    def _next_kills(self) -> None:
        for kill in list(self.kills):
            if kill.function not in self._under_way:
                self.kills.remove(kill)
                resource = None if kill.resource is None else kill.resource.format(stack=self.lane.stack)
                fault = self.faults.kill_function(
                    f"inferlane-{self.lane.stack}-{kill.function}",
                    kill.at,
                    call=kill.call,
                    when=kill.when,
                    resource=resource,
                )
                self._under_way[kill.function] = (kill, fault["id"])

    def _next_sabotages(self, runs: Sequence[Mapping[str, Any]]) -> None:
        gathering = [
            run["name"]["S"]
            for run in runs
            if run["state"]["S"] == "gathering" and run["attempt"]["N"] == "1" and run["parts"]["L"]
        ]
        for run in gathering:
            if self.sabotages and run not in self.runs:
                self.runs[run] = self.sabotages.pop(0)
                for one in self.runs[run]:
                    self._injected[self.faults.on_jobs(run, one.kind, **one.params)["id"]] = (run, one)


def runs_of(lane: Batches) -> list[dict[str, Any]]:
    """The stack's runs, as they lie in the table."""
    pages = (
        lane.client("dynamodb")
        .get_paginator("scan")
        .paginate(TableName=f"inferlane-{lane.stack}-runs", ConsistentRead=True)
    )
    return [item for page in pages for item in page["Items"] if item["name"]["S"] != LEASE]


def end_lease(lane: Batches) -> None:
    """Do what time would: let a killed collector's lease run out."""
    lane.client("dynamodb").delete_item(TableName=f"inferlane-{lane.stack}-runs", Key={"name": {"S": LEASE}})


def jobs_of(lane: Batches, tenants: Sequence[str] = ("red", "blue")) -> dict[str, dict[str, Any]]:
    """Every record of these tenants, as it lies in the table, by id."""
    pages = lane.client("dynamodb").get_paginator("query")
    found: dict[str, dict[str, Any]] = {}
    for tenant in tenants:
        for page in pages.paginate(
            TableName=f"inferlane-{lane.stack}-jobs",
            ConsistentRead=True,
            KeyConditionExpression="tenant = :tenant",
            ExpressionAttributeValues={":tenant": {"S": tenant}},
        ):
            found |= {item["id"]["S"]: item for item in page["Items"]}
    return found


def queue_url(lane: Batches, queue: str) -> str:
    """The URL of one of the stack's queues."""
    return str(lane.client("sqs").get_queue_url(QueueName=f"inferlane-{lane.stack}-{queue}")["QueueUrl"])


def hide(lane: Batches, queue: str, seconds: int) -> None:
    """Let received messages come again after so long, whoever works on them still."""
    lane.client("sqs").set_queue_attributes(
        QueueUrl=queue_url(lane, queue), Attributes={"VisibilityTimeout": str(seconds)}
    )


def snatch(lane: Batches, queue: str, most: int, seconds: int) -> list[str]:
    """Receive messages and leave them, so that they come to another after `seconds`; their bodies."""
    received = lane.client("sqs").receive_message(
        QueueUrl=queue_url(lane, queue), MaxNumberOfMessages=most, VisibilityTimeout=seconds
    )
    return [message["Body"] for message in received.get("Messages", [])]


def send_again(lane: Batches, queue: str, bodies: Sequence[str]) -> None:
    """Put copies of messages onto a queue, as a queue that delivers twice does."""
    client, url = lane.client("sqs"), queue_url(lane, queue)
    for body in bodies:
        client.send_message(QueueUrl=url, MessageBody=body)


def drained(lane: Batches, queue: str) -> list[str]:
    """Every message of a queue that can be had now, taken off it."""
    client, url = lane.client("sqs"), queue_url(lane, queue)
    bodies: list[str] = []
    while received := client.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=60).get(
        "Messages"
    ):
        for message in received:
            bodies.append(message["Body"])
            client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return bodies


@contextmanager
def redriving(lane: Batches, every_s: float = 5.0) -> Iterator[list[tuple[str, dict[str, Any] | None]]]:
    """Do what a person does about dead letters: put them back. Yields (queue, the job's record then) of each.

    A message of a job without a record stays out: nobody was promised anything.
    """
    found: list[tuple[str, dict[str, Any] | None]] = []

    def look() -> None:
        for queue in ("work", "promote"):
            if bodies := drained(lane, f"{queue}-dead"):
                records = jobs_of(lane)
                known = [records.get(json.loads(body)["id"]) for body in bodies]
                found.extend((queue, record) for record in known)
                send_again(lane, queue, [body for body, record in zip(bodies, known, strict=True) if record])

    with repeated(look, every_s):
        yield found
    look()


def owners(lane: Batches) -> Counter[str]:
    """Who answers for the jobs that are open, for a failure's message."""
    runs = {run["name"]["S"]: f"run {run['state']['S']}, attempt {run['attempt']['N']}" for run in runs_of(lane)}
    names = [
        record.get("run", {"S": "nobody"})["S"]
        for record in jobs_of(lane).values()
        if record["state"]["S"] == "accepted"
    ]
    return Counter(runs.get(name, name) for name in names)


def eventually(holds: Any, limit_s: float, what: str) -> None:
    """Wait until it holds."""
    until = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < until, f"within {limit_s:g} s not: {what}"
        time.sleep(0.3)

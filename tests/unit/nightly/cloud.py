"""Step Functions and S3 as far as the nightly commands use them, in memory."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from workbench.nightly.machine import Machine

ARN = "arn:aws:states:us-east-1:123456789012:stateMachine:inferlane-mature-nightly"


class ExecutionAlreadyExistsError(Exception):
    """A name is used once."""


class _Exceptions:
    ExecutionAlreadyExists = ExecutionAlreadyExistsError


@dataclass
class _Pages:
    pages: list[dict[str, Any]]

    def paginate(self, **_asked: str) -> Iterator[dict[str, Any]]:
        yield from self.pages


@dataclass
class FakeStates:
    """One state machine whose executions take as many looks as told."""

    looks: int = 3
    ends: dict[str, Any] = field(default_factory=lambda: {"status": "SUCCEEDED", "output": "{}"})
    machines: dict[str, dict[str, str]] = field(default_factory=lambda: {ARN: {"inferlane:bucket": "data"}})
    executions: dict[str, dict[str, Any]] = field(default_factory=dict)
    exceptions: type[_Exceptions] = _Exceptions

    def start_execution(self, *, stateMachineArn: str, name: str, input: str) -> dict[str, str]:  # noqa: N803, A002
        assert len(name) <= 80
        arn = f"{stateMachineArn.replace(':stateMachine:', ':execution:')}:{name}"
        if arn in self.executions:
            raise ExecutionAlreadyExistsError(name)
        self.executions[arn] = {"input": json.loads(input), "looked": 0}
        return {"executionArn": arn}

    def describe_execution(self, *, executionArn: str) -> dict[str, Any]:  # noqa: N803
        found = self.executions[executionArn]
        found["looked"] += 1
        return self.ends if found["looked"] > self.looks else {"status": "RUNNING"}

    def get_execution_history(self, *, executionArn: str, **_: Any) -> dict[str, Any]:  # noqa: N803
        names = ["Prepare", "Pause", "Report"][: self.executions[executionArn]["looked"]]
        events = [{"type": "StateEntered", "stateEnteredEventDetails": {"name": name}} for name in names[::-1]]
        return {"events": [{"type": "TaskScheduled"}, *events]}

    def get_paginator(self, name: str) -> _Pages:
        assert name == "list_state_machines"
        some = [{"stateMachineArn": arn, "name": arn.rpartition(":")[2]} for arn in self.machines]
        return _Pages([{"stateMachines": []}, {"stateMachines": some}])

    def list_tags_for_resource(self, *, resourceArn: str) -> dict[str, Any]:  # noqa: N803
        return {"tags": [{"key": key, "value": value} for key, value in self.machines[resourceArn].items()]}


@dataclass
class FakeBucket:
    """Objects by key."""

    rows: dict[str, bytes] = field(default_factory=dict)

    def get_paginator(self, name: str) -> _Pages:
        assert name == "list_objects_v2"
        return _Pages([{}, *({"Contents": [{"Key": key}]} for key in self.rows)])

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        assert Bucket == "data"
        return {"Body": io.BytesIO(self.rows[Key])}


def machine(states: FakeStates, bucket: FakeBucket | None = None, slept: list[float] | None = None) -> Machine:
    pauses: list[float] = [] if slept is None else slept
    return Machine("mature", ARN, "data", cast(Any, states), cast(Any, bucket or FakeBucket()), sleep=pauses.append)

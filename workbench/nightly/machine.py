"""A stack's nightly recheck: its state machine, found by its name, and its bucket, which a tag of the machine names.

The same on the offline cloud and in an account. An execution is named by what it was asked for and an attempt: asked
for twice while it runs, it is one; asked for again, it is the next attempt, which changes nothing unless captures came
in.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from workbench.errors import UserError
from workbench.policy.document import one_line

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

BUCKET_TAG: Final = "inferlane:bucket"
MOST_ATTEMPTS: Final = 500
STEPS: Final[Mapping[str, str]] = {
    "Prepare": "gathering the day's captures",
    "Start": "starting the transform job",
    "Pause": "the heavy model works",
    "Look": "the heavy model works",
    "Report": "writing the report",
}
"""What the states of the machine mean to whoever waits."""
ENDED: Final = ("SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED")

_OURS: Final = re.compile(r"inferlane-.+-nightly").fullmatch

Progress = Callable[[str], None]
"""Told what is being done, whenever it changes."""


@dataclass(frozen=True, slots=True)
class Execution:
    """How one came out."""

    name: str
    outcome: str
    """reported, unchanged or nothing."""
    answer: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Machine:
    """A stack's nightly recheck."""

    stack: str
    arn: str
    bucket: str
    states: Any
    """A client of Step Functions."""
    objects: S3Client
    sleep: Callable[[float], None] = time.sleep
    pause_s: float = 1.0

    def run(self, date: str | None, model: str | None, progress: Progress) -> Execution:
        """Start an execution, or join the one that runs, and wait for its end. Raises `UserError`."""
        asked = {key: value for key, value in (("date", date), ("model", model)) if value is not None}
        name, arn = self._start(asked)
        last = ""
        while True:
            found = self.states.describe_execution(executionArn=arn)
            if found["status"] in ENDED:
                return self._end(name, found)
            step = self._step(arn)
            if step != last:
                progress(STEPS.get(step, step))
                last = step
            self.sleep(self.pause_s)

    def _start(self, asked: Mapping[str, str]) -> tuple[str, str]:
        """The name and ARN of an execution that was asked for this."""
        given = json.dumps(asked, sort_keys=True)
        first = "-".join(["recheck", asked.get("model", "all"), asked.get("date", "latest")])
        for attempt in range(1, MOST_ATTEMPTS + 1):
            name = f"{first[:70]}-{attempt}"
            try:
                started = self.states.start_execution(stateMachineArn=self.arn, name=name, input=given)
                return name, started["executionArn"]
            except self.states.exceptions.ExecutionAlreadyExists:
                arn = f"{self.arn.replace(':stateMachine:', ':execution:')}:{name}"
                if self.states.describe_execution(executionArn=arn)["status"] == "RUNNING":
                    return name, arn
        raise UserError(f"{first} was run {MOST_ATTEMPTS} times in the last 90 days: its names are used up")

    def _step(self, arn: str) -> str:
        """The state that was entered last; empty when the execution has not got to one."""
        events = self.states.get_execution_history(
            executionArn=arn, reverseOrder=True, maxResults=20, includeExecutionData=False
        )["events"]
        entered = (event.get("stateEnteredEventDetails", {}).get("name") for event in events)
        return next((str(name) for name in entered if name), "")

    def _end(self, name: str, found: Mapping[str, Any]) -> Execution:
        if found["status"] != "SUCCEEDED":
            cause = _cause(found) or "no cause is given"
            raise UserError(
                one_line(f"the recheck {name} of stack {self.stack} {found['status'].lower()}: {cause}", 500)
            )
        answer = json.loads(found["output"])
        return Execution(name, str(answer["outcome"]), answer)


def offline_machine(stack: str) -> Machine:
    """The recheck of a stack on the offline cloud. Raises `UserError`."""
    from workbench.stack.cloud import current
    from workbench.stack.layout import Layout

    return machine_of(stack, current(Layout.default()).client, pause_s=0.5)


def account_machine(stack: str) -> Machine:
    """The recheck of a stack in the account that the default credential chain leads to. Raises `UserError`."""
    import boto3

    from workbench.policy.live import region_of

    session: Any = boto3.Session(region_name=region_of(stack))
    return machine_of(stack, session.client, pause_s=5.0)


def machine_of(stack: str, client: Callable[[str], Any], pause_s: float) -> Machine:
    """The recheck of a stack among what `client` (of a service, by its name) leads to. Raises `UserError`."""
    states = client("stepfunctions")
    wanted = f"inferlane-{stack}-nightly"
    pages = states.get_paginator("list_state_machines").paginate()
    found = {each["name"]: each["stateMachineArn"] for page in pages for each in page["stateMachines"]}
    if wanted not in found:
        others = sorted(name.removeprefix("inferlane-").removesuffix("-nightly") for name in found if _OURS(name))
        raise UserError(
            f"stack {stack} has no nightly recheck here: is it deployed, and does its file have `inferlane:nightly`? "
            f"Stacks with one: {', '.join(others) or 'none'}"
        )
    arn = found[wanted]
    tags = {tag["key"]: tag["value"] for tag in states.list_tags_for_resource(resourceArn=arn)["tags"]}
    if BUCKET_TAG not in tags:
        raise UserError(f"state machine {wanted!r} has no tag {BUCKET_TAG!r}: deploy the stack again")
    return Machine(stack, arn, tags[BUCKET_TAG], states, client("s3"), pause_s=pause_s)


def _cause(found: Mapping[str, Any]) -> str:
    """Why an execution failed: a function's own words where it was a function's error."""
    cause, error = str(found.get("cause") or ""), str(found.get("error") or "")
    try:
        told = json.loads(cause)
    except ValueError:
        return cause or error
    message = told.get("errorMessage") if isinstance(told, dict) else None
    return str(message) if message else cause

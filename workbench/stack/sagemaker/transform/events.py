"""What EventBridge is told: "SageMaker Transform Job State Change", with the job as the detail, at every new status.

Put onto the default bus with PutEvents. Source `aws.sagemaker` is reserved: AWS and its emulators refuse it of callers,
but an emulator may let a service of its own publish; the header `X-Inferlane-Service` names us for such. A refusal or a
host without EventBridge is logged once per cause and changes nothing else. Times are epoch milliseconds, as consumers
of the service's events read them (awslabs/mlspace); fields are the developer guide's ("Automating with EventBridge").
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from workbench.stack.sagemaker.transform import request as requests
from workbench.stack.sagemaker.transform.faults import JobFaults
from workbench.stack.sagemaker.transform.jobs import Job

log = logging.getLogger(__name__)
SOURCE = "aws.sagemaker"
DETAIL_TYPE = "SageMaker Transform Job State Change"
SERVICE_HEADER = "X-Inferlane-Service"
MOST_PENDING = 1000


class Bus(Protocol):
    """EventBridge, as far as it is used here: boto3's client."""

    def put_events(self, *, Entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:  # noqa: N803
        """PutEvents."""


def as_service(client: Any) -> Any:
    """boto3's client for EventBridge, its events marked as a service's own."""
    client.meta.events.register(
        "before-sign.events.PutEvents",
        lambda request, **_: request.headers.add_header(SERVICE_HEADER, "sagemaker"),
    )
    return client


@dataclass(slots=True)
class Events:
    """Publishes in order, one at a time, off the event loop."""

    bus: Bus
    faults: JobFaults = field(default_factory=JobFaults)
    _waiting: asyncio.Queue[Mapping[str, Any]] = field(default_factory=lambda: asyncio.Queue(MOST_PENDING))
    _complained: set[str] = field(default_factory=set)

    def changed(self, job: Job, tags: Mapping[str, str]) -> None:
        """A job has a new status."""
        event = entry(job, tags)
        for after_s in self.faults.publications(job.name, iter(lambda: random.uniform(0, 100), None)):
            if after_s == 0.0:
                self.put(event)
            else:
                asyncio.get_running_loop().call_later(after_s, self.put, event)

    def put(self, event: Mapping[str, Any]) -> None:
        """Publish an entry of PutEvents, when its turn comes."""
        if not self._waiting.full():
            self._waiting.put_nowait(event)

    async def publish_forever(self) -> None:
        """Publish what comes."""
        while True:
            event = await self._waiting.get()
            try:
                answer = await asyncio.to_thread(self.bus.put_events, Entries=[event])
                refused = next((e for e in answer.get("Entries", ()) if e.get("ErrorCode")), None)
                cause = f"{refused['ErrorCode']}: {refused.get('ErrorMessage')}" if refused else None
            except ClientError as error:
                cause = error.response["Error"]["Code"]
            except BotoCoreError as error:
                cause = f"{type(error).__name__}: {error}"
            if cause is not None and cause not in self._complained:
                self._complained.add(cause)
                log.warning("events cannot be published: %s", cause)


def entry(job: Job, tags: Mapping[str, str]) -> Mapping[str, Any]:
    """The job's event, as PutEvents takes it."""
    return {
        "Source": SOURCE,
        "DetailType": DETAIL_TYPE,
        "Resources": [job.arn],
        "Detail": json.dumps(detail(job, tags)),
    }


def detail(job: Job, tags: Mapping[str, str]) -> Mapping[str, Any]:
    """What the event says of the job."""
    described = requests.shown(job.document)
    times = {"CreationTime": job.created, "TransformStartTime": job.started, "TransformEndTime": job.ended}
    seen = {
        "TransformJobName": job.name,
        "TransformJobArn": job.arn,
        "TransformJobStatus": job.status,
        "FailureReason": job.failure_reason,
        **described,
        **{name: None if at is None else round(at * 1000) for name, at in times.items()},
        "Tags": dict(tags),
    }
    return {name: value for name, value in seen.items() if value is not None}

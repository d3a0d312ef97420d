"""One asynchronous request, served: input from S3, the model's answer to S3, a notice to SNS, metrics.

- Up to 1 GB in and out goes by way of files. An answer whose container does not tell its length fails, as SageMaker's
  client wants a Content-Length (deepjavalibrary/djl-serving#2567).
- A failed request leaves an object under S3FailurePath with what the container answered, or why it did not. The words
  of a container's failure are the service's (seen in notices); of other failures none are public, so they are ours.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import aiohttp

from workbench.stack.sagemaker.metrics.points import Failure, Outcome, Processed
from workbench.stack.sagemaker.model.lane import Lane
from workbench.stack.sagemaker.model.replica import Replica
from workbench.stack.sagemaker.records import Asynchronous
from workbench.stack.sagemaker.runtime.asynchronous import notice
from workbench.stack.sagemaker.runtime.asynchronous.host import Host, HostError
from workbench.stack.sagemaker.runtime.asynchronous.notice import Result
from workbench.stack.sagemaker.runtime.asynchronous.request import Request
from workbench.stack.sagemaker.runtime.invoke import OnOutcome
from workbench.stack.sagemaker.runtime.model_call import BrokenError, ModelCall
from workbench.stack.sagemaker.settings import Settings

BLOCK = 64 * 1024
NO_LENGTH = "The response from container primary did not specify the required Content-Length header"
OnProcessed = Callable[[str, str, Processed], None]
"""Told of each asynchronous request that has come to its end: endpoint, variant, what became of it."""


@dataclass(slots=True)
class _Course:
    """What has become of a request so far."""

    began: float = field(default_factory=time.monotonic)
    failure: Failure | None = None
    result: Result = field(default_factory=lambda: Result(None))
    download_s: float | None = None
    upload_s: float | None = None

    def failed(self, how: Failure, reason: str, content: bytes = b"") -> None:
        """It has come to a bad end."""
        self.failure, self.result = how, Result(reason, content or reason.encode())


@dataclass(frozen=True, slots=True)
class Serving:
    """Serves requests that have an instance."""

    settings: Settings
    session: aiohttp.ClientSession
    host: Host
    on_outcome: OnOutcome
    on_processed: OnProcessed

    async def serve(self, request: Request, config: Asynchronous, lane: Lane) -> None:
        """From the queue to the notice. Raises a lane's errors, before anything has been done."""
        waited_s = self.settings.clock.now() - request.queued
        async with lane.lease() as replica:
            course = _Course()
            with tempfile.TemporaryDirectory(prefix="async-", dir=self.settings.state_dir) as name:
                folder = Path(name)
                await self._fetch(request, folder / "in", course)
                if course.failure is None:
                    await self._call(request, lane, replica, folder, course)
                await self._store(request, config, folder / "out", course)
        await self._end(request, config, lane.planned.variant.name, course, waited_s)

    async def expire(self, request: Request, config: Asynchronous, variant: str) -> None:
        """A request that has waited too long."""
        course = _Course()
        course.failed("expired", f"ClientError: The request has waited longer than {request.ttl_s:g} seconds.")
        with tempfile.TemporaryDirectory(prefix="async-", dir=self.settings.state_dir) as folder:
            await self._store(request, config, Path(folder) / "out", course)
        await self._end(request, config, variant, course, self.settings.clock.now() - request.queued)

    async def _fetch(self, request: Request, file: Path, course: _Course) -> None:
        if request.input is None:
            await asyncio.to_thread(file.write_bytes, request.body or b"")
            return
        began = time.monotonic()
        try:
            await self.host.download(request.input, file, self.settings.max_async_payload_bytes)
        except HostError as error:
            course.failed("download", f"ClientError: {error}")
        course.download_s = time.monotonic() - began

    async def _call(self, request: Request, lane: Lane, replica: Replica, folder: Path, course: _Course) -> None:
        began = time.monotonic()
        with (folder / "in").open("rb") as body:
            call = ModelCall(lane, replica, request.parameters, request.timeout_s)
            status = await self._answer(call, body, folder / "out", course)
        seen = (status, time.monotonic() - began, 0.0)
        ready = sum(r.ready for r in lane.replicas)
        self.on_outcome(request.endpoint, lane.planned.variant.name, Outcome("asynchronous", *seen, ready, replica.id))

    async def _answer(self, call: ModelCall, body: BinaryIO, file: Path, course: _Course) -> int:
        """The container's status; 0 when it has not answered."""
        if (injected := call.injected()) is not None:
            course.failed("invocation", _said(injected.status), injected.body)
            return injected.status
        try:
            async with call.open(self.session, body) as response:
                with file.open("wb") as out:
                    async for block in response.content.iter_chunked(BLOCK):
                        out.write(block)
        except BrokenError as error:
            course.failed("invocation", _said(0), str(error).encode())
            return 0
        if not 200 <= response.status < 300:
            course.failed("invocation", _said(response.status), await asyncio.to_thread(file.read_bytes))
        elif response.content_length is None:
            course.failed("invocation", f"ClientError: {NO_LENGTH}")
        elif response.content_length > self.settings.max_async_payload_bytes:
            course.failed("invocation", "ClientError: The response of container primary is larger than is allowed.")
        else:
            small = response.content_length <= notice.LARGEST_INCLUDED
            content = await asyncio.to_thread(file.read_bytes) if small else b""
            course.result = Result(None, content, response.headers.get("Content-Type"))
        return response.status

    async def _store(self, request: Request, config: Asynchronous, file: Path, course: _Course) -> None:
        began = time.monotonic()
        try:
            if course.failure is None and request.output is not None:
                await self.host.upload(file, request.output, _extra(config, course.result))
                course.upload_s = time.monotonic() - began
        except HostError as error:
            course.failed("upload", f"ClientError: {error}")
        if course.failure is not None and request.failure is not None:
            await asyncio.to_thread(file.write_bytes, course.result.content)
            # Who wants failures on a bucket that cannot be written has the notice left.
            with suppress(HostError):
                await self.host.upload(file, request.failure, _extra(config, course.result))

    async def _end(
        self, request: Request, config: Asynchronous, variant: str, course: _Course, waited_s: float
    ) -> None:
        if (topic := notice.topic(config, course.result)) is not None:
            text = notice.message(self.settings.region, request, config, course.result, time.time())
            try:
                await self.host.tell(topic, text)
            except HostError:
                course.failure = course.failure or "notification"
        total_s = waited_s + time.monotonic() - course.began
        processed = Processed(course.failure, waited_s, total_s, course.download_s, course.upload_s)
        self.on_processed(request.endpoint, variant, processed)


def _said(status: int) -> str:
    side = "client" if 400 <= status < 500 else "server"
    return (
        f"ClientError: Received {side} error ({status}) from model. "
        "See the SageMaker Endpoint logs in your account for more information."
    )


def _extra(config: Asynchronous, result: Result) -> dict[str, str]:
    extra = {"ContentType": result.content_type} if result.content_type else {}
    if config.kms_key:
        extra |= {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": config.kms_key}
    return extra

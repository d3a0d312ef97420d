"""InvokeEndpointWithResponseStream: the model's answer in parts, each sent on when it comes.

What goes wrong before the container's headers are here is an HTTP error, as in InvokeEndpoint: a refusal, or a
ModelError for a container's own 4xx or 5xx. After that it is an event that ends the stream: ModelStreamError with
StreamBroken when the container's connection ends before its answer, ModelInvocationTimeExceeded when the answer takes
too long (AWS: 8 minutes, developer guide "hosting-faqs"). The texts of these events are not documented.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import aiohttp

from workbench.stack.sagemaker.api import eventstream, wire
from workbench.stack.sagemaker.api.invocations import STREAM
from workbench.stack.sagemaker.api.wire import Answer
from workbench.stack.sagemaker.runtime.door import REFUSALS, Door, choose, pass_faults
from workbench.stack.sagemaker.runtime.invoke import INVOKED_VARIANT, OnOutcome, outcome_of
from workbench.stack.sagemaker.runtime.model_call import (
    CUSTOM_ATTRIBUTES,
    BrokenError,
    ModelAnswer,
    ModelCall,
    attributes,
)

CONTENT_TYPE = "X-Amzn-SageMaker-Content-Type"
TOO_LONG = "The model did not finish its response within the time that is allowed."
BROKEN = "The connection to container primary ended before its response did."


class CallerGoneError(Exception):
    """The caller has closed its connection in the middle of the answer."""


class Caller(Protocol):
    """The caller's connection. Both raise `CallerGoneError`."""

    async def begin(self, headers: Mapping[str, str]) -> None:
        """Send status 200 and these headers."""

    async def send(self, message: bytes) -> None:
        """Send a message of the event stream."""


@dataclass(slots=True)
class _Course:
    """What has become of a call so far."""

    status: int = 0
    """The container's."""
    began: bool = False
    """Whether the caller has been sent headers."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Serves InvokeEndpointWithResponseStream."""

    door: Door
    session: aiohttp.ClientSession
    on_outcome: OnOutcome

    async def answer(
        self, endpoint: str, headers: Mapping[str, str], body: bytes, id_: str, caller: Caller
    ) -> Answer | None:
        """Serve one request: the refusal, or None when there is a stream. Raises `ResetError`, `CallerGoneError`."""
        began = time.perf_counter()
        try:
            visit = self.door.enter(endpoint, STREAM, headers)
            lane = choose(visit.deployment, visit.parameters.get("TargetVariant"))
            pass_faults(lane)
            spilled = lane.spills
            async with lane.lease() as replica:
                sent, course = time.perf_counter(), _Course()
                call = ModelCall(lane, replica, visit.parameters, self.door.settings.stream_timeout_s)
                try:
                    failed = await self._relay(call, body, id_, caller, course)
                finally:
                    seen = (course.status, time.perf_counter() - sent, sent - began)
                    self.on_outcome(endpoint, lane.planned.variant.name, outcome_of(lane, replica, seen, spilled))
        except REFUSALS as error:
            return self.door.refused(endpoint, error, id_)
        if failed is None:
            return None
        text = failed.body.decode(errors="replace")
        return wire.model_error(failed.status, text, self.door.place(endpoint), id_)

    async def _relay(
        self, call: ModelCall, body: bytes, id_: str, caller: Caller, course: _Course
    ) -> ModelAnswer | None:
        """Send the model's answer on; what it answered instead of one, if it did before the stream began."""
        if (injected := call.injected()) is not None:
            course.status = injected.status
            return injected
        try:
            async with call.open(self.session, body) as response:
                course.status = response.status
                if not 200 <= response.status < 300:
                    return ModelAnswer(response.status, await response.read())
                await caller.begin(_headers(call, response, id_))
                course.began = True
                async for part in response.content.iter_any():
                    await caller.send(eventstream.payload_part(part))
        except BrokenError as error:
            course.status = 0
            if not course.began:
                return ModelAnswer(0, str(error).encode())
            late = eventstream.model_stream_error("ModelInvocationTimeExceeded", TOO_LONG)
            await caller.send(late if error.late else eventstream.model_stream_error("StreamBroken", BROKEN))
        return None


def _headers(call: ModelCall, response: aiohttp.ClientResponse, id_: str) -> dict[str, str]:
    given = {CONTENT_TYPE: response.headers.get("Content-Type"), CUSTOM_ATTRIBUTES: attributes(response)}
    return {
        "x-amzn-RequestId": id_,
        INVOKED_VARIANT: call.lane.planned.variant.name,
        "Content-Type": eventstream.CONTENT_TYPE,
        **{name: value for name, value in given.items() if value is not None},
    }

"""One request to one container: what it is sent, and what its answer is.

The body goes to the model process untouched, with the headers that the API has for it and no others: neither
Content-Type nor Accept when the caller gave none. A container that does not answer, in time or at all, has status 0.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import BinaryIO

import aiohttp

from workbench.stack.sagemaker.api import wire
from workbench.stack.sagemaker.api.invocations import Parameters
from workbench.stack.sagemaker.faults import VariantFaults
from workbench.stack.sagemaker.model.container import DISK_HEADER, MEMORY_HEADER, SLOW_HEADER
from workbench.stack.sagemaker.model.lane import Lane
from workbench.stack.sagemaker.model.replica import Replica

CUSTOM_ATTRIBUTES = "X-Amzn-SageMaker-Custom-Attributes"
_SENT = {
    "ContentType": "Content-Type",
    "Accept": "Accept",
    "CustomAttributes": CUSTOM_ATTRIBUTES,
    "InferenceId": "X-Amzn-SageMaker-Inference-Id",
}
"""Parameter -> header of the container's request."""
PATH = "/invocations"
INJECTED = b"injected by the errors fault"


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What came from the container. Status 0: it did not answer, and `body` says why."""

    status: int
    body: bytes
    content_type: str | None = None
    custom_attributes: str | None = None

    @property
    def good(self) -> bool:
        """Whether it is a prediction."""
        return 200 <= self.status < 300


class BrokenError(Exception):
    """The container did not answer; the message is what a ModelError says of it."""

    def __init__(self, message: str, *, late: bool) -> None:
        super().__init__(message)
        self.late = late
        """Whether it had no more time to."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A request, and how long it may take."""

    lane: Lane
    replica: Replica
    parameters: Parameters
    timeout_s: float

    async def answer(self, body: bytes, most_bytes: int) -> ModelAnswer:
        """The whole answer to a small body."""
        if (injected := self.injected()) is not None:
            return injected
        try:
            with self._breaking():
                async with asyncio.timeout(self.timeout_s):
                    await self._hang()
                    reply = await self.replica.connections.post(PATH, self._headers(), body)
        except BrokenError as error:
            return ModelAnswer(0, str(error).encode())
        if len(reply.body) > most_bytes:
            return ModelAnswer(0, b"The response of container primary is larger than the endpoint allows.")
        given = reply.headers
        return ModelAnswer(reply.status, reply.body, given.get("content-type"), given.get(CUSTOM_ATTRIBUTES.lower()))

    def injected(self) -> ModelAnswer | None:
        """The answer that the `errors` fault gives in the container's place."""
        status = self.lane.faults.error_status(random.uniform(0, 100))
        return None if status is None else ModelAnswer(status, INJECTED, "text/plain")

    @asynccontextmanager
    async def open(
        self, session: aiohttp.ClientSession, body: bytes | BinaryIO
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer, from its headers on. Whatever breaks it off inside is a `BrokenError`."""
        timeout = aiohttp.ClientTimeout(total=self.timeout_s)
        url = f"{self.replica.url}{PATH}"
        with self._breaking():
            async with asyncio.timeout(self.timeout_s):
                await self._hang()
            async with session.post(url, data=body, headers=self._headers(), timeout=timeout) as response:
                yield response

    def _headers(self) -> dict[str, str]:
        sent = {_SENT[name]: value for name, value in self.parameters.items() if name in _SENT}
        return sent | _orders(self.lane.faults)

    async def _hang(self) -> None:
        """Under the `hang` fault: a container that accepts and does not answer, and is broken off when that ends."""
        if self.lane.faults.hangs:
            await self.lane.until(lambda: not self.lane.faults.hangs)
            raise ConnectionResetError

    @contextmanager
    def _breaking(self) -> Iterator[None]:
        """What breaks a call off, as `BrokenError`."""
        try:
            yield
        except TimeoutError as error:
            raise BrokenError(wire.TIMED_OUT, late=True) from error
        except (aiohttp.ClientError, OSError) as error:
            raise BrokenError(wire.no_response(self.lane.factory.endpoint), late=False) from error


def attributes(response: aiohttp.ClientResponse) -> str | None:
    """The custom attributes that the model has set."""
    return response.headers.get(CUSTOM_ATTRIBUTES)


def _orders(faults: VariantFaults) -> dict[str, str]:
    """What the container does to this request for the faults in force."""
    orders = {}
    if slow := faults.slowdown:
        orders[SLOW_HEADER] = f"{slow.factor};{slow.ms}"
    if faults.disk_full:
        orders[DISK_HEADER] = "full"
    if faults.out_of_memory(random.uniform(0, 100)):
        orders[MEMORY_HEADER] = "full"
    return orders

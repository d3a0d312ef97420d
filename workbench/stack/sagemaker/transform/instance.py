"""One instance of a job: its model process, what that says of itself, and the requests it is sent.

- A request that gets no answer in time, a broken connection or a 5xx is tried again, up to InvocationsMaxRetries times
  (which failures the service retries is not documented); a 4xx is the record's fault and final.
- A process that has ended is started anew before the next request: other objects may still do well.
- At most MaxConcurrentTransforms requests are in flight, whatever objects they belong to.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

import aiohttp

from workbench.stack.sagemaker.model.container import SLOW_HEADER
from workbench.stack.sagemaker.model.replica import Replica, ReplicaFactory, StartError
from workbench.stack.sagemaker.transform import request as requests
from workbench.stack.sagemaker.transform.faults import JobFaults, OneJobsFaults
from workbench.stack.sagemaker.transform.request import Effective, OfferError, Parameters, Spec

RETRY_PAUSE_S = 1.0
"""Before the first retry, doubling with each. AWS: unpublished."""
UNANSWERED = "Unable to get response from algorithm"
"""The service's own words (aws/sagemaker-python-sdk#1951)."""
BLOCK = 64 * 1024
LONGEST_MESSAGE = 4096
INJECTED = "injected by a fault"

Body = bytes | AsyncIterator[bytes]


class InvocationError(Exception):
    """A payload got no usable answer. `lines` are what the job's log says of it, in the service's words."""

    def __init__(self, lines: list[str], *, caller: bool) -> None:
        super().__init__(lines[0])
        self.lines = lines
        self.caller = caller
        """Whether the input is at fault (4xx) rather than the model."""


@dataclass(slots=True)
class Instance:
    """A machine of a job. `id` is part of the Host dimension of its metrics."""

    id: str
    spec: Spec
    factory: ReplicaFactory
    replica: Replica
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    """Held for each request."""
    concurrency: int = 1
    faults: OneJobsFaults = field(default_factory=lambda: JobFaults().view(""))
    _reviving: asyncio.Lock = field(default_factory=asyncio.Lock)
    _headers: Mapping[str, str] = field(init=False)
    _timeout: aiohttp.ClientTimeout = field(init=False)

    def __post_init__(self) -> None:
        headers = {"Content-Type": self.spec.content_type, "Accept": self.spec.accept}
        self._headers = {name: value for name, value in headers.items() if value is not None}
        self._timeout = aiohttp.ClientTimeout(total=self.spec.timeout_s)

    @classmethod
    async def start(cls, spec: Spec, factory: ReplicaFactory, faults: OneJobsFaults) -> Instance:
        """A model process that answers /ping. Raises `StartError`."""
        replica = await factory.start()
        return cls(replica.id, spec, factory, replica, faults=faults)

    async def stop(self, grace_s: float) -> None:
        """End its process."""
        await self.replica.stop(grace_s)
        self.factory.discard(self.replica)

    def allow(self, parameters: Effective) -> None:
        """From now on that many requests at a time."""
        self.concurrency = parameters.concurrency
        self.slots = asyncio.Semaphore(parameters.concurrency)

    async def offered(self) -> Parameters:
        """What the container offers; nothing where it has no such path. Raises `OfferError`."""
        host = self.factory.host
        timeout = aiohttp.ClientTimeout(total=host.settings.ping_timeout_s)
        try:
            async with host.session.get(f"{self.replica.url}/execution-parameters", timeout=timeout) as response:
                if response.status != 200:
                    return Parameters()
                return requests.offered(await response.json(content_type=None))
        except (aiohttp.ClientError, TimeoutError, OSError):
            return Parameters()
        except json.JSONDecodeError as error:
            raise OfferError(f"it is not JSON: {error}") from error

    async def invoke(self, body: bytes, *, chunked: bool) -> bytes:
        """The model's answer to one payload. The caller holds a slot. Raises `InvocationError`."""
        return await self._tried(lambda: self._post(_chunks([body]) if chunked else body, _content))

    async def stream(self, blocks: Callable[[], Iterable[bytes]], answer: BinaryIO) -> None:
        """Send blocks in one chunked request and write the answer as it comes. Raises `InvocationError`."""

        async def keep(response: aiohttp.ClientResponse) -> bytes:
            answer.seek(0)
            answer.truncate()
            async for part in response.content.iter_chunked(BLOCK):
                answer.write(part)
            return b""

        await self._tried(lambda: self._post(_chunks(blocks()), keep))

    async def _tried(self, send: Callable[[], Awaitable[bytes]]) -> bytes:
        pause_s, left = RETRY_PAUSE_S, self.spec.max_retries
        while True:
            try:
                await self._revive()
                return await send()
            except InvocationError as error:
                if error.caller or not left:
                    raise
            left -= 1
            await self.factory.host.settings.clock.sleep(pause_s)
            pause_s *= 2

    async def _post(self, body: Body, read: Callable[[aiohttp.ClientResponse], Awaitable[bytes]]) -> bytes:
        if (status := self.faults.error_status(random.uniform(0, 100))) is not None:
            raise unusable(status, INJECTED)
        session, url, headers = self.factory.host.session, f"{self.replica.url}/invocations", self._headers
        if (slow := self.faults.slowdown()) != (0.0, 1.0):
            headers = {**headers, SLOW_HEADER: f"{slow[1]};{slow[0]}"}
        try:
            async with session.post(url, data=body, headers=headers, timeout=self._timeout) as response:
                if 200 <= response.status < 300:
                    return await read(response)
                text = (await response.read())[:LONGEST_MESSAGE].decode(errors="replace")
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            raise InvocationError([UNANSWERED], caller=False) from error
        raise unusable(response.status, text)

    async def _revive(self) -> None:
        if self.replica.child.alive:
            return
        async with self._reviving:
            if self.replica.child.alive:
                return
            self.factory.discard(self.replica)
            try:
                self.replica = await self.factory.start()
            except StartError as error:
                raise InvocationError([UNANSWERED, *str(error).splitlines()], caller=False) from error


def unusable(status: int, text: str) -> InvocationError:
    """The error that an answer which is no success makes.

    Three lines, as in aws/amazon-sagemaker-examples#1620 and aws/sagemaker-tensorflow-serving-container#93.
    """
    caller = 400 <= status < 500
    what = "ClientError" if caller else "Bad HTTP status received from algorithm"
    return InvocationError([f"{what}: {status}", "", "Message:", *text.splitlines()], caller=caller)


async def _content(response: aiohttp.ClientResponse) -> bytes:
    return await response.read()


async def _chunks(blocks: Iterable[bytes]) -> AsyncIterator[bytes]:
    for block in blocks:
        yield block

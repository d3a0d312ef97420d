"""A model and a store in memory, for a whole object's way without processes and without S3."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from workbench.stack.sagemaker.transform.instance import InvocationError
from workbench.stack.sagemaker.transform.objects import Location
from workbench.stack.sagemaker.transform.storage import StorageError

Answer = Callable[[bytes], bytes]


class FakeModel:
    """Answers with a function; keeps what it was sent. Later requests are answered first, as far as they overlap."""

    def __init__(self, answer: Answer, concurrency: int = 1) -> None:
        self.answer = answer
        self.concurrency = concurrency
        self.slots = asyncio.Semaphore(concurrency)
        self.sent: list[bytes] = []
        self.chunked: list[bool] = []
        self.in_flight = 0
        self.most_in_flight = 0

    async def invoke(self, body: bytes, *, chunked: bool) -> bytes:
        """One payload."""
        self.sent.append(body)
        self.chunked.append(chunked)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        for _ in range(self.concurrency - len(self.sent) % self.concurrency):
            await asyncio.sleep(0)
        self.in_flight -= 1
        return self.answer(body)

    async def stream(self, blocks: Callable[[], Iterable[bytes]], answer: BinaryIO) -> None:
        """One streamed request."""
        answer.write(await self.invoke(b"".join(blocks()), chunked=True))


class FakeStore:
    """Objects by URI."""

    def __init__(self, **objects: bytes) -> None:
        self.objects = dict(objects)
        self.keys: dict[str, str | None] = {}

    async def download(self, place: Location, file: Path) -> None:
        """Out of the store."""
        if place.key not in self.objects:
            raise StorageError(f"{place.uri} cannot be read: 404")
        file.write_bytes(self.objects[place.key])  # noqa: ASYNC240 - a fake

    async def upload(self, file: Path, place: Location, kms_key: str | None) -> None:
        """Into the store."""
        self.objects[place.key] = file.read_bytes()  # noqa: ASYNC240 - a fake
        self.keys[place.key] = kms_key


def refuse(status: int) -> InvocationError:
    """What an instance raises for a final 4xx or 5xx."""
    return InvocationError([f"ClientError: {status}"], caller=status < 500)

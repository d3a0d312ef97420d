"""One object's way: downloaded, cut into payloads, answered, assembled in the order of its records, uploaded whole.

All or nothing: the output is a file of the instance until the last answer is in, so an object that fails leaves
nothing on S3. Requests overlap up to the instance's slots; answers are written in order, so at most that many wait.
With MaxPayloadInMB 0 an object that need not be looked into is sent in one chunked request, and its answer stored as it
comes; filters and joins hold a payload in memory, which is then the whole object unless it is sent record by record.

AssembleWith=Line adds a newline to every answer, whatever the answer itself ends with.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Protocol

from workbench.stack.sagemaker.transform.instance import InvocationError
from workbench.stack.sagemaker.transform.objects import Location, Task
from workbench.stack.sagemaker.transform.packing import Item, PackError, Payload, pack
from workbench.stack.sagemaker.transform.processing import Processing, ProcessingError
from workbench.stack.sagemaker.transform.request import Effective, Spec
from workbench.stack.sagemaker.transform.splitting import Record, SplitError, split
from workbench.stack.sagemaker.transform.storage import StorageError, blocks

BATCH_BYTES, BATCH_COUNT = 256 * 1024, 256
"""What is cut at a time, outside the event loop."""
INLINE_BYTES = 32 * 1024
"""Answers up to this size are joined in the event loop: sooner done than handed to a thread."""


class Model(Protocol):
    """What answers payloads: an model."""

    @property
    def concurrency(self) -> int:
        """Most requests at a time."""

    @property
    def slots(self) -> asyncio.Semaphore:
        """Held for each request."""

    async def invoke(self, body: bytes, *, chunked: bool) -> bytes:
        """The answer to one payload. Raises `InvocationError`."""

    async def stream(self, blocks: Callable[[], Iterable[bytes]], answer: BinaryIO) -> None:
        """Send blocks in one request, write the answer as it comes. Raises `InvocationError`."""


class Store(Protocol):
    """Where objects come from and go to: S3."""

    async def download(self, place: Location, file: Path) -> None:
        """An object into a file. Raises `StorageError`."""

    async def upload(self, file: Path, place: Location, kms_key: str | None) -> None:
        """A file to an object. Raises `StorageError`."""


class TaskError(Exception):
    """The object failed. `lines` are what the job's log says of it."""

    def __init__(self, lines: list[str], *, caller: bool) -> None:
        super().__init__(lines[0])
        self.lines = lines
        self.caller = caller
        """Whether the input is at fault rather than the model."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How the objects of a job are worked on."""

    spec: Spec
    parameters: Effective
    processing: Processing | None
    keep_newlines: bool
    """Whether a record that is sent by itself keeps its newline."""

    @property
    def streamed(self) -> bool:
        """Whether an object goes through in one request, unseen."""
        whole = self.spec.split == "None" or self.parameters.strategy == "MultiRecord"
        return self.parameters.limit is None and whole and self.processing is None

    def payloads(self, source: Iterator[bytes]) -> Iterator[Payload]:
        """An object's payloads. Raises `SplitError`, `PackError`, `ProcessingError`, `StorageError`."""
        limit, strategy = self.parameters.limit, self.parameters.strategy
        if self.spec.split == "None":
            strategy = "SingleRecord"
        records = split(self.spec.split, source, limit)
        if not self.keep_newlines and self.spec.split == "Line":
            records = (Record(r.body.removesuffix(b"\n"), r.framed) for r in records)
        if self.processing is not None:
            items = self.processing.items(records, strategy)
        elif strategy == "SingleRecord":
            items = (Item(r.body) for r in records)
        else:
            items = (Item(r.framed) for r in records)
        return pack(items, strategy, limit)

    def output(self, payload: Payload, answer: bytes) -> bytes:
        """What is stored of an answer. Raises `ProcessingError`."""
        stored = answer if self.processing is None else self.processing.output(payload, answer)
        return stored + b"\n" if self.spec.newline_after else stored


async def transform(task: Task, plan: Plan, model: Model, store: Store, folder: Path) -> None:
    """Take one object all the way. `folder` is empty and this object's own. Raises `TaskError`."""
    source, target = folder / "in", folder / "out"
    try:
        await store.download(task.source, source)
        with target.open("wb") as out:
            if plan.streamed:
                await _stream(source, out, plan, model)
            else:
                await _answer_all(source, out, plan, model)
        await store.upload(target, task.target, plan.spec.kms_key)
    except InvocationError as error:
        raise TaskError(error.lines, caller=error.caller) from error
    except (SplitError, PackError, ProcessingError, StorageError) as error:
        raise TaskError([str(error)], caller=True) from error
    except OSError as error:
        raise TaskError([f"the instance cannot keep the object: {error.strerror}"], caller=False) from error


async def _stream(source: Path, out: BinaryIO, plan: Plan, model: Model) -> None:
    async with model.slots:
        await model.stream(lambda: blocks(source, gzipped=plan.spec.gzip), out)
    if plan.spec.newline_after:
        out.write(b"\n")


async def _answer_all(source: Path, out: BinaryIO, plan: Plan, model: Model) -> None:
    chunked = plan.parameters.limit is None
    cut = plan.payloads(blocks(source, gzipped=plan.spec.gzip))
    pending: deque[asyncio.Task[bytes]] = deque()

    async def answered(payload: Payload) -> bytes:
        answer = await model.invoke(payload.body, chunked=chunked)
        if plan.processing is not None and len(answer) > INLINE_BYTES:
            return await asyncio.to_thread(plan.output, payload, answer)
        return plan.output(payload, answer)

    try:
        while batch := await asyncio.to_thread(_some, cut):
            for payload in batch:
                if model.concurrency == 1:
                    async with model.slots:
                        out.write(await answered(payload))
                    continue
                await model.slots.acquire()
                task = asyncio.create_task(answered(payload))
                # A callback, not the task's own end: a task that is cancelled before it begins runs nothing.
                task.add_done_callback(lambda _: model.slots.release())
                pending.append(task)
                while pending and (pending[0].done() or len(pending) > model.concurrency):
                    out.write(await pending.popleft())
        while pending:
            out.write(await pending.popleft())
    finally:
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)


def _some(cut: Iterator[Payload]) -> list[Payload]:
    """The next few payloads: enough to be worth a thread's while, few enough to be small in memory."""
    taken: list[Payload] = []
    size = 0
    for payload in islice(cut, BATCH_COUNT):
        taken.append(payload)
        size += len(payload.body)
        if size >= BATCH_BYTES:
            break
    return taken

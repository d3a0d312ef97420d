"""SQS as a `WorkQueue`. `work_messages` knows what a message says.

A message has at most 256 KiB, and so has a batch of ten: a body that is too large for it goes to S3 first. Draining
begins with one call and goes on with many, since a queue is mostly all but empty, and each call on an empty queue waits
a second to hear from all of SQS's servers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from functions.aws.sdk_errors import translated
from functions.aws.service_errors import failure
from functions.aws.side_by_side import HANDS, portions, side_by_side
from functions.aws.work_messages import read, spilled, write
from functions.batch_ports import Received, UnavailableError

if TYPE_CHECKING:
    from functions.batch_ports import Objects
    from functions.core.job import Work

_BATCH: Final = 10
_BATCH_BYTES: Final = 262_144
_WAIT_S: Final = 1
_ATTEMPTS: Final = 3


class SqsClient(Protocol):
    """What is used of boto3's client."""

    def send_message_batch(self, **asked: Any) -> Mapping[str, Any]:
        """SendMessageBatch."""
        ...

    def receive_message(self, **asked: Any) -> Mapping[str, Any]:
        """ReceiveMessage."""
        ...

    def delete_message_batch(self, **asked: Any) -> Mapping[str, Any]:
        """DeleteMessageBatch."""
        ...

    def change_message_visibility(self, **asked: Any) -> object:
        """ChangeMessageVisibility."""
        ...


class SqsQueue:
    """One queue."""

    def __init__(self, client: SqsClient, url: str, objects: Objects) -> None:
        """`objects` takes the bodies that no message carries."""
        self._client = client
        self._url = url
        self._objects = objects

    def send(self, work: Sequence[Work]) -> None:
        """Append (see `batch_ports.WorkQueue`)."""
        side_by_side(self._send, list(_batches([write(one) for one in self._lightened(work)])))

    def _lightened(self, work: Sequence[Work]) -> list[Work]:
        large = [spilled(one) for one in work]
        bodies = {made.object: body for made, body in filter(None, large) if made.object is not None}
        if bodies:
            self._objects.put_all(bodies)
        return [one if made is None else made[0] for one, made in zip(work, large, strict=True)]

    def _send(self, texts: Sequence[str]) -> None:
        """One batch. Of its messages some may fail for themselves, and are sent again."""
        entries = [{"Id": str(i), "MessageBody": text} for i, text in enumerate(texts)]
        refused: list[Mapping[str, Any]] = []
        for _ in range(_ATTEMPTS):
            with translated():
                answer = self._client.send_message_batch(QueueUrl=self._url, Entries=entries)
            refused = answer.get("Failed", [])
            if not refused:
                return
            left = {entry["Id"] for entry in refused}
            entries = [entry for entry in entries if entry["Id"] in left]
        code = str(refused[0].get("Code", ""))
        raise failure(code, UnavailableError(f"SQS refused {len(refused)} messages of a batch: {code}"))

    def receive(self, most: int) -> Sequence[Received]:
        """Up to `most` (see `batch_ports.WorkQueue`)."""
        found = self._receive(min(most, _BATCH))
        full = len(found) == _BATCH
        while full and len(found) < most:
            asked = [len(some) for some in portions(range(most - len(found)), _BATCH)][:HANDS]
            more = side_by_side(self._receive, asked)
            found += [message for some in more for message in some]
            full = all(more)
        return found

    def _receive(self, most: int) -> list[Received]:
        with translated():
            answer = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=most,
                WaitTimeSeconds=_WAIT_S,
                MessageSystemAttributeNames=["SentTimestamp"],
            )
        return [_received(message) for message in answer.get("Messages", [])]

    def delete(self, receipts: Sequence[str]) -> None:
        """Done with them (see `batch_ports.WorkQueue`)."""
        side_by_side(self._delete, list(portions(receipts, _BATCH)))

    def _delete(self, receipts: Sequence[str]) -> None:
        entries = [{"Id": str(i), "ReceiptHandle": receipt} for i, receipt in enumerate(receipts)]
        with translated():
            self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)

    def hide(self, receipt: str, seconds: int) -> None:
        """Have it come again in so long (see `batch_ports.WorkQueue`)."""
        with translated():
            self._client.change_message_visibility(QueueUrl=self._url, ReceiptHandle=receipt, VisibilityTimeout=seconds)


def _received(message: Mapping[str, Any]) -> Received:
    return Received(read(message["Body"]), message["ReceiptHandle"], int(message["Attributes"]["SentTimestamp"]) / 1000)


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """At most ten messages, and no more bytes than a call may have; texts are ASCII."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == _BATCH or size + len(text) > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch

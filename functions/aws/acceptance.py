"""Taking work in that may wait, without an SDK: an object if need be, a message, a record, in this order.

So a record without a message cannot exist: what a caller was promised lies in the queue. A message without a record is
what a failure half-way leaves behind; nobody was promised anything, and the collector drops it in time. The record is
written on condition that there is none under its key, so that of callers who race with one idempotency key one wins,
and the others learn of its record.

What its record gives to promotion goes to promotion's queue, and is shown there a moment later: with its record already
there, as a rule.
"""

from __future__ import annotations

import time
from typing import Any, Final

from functions.aws.direct import Service, ServiceError, json_call
from functions.aws.job_items import decode, encode, key_item
from functions.aws.service_errors import failure
from functions.aws.work_messages import spilled, write
from functions.batch_ports import BatchError, UnavailableError
from functions.core.job import PROMOTED, Job, JobKey, Work

_NEW: Final = "attribute_not_exists(id)"
_PUT: Final = "DynamoDB_20120810.PutItem"
_GET: Final = "DynamoDB_20120810.GetItem"
_SEND: Final = "AmazonSQS.SendMessage"
_BYTES: Final = "application/octet-stream"
_HEAD_START_S: Final = 1
"""Of a record before its message is shown to promotion. The collector comes by the minute, and leaves it for later."""
_FAILURES: Final = (OSError, ServiceError, ValueError)
"""No connection or no time; an error as answer; an answer, or a record, that cannot be read."""


class DirectAcceptance:
    """An `Acceptance` over DynamoDB, SQS and S3 (see `ports`)."""

    def __init__(
        self,
        tables: Service,
        table: str,
        queues: Service,
        queue: str,
        promotions: str | None,
        objects: Service,
        objects_path: str = "",
    ) -> None:
        """`queue` and `promotions` are URLs; without the second nothing urgent is taken.

        `objects_path` is the bucket as a path (`/bucket`) where the host does not name it.
        """
        self._tables = tables
        self._table = table
        self._queues = queues
        self._queue = queue
        self._promotions = promotions
        self._objects = objects
        self._objects_path = objects_path

    def find(self, key: JobKey, timeout_s: float) -> Job | None:
        """The record under this key (see `ports.Acceptance`)."""
        try:
            return self._find(key, time.monotonic() + timeout_s)
        except _FAILURES as error:
            raise _failure(error) from error

    def accept(self, work: Work, job: Job, timeout_s: float) -> Job | None:
        """Object, message, record (see `ports.Acceptance`)."""
        ends = time.monotonic() + timeout_s
        try:
            self._send(work, self._addressed(job), ends)
            return self._record(job, ends)
        except _FAILURES as error:
            raise _failure(error) from error

    def _addressed(self, job: Job) -> dict[str, Any]:
        """Whoever answers for the job by its record gets its message."""
        if job.run != PROMOTED:
            return {"QueueUrl": self._queue}
        if self._promotions is None:
            raise ValueError("nothing urgent is accepted here")
        return {"QueueUrl": self._promotions, "DelaySeconds": _HEAD_START_S}

    def _send(self, work: Work, addressed: dict[str, Any], ends: float) -> None:
        if (large := spilled(work)) is not None:
            work, body = large
            self._objects.call("PUT", f"{self._objects_path}/{work.object}", {"content-type": _BYTES}, body, ends=ends)
        json_call(self._queues, _SEND, {**addressed, "MessageBody": write(work)}, ends)

    def _record(self, job: Job, ends: float) -> Job | None:
        asked: dict[str, Any] = {
            "TableName": self._table,
            "Item": encode(job, retention_s=0),
            "ConditionExpression": _NEW,
        }
        try:
            json_call(self._tables, _PUT, asked, ends)
        except ServiceError as error:
            if error.code != "ConditionalCheckFailedException":
                raise
        else:
            return None
        # Ended and expired in this very moment is as good as not there: the caller may ask again.
        found = self._find(job.key, ends)
        if found is None:
            raise UnavailableError("the record that stood in the way is gone")
        return found

    def _find(self, key: JobKey, ends: float) -> Job | None:
        asked = {"TableName": self._table, "Key": key_item(key), "ConsistentRead": True}
        item = json_call(self._tables, _GET, asked, ends).get("Item")
        return None if item is None else decode(item)


def _failure(error: Exception) -> BatchError:
    return failure(error.code, error, error.status) if isinstance(error, ServiceError) else failure("", error)

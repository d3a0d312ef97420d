"""The notices queue as `Notices`: a message for each tenant, channel and hundred jobs.

{"to": "topic" or "webhook", "tenant", "jobs": [{"id", "status"}]}. Channels have messages of their own, so that a
webhook that does not answer is tried again without telling the topic twice.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from functions.aws.redaction import redacted
from functions.aws.sdk_errors import translated
from functions.aws.side_by_side import portions, side_by_side
from functions.batch_ports import BatchError
from functions.core.job import JobKey, JobState

if TYPE_CHECKING:
    from functions.aws.work_queue import SqsClient
    from functions.ports import Log

_JOBS: Final = 100
_BATCH: Final = 10


class QueuedNotices:
    """One queue, read by the `notify` function."""

    def __init__(self, client: SqsClient, url: str, channels: Sequence[str], log: Log) -> None:
        """`channels` are those that the stack has."""
        self._client = client
        self._url = url
        self._channels = channels
        self._log = log

    def send(self, ended: Mapping[JobKey, JobState]) -> None:
        """These jobs have ended (see `batch_ports.Notices`)."""
        messages = list(_messages(ended, self._channels))
        try:
            refused = sum(side_by_side(self._send, list(portions(messages, _BATCH))))
        except BatchError as error:
            self._log.warning("Notices could not be sent", extra={"jobs": len(ended), "cause": redacted(error)})
            return
        if refused:
            self._log.warning("Notices were refused", extra={"messages": refused})

    def _send(self, messages: Sequence[str]) -> int:
        """How many were refused."""
        entries = [{"Id": str(i), "MessageBody": text} for i, text in enumerate(messages)]
        with translated():
            answer = self._client.send_message_batch(QueueUrl=self._url, Entries=entries)
        return len(answer.get("Failed", []))


class NoNotices:
    """For a stack where nobody asked to be told."""

    def send(self, ended: Mapping[JobKey, JobState]) -> None:
        """Nobody is told."""


def _messages(ended: Mapping[JobKey, JobState], channels: Sequence[str]) -> Sequence[str]:
    by_tenant: dict[str, list[dict[str, str]]] = defaultdict(list)
    for key, state in ended.items():
        by_tenant[key.tenant].append({"id": key.id, "status": state})
    return [
        json.dumps({"to": channel, "tenant": tenant, "jobs": list(some)}, separators=(",", ":"))
        for tenant, jobs in by_tenant.items()
        for some in portions(jobs, _JOBS)
        for channel in channels
    ]

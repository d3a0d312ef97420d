"""How services fail, in the batch lane's two words: busy, or unavailable. Mapped here and nowhere else.

Busy is what a service says when it asks to slow down, or when one of the account's quotas is reached; the same may do
later. All else that is not an answer is unavailable: no connection, a 5xx, and also what is wrong with us (no
permission, no such table), which no repetition mends but which must not lose work either.
"""

from __future__ import annotations

from typing import Final

from functions.aws.redaction import redacted
from functions.batch_ports import BatchError, BusyError, UnavailableError

_BUSY: Final = (
    "Throttl",  # Throttling, ThrottlingException, ThrottledException
    "ProvisionedThroughputExceeded",
    "RequestLimitExceeded",
    "RequestThrottled",
    "TooManyRequests",
    "SlowDown",
    "ResourceLimitExceeded",
    "LimitExceededException",
    "TransactionConflict",
    "OverLimit",
    "KmsThrottled",
    "KMS.Throttl",
)
"""Beginnings of codes, behind their service's name where they have one."""


def is_busy(code: str) -> bool:
    """Whether an error code asks to slow down, or says that a quota is reached."""
    return code.rpartition("#")[2].removeprefix("AWS.SimpleQueueService.").startswith(_BUSY)


def failure(code: str, error: Exception, status: int = 0) -> BatchError:
    """The error to raise from `error`, whose code and HTTP status these are ("" and 0 when it has none)."""
    kind = BusyError if is_busy(code) or status == 429 else UnavailableError
    return kind(redacted(error))

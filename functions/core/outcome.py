"""What an attempt came to, whether the next lane is tried, and what the caller gets when all have failed.

| kind           | what happened                                            | next lane | ran |
|----------------|----------------------------------------------------------|-----------|-----|
| ok             | the model answered                                       | no        | yes |
| caller_error   | the container refused the request with a 4xx: passed on  | no        | yes |
| throttled      | the lane's concurrency or the account's rate is used up  | yes       | no  |
| not_ready      | the lane still provisions                                | yes       | no  |
| busy           | the container's own queue is full (its 429 or 503)       | yes       | no  |
| too_large      | the lane refused the body's size                         | yes       | no  |
| unreachable    | no connection, or the service itself is unavailable      | yes       | no  |
| model_error    | the container answered with a 5xx of its own             | yes       | yes |
| upstream_error | the service failed, or its wait for the container did    | yes       | yes |
| timeout        | the attempt's time was over                              | yes       | yes |
| lost           | the connection closed after the request was sent         | yes       | yes |
| abandoned      | another lane, asked in parallel, answered first          | no        | yes |

"ran" says whether the model may have worked, and so whether the attempt is charged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

RETRY_AFTER_S: Final = 1


class Kind(StrEnum):
    """What an attempt came to."""

    OK = "ok"
    CALLER_ERROR = "caller_error"
    THROTTLED = "throttled"
    NOT_READY = "not_ready"
    BUSY = "busy"
    TOO_LARGE = "too_large"
    UNREACHABLE = "unreachable"
    MODEL_ERROR = "model_error"
    UPSTREAM_ERROR = "upstream_error"
    TIMEOUT = "timeout"
    LOST = "lost"
    ABANDONED = "abandoned"


FINAL: Final = frozenset({Kind.OK, Kind.CALLER_ERROR})
"""Kinds after which no other lane is tried."""
RAN: Final = FINAL | {Kind.MODEL_ERROR, Kind.UPSTREAM_ERROR, Kind.TIMEOUT, Kind.LOST, Kind.ABANDONED}
"""Kinds whose attempt may have run the model."""
_FULL: Final = frozenset({Kind.THROTTLED, Kind.BUSY})
_ABSENT: Final = frozenset({Kind.UNREACHABLE, Kind.NOT_READY, Kind.THROTTLED, Kind.BUSY, Kind.LOST})


@dataclass(frozen=True, slots=True)
class Outcome:
    """One attempt's result. `detail` is for logs and never for the caller: it may name an endpoint."""

    kind: Kind
    status: int | None = None
    """The model's or the service's HTTP status; None when there was no answer."""
    body: bytes = b""
    content_type: str | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """What the caller gets when no lane served."""

    status: int
    slug: str
    detail: str
    retry_after_s: int | None = None


def classify_container_error(status: int) -> Kind:
    """What a container's own non-2xx status means: 429 and 503 are its full queue, other 4xx the caller's fault.

    5xx are its failure on this request; 0 is SageMaker's word for a container that did not answer.
    """
    if status in (429, 503):
        return Kind.BUSY
    if 400 <= status < 500:
        return Kind.CALLER_ERROR
    return Kind.MODEL_ERROR if 500 <= status < 600 else Kind.UPSTREAM_ERROR


def failure_of(kinds: Iterable[Kind]) -> Failure:
    """The answer after these failed attempts; none at all means that the deadline left no time for one."""
    found = frozenset(kinds)
    if found == {Kind.TOO_LARGE}:
        return Failure(413, "too-large", "The body is larger than every lane that serves this model accepts.")
    if found and found <= _FULL | {Kind.TOO_LARGE}:
        return Failure(429, "throttled", "Every lane that serves this model is at its limit.", RETRY_AFTER_S)
    if found & {Kind.UNREACHABLE, Kind.NOT_READY} or (found and found <= _ABSENT):
        return Failure(503, "unavailable", "No lane that serves this model is available.", RETRY_AFTER_S)
    if not found or Kind.TIMEOUT in found:
        return Failure(504, "timeout", "No lane answered before the deadline.")
    return Failure(502, "upstream-error", "Every lane that serves this model failed.")

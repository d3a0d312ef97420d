"""A value read from outside at most once per time to live; a failed reading keeps the last good one.

Lambda freezes between requests, so there is no background refresh: the request that finds the value old reads it
anew, once per time to live also when reading fails. A failure is logged, at most once a minute, and never raised.

Without any value yet a request cannot be served at all, so the first one may wait for it: reading is tried again, after
growing pauses, for as long as the caller has patience. When that was in vain, callers of the next seconds get None at
once: an outage must not hold every request for as long as its caller would wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")
_FIRST_RETRY_S: Final = 5.0
"""Longest wait before trying again while there is no value at all."""
_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 1.0
"""Pauses between the tries of a caller who waits double from the one to the other."""
_LOG_EVERY_S: Final = 60.0


class LastGood(Generic[T]):
    """Holds the last good value of `read`."""

    def __init__(
        self,
        read: Callable[[float, float | None], T],
        ttl_s: float,
        on_failure: Callable[[Exception], None],
        *,
        hopeless: tuple[type[Exception], ...] = (),
        stopwatch: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`read(now, within_s)` raises when it cannot; it has the usual time, or `within_s` when a caller waits.

        `on_failure` is told, at most once a minute. Waiting does not cure `hopeless` errors.
        """
        self._read = read
        self._ttl_s = ttl_s
        self._on_failure = on_failure
        self._hopeless = hopeless
        self._stopwatch = stopwatch
        self._pause = pause
        self._value: T | None = None
        self._next_at = float("-inf")
        self._told_at = float("-inf")

    def get(self, now: float, patience_s: float = 0.0) -> T | None:
        """The value, read anew when due; None when no reading ever succeeded, nor did within `patience_s`."""
        if now >= self._next_at:
            if self._value is None and patience_s > 0:
                now = self._wait(now, patience_s)
            else:
                self._renew(now, None)
            self._next_at = now + (self._ttl_s if self._value is not None else min(self._ttl_s, _FIRST_RETRY_S))
        return self._value

    def _wait(self, now: float, patience_s: float) -> float:
        """Try until there is a value, or no use or time in it; what `now` has become."""
        began, pause_s = self._stopwatch(), _PAUSE_S
        while True:
            waited_s = self._stopwatch() - began
            cause = self._renew(now + waited_s, (patience_s - waited_s) / 2)  # one that hangs leaves time for another
            waited_s = self._stopwatch() - began
            if cause is None or isinstance(cause, self._hopeless) or waited_s + pause_s >= patience_s:
                return now + waited_s
            self._pause(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _renew(self, now: float, within_s: float | None) -> Exception | None:
        """One try; what it failed of."""
        try:
            self._value = self._read(now, within_s)
        except Exception as error:
            if now - self._told_at >= _LOG_EVERY_S:
                self._told_at = now
                self._on_failure(error)
            return error
        return None

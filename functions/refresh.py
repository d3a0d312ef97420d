"""A value read from outside at most once per time to live; a failed reading keeps the last good one.

Lambda freezes between requests, so there is no background refresh: the request that finds the value old reads it
anew, once per time to live also when reading fails. A failure is logged, at most once a minute, and never raised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")
_FIRST_RETRY_S: Final = 5.0
"""Longest wait before trying again while there is no value at all."""
_LOG_EVERY_S: Final = 60.0


class LastGood(Generic[T]):
    """Holds the last good value of `read`."""

    def __init__(self, read: Callable[[float], T], ttl_s: float, on_failure: Callable[[Exception], None]) -> None:
        """`read(now)` raises when it cannot; `on_failure` is told, at most once a minute."""
        self._read = read
        self._ttl_s = ttl_s
        self._on_failure = on_failure
        self._value: T | None = None
        self._next_at = float("-inf")
        self._told_at = float("-inf")

    def get(self, now: float) -> T | None:
        """The value, read anew when due; None when no reading ever succeeded."""
        if now >= self._next_at:
            try:
                self._value = self._read(now)
            except Exception as error:
                if now - self._told_at >= _LOG_EVERY_S:
                    self._told_at = now
                    self._on_failure(error)
            self._next_at = now + (self._ttl_s if self._value is not None else min(self._ttl_s, _FIRST_RETRY_S))
        return self._value

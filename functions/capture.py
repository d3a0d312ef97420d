"""Keeps part of the traffic of routes that ask for it: one record handed to a stream, or not, and the request goes on.

Which requests are taken is decided by the stable hash that shares use, so a request sent again is taken again or not
again. What it costs the caller is bounded: a quarter of a second, and never the deadline. Whatever goes wrong is
counted, told once a minute by its kind, and forgotten; what was to be kept is in no log.
"""

from __future__ import annotations

from typing import Final

from functions.answer import Call
from functions.core.capture import Body, Exchange, line_of
from functions.core.decision import Decision
from functions.core.outcome import Outcome
from functions.core.policy import Route
from functions.core.shares import Share
from functions.core.wishes import IDEMPOTENCY_HEADER
from functions.ports import CaptureSink, Clock, Log

LONGEST_S: Final = 0.25
_SHORTEST_S: Final = 0.02
"""A call that could not be made in this time is not begun."""
_LOG_EVERY_S: Final = 60.0


class Capturer:
    """Hands exchanges to the stream."""

    def __init__(self, sink: CaptureSink, clock: Clock, log: Log) -> None:
        """`log` gets no more than the kind of what went wrong."""
        self._sink = sink
        self._clock = clock
        self._log = log
        self._told_at = float("-inf")

    def keep(
        self, call: Call, route: Route, decision: Decision, lane: str, outcome: Outcome, at: float, left_s: float
    ) -> bool | None:
        """Whether the exchange is kept; None: its route or its place in the share says that it is not to be.

        `at` is when it came in; `left_s` what is left of its deadline. Never raises.
        """
        capture = route.capture
        if capture is None:
            return None
        request = call.request
        key = request.headers.get(IDEMPOTENCY_HEADER, request.id)
        if not Share.of(capture.share, f"capture {route.pattern.text}", decision.tenant or "").takes(key):
            return None
        if left_s < _SHORTEST_S:
            return False
        exchange = Exchange(
            at=at,
            request_id=request.id,
            route=route.pattern.text,
            model=decision.model or "",
            lane=lane,
            rule=decision.rule,
            cost_center=decision.cost_center,
            input=Body(call.body, request.content_type),
            output=Body(outcome.body, outcome.content_type),
        )
        try:
            self._sink.put(line_of(exchange, capture), min(LONGEST_S, left_s))
        except Exception as error:
            self._tell(error)
            return False
        return True

    def _tell(self, error: Exception) -> None:
        now = self._clock.monotonic()
        if now - self._told_at >= _LOG_EVERY_S:
            self._told_at = now
            self._log.warning("a request was not captured", extra={"cause": type(error).__name__})

"""The attempt loop: lane after lane until one answers, never past the deadline.

Pure but for the two ports it is given, so the same loop runs in the Lambda, over fakes and under a fake clock. It
stands beside the core, not in it, because it calls ports. A lane is tried once; whoever is next gets what is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from functions.core.estimates import Prediction
from functions.core.outcome import FINAL, RAN, Outcome
from functions.core.plan import attempt_budget_s
from functions.core.pricing import busy_cost_usd
from functions.core.receipt import Attempt
from functions.core.topology import SyncLane
from functions.ports import Clock, Invoker


class InFlight(Protocol):
    """Counts what this instance has in flight."""

    def holding(self, lane: str) -> AbstractContextManager[None]:
        """One more on `lane` while the context lasts."""
        ...


@dataclass(frozen=True, slots=True)
class Payload:
    """What goes to the model, untouched."""

    body: bytes
    content_type: str | None
    accept: str | None
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Execution:
    """Every attempt, and the outcome that goes to the caller, if one does."""

    attempts: tuple[Attempt, ...]
    outcome: Outcome | None


def execute(
    lanes: Sequence[SyncLane],
    payload: Payload,
    predicted: Mapping[str, Prediction],
    *,
    began: float,
    deadline: float,
    invoker: Invoker,
    clock: Clock,
    in_flight: InFlight,
) -> Execution:
    """Try `lanes` in order. `began` and `deadline` are readings of `clock.monotonic()`."""
    attempts: list[Attempt] = []
    for i, lane in enumerate(lanes):
        start = clock.monotonic()
        timeout_s = attempt_budget_s(deadline - start, lanes[i:], predicted)
        if timeout_s <= 0:
            break
        with in_flight.holding(lane.name):
            outcome = invoker.invoke(
                lane, payload.body, payload.content_type, payload.accept, timeout_s, payload.headers
            )
        took = clock.monotonic() - start
        attempts.append(
            Attempt(
                lane=lane.name,
                kind=outcome.kind,
                status=outcome.status,
                started_s=start - began,
                duration_s=took,
                timeout_s=timeout_s,
                cost_usd=busy_cost_usd(lane, took) if outcome.kind in RAN else 0.0,
                detail=outcome.detail,
            )
        )
        if outcome.kind in FINAL:
            return Execution(tuple(attempts), outcome)
    return Execution(tuple(attempts), None)

"""How long each attempt may take, so that the caller is answered before the deadline whatever the lanes do.

A lane gets min(its own limit, what is left after reserving time for the fallbacks behind it). A fallback's reserve is
its predicted P99 (a second when nothing is known, and a cold start before it on serverless), never less than a quarter
of a second or a tenth of what is left, and never more than an equal share of it: a slow fallback must not starve the
lane before it, nor a fast one be begun too late to be answered. Planned anew before every attempt, since a quick
failure leaves more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from functions.core.estimates import Prediction
from functions.core.topology import ServerlessLane, SyncLane

ANSWER_MARGIN_S: Final = 0.05
"""Kept back for translating the answer and for the gateway, at most a tenth of the deadline."""
SHORTEST_S: Final = 0.005
"""An attempt shorter than this cannot succeed and is not begun."""
_UNKNOWN_RESERVE_S: Final = 1.0
_LEAST_RESERVE_S: Final = 0.25
"""What a P99 of the model does not hold: a new connection, the timeout before it fired late, a busy instance. Without
it the fallback of a lane that hangs would get a few milliseconds, and the caller a 504, wherever models are fast."""
_LEAST_SHARE: Final = 0.1


def usable_s(deadline_s: float) -> float:
    """The part of the deadline that attempts may use."""
    return deadline_s - min(ANSWER_MARGIN_S, deadline_s / 10)


def attempt_budget_s(left_s: float, lanes: Sequence[SyncLane], predicted: Mapping[str, Prediction]) -> float:
    """Seconds for an attempt on `lanes[0]` with `lanes[1:]` as fallbacks; 0 when it is not worth beginning."""
    share = left_s / len(lanes)
    least = min(_LEAST_RESERVE_S, left_s * _LEAST_SHARE)
    reserved = sum(min(share, max(least, _reserve_s(lane, predicted))) for lane in lanes[1:])
    budget = min(lanes[0].timeout_s, left_s - reserved)
    return budget if budget >= SHORTEST_S else 0.0


def _reserve_s(lane: SyncLane, predicted: Mapping[str, Prediction]) -> float:
    prediction = predicted.get(lane.name)
    if prediction is None or prediction.p99_ms is None:
        return _UNKNOWN_RESERVE_S + (lane.cold_start_ms / 1000 if isinstance(lane, ServerlessLane) else 0.0)
    return prediction.p99_ms / 1000

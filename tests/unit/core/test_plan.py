"""How a deadline is divided among lanes."""

from __future__ import annotations

import pytest

from functions.core.estimates import Prediction
from functions.core.plan import attempt_budget_s, usable_s
from functions.core.topology import SyncLane
from tests.unit.core.builders import MODEL, topology

LANES: list[SyncLane] = list(topology().sync_lanes(MODEL).values())
FAST = {lane.name: Prediction(12.0, None) for lane in LANES}


@pytest.mark.parametrize(("left_s", "reserve_s"), [(20.0, 0.25), (6.0, 0.25), (1.0, 0.1), (0.1, 0.012)])
def test_a_fast_fallback_keeps_more_than_its_p99(left_s: float, reserve_s: float) -> None:
    """Behind a lane that hangs, a fallback of 12 ms has a quarter of a second, or a tenth of a short deadline."""
    assert left_s - attempt_budget_s(left_s, LANES[:2], FAST) == pytest.approx(reserve_s)


@pytest.mark.parametrize(("deadline_s", "usable"), [(29.0, 28.95), (0.5, 0.45), (0.2, 0.18)])
def test_fifty_milliseconds_or_a_tenth_are_kept_for_the_answer(deadline_s: float, usable: float) -> None:
    """The smaller of both."""
    assert usable_s(deadline_s) == pytest.approx(usable)


@pytest.mark.parametrize(
    ("left_s", "order", "predicted", "budget_s"),
    [
        (20.0, [0], {}, 20.0),
        (90.0, [0], {}, 60.0),
        (20.0, [0, 1], {}, 13.0),
        (20.0, [1, 0], {}, 19.0),
        (8.0, [0, 1], {}, 4.0),
        (20.0, [0, 1], {"serverless": Prediction(3000.0, None)}, 17.0),
        (20.0, [0, 1], {"serverless": Prediction(None, 0.1)}, 13.0),
        (20.0, [0, 1], {"dedicated": Prediction(3000.0, None)}, 13.0),
        (20.0, [0, 1], {"serverless": Prediction(15_000.0, None)}, 10.0),
        (12.0, [0, 1, 0], {"serverless": Prediction(3000.0, None)}, 8.0),
        (12.0, [0, 1, 0], {}, 7.0),
        (0.3, [0, 1], {"serverless": Prediction(3.0, None)}, 0.27),
        (0.005, [0], {}, 0.005),
        (0.0049, [0], {}, 0.0),
        (0.01, [0, 1], {}, 0.005),
        (0.0099, [0, 1], {}, 0.0),
        (-1.0, [0, 1], {}, 0.0),
    ],
)
def test_an_attempt_gets_what_its_fallbacks_leave(
    left_s: float, order: list[int], predicted: dict[str, Prediction], budget_s: float
) -> None:
    """P99, or a second and a cold start, for each; a share of what is left at most; the lane's own limit at most."""
    assert attempt_budget_s(left_s, [LANES[i] for i in order], predicted) == pytest.approx(budget_s)

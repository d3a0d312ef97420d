"""How a deadline is divided among lanes."""

from __future__ import annotations

import pytest

from functions.core.estimates import Prediction
from functions.core.plan import attempt_budget_s
from functions.core.topology import SyncLane
from tests.unit.core.builders import MODEL, topology

LANES: list[SyncLane] = list(topology().sync_lanes(MODEL).values())
FAST = {lane.name: Prediction(12.0, None) for lane in LANES}


@pytest.mark.parametrize(("left_s", "reserve_s"), [(20.0, 0.25), (6.0, 0.25), (1.0, 0.1), (0.1, 0.012)])
def test_a_fast_fallback_keeps_more_than_its_p99(left_s: float, reserve_s: float) -> None:
    """Behind a lane that hangs, a fallback of 12 ms has a quarter of a second, or a tenth of a short deadline."""
    assert left_s - attempt_budget_s(left_s, LANES[:2], FAST) == pytest.approx(reserve_s)

"""Twenty clients at once: each call gets its own answer, and none is lost."""

from __future__ import annotations

import pytest

from workbench.bench.emulated import serving
from workbench.bench.processes import crowd
from workbench.bench.sagemaker import CLIENTS, MODELS


@pytest.mark.parametrize("calls", [50, pytest.param(2000, marks=pytest.mark.drill)])
def test_no_answer_is_lost_or_crossed(calls: int) -> None:
    """Every call carries a number of its own and gets it back; a crowd whose calls do not all end well fails."""
    with serving({"echo": MODELS["at-once"]}) as models, crowd("crowd", models["echo"].endpoint, CLIENTS) as clients:
        assert len(clients.run(calls).wall) == CLIENTS * calls

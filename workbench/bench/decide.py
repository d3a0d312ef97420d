"""How fast `core.decide` is, and how its time grows with the number of rules (budget: linear at most)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from functions.core.decide import decide
from functions.core.policy_parser import parse_policy
from functions.core.request import Request
from functions.core.snapshot import Snapshot
from functions.core.topology import Topology
from workbench.bench import scene

RULES = (0, 5, 10, 20, 40)
ROUNDS = 9
CALLS = 2_000
NOW = 1_800_000_000.0


def measure(step: Callable[[], None]) -> dict[str, Any]:
    """Microseconds a decision by number of rules, interleaved over `ROUNDS` so that drift hits all alike."""
    cases = {number: _case(number) for number in RULES}
    spent: dict[int, list[float]] = {number: [] for number in RULES}
    for _ in range(ROUNDS):
        for number, run in cases.items():
            began = time.perf_counter()
            for _ in range(CALLS):
                run()
            spent[number].append((time.perf_counter() - began) / CALLS * 1e6)
            step()
    median = {number: statistics.median(values) for number, values in spent.items()}
    return {
        "decision_us_by_rules": {str(number): round(us, 2) for number, us in median.items()},
        "decisions_per_s_20_rules": round(1e6 / median[20]),
        "ratio_40_to_20_rules": round(median[40] / median[20], 3),
        "ratio_20_to_0_rules": round(median[20] / median[0], 3),
    }


def steps() -> int:
    """How often `measure` calls `step`."""
    return ROUNDS * len(RULES)


def _case(rules: int) -> Callable[[], object]:
    request, snapshot = Request.from_json(scene.request()), Snapshot.from_json(scene.snapshot(NOW))
    policy, topology = parse_policy(scene.policy(rules)), Topology.from_json(scene.topology())
    return lambda: decide(request, snapshot, policy, topology, NOW)

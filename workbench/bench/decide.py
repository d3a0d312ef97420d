"""How fast the router decides, and how its time grows with the number of rules (budget: linear at most).

What the router calls is the `Decider`, which keeps what does not depend on the single request; `decide` beside it works
everything out anew. Traffic is mixed: tenants, priorities, sizes and deadlines recur, no request id does.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, Final

from functions.core.decide import decide
from functions.core.decider import Decider
from functions.core.policy import Policy
from functions.core.policy_parser import parse_policy
from functions.core.request import DEADLINE_HEADER, PRIORITIES, PRIORITY_HEADER, Identity, Request
from functions.core.snapshot import Snapshot
from functions.core.topology import Topology
from workbench.bench import scene

RULES: Final = (0, 5, 10, 20, 40)
ROUNDS: Final = 9
NOW: Final = 1_800_000_000.0
_TENANTS: Final = 10
_SIZES: Final = (200, 5_000, 90_000, 3_000_000)
_DEADLINES: Final = (None, "80", "2000")
_RECUR: Final = 6
"""How often each combination comes in a round, each time with an id of its own."""


def measure(step: Callable[[], None]) -> dict[str, Any]:
    """Microseconds a decision by number of rules, interleaved over `ROUNDS` so that drift hits all alike."""
    requests = list(_traffic())
    kept: dict[int, list[float]] = {rules: [] for rules in RULES}
    anew: dict[int, list[float]] = {rules: [] for rules in RULES}
    topology, snapshot = Topology.from_json(scene.topology()), Snapshot.from_json(scene.snapshot(NOW))
    policies = {rules: parse_policy(scene.policy(rules)) for rules in RULES}
    for _ in range(ROUNDS):
        for rules, policy in policies.items():
            decider = Decider(policy, topology)
            kept[rules].append(_us(partial(_by_decider, decider, snapshot), requests))
            step()
            anew[rules].append(
                _us(partial(_by_decide, snapshot, policy, topology), requests[: len(requests) // _RECUR])
            )
            step()
    median = {rules: statistics.median(values) for rules, values in kept.items()}
    worked_out = {rules: statistics.median(values) for rules, values in anew.items()}
    return {
        "requests": len(requests),
        "decision_us_by_rules": {str(rules): round(us, 2) for rules, us in median.items()},
        "decisions_per_s_20_rules": round(1e6 / median[20]),
        "ratio_40_to_20_rules": round(median[40] / median[20], 3),
        "worked_out_us_by_rules": {str(rules): round(us, 2) for rules, us in worked_out.items()},
        "worked_out_ratio_40_to_20_rules": round(worked_out[40] / worked_out[20], 3),
    }


def steps() -> int:
    """How often `measure` calls `step`."""
    return ROUNDS * len(RULES) * 2


def _by_decider(decider: Decider, snapshot: Snapshot, request: Request) -> object:
    return decider.decide(request, snapshot, NOW)


def _by_decide(snapshot: Snapshot, policy: Policy, topology: Topology, request: Request) -> object:
    return decide(request, snapshot, policy, topology, NOW)


def _us(run: Callable[[Request], object], requests: list[Request]) -> float:
    began = time.perf_counter()
    for request in requests:
        run(request)
    return (time.perf_counter() - began) / len(requests) * 1e6


def _traffic() -> Iterator[Request]:
    """Every combination of tenant, priority, size and deadline, again and again."""
    base = Request.from_json(scene.request())
    combinations = list(product(range(_TENANTS), PRIORITIES, _SIZES, _DEADLINES))
    for again in range(_RECUR):
        for number, (tenant, priority, size, deadline) in enumerate(combinations):
            wishes = {PRIORITY_HEADER: priority} | ({} if deadline is None else {DEADLINE_HEADER: deadline})
            yield replace(
                base,
                id=f"r-{again}-{number}",
                bytes=size,
                headers=wishes,
                identity=Identity("api_key", key_id=f"demo-{tenant}"),
            )

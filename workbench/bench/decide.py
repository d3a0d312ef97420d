"""How fast `core.decide` is, and how its time grows with the number of rules (budget: linear at most)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from functions.core.decide import decide
from functions.core.policy import Policy
from functions.core.policy_parser import parse_policy
from functions.core.request import Request
from functions.core.snapshot import Snapshot
from functions.core.topology import Topology

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


def _case(number: int) -> Callable[[], object]:
    request, snapshot, policy, topology = _request(), _snapshot(), _policy(number), _topology()
    return lambda: decide(request, snapshot, policy, topology, NOW)


def _policy(number: int) -> Policy:
    """`number` rules of every kind, none of which is true: the longest way through."""
    never: list[dict[str, Any]] = [
        {"path": "/realtime/chat"},
        {"all": [{"priority": "low"}, {"signal": "hot"}]},
        {"bytes": {"above": "2MB"}},
        {"content_type": "image/*"},
        {"load": {"lane": "dedicated", "above": 0.8}},
    ]
    return parse_policy(
        {
            "schema": "inferlane/policy/v1",
            "version": "bench",
            "defaults": {"order": ["dedicated", "serverless"]},
            "tiers": {"standard": {"max_priority": "normal"}},
            "tenants": [{"api_key": "demo-*", "tenant": "demo", "tier": "standard", "cost_center": "demo"}],
            "signals": {
                "hot": {
                    "lane": "dedicated",
                    "metric": "cpu_percent",
                    "above": 85,
                    "for": "5m",
                    "until_below": 70,
                    "until_for": "3m",
                }
            },
            "rules": [
                {"id": f"r{i}", "when": {"all": [never[i % len(never)], {"tenant": f"t{i}"}]}, "order": ["serverless"]}
                for i in range(number)
            ],
        }
    )


def _topology() -> Topology:
    return Topology.from_json(
        {
            "schema": "inferlane/topology/v1",
            "region": "us-east-1",
            "models": {
                "moderation": {
                    "lanes": {
                        "dedicated": {
                            "kind": "dedicated",
                            "endpoint": "d",
                            "variant": "AllTraffic",
                            "instance_type": "ml.g5.xlarge",
                            "vcpus": 4,
                            "gpus": 1,
                            "min_instances": 1,
                            "max_instances": 4,
                            "slots_per_instance": 4,
                            "max_bytes": 6291456,
                            "timeout_s": 60,
                            "usd_per_instance_hour": 1.408,
                        },
                        "serverless": {
                            "kind": "serverless",
                            "endpoint": "s",
                            "memory_mb": 4096,
                            "max_concurrency": 20,
                            "max_bytes": 4194304,
                            "timeout_s": 60,
                            "usd_per_s": 0.00008,
                        },
                    }
                }
            },
        }
    )


def _snapshot() -> Snapshot:
    """An hour of one-minute points that keep the signal busy without turning it."""
    stamps = [NOW - 60 * minute for minute in range(61, 1, -1)]
    points = [[_iso(stamp), 60.0 + 20.0 * (index % 2)] for index, stamp in enumerate(stamps)]
    lane = {"series": {"cpu_percent": points}, "instances": 1, "in_flight": 1, "breaker": "closed"}
    document = {"taken_at": _iso(NOW - 5), "models": {"moderation": {"lanes": {"dedicated": lane}}}}
    return Snapshot.from_json({"schema": "inferlane/snapshot/v1", **document})


def _iso(stamp: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(stamp))


def _request() -> Request:
    return Request.from_json(
        {
            "schema": "inferlane/request/v1",
            "id": "r-1",
            "method": "POST",
            "path": "/v1/models/moderation/invocations",
            "headers": {"x-inferlane-priority": "low"},
            "content_type": "application/json",
            "bytes": 812,
            "identity": {"kind": "api_key", "key_id": "demo-app"},
        }
    )

"""Contract documents for tests, with the parts that a test is about as arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from functions.core.policy import Policy
from functions.core.policy_parser import parse_policy
from functions.core.request import Request
from functions.core.snapshot import LaneState, LatchState, ModelState, Series, Snapshot
from functions.core.topology import Topology

NOW = 1_796_000_400.0
"""A whole minute in November 2026."""
MODEL = "moderation"
PATH = f"/v1/models/{MODEL}/invocations"

DEDICATED: dict[str, object] = {
    "kind": "dedicated",
    "endpoint": "inferlane-test-moderation-dedicated",
    "variant": "AllTraffic",
    "instance_type": "ml.g5.xlarge",
    "vcpus": 4,
    "gpus": 1,
    "min_instances": 1,
    "max_instances": 4,
    "slots_per_instance": 4,
    "max_bytes": 6_291_456,
    "timeout_s": 60,
    "usd_per_instance_hour": 1.408,
}
SERVERLESS: dict[str, object] = {
    "kind": "serverless",
    "endpoint": "inferlane-test-moderation-serverless",
    "variant": "AllTraffic",
    "memory_mb": 4096,
    "max_concurrency": 20,
    "max_bytes": 4_194_304,
    "timeout_s": 60,
    "usd_per_s": 0.00008,
}
BATCH: dict[str, object] = {
    "kind": "batch",
    "instance_type": "ml.c5.xlarge",
    "max_bytes": 104_857_600,
    "startup_s": 300,
    "usd_per_instance_hour": 0.204,
}


def topology_document(**lanes: Mapping[str, object]) -> dict[str, object]:
    """A topology of one model; both synchronous lanes unless said otherwise."""
    chosen = lanes or {"dedicated": DEDICATED, "serverless": SERVERLESS}
    return {"schema": "inferlane/topology/v1", "region": "us-east-1", "models": {MODEL: {"lanes": chosen}}}


def topology(**lanes: Mapping[str, object]) -> Topology:
    """The same, read."""
    return Topology.from_json(topology_document(**lanes))


def policy_document(**parts: object) -> dict[str, object]:
    """A policy with three tiers, a tenant for each kind of identity, and whatever else is given."""
    return {
        "schema": "inferlane/policy/v1",
        "version": "test.1",
        "tiers": {
            "vip": {"max_priority": "high"},
            "standard": {"max_priority": "normal"},
            "internal": {"max_priority": "low"},
        },
        "tenants": [
            {"api_key": "vip-*", "tenant": "vip", "tier": "vip", "cost_center": "growth"},
            {"api_key": "demo-*", "tenant": "demo", "tier": "standard"},
            {"claim": {"client_id": "acme"}, "tenant": "acme", "tier": "vip"},
            {"identity": "arn:aws:iam::*:role/ops-*", "tenant": "backoffice", "tier": "internal"},
        ],
        **parts,
    }


def policy(**parts: object) -> Policy:
    """The same, read."""
    return parse_policy(policy_document(**parts))


def rules(*when_and_order: tuple[object, Sequence[str]]) -> list[object]:
    """Rules `r0`, `r1`, … from pairs of condition and order."""
    return [{"id": f"r{i}", "when": when, "order": list(order)} for i, (when, order) in enumerate(when_and_order)]


def request(**parts: object) -> Request:
    """A request of the `demo` tenant to the built-in route."""
    return Request.from_json(
        {
            "schema": "inferlane/request/v1",
            "id": "r-1",
            "path": PATH,
            "content_type": "application/json",
            "bytes": 812,
            "identity": {"kind": "api_key", "key_id": "demo-app"},
            **parts,
        }
    )


def points(*values: float, period_s: float = 60.0, now: float = NOW) -> Series:
    """A series whose last value's period ends at `now`."""
    first = now - period_s * len(values)
    return Series.of([(first + i * period_s, value) for i, value in enumerate(values)], period_s)


def lane(series: Mapping[str, Series] | None = None, **known: object) -> LaneState:
    """A lane that is known: it has a fresh memory metric besides what is given."""
    return LaneState({"memory_percent": points(20.0), **(series or {})}, **known)  # type: ignore[arg-type]


def snapshot(*, taken_at: float = NOW, latches: Mapping[str, LatchState] | None = None, **lanes: LaneState) -> Snapshot:
    """A snapshot of one model."""
    return Snapshot(taken_at, {MODEL: ModelState(lanes, latches or {})})


IDLE = snapshot(dedicated=lane(in_flight=0), serverless=lane(in_flight=0))

"""What the router believes now, for `GET /v1/lanes`: latches, load, health, newest metrics."""

from __future__ import annotations

from functions.core.estimates import load, predicted_p99_ms, slots
from functions.core.latches import latches
from functions.core.policy import Policy
from functions.core.snapshot import METRICS, Snapshot
from functions.core.topology import DeferredLane, Lane, Topology


def board(snapshot: Snapshot, policy: Policy, topology: Topology, now: float) -> dict[str, object]:
    """A JSON document without endpoint names. Unknown is null."""
    age_s = snapshot.age_s(now)
    return {
        "policy_version": policy.version,
        "snapshot_age_s": None if age_s is None else round(age_s, 3),
        "models": {
            model: {
                "latches": latches(policy.signals, snapshot, model, now, lanes),
                "lanes": {name: _lane(lane, model, snapshot, now) for name, lane in lanes.items()},
            }
            for model, lanes in topology.models.items()
        },
    }


def _lane(lane: Lane, model: str, snapshot: Snapshot, now: float) -> dict[str, object]:
    if isinstance(lane, DeferredLane):
        return {"kind": lane.kind, "serving": False}
    state = snapshot.lane(model, lane.name)
    busy = load(lane, model, snapshot, now)
    return {
        "kind": type(lane).__name__.removesuffix("Lane").lower(),
        "serving": True,
        "known": snapshot.known(model, lane.name, now),
        "load": round(busy.value, 4) if busy is not None and busy.exact and slots(lane, state, now) else None,
        "in_flight": state.in_flight,
        "breaker": state.breaker,
        "predicted_p99_ms": predicted_p99_ms(lane, model, snapshot, now),
        "metrics": {name: value for name in METRICS if (value := state.fresh(name, now)) is not None},
    }

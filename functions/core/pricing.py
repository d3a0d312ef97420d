"""What an attempt costs, estimated from the topology's prices.

Serverless bills the time it works: seconds × usd_per_s. A dedicated instance is paid for by the hour whatever it does,
so an attempt is charged its share while it holds a slot: seconds × usd_per_instance_hour ÷ 3600 ÷ slots. Idle hours
are nobody's attempt; the ledger shows them as their own line. A record in a batch job is charged its share of the job:
the seconds it is worked on × usd_per_instance_hour ÷ 3600; once the job has ended, an equal share of all it billed,
from TransformStartTime to TransformEndTime, its start-up among them.
"""

from __future__ import annotations

from collections.abc import Mapping

from functions.core.topology import BatchLane, DedicatedLane, ServerlessLane, ServingLane, SyncLane


def busy_cost_usd(lane: ServingLane, seconds: float) -> float | None:
    """The cost of working `seconds` on a lane; None when the topology states no price."""
    if isinstance(lane, ServerlessLane):
        return None if lane.usd_per_s is None else seconds * lane.usd_per_s
    if lane.usd_per_instance_hour is None:
        return None
    slots = lane.slots_per_instance if isinstance(lane, DedicatedLane) else 1
    return seconds * lane.usd_per_instance_hour / 3600 / slots


def counterfactual_usd(lanes: Mapping[str, SyncLane], served_by: str | None, seconds: float) -> dict[str, float | None]:
    """What the same work would have cost on each other lane, had it taken as long there."""
    return {name: busy_cost_usd(lane, seconds) for name, lane in lanes.items() if name != served_by}


def record_cost_usd(lane: BatchLane, billed_s: float, records: int) -> float | None:
    """One record's share of a transform job that billed `billed_s` on each of the lane's instances."""
    if lane.usd_per_instance_hour is None:
        return None
    return billed_s * lane.instance_count * lane.usd_per_instance_hour / 3600 / max(1, records)

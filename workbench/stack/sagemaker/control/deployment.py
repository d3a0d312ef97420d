"""One running configuration of an endpoint: its lanes by variant, their weights, and how its size changes."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.stack.sagemaker.model.fleet import Fleet
from workbench.stack.sagemaker.model.lane import Lane
from workbench.stack.sagemaker.model.pool import Pool
from workbench.stack.sagemaker.records import Capacity, Plan


@dataclass(slots=True)
class Deployment:
    """The running variants of one endpoint under one plan."""

    plan: Plan
    lanes: dict[str, Lane]
    weights: dict[str, float] = field(init=False)
    """Of the variants' shares of its requests, now."""

    def __post_init__(self) -> None:
        self.weights = {p.variant.name: p.weight for p in self.plan.variants}

    async def start(self) -> None:
        """Start all; on failure nothing of it runs. Raises `StartError`."""
        outcomes = await asyncio.gather(*(lane.start() for lane in self.lanes.values()), return_exceptions=True)
        if errors := [o for o in outcomes if o is not None]:
            await self.stop(0)
            raise errors[0]

    async def drain(self, limit_s: float) -> None:
        """Finish what is in flight, then stop."""
        await asyncio.gather(*(lane.drain(limit_s) for lane in self.lanes.values()))

    async def stop(self, grace_s: float) -> None:
        """Stop."""
        await asyncio.gather(*(lane.stop(grace_s) for lane in self.lanes.values()))

    @property
    def counts(self) -> dict[str, int]:
        """Instances its dedicated variants are to have."""
        return {name: lane.desired for name, lane in self.lanes.items() if isinstance(lane, Fleet)}

    @property
    def running(self) -> dict[str, int]:
        """Replicas that are up, by variant."""
        return {name: sum(r.ready for r in lane.replicas) for name, lane in self.lanes.items()}

    async def resize(self, counts: Mapping[str, int]) -> str | None:
        """Have these counts of instances. Returns once they run, or what stood in the way."""
        fleets = {n: lane for n, lane in self.lanes.items() if isinstance(lane, Fleet) and n in counts}
        work = (fleet.scale(counts[n], start_limit_s(fleet)) for n, fleet in fleets.items())
        failures = [f for f in await asyncio.gather(*work) if f]
        return failures[0] if failures else None

    async def reach(self, wanted: Capacity, now: Capacity) -> str | None:
        """Have the counts, sizes and weights that differ from `now`'s. Returns what stood in the way."""
        resized = self.resize({n: count for n, count in wanted.counts.items() if count != now.counts.get(n)})
        pools = {n: lane for n, lane in self.lanes.items() if isinstance(lane, Pool)}
        sized = (
            pools[n].resize(size, start_limit_s(pools[n])) for n, size in wanted.sizes.items() if size != now.sizes[n]
        )
        failures = [f for f in await asyncio.gather(resized, *sized) if f]
        if not failures:
            self.weights = dict(wanted.weights)
        return failures[0] if failures else None


def part(counts: Mapping[str, int], share: float) -> dict[str, int]:
    """A share of each count, in whole instances."""
    # 0.3 x 10 is a little more than 3 in binary.
    return {name: math.ceil(count * share - 1e-9) for name, count in counts.items()}


def start_limit_s(lane: Lane) -> float:
    """Real seconds that a replica's start may take: what the cloud adds, and the health check."""
    settings = lane.factory.host.settings
    extra_s = settings.cold_start_extra_s if lane.planned.variant.serverless else settings.instance_start_s
    return settings.clock.real(extra_s) + lane.factory.timeout_s

"""Updates under way: what a course's commands do to two deployments, and how long they may take."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from tests.unit.stack.sagemaker.documents import config, variant
from workbench.stack.sagemaker.clock import Clock
from workbench.stack.sagemaker.control.catalog import Catalog
from workbench.stack.sagemaker.control.deployment import Deployment
from workbench.stack.sagemaker.control.rollout import Outcome, Rollout
from workbench.stack.sagemaker.control.update import Update
from workbench.stack.sagemaker.model.replica import StartError
from workbench.stack.sagemaker.records import Plan, Stage

CLOCK = Clock(10_000.0)


def four() -> Plan:
    """Of one variant with four instances."""
    catalog = Catalog("us-east-1", "000000000000")
    catalog.create_model({"ModelName": "m", "PrimaryContainer": {"Image": "r/i"}}, 1.0)
    catalog.create_endpoint_config(config("c", variant(InitialInstanceCount=4)), 1.0)
    return catalog.plan("e", "c", 1.0)


class Fake(Deployment):
    """A deployment that keeps its counts in a list instead of running anything."""

    def __init__(self, running: int, *, start_s: float = 0.0, broken: bool = False) -> None:
        super().__init__(four(), {})
        self.log: list[int] = [running]
        self.start_s = start_s
        self.broken = broken

    async def start(self) -> None:
        """Take as long as told, or fail."""
        await asyncio.sleep(self.start_s)
        if self.broken:
            raise StartError("no /ping")
        self.log.append(4)

    async def resize(self, counts: Mapping[str, int]) -> str | None:
        """Have that many."""
        self.log.append(counts["A"])
        return None

    @property
    def counts(self) -> dict[str, int]:
        """The last."""
        return {"A": self.log[-1]}


@dataclass
class Alarms:
    """In ALARM after so many looks."""

    quiet_looks: int = 1_000_000
    asked: list[tuple[str, ...]] = field(default_factory=list)

    async def problem(self, names: Sequence[str]) -> str | None:
        """See `control.alarms.Alarms`."""
        self.asked.append(tuple(names))
        return "alarm" if len(self.asked) > self.quiet_looks else None


@dataclass
class Watched:
    """An update, and what it told."""

    rollout: Rollout
    old: Fake = field(default_factory=lambda: Fake(4))
    new: Fake = field(default_factory=lambda: Fake(0))
    alarms: Alarms = field(default_factory=Alarms)
    shares: list[float] = field(default_factory=list)
    stages: list[tuple[Stage | None, Stage | None]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    async def run(self) -> Outcome:
        """To its end."""
        return await Update(
            self.rollout,
            self.old,
            self.new,
            self.alarms,
            CLOCK,
            route=self.shares.append,
            on_stage=lambda old, new, _: self.stages.append((old, new)),
            on_rollback=self.reasons.append,
        ).run()


CANARY = Rollout((0.25, 1.0), bake_s=60.0, termination_wait_s=60.0, alarms=("a", "b"))


@pytest.mark.fidelity(
    "pending deployment",
    "Stages: Creating, ActivatingTraffic, Baking; Deleting for what goes",
    source="botocore: ProductionVariantStatus",
)
async def test_stages() -> None:
    """Each stage is told, and the alarms are asked while the update bakes."""
    watched = Watched(CANARY)
    assert await watched.run() == Outcome()
    activate = [(None, "ActivatingTraffic"), (None, "Baking")]
    assert watched.stages == [(None, "Creating"), *activate, *activate]
    assert watched.shares == [0.25, 1.0]
    assert set(watched.alarms.asked) == {("a", "b")}
    assert (watched.old.log, watched.new.log) == ([4], [0, 4])


async def test_rolling_stages() -> None:
    """Old instances are deleted as new ones come; going back it is the other way round."""
    watched = Watched(Rollout((0.5, 1.0), rolling=True, bake_s=60.0, alarms=("a",)), alarms=Alarms(quiet_looks=2))
    assert await watched.run() == Outcome("alarm")
    step = [(None, "Creating"), (None, "ActivatingTraffic"), (None, "Baking")]
    back = [("Creating", None), ("ActivatingTraffic", None), (None, "Deleting")]
    assert watched.stages == [*step, ("Deleting", None), *step, *back]
    assert watched.reasons == ["alarm"]
    assert (watched.old.log, watched.new.log) == ([4, 2, 4], [0, 4, 4, 0])
    assert watched.shares == [0.5, 1.0, 0.0]


@pytest.mark.fidelity(
    "time limit",
    "A deployment longer than MaximumExecutionTimeoutInSeconds fails and is undone",
    source="botocore: BlueGreenUpdatePolicy, RollingUpdatePolicy",
)
async def test_baking_over_the_limit() -> None:
    """Baking stops at the limit, and the traffic goes back."""
    watched = Watched(Rollout((0.25, 1.0), bake_s=600.0, termination_wait_s=600.0, limit_s=900.0))
    outcome = await watched.run()
    assert outcome.failure == "The deployment exceeded MaximumExecutionTimeoutInSeconds (900.0)."
    assert watched.shares == [0.25, 1.0, 0.0]


async def test_starting_over_the_limit() -> None:
    """Instances that take too long to start are a reason too; no traffic has moved then."""
    watched = Watched(Rollout(limit_s=0.05), new=Fake(0, start_s=30.0))
    outcome = await watched.run()
    assert outcome.failure is not None
    assert "MaximumExecutionTimeoutInSeconds" in outcome.failure
    assert (watched.shares, watched.reasons) == ([], [])


async def test_instances_that_do_not_start() -> None:
    """What keeps the new instances from starting is the reason."""
    assert await Watched(CANARY, new=Fake(0, broken=True)).run() == Outcome("no /ping")

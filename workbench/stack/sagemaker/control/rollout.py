"""How an update replaces one fleet by another: a DeploymentConfig as steps, and what each step asks for. Pure.

Blue/green: the whole new fleet starts, then takes over traffic in one step (all at once), two (canary) or equal ones
(linear); the old fleet stays whole until the end, so that going back is one step. Rolling: in batches, new instances
start, take over their share, and as many old ones stop. Between two steps the fleets bake for WaitIntervalInSeconds
while the rollback alarms are watched; after the last one a blue/green update bakes for TerminationWaitInSeconds, a
rolling one for its interval again. That the last bake is the termination wait and not another interval follows from
the guide's own canary example, which would run into its time limit otherwise.

Alarms count only while something bakes, as the guide says. An update that fails before any traffic has moved simply
leaves the old fleet alone; one that fails later goes back. Only a rolling update can fail to go back, for only there
the old fleet has lost instances: the endpoint then serves with both (UpdateRollbackFailed).

Sources: botocore's shapes (sizes, limits); the developer guide's pages deployment-guardrails-blue-green-*, -rolling,
-exclusions, -configuration.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from workbench.stack.sagemaker.api.wire import Document, invalid
from workbench.stack.sagemaker.records import Plan

CANARY_PERCENT = (0.0, 50.0)
LINEAR_PERCENT = (10.0, 50.0)
BATCH_PERCENT = (5.0, 50.0)
"""What a step may be of a variant's instances."""
MINOR_STEP = 0.1
"""A last step smaller than this part of a step is joined to the one before it: 3 x 33 % are the whole."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """One update's course."""

    steps: tuple[float, ...] = (1.0,)
    """The new fleet's share after each step; the last is 1."""
    rolling: bool = False
    bake_s: float = 0.0
    """Between two steps; for a rolling update after the last one too."""
    termination_wait_s: float = 0.0
    """After the last step, before the old fleet goes."""
    limit_s: float | None = None
    alarms: tuple[str, ...] = ()
    back: float = 1.0
    """Share that a rolling update takes back at once when it fails."""


ALL_AT_ONCE = Rollout()


class Resize(NamedTuple):
    """Have this share of a fleet's instances running."""

    fleet: Literal["old", "new"]
    share: float


class Route(NamedTuple):
    """Send this share of the traffic to the new fleet."""

    share: float


class Bake(NamedTuple):
    """Watch the alarms for so long."""

    seconds: float


class GoBack(NamedTuple):
    """The update has failed and is being undone from here on."""

    reason: str


Command = Resize | Route | Bake | GoBack


class Outcome(NamedTuple):
    """How the update ended. `mixed`: it could not be undone, both fleets serve."""

    failure: str | None = None
    mixed: bool = False


Course = Generator[Command, str | None, Outcome]
"""Yields what to do and is sent None when that is done, or why it could not be."""


def carry_out(rollout: Rollout) -> Course:
    """The course of an update."""
    reached = 0.0
    if not rollout.rolling and (problem := (yield Resize("new", 1.0))):
        return Outcome(problem)
    for number, share in enumerate(rollout.steps, 1):
        last = number == len(rollout.steps)
        if rollout.rolling and (problem := (yield Resize("new", share))):
            return (yield from _go_back(rollout, reached, problem))
        yield Route(share)
        reached = share
        wait_s = rollout.termination_wait_s if last and not rollout.rolling else rollout.bake_s
        if wait_s and (problem := (yield Bake(wait_s))):
            return (yield from _go_back(rollout, reached, problem))
        if rollout.rolling:
            yield Resize("old", 1 - share)
    return Outcome()


def _go_back(rollout: Rollout, reached: float, reason: str) -> Course:
    if not reached:
        return Outcome(reason)
    yield GoBack(reason)
    while reached > 0:
        reached = max(reached - rollout.back, 0.0) if rollout.rolling else 0.0
        if rollout.rolling and (problem := (yield Resize("old", 1 - reached))):
            return Outcome(f"{reason} The rollback failed too: {problem}", mixed=True)
        yield Route(reached)
        if rollout.rolling:
            yield Resize("new", reached)
    return Outcome(reason)


def parse(document: Document | None, old: Plan, new: Plan) -> Rollout:
    """An update's course from its DeploymentConfig. Raises `AwsError` for one that contradicts itself or the plan."""
    document = document or {}
    blue_green, rolling = document.get("BlueGreenUpdatePolicy"), document.get("RollingUpdatePolicy")
    if blue_green and rolling:
        raise invalid("Only one of BlueGreenUpdatePolicy and RollingUpdatePolicy can be specified.")
    policy = blue_green or rolling
    if policy is None:
        return ALL_AT_ONCE
    alarms = tuple(a["AlarmName"] for a in (document.get("AutoRollbackConfiguration") or {}).get("Alarms") or ())
    course = _rolling(policy, alarms, new) if rolling else _blue_green(policy, alarms, new)
    if course.limit_s is not None and course.limit_s <= course.bake_s + course.termination_wait_s:
        raise invalid(
            "MaximumExecutionTimeoutInSeconds must be larger than the total of WaitIntervalInSeconds and "
            "TerminationWaitInSeconds."
        )
    before, after = ({p.variant.name for p in plan.variants} for plan in (old, new))
    if before != after:
        raise invalid(
            f"A deployment with guardrails needs the same variant names in the old and new endpoint configurations; "
            f"got {sorted(before)} and {sorted(after)}."
        )
    return ALL_AT_ONCE if _excluded(old, new, course.rolling) else course


def _blue_green(policy: Mapping[str, Any], alarms: tuple[str, ...], new: Plan) -> Rollout:
    routing = policy["TrafficRoutingConfiguration"]
    steps: tuple[float, ...] = (1.0,)
    if routing["Type"] == "CANARY":
        steps = (_part(routing, "CanarySize", CANARY_PERCENT, new), 1.0)
    elif routing["Type"] == "LINEAR":
        steps = _equal_steps(_part(routing, "LinearStepSize", LINEAR_PERCENT, new))
    return Rollout(
        steps,
        bake_s=routing["WaitIntervalInSeconds"] if len(steps) > 1 else 0.0,
        termination_wait_s=policy.get("TerminationWaitInSeconds") or 0.0,
        limit_s=policy.get("MaximumExecutionTimeoutInSeconds"),
        alarms=alarms,
    )


def _rolling(policy: Mapping[str, Any], alarms: tuple[str, ...], new: Plan) -> Rollout:
    total = _instances(new)
    # Batches are whole instances: 30 % of 4 is 2.
    batch = max(math.ceil(_part(policy, "MaximumBatchSize", BATCH_PERCENT, new) * total - 1e-9), 1)
    back = 1.0
    if policy.get("RollbackMaximumBatchSize"):
        back = _part(policy, "RollbackMaximumBatchSize", (0.0, math.inf), new)
    return Rollout(
        tuple(min(n / total, 1.0) for n in range(batch, total + batch, batch)),
        rolling=True,
        bake_s=policy["WaitIntervalInSeconds"],
        limit_s=policy.get("MaximumExecutionTimeoutInSeconds"),
        alarms=alarms,
        back=min(max(math.ceil(back * total - 1e-9), 1) / total, 1.0),
    )


def _equal_steps(step: float) -> tuple[float, ...]:
    count = math.ceil(1 / step - MINOR_STEP)
    return (*(n * step for n in range(1, count)), 1.0)


def _part(policy: Mapping[str, Any], name: str, allowed: tuple[float, float], new: Plan) -> float:
    """A CapacitySize as a share of the (smallest) variant."""
    size = policy.get(name)
    if size is None:
        raise invalid(f"{name} is required for this deployment.")
    percent = float(size["Value"])
    if size["Type"] == "INSTANCE_COUNT":
        percent = 100 * size["Value"] / _instances(new)
    least, most = allowed
    if not least <= percent <= most:
        range_ = f"at most {most:g}%" if not least else f"between {least:g}% and {most:g}%"
        raise invalid(
            f"{name} must be {range_} of the variant's total instance count; got {size['Value']} ({size['Type']}), "
            f"which is {percent:g}%."
        )
    return percent / 100


def _instances(plan: Plan) -> int:
    return max(min((p.count for p in plan.variants), default=0), 1)


def _excluded(old: Plan, new: Plan, rolling: bool) -> bool:
    """Whether the guide excludes the endpoint from guardrails: it is then updated all at once and without baking."""
    variants = [p.variant for plan in (old, new) for p in plan.variants]
    if any(v.serverless or (v.instance_type or "").startswith("ml.inf1.") for v in variants):
        return True
    return rolling and max(len(old.variants), len(new.variants)) > 1

"""Courses of updates, on a clock that only the course itself moves: who serves what when, and how it goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.unit.stack.sagemaker.documents import config, serverless, variant
from workbench.stack.sagemaker.api.wire import AwsError
from workbench.stack.sagemaker.control.catalog import Catalog
from workbench.stack.sagemaker.control.rollout import (
    ALL_AT_ONCE,
    Bake,
    Command,
    GoBack,
    Outcome,
    Resize,
    Rollout,
    Route,
    carry_out,
    parse,
)
from workbench.stack.sagemaker.records import Plan

GUIDE = "developer guide: deployment-guardrails-blue-green"
Problem = Callable[[Command, float], str | None]


def never(_: Command, __: float) -> str | None:
    """Nothing goes wrong."""
    return None


@dataclass
class Fake:
    """Carries a course out: instances start in `start_s`, and `problem` says what goes wrong at which time."""

    problem: Problem = never
    start_s: float = 100.0
    now: float = 0.0
    events: list[tuple[float, Command]] = field(default_factory=list)

    def run(self, rollout: Rollout) -> Outcome:
        """To its end."""
        course = carry_out(rollout)
        answer: str | None = None
        while True:
            try:
                command = course.send(answer)
            except StopIteration as end:
                outcome: Outcome = end.value
                return outcome
            self.events.append((self.now, command))
            if isinstance(command, Resize) and command.fleet == "new":
                self.now += self.start_s
            if isinstance(command, Bake):
                self.now += command.seconds
            answer = self.problem(command, self.now)

    def traffic(self) -> list[tuple[float, float]]:
        """When the new fleet's share of the traffic changed, and to what."""
        return [(at, c.share) for at, c in self.events if isinstance(c, Route)]

    def fleets(self) -> list[tuple[str, float]]:
        """What was run, as shares of each fleet."""
        return [(c.fleet, round(c.share, 6)) for _, c in self.events if isinstance(c, Resize)]


def plan(*variants: dict[str, Any]) -> Plan:
    """Of a configuration with these variants."""
    catalog = Catalog("us-east-1", "000000000000")
    catalog.create_model({"ModelName": "m", "PrimaryContainer": {"Image": "r/i"}}, 1.0)
    catalog.create_endpoint_config(config("c", *variants), 1.0)
    return catalog.plan("e", "c", 1.0)


TEN = plan(variant(InitialInstanceCount=10))


def percent(value: int) -> dict[str, Any]:
    """A CapacitySize in percent."""
    return {"Type": "CAPACITY_PERCENT", "Value": value}


def instances(value: int) -> dict[str, Any]:
    """A CapacitySize in instances."""
    return {"Type": "INSTANCE_COUNT", "Value": value}


def blue_green(kind: str = "ALL_AT_ONCE", wait_s: int = 60, **more: Any) -> dict[str, Any]:
    """A DeploymentConfig; `more` are a step's size and the policy's other members."""
    sizes = {k: v for k, v in more.items() if k in ("CanarySize", "LinearStepSize")}
    routing = {"Type": kind, "WaitIntervalInSeconds": wait_s, **sizes}
    others = {k: v for k, v in more.items() if k not in sizes}
    return {"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": routing, **others}}


def rolling(size: dict[str, Any], wait_s: int = 60, **more: Any) -> dict[str, Any]:
    """A DeploymentConfig."""
    return {"RollingUpdatePolicy": {"MaximumBatchSize": size, "WaitIntervalInSeconds": wait_s, **more}}


def alarm_at(seconds: float) -> Problem:
    """An alarm that is in ALARM from then on, and seen while something bakes."""
    return lambda command, now: "alarm" if isinstance(command, Bake) and now >= seconds else None


@pytest.mark.fidelity(
    "updates", "Without a deployment configuration: blue/green, all at once, no baking", source=f"{GUIDE}; botocore"
)
def test_plain_update() -> None:
    """The new fleet starts whole and takes over in one step."""
    fake = Fake()
    assert fake.run(parse(None, TEN, TEN)) == Outcome()
    assert [c for _, c in fake.events] == [Resize("new", 1.0), Route(1.0)]


@pytest.mark.fidelity(
    "updates",
    "All at once: all traffic moves, then the update bakes for TerminationWaitInSeconds before the old fleet goes",
    source=f"{GUIDE}-all-at-once",
)
def test_all_at_once() -> None:
    """The interval between steps does not matter when there is one step."""
    fake = Fake()
    assert fake.run(parse(blue_green(TerminationWaitInSeconds=600), TEN, TEN)) == Outcome()
    assert fake.traffic() == [(100.0, 1.0)]
    assert fake.now == 700.0


@pytest.mark.fidelity(
    "updates",
    "Canary: a part of the traffic, WaitIntervalInSeconds, then all of it, TerminationWaitInSeconds",
    source=f"{GUIDE}-canary",
)
def test_canary() -> None:
    """The guide's own example ends in its 1800 seconds, if the instances start in ten minutes."""
    document = blue_green(
        "CANARY", 600, CanarySize=percent(30), TerminationWaitInSeconds=600, MaximumExecutionTimeoutInSeconds=1800
    )
    fake = Fake(start_s=599.0)
    assert fake.run(parse(document, TEN, TEN)) == Outcome()
    assert fake.traffic() == [(599.0, 0.3), (1199.0, 1.0)]
    assert fake.now == 1799.0


@pytest.mark.fidelity(
    "updates",
    "Linear: equal steps with WaitIntervalInSeconds between them; 33 % are three steps",
    source=f"{GUIDE}-linear",
)
@pytest.mark.parametrize(
    ("size", "shares"),
    [
        (percent(20), [0.2, 0.4, 0.6, 0.8, 1.0]),
        (percent(33), [0.33, 0.66, 1.0]),
        (percent(30), [0.3, 0.6, 0.9, 1.0]),
        (percent(50), [0.5, 1.0]),
        (instances(3), [0.3, 0.6, 0.9, 1.0]),
        (instances(5), [0.5, 1.0]),
    ],
)
def test_linear(size: dict[str, Any], shares: list[float]) -> None:
    """The share grows by the step until it is everything."""
    fake = Fake()
    fake.run(parse(blue_green("LINEAR", 60, LinearStepSize=size), TEN, TEN))
    assert [share for _, share in fake.traffic()] == pytest.approx(shares)
    assert [at for at, _ in fake.traffic()] == [100.0 + 60.0 * n for n in range(len(shares))]
    assert fake.fleets() == [("new", 1.0)]


@pytest.mark.fidelity(
    "updates",
    "Rolling: in batches, new instances start, take their share and bake, then as many old ones stop",
    source="developer guide: deployment-guardrails-rolling",
)
def test_rolling() -> None:
    """There is never more than one batch above the fleet's size."""
    fake = Fake()
    assert fake.run(parse(rolling(percent(30)), TEN, TEN)) == Outcome()
    assert fake.fleets() == [
        ("new", 0.3), ("old", 0.7), ("new", 0.6), ("old", 0.4), ("new", 0.9), ("old", 0.1), ("new", 1.0), ("old", 0.0),
    ]  # fmt: skip
    assert [share for _, share in fake.traffic()] == [0.3, 0.6, 0.9, 1.0]
    assert fake.now == 4 * (100 + 60)


@pytest.mark.parametrize(("size", "batches"), [(instances(2), [0.5, 1.0]), (percent(30), [0.5, 1.0])])
def test_batches_are_whole_instances(size: dict[str, Any], batches: list[float]) -> None:
    """30 % of four instances are two."""
    four = plan(variant(InitialInstanceCount=4))
    assert list(parse(rolling(size), four, four).steps) == batches


@pytest.mark.fidelity(
    "rollback", "An alarm in ALARM while an update bakes takes all traffic back to the old fleet at once", source=GUIDE
)
@pytest.mark.parametrize(
    ("document", "at", "traffic"),
    [
        (blue_green(TerminationWaitInSeconds=600), 0, [1.0, 0.0]),
        (blue_green("CANARY", CanarySize=percent(10), TerminationWaitInSeconds=60), 0, [0.1, 0.0]),
        (blue_green("CANARY", CanarySize=percent(10), TerminationWaitInSeconds=60), 200, [0.1, 1.0, 0.0]),
        (blue_green("LINEAR", LinearStepSize=percent(50), TerminationWaitInSeconds=60), 0, [0.5, 0.0]),
        (rolling(percent(50)), 0, [0.5, 0.0]),
    ],
)
def test_rollback(document: dict[str, Any], at: float, traffic: list[float]) -> None:
    """Whatever the share was, it becomes nothing, and the reason is kept."""
    fake = Fake(alarm_at(at))
    assert fake.run(parse(document, TEN, TEN)) == Outcome("alarm")
    assert [share for _, share in fake.traffic()] == traffic
    assert GoBack("alarm") in [c for _, c in fake.events]


@pytest.mark.fidelity(
    "rollback",
    "A rolling update goes back in batches of RollbackMaximumBatchSize; without it, at once",
    source="botocore: RollingUpdatePolicy; developer guide: deployment-guardrails-rolling",
)
@pytest.mark.parametrize(
    ("more", "back"),
    [
        ({}, [("old", 1.0), ("new", 0.0)]),
        ({"RollbackMaximumBatchSize": percent(100)}, [("old", 1.0), ("new", 0.0)]),
        (
            {"RollbackMaximumBatchSize": instances(4)},
            [("old", 0.8), ("new", 0.2), ("old", 1.0), ("new", 0.0)],
        ),
    ],
)
def test_rolling_back(more: dict[str, Any], back: list[tuple[str, float]]) -> None:
    """Old instances start before the traffic comes back to them and the new ones go."""
    fake = Fake(alarm_at(300))
    assert fake.run(parse(rolling(percent(30), **more), TEN, TEN)) == Outcome("alarm")
    assert fake.fleets() == [("new", 0.3), ("old", 0.7), ("new", 0.6), *back]


@pytest.mark.fidelity(
    "rollback",
    "Only a rolling update whose rollback fails too ends as UpdateRollbackFailed, serving with both fleets",
    source="botocore: EndpointStatus (UpdateRollbackFailed); developer guide: deployment-guardrails-rolling",
)
def test_rollback_that_fails() -> None:
    """The traffic stays where it was when the old instances do not come back."""

    def problem(command: Command, now: float) -> str | None:
        going_back = isinstance(command, Resize) and command.fleet == "old" and command.share > 0.7
        return "no capacity" if going_back else alarm_at(300)(command, now)

    fake = Fake(problem)
    outcome = fake.run(parse(rolling(percent(30)), TEN, TEN))
    assert outcome == Outcome("alarm The rollback failed too: no capacity", mixed=True)
    assert [share for _, share in fake.traffic()] == [0.3, 0.6]


@pytest.mark.fidelity(
    "rollback",
    "A new fleet that does not start leaves the old one as it is",
    source="developer guide: deployment-guardrails",
)
@pytest.mark.parametrize("document", [None, blue_green("CANARY", CanarySize=percent(10)), rolling(percent(50))])
def test_failure_before_traffic_moves(document: dict[str, Any] | None) -> None:
    """A new fleet that does not start leaves the old one alone: nothing to go back from."""
    fake = Fake(lambda command, _: "does not start" if isinstance(command, Resize) else None)
    assert fake.run(parse(document, TEN, TEN)) == Outcome("does not start")
    assert fake.traffic() == []
    assert not any(isinstance(c, GoBack) for _, c in fake.events)


def test_second_batch_that_does_not_start() -> None:
    """A rolling update whose later batch does not start goes back."""
    fake = Fake(lambda command, _: "does not start" if command == Resize("new", 1.0) else None)
    assert fake.run(parse(rolling(percent(50)), TEN, TEN)) == Outcome("does not start")
    assert fake.fleets() == [("new", 0.5), ("old", 0.5), ("new", 1.0), ("old", 1.0), ("new", 0.0)]


def test_no_waits_no_baking() -> None:
    """Nothing bakes for zero seconds."""
    fake = Fake(alarm_at(0))
    assert fake.run(parse(blue_green("CANARY", 0, CanarySize=percent(10)), TEN, TEN)) == Outcome()


@pytest.mark.fidelity(
    "updates",
    "Guardrails do not apply to serverless and Inf1 endpoints, nor rolling ones to several variants: these are updated "
    "all at once without baking",
    source="developer guide: deployment-guardrails, deployment-guardrails-exclusions",
)
def test_exclusions() -> None:
    """What the guide excludes is updated as if nothing had been asked for."""
    alone = plan(serverless())
    canary = blue_green("CANARY", CanarySize=percent(10))
    assert parse(canary, alone, alone) == ALL_AT_ONCE
    inferentia = plan(variant(InstanceType="ml.inf1.xlarge", InitialInstanceCount=10))
    assert parse(canary, TEN, inferentia) == ALL_AT_ONCE
    two = plan(variant(InitialInstanceCount=10), variant(VariantName="B", InitialInstanceCount=10))
    assert parse(rolling(percent(50)), two, two) == ALL_AT_ONCE
    assert parse(canary, two, two).steps == (0.1, 1.0)


BAD: list[tuple[dict[str, Any], str]] = [
    (blue_green() | rolling(percent(10)), "Only one of BlueGreenUpdatePolicy and RollingUpdatePolicy"),
    (blue_green("CANARY"), "CanarySize is required"),
    (blue_green("LINEAR"), "LinearStepSize is required"),
    (blue_green("CANARY", CanarySize=percent(51)), "CanarySize must be at most 50%"),
    (blue_green("CANARY", CanarySize=instances(6)), "got 6 (INSTANCE_COUNT), which is 60%"),
    (blue_green("LINEAR", LinearStepSize=percent(9)), "LinearStepSize must be between 10% and 50%"),
    (rolling(percent(4)), "MaximumBatchSize must be between 5% and 50%"),
    (rolling(instances(6)), "MaximumBatchSize must be between 5% and 50%"),
    (
        blue_green(
            "CANARY", 400, CanarySize=percent(10), TerminationWaitInSeconds=200, MaximumExecutionTimeoutInSeconds=600
        ),
        "MaximumExecutionTimeoutInSeconds must be larger",
    ),
]


@pytest.mark.fidelity(
    "updates",
    "Canary at most 50 %, linear steps 10-50 %, rolling batches 5-50 % of the instances; the time limit is longer than "
    "the waits; one policy",
    source="botocore: TrafficRoutingConfig, RollingUpdatePolicy, BlueGreenUpdatePolicy",
)
@pytest.mark.parametrize(("document", "message"), BAD)
def test_bad_configurations(document: dict[str, Any], message: str) -> None:
    """A deployment configuration that breaks a rule is refused with the rule."""
    with pytest.raises(AwsError) as caught:
        parse(document, TEN, TEN)
    assert message in str(caught.value)


@pytest.mark.fidelity(
    "updates",
    "A deployment with guardrails needs the old variant names",
    source="developer guide: deployment-guardrails-exclusions",
)
def test_variant_names_stay() -> None:
    """Guardrails compare a variant with its successor; a plain update may rename."""
    renamed = plan(variant(VariantName="B", InitialInstanceCount=10))
    with pytest.raises(AwsError, match="the same variant names"):
        parse(blue_green(), TEN, renamed)
    assert parse(None, TEN, renamed) == ALL_AT_ONCE

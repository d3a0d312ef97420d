"""How much capacity a target gets."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from workbench.stack.sagemaker.scaling.capacity import (
    Adjustment,
    Cooldown,
    Demand,
    Hold,
    Scale,
    Situation,
    Step,
    Stepped,
    Tracked,
    after,
    decide,
    step_for,
)

TRACKING = "Application Auto Scaling user guide, How target tracking scaling works"
STEPS = "Application Auto Scaling user guide, How step scaling works"


def high(metric: float, target: float = 100.0, cooldown_s: float = 300) -> Tracked:
    """AlarmHigh's demand."""
    return Tracked("p", "AlarmHigh", True, metric, target, cooldown_s)


def low(metric: float, target: float = 100.0) -> Tracked:
    """AlarmLow's demand."""
    return Tracked("p", "AlarmLow", False, metric, target, 300)


def step(adjustment: int, kind: Adjustment = "ChangeInCapacity", least: int = 1) -> Stepped:
    """A step's demand."""
    return Stepped("s", "alarm", kind, adjustment, least, 300)


def situation(
    capacity: int,
    cooldown: Cooldown | None = None,
    *,
    bounds: tuple[int, int] = (1, 10),
    ready: bool = True,
    out_suspended: bool = False,
    in_suspended: bool = False,
) -> Situation:
    """At 1,000 s of emulated time."""
    return Situation(capacity, *bounds, cooldown, 1_000.0, ready, out_suspended, in_suspended)


def wanted(of: Situation, *demands: Demand) -> int | str | None:
    """The decision, in short."""
    match decide(of, demands):
        case Scale(capacity):
            return capacity
        case Hold(reason):
            return reason
    return None


@pytest.mark.fidelity("auto scaling", "target tracking sets ceil(capacity x metric / target)", source=TRACKING)
@pytest.mark.parametrize(
    ("capacity", "metric", "expected"),
    [(1, 101, 2), (1, 200, 2), (1, 200.5, 3), (3, 150, 5), (4, 1000, 10), (10, 150, "AlreadyAtMaxCapacity")],
)
def test_tracking_out(capacity: int, metric: float, expected: int | str) -> None:
    """In proportion to the metric, up to the maximum."""
    assert wanted(situation(capacity), high(metric)) == expected


@pytest.mark.fidelity("auto scaling", "target tracking scales in proportion, never below the minimum", source=TRACKING)
@pytest.mark.parametrize(
    ("capacity", "metric", "expected"),
    [(4, 50, 2), (4, 51, 3), (10, 0, 1), (2, 89, "AlreadyAtDesiredCapacity"), (1, 0, "AlreadyAtMinCapacity")],
)
def test_tracking_in(capacity: int, metric: float, expected: int | str) -> None:
    """In proportion to the metric, down to the minimum."""
    assert wanted(situation(capacity), low(metric)) == expected


def test_rounding_is_no_demand() -> None:
    """Three at 0.1 of a target of 0.3 make one, though the division says a hair more."""
    assert high(0.1, 0.3).capacity(3) == 1


@pytest.mark.fidelity(
    "auto scaling", "of several policies the one for most capacity counts", source="botocore PutScalingPolicy"
)
def test_most_capacity_counts() -> None:
    """Out and in, the larger capacity is taken; out before in."""
    assert wanted(situation(4), high(150), step(3)) == 7
    assert wanted(situation(8), low(50), step(-1)) == 7
    assert wanted(situation(4), low(0), step(1)) == 5


@pytest.mark.fidelity(
    "auto scaling",
    "tracking policies scale in only when all of them are ready to; step scaling asks nobody",
    source=TRACKING,
)
def test_all_tracking_policies_agree_to_scale_in() -> None:
    """While one tracking policy is not ready to scale in, only a step does."""
    assert wanted(situation(8, ready=False), low(10)) == "AlreadyAtDesiredCapacity"
    assert wanted(situation(8, ready=False), low(10), step(-2)) == 6


@pytest.mark.fidelity(
    "auto scaling",
    "in the scale-out cooldown what was added counts, and only a larger scale-out is done",
    source=TRACKING,
)
def test_scale_out_cooldown() -> None:
    """Demands are computed from the capacity before; nothing scales in."""
    cooling = Cooldown(out=True, before=1, until=1_100.0)
    assert wanted(situation(3, cooling), high(250)) is None
    assert wanted(situation(3, cooling), high(700)) == 7
    assert wanted(situation(3, cooling), step(2)) is None
    assert wanted(situation(3, cooling), step(3)) == 4
    assert wanted(situation(3, cooling), low(0)) is None
    over = Cooldown(out=True, before=1, until=1_000.0)
    assert wanted(situation(3, over), high(250)) == 8


@pytest.mark.fidelity(
    "auto scaling",
    "in the scale-in cooldown nothing scales in, and a scale-out is done at once and ends it",
    source=TRACKING,
)
def test_scale_in_cooldown() -> None:
    """Only in is blocked, and the next cooldown is the scale-out's."""
    cooling = Cooldown(out=False, before=5, until=1_100.0)
    assert wanted(situation(3, cooling), low(0)) is None
    decision = decide(situation(3, cooling), [high(150, cooldown_s=60)])
    assert isinstance(decision, Scale)
    assert decision.capacity == 5
    assert after(decision, 3, 1_000.0) == Cooldown(out=True, before=3, until=1_060.0)


@pytest.mark.fidelity(
    "auto scaling", "a suspended direction is not scaled in", source="botocore application-autoscaling SuspendedState"
)
def test_suspensions() -> None:
    """Each direction by itself."""
    assert wanted(situation(3, out_suspended=True), high(500)) is None
    assert wanted(situation(3, out_suspended=True), low(0)) == 1
    assert wanted(situation(3, in_suspended=True), low(0)) is None
    assert wanted(situation(3, in_suspended=True), high(200)) == 6


@pytest.mark.fidelity(
    "auto scaling", "a percentage rounds toward zero, but is at least one and the magnitude", source=STEPS
)
@pytest.mark.parametrize(
    ("kind", "adjustment", "least", "base", "expected"),
    [
        ("ChangeInCapacity", 3, 1, 4, 7),
        ("ChangeInCapacity", -3, 1, 4, 1),
        ("ExactCapacity", 6, 1, 4, 6),
        ("PercentChangeInCapacity", 100, 1, 4, 8),
        ("PercentChangeInCapacity", 127, 1, 10, 22),
        ("PercentChangeInCapacity", 10, 1, 4, 5),
        ("PercentChangeInCapacity", -10, 1, 4, 3),
        ("PercentChangeInCapacity", -67, 1, 10, 4),
        ("PercentChangeInCapacity", 25, 2, 4, 6),
        ("PercentChangeInCapacity", 0, 2, 4, 4),
    ],
)
def test_step_adjustments(kind: Adjustment, adjustment: int, least: int, base: int, expected: int) -> None:
    """What each type makes of a number."""
    assert step(adjustment, kind, least).capacity(base) == expected


@pytest.mark.fidelity(
    "auto scaling", "step bounds are inclusive on the side of the threshold", source="botocore StepAdjustment"
)
@pytest.mark.parametrize(
    ("metric", "expected"), [(50, 1), (59.9, 1), (60, 2), (1e9, 2), (49, -1), (40, -1), (39.9, -2), (-1e9, -2)]
)
def test_steps(metric: float, expected: int) -> None:
    """Steps around a threshold of 50, ten wide."""
    steps = [Step(-math.inf, -10, -2), Step(-10, 0, -1), Step(0, 10, 1), Step(10, math.inf, 2)]
    # -10 belongs to the outer step below the threshold, 10 to the outer one above it.
    found = step_for(steps, metric, 50.0)
    assert found is not None
    assert found.adjustment == (-2 if metric == 40 else expected)


@pytest.mark.fidelity(
    "auto scaling",
    "A metric that no step adjustment covers asks for nothing",
    source="API reference: StepAdjustment",
)
def test_no_step_for_it() -> None:
    """A metric that no step covers asks for nothing."""
    assert step_for([Step(0, math.inf, 1)], 49.0, 50.0) is None


numbers = st.integers(0, 200)
demands = st.one_of(
    st.builds(high, st.floats(100.1, 1e6)),
    st.builds(low, st.floats(0, 89.9)),
    st.builds(step, st.integers(-300, 300), st.sampled_from(["ChangeInCapacity", "PercentChangeInCapacity"]), numbers),
    st.builds(step, numbers, st.just("ExactCapacity")),
)
situations = st.builds(
    lambda capacity, cooldown, bounds, ready, out, in_: situation(
        capacity, cooldown, bounds=(min(bounds), max(bounds)), ready=ready, out_suspended=out, in_suspended=in_
    ),
    numbers,
    st.none() | st.builds(Cooldown, st.booleans(), numbers, st.floats(0, 2_000)),
    st.tuples(numbers, numbers),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


@given(situations, st.lists(demands, max_size=4))
def test_whatever_is_asked(of: Situation, asked: list[Demand]) -> None:
    """Capacity stays within bounds, suspended and cooling directions are left alone, a scaling changes something."""
    decision = decide(of, asked)
    if not isinstance(decision, Scale):
        return
    assert of.minimum <= decision.capacity <= of.maximum
    assert decision.capacity != of.capacity
    out = decision.capacity > of.capacity
    assert not (of.out_suspended if out else of.in_suspended)
    if not out:
        assert of.cooling is None
        assert of.tracking_ready_in or isinstance(decision.demand, Stepped)
    assert decision.demand in asked


@pytest.mark.fidelity(
    "auto scaling",
    "While a policy is above its target nothing scales in",
    source="Application Auto Scaling user guide: multiple policies",
)
@given(situations, st.lists(demands, min_size=1, max_size=4), st.floats(100.1, 1e6))
def test_a_scale_out_demand_never_shrinks(of: Situation, asked: list[Demand], metric: float) -> None:
    """While a tracking policy is above its target nothing scales in, unless a running cooldown counts what it added."""
    assume(of.cooling is None and of.capacity > 0)
    decision = decide(of, [*asked, high(metric)])
    assert not isinstance(decision, Scale) or decision.capacity > of.capacity

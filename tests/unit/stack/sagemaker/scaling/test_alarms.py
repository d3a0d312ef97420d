"""When alarms go off."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.stack.sagemaker.scaling.alarms import Missing, Rule, State, judge, watch_queries
from workbench.stack.sagemaker.scaling.metric_math import ExpressionError, Series

GUIDE = "CloudWatch user guide, Configuring how CloudWatch alarms treat missing data"
TREATMENTS: tuple[Missing, ...] = ("missing", "ignore", "breaching", "notBreaching")


def rule(datapoints: int, missing: Missing = "missing", periods: int = 3) -> Rule:
    """Breaching is above 1."""
    return Rule("GreaterThanThreshold", 1.0, periods, datapoints, missing)


def points(text: str) -> Series:
    """`-` is missing, `0` within the threshold, `X` beyond it."""
    return tuple({"-": None, "0": 0.0, "X": 2.0}[c] for c in text.split())


@pytest.mark.fidelity(
    "alarms",
    "an alarm treats missing data as TreatMissingData says, and only when too little is there",
    source=GUIDE,
)
@pytest.mark.parametrize(
    ("text", "datapoints", "states"),
    [
        # The guide's table of 3 out of 3 ...
        ("0 - X - X", 3, ("OK", "OK", "OK", "OK")),
        ("- - - - 0", 3, ("OK", "OK", "OK", "OK")),
        ("- - - - -", 3, ("INSUFFICIENT_DATA", "kept", "ALARM", "OK")),
        ("0 X X - X", 3, ("ALARM", "ALARM", "ALARM", "ALARM")),
        ("- - X - -", 3, ("ALARM", "kept", "ALARM", "OK")),
        # ... and of 2 out of 3.
        ("0 - X - X", 2, ("ALARM", "ALARM", "ALARM", "ALARM")),
        ("0 0 X 0 X", 2, ("ALARM", "ALARM", "ALARM", "ALARM")),
        ("0 - X - -", 2, ("OK", "OK", "ALARM", "OK")),
        ("- - - - 0", 2, ("OK", "OK", "ALARM", "OK")),
        ("- - - X -", 2, ("ALARM", "kept", "ALARM", "OK")),
    ],
)
@pytest.mark.parametrize("before", ["OK", "ALARM", "INSUFFICIENT_DATA"])
def test_missing_data(text: str, datapoints: int, states: tuple[str, ...], before: State) -> None:
    """Each row of the guide's tables, under each treatment and from each state."""
    slots = points(text)
    found = tuple(judge(rule(datapoints, missing), slots, before).state for missing in TREATMENTS)
    assert found == tuple(before if state == "kept" else state for state in states)


def test_a_young_breach_alone_keeps_the_state() -> None:
    """One breaching point that is not as old as DatapointsToAlarm goes off nothing, and clears nothing."""
    for before in ("OK", "ALARM", "INSUFFICIENT_DATA"):
        assert judge(rule(3), points("- - - - X"), before).state == before


@pytest.mark.fidelity(
    "auto scaling",
    "AlarmHigh needs 3 of 3 points above the target, AlarmLow 15 of 15 below",
    source="repost QUf450Wsd9RROGGOIwaolN9w",
)
@given(values=st.lists(st.floats(-100, 100), min_size=15, max_size=17), periods=st.sampled_from([3, 15]))
def test_all_of_the_newest_points(values: list[float], periods: int) -> None:
    """With nothing missing, N of N alarms go off exactly when the newest N points all breach."""
    verdict = judge(rule(periods, periods=periods), tuple(values), "OK")
    assert (verdict.state == "ALARM") == all(v > 1.0 for v in values[-periods:])
    assert verdict.points == tuple(values[-periods:])


@given(
    slots=st.lists(st.none() | st.sampled_from([0.0, 2.0]), max_size=8),
    periods=st.integers(1, 5),
    data=st.data(),
    missing=st.sampled_from(TREATMENTS),
)
def test_states_rest_on_real_points(
    slots: list[float | None], periods: int, data: st.DataObject, missing: Missing
) -> None:
    """What goes off with missing points as good goes off with any; without a breach only `breaching` does."""
    datapoints = data.draw(st.integers(1, periods))
    states = {m: judge(rule(datapoints, m, periods), tuple(slots), "OK").state for m in TREATMENTS}
    if states["notBreaching"] == "ALARM":
        assert set(states.values()) == {"ALARM"}
    if not any(v == 2.0 for v in slots) and missing != "breaching":
        assert states[missing] != "ALARM"


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ([{"Id": "a", "Expression": "b"}], "'a' refers to b, which nothing defines"),
        ([{"Id": "a"}], "'a' must have either Expression or MetricStat"),
        ([{"Id": "a", "Expression": "1"}, {"Id": "a", "Expression": "2"}], "the id 'a' is used twice"),
        (
            [{"Id": "a", "Expression": "1"}, {"Id": "b", "Expression": "2"}],
            "exactly one query must have ReturnData true",
        ),
        ([{"Id": "a", "Expression": "b"}, {"Id": "b", "Expression": "a", "ReturnData": False}], "refers to b"),
    ],
)
def test_queries_that_make_no_sense(queries: list[dict[str, Any]], message: str) -> None:
    """Queries that no series can come from are refused."""
    with pytest.raises(ExpressionError, match=re.escape(message)):
        watch_queries(queries)


def test_expressions_build_on_each_other() -> None:
    """The returned series is computed through the others, in whatever order they are given."""
    metric = {
        "Namespace": "N",
        "MetricName": "M",
        "Dimensions": [{"Name": "b", "Value": "2"}, {"Name": "a", "Value": "1"}],
    }
    watched = watch_queries(
        [
            {"Id": "share", "Expression": "double / 4"},
            {"Id": "double", "Expression": "m * 2", "ReturnData": False},
            {"Id": "m", "MetricStat": {"Metric": metric, "Stat": "Sum"}, "ReturnData": False},
        ]
    )
    assert watched.metrics["m"].dimensions == (("a", "1"), ("b", "2"))
    assert watched.series({"m": (4.0, None)}, 60, 2) == (2.0, None)

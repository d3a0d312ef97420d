"""Metric math."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.components.dedicated_lane import BUSY_SLOTS
from workbench.stack.sagemaker.scaling.metric_math import ExpressionError, Series, parse

SERIES: dict[str, Series] = {"a": (1.0, 2.0, None, 4.0), "b": (2.0, 0.0, 3.0, None)}


@pytest.mark.fidelity(
    "alarms", "metric math computes with series and numbers", source="CloudWatch user guide, Using metric math"
)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", (1, 2, None, 4)),
        ("7", (7, 7, 7, 7)),
        ("a + b * 2", (5, 2, None, None)),
        ("(a + b) * 2 - 1", (5, 3, None, None)),
        ("a / b", (0.5, None, None, None)),
        ("-a ^ 2", (-1, -4, None, -16)),
        ("a > 1", (0, 1, None, 1)),
        ("a >= 1 && b < 1", (0, 1, None, None)),
        ("a > 3 || b == 3", (0, 0, None, None)),
        ("!(a == 1)", (0, 1, None, 1)),
        ("IF(a > 1, b, 9)", (9, 0, None, None)),
        ("IF(a > 1, 5)", (None, 5, None, 5)),
        ("FILL(a, 0)", (1, 2, 0, 4)),
        ("FILL(a, REPEAT)", (1, 2, 2, 4)),
        ("FILL(a, LINEAR)", (1, 2, 3, 4)),
        ("FILL(a, b)", (1, 2, 3, 4)),
        ("PERIOD(a)", (60, 60, 60, 60)),
        ("CEIL(a / 4)", (1, 1, None, 1)),
        ("FLOOR(a / 4) + ABS(0 - a)", (1, 2, None, 5)),
        ("SUM([a, b])", (3, 2, 3, 4)),
        ("AVG([a, b, 3])", (2, 5 / 3, 3, 3.5)),
        ("MAX([a, b]) - MIN([a, b])", (1, 2, 0, 0)),
        ("a - AVG(a)", (1 - 7 / 3, 2 - 7 / 3, None, 4 - 7 / 3)),
        ("MAX(FILL(a * 0 / 0, 3))", (3, 3, 3, 3)),
        ("AVG(a / 0) > 1", (None, None, None, None)),
        ("10 / 0", (None, None, None, None)),
    ],
)
def test_values(text: str, expected: tuple[float | None, ...]) -> None:
    """Series and numbers combine by period; what has no value has none afterwards."""
    found = parse(text).evaluate(SERIES, 60, 4)
    assert [v is None for v in found] == [v is None for v in expected]
    assert [v for v in found if v is not None] == pytest.approx([v for v in expected if v is not None])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a +", "is not a metric math expression"),
        ("SEARCH('{x}', 'Sum')", "function SEARCH is not emulated"),
        ("IF(a)", "function IF takes 3 arguments; got 1"),
        ("a.b", "'a.b' is not emulated"),
        ("[a, b]", "'[a, b]' is not emulated"),
        ("'text'", "is not emulated"),
        ("a < b < 3", "is not emulated"),
        ("True", "use 1 and 0"),
        ("ABS(x=1)", "is not emulated"),
        ("(lambda: 1)()", "is not emulated"),
        ("__import__('os')", "function __import__ is not emulated"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    """What is not known is refused, by what it is."""
    with pytest.raises(ExpressionError, match=re.escape(message)):
        parse(text)


def test_the_product_s_own_expression() -> None:
    """The expression that our dedicated lanes scale by is understood, and says what it is for."""
    expression = parse(BUSY_SLOTS)
    assert expression.names == {"demand", "calls", "shares"}
    series: dict[str, Series] = {"demand": (120.0, None, 9.0), "calls": (10.0, 4.0, 0.0), "shares": (5.0, 2.0, 0.0)}
    # Two busy slots on two instances; a minute without demand; an idle minute.
    assert expression.evaluate(series, 60, 3) == (1.0, None, 0.0)


@given(
    st.lists(st.none() | st.floats(-1e6, 1e6), min_size=1, max_size=5),
    st.recursive(
        st.sampled_from(["x", "0", "3.5"]),
        lambda inner: (
            st.builds("({} {} {})".format, inner, st.sampled_from("+-*/><"), inner)
            | st.builds("FILL({}, {})".format, inner, inner)
            | st.builds("MAX([{}, {}])".format, inner, inner)
        ),
        max_leaves=6,
    ),
)
def test_values_are_numbers_or_missing(values: list[float | None], text: str) -> None:
    """Whatever is computed, each period has a finite number or nothing."""
    found = parse(text).evaluate({"x": tuple(values)}, 60, len(values))
    assert len(found) == len(values)
    assert all(v is None or math.isfinite(v) for v in found)

"""The sketch: quantiles within their stated error, and a past that fades."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.core.sketch import ACCURACY, Sketch

durations = st.floats(0.001, 60)


@given(st.lists(durations, min_size=1, max_size=400), st.sampled_from([0.5, 0.95, 0.99, 1.0]))
def test_a_quantile_is_within_its_error_of_the_true_one(values: list[float], q: float) -> None:
    """Against the sorted list, at one moment."""
    sketch = Sketch()
    for value in values:
        sketch.add(value, 0.0)
    true = sorted(values)[max(0, math.ceil(q * len(values) - 1e-9) - 1)]
    assert sketch.quantile(q) == pytest.approx(true, rel=ACCURACY + 1e-9)


def test_an_empty_one_knows_nothing() -> None:
    """None, and a count of zero."""
    assert (Sketch().quantile(0.95), Sketch().count(0.0)) == (None, 0.0)


def test_what_became_slow_shows_within_a_half_life() -> None:
    """1,000 fast ones, then a minute of slow ones at a tenth of the rate: the P95 is slow."""
    sketch = Sketch(60)
    for i in range(1000):
        sketch.add(0.02, i * 0.06)
    assert sketch.quantile(0.95) == pytest.approx(0.02, rel=0.06)
    for i in range(100):
        sketch.add(2.0, 60 + i * 0.6)
    assert sketch.quantile(0.95) == pytest.approx(2.0, rel=0.06)
    assert sketch.quantile(0.5) == pytest.approx(0.02, rel=0.06)


def test_one_of_a_half_life_ago_counts_half() -> None:
    """And one of ten minutes ago next to nothing."""
    sketch = Sketch(60)
    sketch.add(1.0, 100.0)
    assert sketch.count(160.0) == pytest.approx(0.5)
    sketch.add(1.0, 160.0)
    assert sketch.count(160.0) == pytest.approx(1.5)
    assert sketch.count(760.0) < 0.01


def test_days_of_observations_neither_overflow_nor_grow() -> None:
    """The reference moves on; what is left is recent."""
    sketch = Sketch(1.0)
    for i in range(20_000):
        sketch.add(0.01 + (i % 7) * 0.001, float(i))
    assert sketch.count(19_999.0) == pytest.approx(2.0, rel=0.01)
    sketch.add(5.0, 1e9)
    assert sketch.quantile(0.01) == pytest.approx(5.0, rel=0.06)
    assert math.isfinite(sketch.count(1e9))


@given(st.lists(st.tuples(durations, st.floats(0, 10_000)), min_size=1, max_size=100))
def test_any_sequence_gives_a_quantile_among_what_was_seen(seen: list[tuple[float, float]]) -> None:
    """Whatever the times, also ones that go back."""
    sketch = Sketch()
    for value, at in seen:
        sketch.add(value, at)
    low, high = min(value for value, _ in seen), max(value for value, _ in seen)
    found = sketch.quantile(0.95)
    assert found is not None
    assert low * (1 - ACCURACY) * 0.999 <= found <= high * (1 + ACCURACY) * 1.001


def test_the_past_halves_each_minute_unless_said_otherwise() -> None:
    """CloudWatch's own rhythm."""
    sketch = Sketch()
    sketch.add(1.0, 0.0)
    assert sketch.count(60.0) == pytest.approx(0.5)


def test_the_rank_is_met_by_the_bucket_that_reaches_it() -> None:
    """Half of two is the lower one; anything beyond is the upper."""
    sketch = Sketch()
    sketch.add(1.0, 0.0)
    sketch.add(10.0, 0.0)
    assert sketch.quantile(0.5) == pytest.approx(1.0, rel=ACCURACY + 1e-9)
    assert sketch.quantile(0.51) == pytest.approx(10.0, rel=ACCURACY + 1e-9)


def test_of_three_the_second_is_within_two_thirds() -> None:
    """Ranks add up over the buckets before."""
    sketch = Sketch()
    for value in (1.0, 10.0, 100.0):
        sketch.add(value, 0.0)
    found = [sketch.quantile(q) for q in (0.3, 0.6, 0.66, 0.7, 1.0)]
    assert found == pytest.approx([1.0, 10.0, 10.0, 100.0, 100.0], rel=ACCURACY + 1e-9)


def test_when_the_reference_moves_what_is_recent_keeps_its_weight() -> None:
    """Half-lives 0, 40 and 41: the second counts half, the first nothing, and time goes on from there."""
    sketch = Sketch(1.0)
    for at in (0.0, 40.0, 41.0):
        sketch.add(1.0, at)
    assert sketch.count(41.0) == pytest.approx(1.5)
    sketch.add(1.0, 42.0)
    assert sketch.count(42.0) == pytest.approx(1.75)
    assert sketch.count(43.0) == pytest.approx(0.875)


def test_what_is_next_to_nothing_is_dropped_when_the_reference_moves() -> None:
    """A millionth does not hold a bucket; what is worth more does."""
    sketch = Sketch(1.0)
    sketch.add(9.0, 0.0)
    sketch.add(1.0, 30.0)
    sketch.add(1.0, 41.0)
    assert sketch.count(41.0) == pytest.approx(1 + 2**-11)
    assert sketch.quantile(1.0) == pytest.approx(1.0, rel=ACCURACY + 1e-9)


def test_the_shortest_duration_is_a_tenth_of_a_millisecond() -> None:
    """A clock that stood still does no harm."""
    sketch = Sketch()
    sketch.add(0.0, 0.0)
    sketch.add(1e-9, 0.0)
    assert sketch.quantile(0.5) == pytest.approx(1e-4, rel=ACCURACY + 1e-9)

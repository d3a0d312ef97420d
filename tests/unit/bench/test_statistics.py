"""Percentiles and ratios of measured times."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench.bench.statistics import over_blocks, percentile, ratio

TIMES = st.lists(st.integers(min_value=1, max_value=10**9), min_size=5, max_size=300)


def test_a_percentile_is_a_time_that_was_measured_in_milliseconds() -> None:
    """Nearest rank: of 1 ms to 100 ms the P50 is 50 ms and the P99 is 99 ms."""
    times = [n * 1_000_000 for n in range(100, 0, -1)]
    assert (percentile(times, 50), percentile(times, 99), percentile(times, 100)) == (50.0, 99.0, 100.0)


@given(TIMES, st.integers(min_value=1, max_value=100))
def test_at_most_the_named_share_lies_above_a_percentile(times: list[int], percent: int) -> None:
    """No more than (100 - p) % of the times are longer than the P of p."""
    bound = percentile(times, percent) * 1e6 + 100  # rounded to 0.1 µs
    assert sum(time > bound for time in times) * 100 <= (100 - percent) * len(times)


@given(TIMES, st.integers(min_value=2, max_value=9))
def test_a_series_that_takes_k_times_as_long_has_the_ratio_k(times: list[int], k: int) -> None:
    """A ratio compares the same rank of both series."""
    assert ratio([k * time for time in times], times, 50) == k


def test_parts_show_how_steady_a_ratio_was() -> None:
    """One disturbed fifth of the run widens the range and leaves its other end."""
    calm, disturbed = [10] * 100, [10] * 80 + [30] * 20
    assert over_blocks(disturbed, calm, 50) == [1.0, 3.0]

"""What is told of a series of times: percentiles, and ratios of percentiles, with how steady they were."""

from __future__ import annotations

from collections.abc import Sequence

_BLOCKS = 5
_NS_PER_MS = 1e6


def percentile(times_ns: Sequence[int], percent: int) -> float:
    """The nearest-rank percentile, in milliseconds."""
    ordered = sorted(times_ns)
    return round(ordered[_rank(len(ordered), percent)] / _NS_PER_MS, 4)


def ratio(of: Sequence[int], to: Sequence[int], percent: int) -> float:
    """The percentile of one series in terms of the other's."""
    first, second = sorted(of), sorted(to)
    return round(first[_rank(len(first), percent)] / second[_rank(len(second), percent)], 3)


def over_blocks(of: Sequence[int], to: Sequence[int], percent: int) -> list[float]:
    """The smallest and the largest `ratio` of five successive parts of the run."""
    size = min(len(of), len(to)) // _BLOCKS
    parts = [slice(i * size, (i + 1) * size) for i in range(_BLOCKS)]
    ratios = [ratio(of[part], to[part], percent) for part in parts]
    return [min(ratios), max(ratios)]


def _rank(count: int, percent: int) -> int:
    """Index of the nearest-rank percentile in a sorted series."""
    return max(0, -(-count * percent // 100) - 1)

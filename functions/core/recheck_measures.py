"""The figures by which two models' verdicts and two days' scores are compared, each with how sure it is.

Agreement beyond chance is Cohen's kappa (1960), its interval from the asymptotic variance of Fleiss, Cohen and Everitt
("Large sample standard errors of kappa and weighted kappa", Psychological Bulletin 72, 1969). Shares have Wilson's
score interval (1927), which stays within 0 and 1 and holds for few observations. Both at 95 %; both take verdicts for
independent, which those of one request are not quite.

Drift is told by two measures over scores in bins of 0.01. The population stability index (PSI) sums
(p - q) ln(p ÷ q) over about ten bins that hold the baseline's tenths; by custom 0.1 is worth a look and 0.25 a shift.
Without any drift PSI ÷ (1/n + 1/m) is distributed as chi-squared with bins - 1 degrees of freedom (Yurdakul and
Naranjo, "Statistical properties of the population stability index", 2020), so with few verdicts chance alone passes
0.1: it must exceed that law's 99.9th percentile as well. The Kolmogorov-Smirnov distance D is the largest gap between
the two cumulative shares: 0.1 is worth a look, 0.2 a shift, if above sqrt(-ln(0.001 ÷ 2) ÷ 2) · sqrt((n + m) ÷ nm),
Smirnov's bound at 99.9 %. In bins D is at most the true one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Z_95: Final = 1.959963984540054
_Z_999: Final = 3.090232306167813
BINS: Final = 100
"""Bins of a histogram of scores, each 0.01 wide; a score of 1 falls into the last."""
PSI_BINS: Final = 10
PSI_LOOK, PSI_SHIFT = 0.1, 0.25
KS_LOOK, KS_SHIFT = 0.1, 0.2
FEWEST: Final = 100
"""Scores on either side, below which drift is not told."""
_CHANCE: Final = 0.001

Level = Literal["unknown", "stable", "look", "shift"]
LEVELS: Final[tuple[Level, ...]] = ("unknown", "stable", "look", "shift")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Drift:
    """How far scores lie from their baseline's. Figures are None where there is too little to tell."""

    level: Level
    psi: float | None
    psi_chance: float | None
    """What chance alone stays under, 999 times in 1,000."""
    ks: float | None
    ks_chance: float | None
    scores: int
    baseline: int


def share(count: int, of: int) -> Estimate | None:
    """`count` ÷ `of` with Wilson's interval; None of nothing."""
    if of == 0:
        return None
    p, z2 = count / of, Z_95 * Z_95
    centre = (p + z2 / (2 * of)) / (1 + z2 / of)
    half = Z_95 / (1 + z2 / of) * math.sqrt(p * (1 - p) / of + z2 / (4 * of * of))
    # At the ends the interval reaches them exactly; rounding must not leave the value outside it.
    return Estimate(p, min(p, max(0.0, centre - half)), max(p, min(1.0, centre + half)))


def kappa(table: Sequence[Sequence[int]]) -> Estimate | None:
    """Cohen's kappa of a square table of counts; None where chance alone makes agreement certain, or of nothing."""
    total = sum(map(sum, table))
    if total == 0 or any(row[i] == total for i, row in enumerate(table)):
        return None
    p = [[count / total for count in row] for row in table]
    rows, columns = [sum(row) for row in p], [sum(column) for column in zip(*p, strict=True)]
    observed = sum(p[i][i] for i in range(len(p)))
    expected = sum(row * column for row, column in zip(rows, columns, strict=True))
    left = 1 - expected
    value = (observed - expected) / left
    diagonal = sum(p[i][i] * (1 - (rows[i] + columns[i]) * (1 - value)) ** 2 for i in range(len(p)))
    others = sum(p[i][j] * (columns[i] + rows[j]) ** 2 for i in range(len(p)) for j in range(len(p)) if i != j)
    spread = diagonal + (1 - value) ** 2 * others - (value - expected * (1 - value)) ** 2
    error = math.sqrt(max(0.0, spread) / total) / left
    return Estimate(value, max(-1.0, value - Z_95 * error), min(1.0, value + Z_95 * error))


def bin_of(score: float) -> int:
    """The bin of a score between 0 and 1."""
    return min(BINS - 1, int(score * BINS))


def drift(scores: Mapping[int, int], baseline: Mapping[int, int]) -> Drift:
    """How far a histogram (counts by bin) lies from a baseline's."""
    n, m = sum(scores.values()), sum(baseline.values())
    if n < FEWEST or m < FEWEST:
        return Drift("unknown", None, None, None, None, n, m)
    edges = _tenths(baseline, m)
    index = stability(_merged(scores, edges), _merged(baseline, edges))
    index_chance = (1 / n + 1 / m) * chi_squared_999(len(edges) - 1)
    distance = largest_gap(scores, baseline)
    distance_chance = math.sqrt(-math.log(_CHANCE / 2) / 2 * (n + m) / (n * m))
    level = max(
        _level(index, index_chance, PSI_LOOK, PSI_SHIFT),
        _level(distance, distance_chance, KS_LOOK, KS_SHIFT),
        key=LEVELS.index,
    )
    return Drift(level, index, index_chance, distance, distance_chance, n, m)


def stability(counts: Sequence[int], baseline: Sequence[int]) -> float:
    """The population stability index of counts by bin. Half a count is added to each, so that none is empty."""
    n, m = sum(counts) + len(counts) / 2, sum(baseline) + len(baseline) / 2
    pairs = [((a + 0.5) / n, (b + 0.5) / m) for a, b in zip(counts, baseline, strict=True)]
    return sum((p - q) * math.log(p / q) for p, q in pairs)


def largest_gap(counts: Mapping[int, int], baseline: Mapping[int, int]) -> float:
    """The Kolmogorov-Smirnov distance of two histograms with the same bins, neither empty."""
    n, m = sum(counts.values()), sum(baseline.values())
    a = b = 0
    gap = 0.0
    for index in sorted({*counts, *baseline}):
        a, b = a + counts.get(index, 0), b + baseline.get(index, 0)
        gap = max(gap, abs(a / n - b / m))
    return gap


def chi_squared_999(freedom: int) -> float:
    """The 99.9th percentile of chi-squared, by Wilson and Hilferty's cube (0 to 4 % too high); 0 of none."""
    if freedom == 0:
        return 0.0
    part = 2 / (9 * freedom)
    return freedom * (1 - part + _Z_999 * math.sqrt(part)) ** 3


def _tenths(baseline: Mapping[int, int], total: int) -> list[int]:
    """First bins of groups that hold about a tenth each; the first is 0. A bin is never cut, so there may be fewer."""
    edges, held, wanted = [0], 0, 1
    for index in sorted(baseline):
        held += baseline[index]
        if held * PSI_BINS >= wanted * total:
            wanted = held * PSI_BINS // total + 1
            if index + 1 < BINS:
                edges.append(index + 1)
    return edges


def _merged(counts: Mapping[int, int], edges: Sequence[int]) -> list[int]:
    ends = [*edges[1:], BINS]
    return [
        sum(count for index, count in counts.items() if start <= index < end)
        for start, end in zip(edges, ends, strict=True)
    ]


def _level(value: float, chance: float, look: float, shift: float) -> Level:
    if value < look or value <= chance:
        return "stable"
    return "shift" if value >= shift else "look"

"""The recheck's figures against textbooks, brute force and their own laws."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.core.recheck_measures import (
    BINS,
    FEWEST,
    Z_95,
    Drift,
    bin_of,
    chi_squared_999,
    drift,
    kappa,
    largest_gap,
    share,
    stability,
)

tables = st.integers(2, 4).flatmap(
    lambda size: st.lists(st.lists(st.integers(0, 40), min_size=size, max_size=size), min_size=size, max_size=size)
)
histograms = st.dictionaries(st.integers(0, BINS - 1), st.integers(1, 50), min_size=1, max_size=BINS)


def test_a_share_has_wilsons_interval() -> None:
    """Against Newcombe, "Two-sided confidence intervals for the single proportion" (1998), table I, method 3."""
    for count, of, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        found = share(count, of)
        assert found is not None
        assert [found.low, found.high] == pytest.approx([low, high], abs=6e-5)


@given(st.integers(1, 10**6).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_an_interval_holds_its_share_and_stays_within_bounds(counts: tuple[int, int]) -> None:
    """0 ≤ low ≤ value ≤ high ≤ 1, and low and high solve Wilson's equation."""
    found = share(*counts)
    assert found is not None
    assert 0 <= found.low <= found.value <= found.high <= 1
    for bound in (found.low, found.high):
        spread = Z_95 * math.sqrt(bound * (1 - bound) / counts[1])
        assert abs(found.value - bound) == pytest.approx(spread, rel=1e-6, abs=1e-9)


def test_a_share_of_nothing_is_none() -> None:
    """Rather than zero."""
    assert share(0, 0) is None


def test_kappa_is_the_textbooks() -> None:
    """Fleiss, Levin and Paik (2003), table 18.1 and formulas 18.13 to 18.17: kappa 0.68, standard error 0.087."""
    found = kappa([[75, 1, 4], [5, 4, 1], [0, 0, 10]])
    assert found is not None
    assert found.value == pytest.approx(0.6765, abs=5e-5)
    assert (found.high - found.value) / Z_95 == pytest.approx(0.0877, abs=5e-4)


@given(tables)
def test_kappa_is_agreement_beyond_that_of_shuffled_verdicts(table: list[list[int]]) -> None:
    """Against counting: every pair of one side's verdict with any of the other's is as likely by chance."""
    pairs = [(i, j) for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)]
    found = kappa(table)
    lights, heavies = Counter(i for i, _ in pairs), Counter(j for _, j in pairs)
    if not pairs or (len(lights) == len(heavies) == 1 and lights == heavies):
        assert found is None
        return
    chance = sum(lights[i] * heavies[i] for i in lights) / len(pairs) ** 2
    agreed = sum(i == j for i, j in pairs) / len(pairs)
    assert found is not None
    assert found.value == pytest.approx((agreed - chance) / (1 - chance), abs=1e-9)
    assert -1 <= found.low <= found.value <= found.high <= 1


@given(tables)
def test_kappas_error_is_that_of_the_delta_method(table: list[list[int]]) -> None:
    """The published formula against the gradient of kappa by its cells, taken by differences."""
    total = sum(map(sum, table))
    found = kappa(table)
    if found is None:
        return
    p = [[count / total for count in row] for row in table]
    size = range(len(p))

    def of(q: list[list[float]]) -> float:
        observed = sum(q[i][i] for i in size)
        expected = sum(sum(q[i]) * sum(q[j][i] for j in size) for i in size)
        return (observed - expected) / (1 - expected)

    step = 1e-6
    slopes: dict[tuple[int, int], float] = {}
    for i, j in product(size, size):
        up, down = ([[*row] for row in p] for _ in range(2))
        up[i][j] += step
        down[i][j] -= step
        slopes[i, j] = (of(up) - of(down)) / (2 * step)
    mean = sum(p[i][j] * slope for (i, j), slope in slopes.items())
    spread = sum(p[i][j] * slope * slope for (i, j), slope in slopes.items()) - mean * mean
    error = math.sqrt(max(0.0, spread) / total)
    assert found.high == pytest.approx(min(1.0, found.value + Z_95 * error), abs=1e-4)
    assert found.low == pytest.approx(max(-1.0, found.value - Z_95 * error), abs=1e-4)


def test_kappas_interval_holds_the_truth_as_often_as_it_says() -> None:
    """95 of 100 samples of 400 pairs, within what 500 samples can tell."""
    cells = {(0, 0): 0.7, (0, 1): 0.06, (1, 0): 0.04, (1, 1): 0.2}
    chance = 0.76 * 0.74 + 0.24 * 0.26
    truth = (0.9 - chance) / (1 - chance)
    generator = random.Random(7)
    held = 0
    for _ in range(500):
        counts = Counter(generator.choices(list(cells), list(cells.values()), k=400))
        found = kappa([[counts[i, j] for j in (0, 1)] for i in (0, 1)])
        assert found is not None
        held += found.low <= truth <= found.high
    assert 0.92 <= held / 500 <= 0.98


@pytest.mark.parametrize(("score", "index"), [(0.0, 0), (0.0099, 0), (0.01, 1), (0.5, 50), (0.999, 99), (1.0, 99)])
def test_a_score_has_a_bin(score: float, index: int) -> None:
    """A hundredth each; 1 is in the last one."""
    assert bin_of(score) == index


@given(histograms, histograms)
def test_the_gap_is_the_largest_over_all_thresholds(ours: dict[int, int], theirs: dict[int, int]) -> None:
    """Against asking each threshold."""
    mine, others = ([index for index, count in side.items() for _ in range(count)] for side in (ours, theirs))
    brute = max(
        abs(sum(x <= edge for x in mine) / len(mine) - sum(x <= edge for x in others) / len(others))
        for edge in range(BINS)
    )
    assert largest_gap(ours, theirs) == pytest.approx(brute, abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), min_size=1, max_size=20))
def test_stability_is_symmetric_and_never_negative(counts: list[tuple[int, int]]) -> None:
    """Zero for equal shares, the same either way round."""
    ours, theirs = [a for a, _ in counts], [b for _, b in counts]
    assert stability(ours, theirs) == pytest.approx(stability(theirs, ours))
    assert stability(ours, theirs) >= 0
    assert stability(ours, ours) == 0


def test_stability_is_the_textbooks() -> None:
    """Siddiqi's example form: shares of 10 and 20 % against 20 and 10 % each add 0.1 · ln 2."""
    many = 10**6
    assert stability([many, 2 * many, 7 * many], [2 * many, many, 7 * many]) == pytest.approx(
        0.2 * math.log(2), abs=1e-5
    )


@pytest.mark.parametrize(("freedom", "true"), [(1, 10.828), (2, 13.816), (5, 20.515), (9, 27.877), (20, 45.315)])
def test_the_bound_by_chance_is_on_the_safe_side(freedom: int, true: float) -> None:
    """Up to 4 % above the tables' chi-squared."""
    assert true <= chi_squared_999(freedom) <= 1.04 * true


def test_one_bin_knows_no_chance() -> None:
    """No degree of freedom, no bound."""
    assert chi_squared_999(0) == 0


def scores(*parts: tuple[int, int]) -> dict[int, int]:
    return dict(parts)


def test_too_few_scores_tell_nothing() -> None:
    """On either side."""
    many, few = {1: FEWEST}, {1: FEWEST - 1}
    for ours, theirs in ((many, few), (few, many), (many, {})):
        found = drift(ours, theirs)
        assert found == Drift("unknown", None, None, None, None, sum(ours.values()), sum(theirs.values()))
    assert drift(many, many).level == "stable"


def test_what_stays_is_stable() -> None:
    """The same shares at another volume."""
    found = drift(dict.fromkeys(range(BINS), 10), dict.fromkeys(range(BINS), 70))
    assert found.level == "stable"
    assert (found.scores, found.baseline) == (1000, 7000)
    assert found.ks == 0
    assert found.psi == pytest.approx(0, abs=1e-4)


def test_what_moves_is_told_by_how_far() -> None:
    """A tenth of the scores going up is worth a look; a third has shifted."""
    before = dict.fromkeys(range(50), 100)
    look = {**dict.fromkeys(range(50), 90), 90: 500}
    shift = {**dict.fromkeys(range(50), 60), 90: 2000}
    assert drift(look, before).level in ("look", "shift")
    assert drift({index: 88 + 24 * (index >= 25) for index in range(50)}, before).level == "stable"
    assert drift(shift, before).level == "shift"
    found = drift({index: 160 - 120 * (index < 25) for index in range(50)}, before)
    assert found.level == "shift"
    assert found.ks == pytest.approx(0.3)


def test_a_baseline_in_one_bin_has_one_group_more() -> None:
    """Everything at one score: what leaves it is seen."""
    assert drift({5: 1000}, {5: 1000}).level == "stable"
    assert drift({5: 500, 60: 500}, {5: 1000}).level == "shift"
    assert drift({99: 1000}, {99: 1000}).psi == 0


def test_chance_alone_seldom_raises_an_alarm() -> None:
    """Two samples of 150 of one law differ by a PSI of 0.1 now and then: that is not drift, 1,000 times over."""
    generator = random.Random(11)
    raised = passed = 0
    for _ in range(1000):
        ours, theirs = (Counter(bin_of(generator.random() ** 2) for _ in range(150)) for _ in range(2))
        found = drift(ours, theirs)
        assert found.psi is not None
        passed += found.psi >= 0.1
        raised += found.level != "stable"
    assert passed > 300
    assert raised <= 8


def test_chance_has_its_laws_bounds() -> None:
    """In tables chi-squared's 99.9th percentile at nine degrees is 27.877, and Kolmogorov's 1.9495."""
    found = drift(dict.fromkeys(range(BINS), 10), dict.fromkeys(range(BINS), 5))
    assert found.psi_chance == pytest.approx((1 / 1000 + 1 / 500) * 27.877, rel=0.02)
    assert found.ks_chance == pytest.approx(1.9495 * math.sqrt((1000 + 500) / (1000 * 500)), rel=1e-4)


def test_the_index_is_over_the_baselines_tenths() -> None:
    """Against writing the groups down: each holds a tenth of the baseline, and a bin is never cut."""
    even = dict.fromkeys(range(BINS), 10)
    moved = {**even, 5: 110}
    tenths = [200, *[100] * 9]
    assert drift(moved, even).psi == pytest.approx(stability(tenths, [100] * 10))
    lumpy = {0: 350, 1: 50, 2: 100, 50: 400, 99: 100}
    assert drift(even, lumpy).psi == pytest.approx(stability([10, 10, 10, 480, 490], [350, 50, 100, 400, 100]))
    uneven = {10: 60, 20: 60, 30: 880}
    assert drift(even, uneven).psi == pytest.approx(stability([210, 100, 690], [120, 880, 0]))


@pytest.mark.parametrize(("moved", "level"), [(99, "stable"), (101, "look"), (199, "look"), (201, "shift")])
def test_the_gap_is_told_from_a_tenth_and_a_fifth_on(moved: int, level: str) -> None:
    """So many of a thousand scores, a thousandfold, go up by a bin; the index alone would not tell a shift."""
    found = drift({20: 500_000 - moved * 1000, 21: 500_000 + moved * 1000}, {20: 500_000, 21: 500_000})
    assert found.ks == pytest.approx(moved / 1000)
    assert found.psi is not None
    assert found.psi < 0.25
    assert found.level == level

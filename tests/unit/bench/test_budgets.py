"""Budgets: limits on single figures."""

from __future__ import annotations

import pytest

from workbench.bench.budgets import BUDGETS, verdicts

HELD = {"p50_ratio": 0.75, "p99_ratio": 1.0, "own_ms": {"p50": 0.35, "p99": 0.95}}


def test_a_figure_at_its_limit_holds() -> None:
    """Limits are inclusive, and figures inside figures are found."""
    assert [verdict.held for verdict in verdicts("router", HELD)] == [True] * 4


def test_a_figure_past_its_limit_is_named_with_both_numbers() -> None:
    """The one that breaks is told apart from those that hold, in words that carry value and limit."""
    broken = [each for each in verdicts("router", HELD | {"p50_ratio": 0.76}) if not each.held]
    assert [each.sentence() for each in broken] == ["warm handler to a bare boto3 handler, P50: 0.76 ×, at most 0.75"]


def test_a_rate_must_reach_its_limit() -> None:
    """For a budget of at least so many, less breaks it."""
    slow = {
        "decisions_per_s_20_rules": 99_999,
        "ratio_40_to_20_rules": 1.0,
        "worked_out_ratio_40_to_20_rules": 1.0,
    }
    assert next(each.to_json() for each in verdicts("decide", slow)) == {
        "figure": "decisions_per_s_20_rules",
        "value": 99_999.0,
        "at_least": 100_000,
        "held": False,
    }


def test_a_measurement_that_lacks_its_figure_is_an_error() -> None:
    """A renamed figure must not pass as a budget held."""
    with pytest.raises(KeyError):
        verdicts("router", {"p50_ratio": 0.5})


def test_every_budget_has_words_of_its_own() -> None:
    """No two budgets read alike in a report."""
    assert len({budget.what for budget in BUDGETS}) == len(BUDGETS)

"""Budgets: extra attempts stay a share of the requests."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from functions.core.budgets import HEDGE_SHARE, RETRY_SHARE, Budget


def test_twenty_requests_buy_one_hedge() -> None:
    """5 %: the twentieth deposit makes it one, and it can be spent once."""
    budget = Budget(HEDGE_SHARE)
    taken = []
    for _ in range(40):
        budget.deposit()
        taken.append(budget.take())
    assert [i + 1 for i, took in enumerate(taken) if took] == [20, 40]


def test_a_new_instance_has_nothing_to_spend() -> None:
    """A thousand cold starts must not be a thousand hedges."""
    assert Budget(1.0).take() is False


def test_quiet_times_save_up_a_few_and_no_more() -> None:
    """After ten thousand calm requests: the cap."""
    budget = Budget(0.2, most=3)
    for _ in range(10_000):
        budget.deposit()
    assert budget.saved == 3
    assert [budget.take() for _ in range(5)] == [True, True, True, False, False]


@given(st.floats(0, 1), st.floats(0, 20), st.lists(st.booleans(), max_size=300))
def test_no_order_of_requests_and_failures_exceeds_the_share(share: float, most: float, steps: list[bool]) -> None:
    """Over any run: taken ≤ requests × share, and never more than are saved."""
    budget = Budget(share, most)
    requests = taken = 0
    for request in steps:
        if request:
            budget.deposit()
            requests += 1
        elif budget.take():
            taken += 1
        assert 0 <= budget.saved <= max(most, 0)
        assert taken <= requests * share + 1e-6


def test_the_shares_are_the_designs() -> None:
    """5 % hedges, 20 % resends, ten saved up at most."""
    assert (HEDGE_SHARE, RETRY_SHARE) == (0.05, 0.2)
    budget = Budget(1.0)
    for _ in range(100):
        budget.deposit()
    assert budget.saved == 10


def test_a_budget_may_begin_with_something() -> None:
    """Where the first extra attempt does no harm."""
    budget = Budget(0.0, saved=1.0)
    assert [budget.take(), budget.take()] == [True, False]

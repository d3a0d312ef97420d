"""Shares: stable, of the right size, and only growing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.core.shares import Share

IDS = 20_000


@settings(max_examples=25, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1), st.text(max_size=8), st.text(max_size=8), st.text(max_size=8))
def test_a_share_takes_its_part_of_counted_ids_and_only_grows(
    s: float, t: float, rule_id: str, tenant: str, prefix: str
) -> None:
    """s ± 0.7 points of 20,000 ids, and all that a smaller share takes."""
    small, large = (Share.of(share, rule_id, tenant) for share in sorted((s, t)))
    ids = [f"{prefix}-{i}" for i in range(IDS)]
    taken = [small.takes(name) for name in ids]
    assert abs(sum(taken) / IDS - min(s, t)) <= 0.007
    assert all(large.takes(name) for name, was in zip(ids, taken, strict=True) if was)


@settings(max_examples=25, deadline=None)
@given(st.floats(0, 1), st.text(max_size=8), st.uuids())
def test_ids_without_a_number_are_spread_at_random(share: float, rule_id: str, seed: object) -> None:
    """Within four standard deviations of 20,000 throws."""
    half = Share.of(share, rule_id, "t")
    taken = sum(half.takes(f"{seed}/{i:x}g") for i in range(IDS))
    assert abs(taken / IDS - share) <= 4 * (share * (1 - share) / IDS) ** 0.5 + 0.001


@settings(max_examples=25, deadline=None)
@given(st.floats(0.05, 0.95), st.floats(0.05, 0.95), st.integers(0, 99))
def test_a_second_split_takes_its_share_of_what_reaches_it(s: float, t: float, which: int) -> None:
    """Two rules choose independently of each other."""
    first, second = Share.of(s, f"a{which}", "t"), Share.of(t, f"b{which}", "t")
    rest = [f"r-{i}" for i in range(IDS) if not first.takes(f"r-{i}")]
    assert abs(sum(second.takes(name) for name in rest) / len(rest) - t) <= 2.5 / len(rest) ** 0.5


def test_nothing_and_everything() -> None:
    """0 % takes no request, 100 % each."""
    assert not any(Share.of(0.0, "r", "t").takes(str(i)) for i in range(500))
    assert all(Share.of(1.0, "r", "t").takes(str(i)) for i in range(500))


def test_the_place_never_changes() -> None:
    """Fixed for good: a deployment must not move callers between lanes."""
    taken = [name for name in ("r-1", "r-2", "r-3", "retry", "", "\ud800", "9" * 40) if SHARE.takes(name)]
    assert taken == ["r-1", "retry", "\ud800", "9" * 40]


SHARE = Share.of(0.5, "canary", "acme")


def test_rules_and_tenants_choose_differently() -> None:
    """Neither two rules nor two tenants take the same half; names do not run together."""
    halves = [
        [Share.of(0.5, rule_id, tenant).takes(f"x{i}y") for i in range(200)]
        for rule_id, tenant in (("a", "bc"), ("ab", "c"), ("b", "bc"))
    ]
    assert halves[0] != halves[1] != halves[2] != halves[0]


PLACES = {
    "": 4757539369753066,
    "retry": 74847064092571,
    "r-1": 1866009921340406,
    "r-63": 7214034478842870,
    "r-64": 6486429960153278,
    "1": 1527920382183812,
    "0" * 18: 542757963696516,
    "1" * 19: 7094866632579326,
    "a1b2": 3939775827145709,
    "\ud800": 3773314998558897,
    "Ü7": 7938146709672243,
}


@pytest.mark.parametrize(("key", "place"), PLACES.items())
def test_a_key_is_taken_by_every_share_above_its_place(key: str, place: int) -> None:
    """One of 2⁵³; fixed for good, so that neither a deployment nor another machine moves a caller."""
    assert not Share.of(place / 2**53, "canary", "acme").takes(key)
    assert Share.of((place + 1) / 2**53, "canary", "acme").takes(key)


def test_names_beyond_ascii_have_their_place_too() -> None:
    """By their UTF-8 bytes, a lone surrogate included."""
    assert not Share.of(2346132318939028 / 2**53, "Ünïcode", "").takes("x")
    assert Share.of(2346132318939029 / 2**53, "Ünïcode", "").takes("x")
    assert Share.of(1.0, "\ud800", "\udfff").takes("x")


@pytest.mark.parametrize("of_64", [1, 16, 63])
def test_of_numbers_that_count_up_every_block_gives_its_part(of_64: int) -> None:
    """64 ids of one block lie one in each 64th."""
    share = Share.of(of_64 / 64, "canary", "acme")
    for block in range(0, 640, 64):
        assert sum(share.takes(f"r-{i}") for i in range(block, block + 64)) == of_64


def test_blocks_differ_in_order_and_in_start() -> None:
    """Ten blocks' first takers are not the same ones."""
    share = Share.of(0.25, "canary", "acme")
    taken = {tuple(share.takes(f"r-{block * 64 + i}") for i in range(64)) for block in range(10)}
    assert len(taken) == 10

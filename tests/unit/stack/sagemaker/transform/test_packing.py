"""Records to payloads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.stack.sagemaker.transform.packing import BatchStrategy, Item, PackError, pack


def bodies(items: list[bytes], strategy: BatchStrategy, limit: int | None) -> list[bytes]:
    """The payloads of items."""
    return [payload.body for payload in pack(map(Item, items), strategy, limit)]


@pytest.mark.fidelity(
    "batch transform",
    "MultiRecord puts as many records into a request as fit under MaxPayloadInMB, SingleRecord one",
    source="API reference: CreateTransformJob",
)
@pytest.mark.parametrize(
    ("strategy", "limit", "payloads"),
    [
        ("SingleRecord", 6, [b"aa", b"bbb", b"c", b"dddddd"]),
        ("MultiRecord", 6, [b"aabbbc", b"dddddd"]),
        ("MultiRecord", 7, [b"aabbbc", b"dddddd"]),
        ("MultiRecord", None, [b"aabbbcdddddd"]),
    ],
)
def test_packing(strategy: BatchStrategy, limit: int | None, payloads: list[bytes]) -> None:
    """Each strategy packs the same records in its own way."""
    assert bodies([b"aa", b"bbb", b"c", b"dddddd"], strategy, limit) == payloads


@pytest.mark.fidelity(
    "batch transform", "A record over MaxPayloadInMB is an error", source="developer guide: batch-transform-errors"
)
def test_too_large() -> None:
    """A record that is over the limit by itself is an error, not a truncated or skipped record."""
    with pytest.raises(PackError, match=r"a record is larger than MaxPayloadInMB \(2 bytes\)"):
        bodies([b"a", b"bbb"], "MultiRecord", 2)


def test_inputs_stay_together() -> None:
    """A payload knows the records in it, for the join, and how many answers it asks for."""
    items = [Item(b"a", ("x", "y"), 2), Item(b"b", ("z",))]
    (payload,) = pack(items, "MultiRecord", None)
    assert (payload.body, payload.inputs, payload.records) == (b"ab", ("x", "y", "z"), 3)


@given(st.lists(st.binary(max_size=20), max_size=30), st.integers(20, 60), st.booleans())
def test_packing_keeps_order_and_limit(items: list[bytes], limit: int, multi: bool) -> None:
    """No payload is over the limit, nothing is lost, cut or moved, and no two neighbours would have fitted together."""
    packed = bodies(items, "MultiRecord" if multi else "SingleRecord", limit)
    assert b"".join(packed) == b"".join(items)
    assert all(len(payload) <= limit for payload in packed)
    payloads = list(pack(map(Item, items), "MultiRecord" if multi else "SingleRecord", limit))
    assert sum(p.records for p in payloads) == len(items)
    if not multi:
        assert packed == items

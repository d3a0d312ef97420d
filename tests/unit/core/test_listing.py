"""A list's parameters and its cursor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.core.job_view import Status
from functions.core.listing import Query, QueryError, cursor_of, read_cursor, read_query

ids = st.text("0123456789abcdef", min_size=32, max_size=32)


def test_a_list_is_of_fifty_from_the_newest_unless_said_otherwise() -> None:
    """What else is in the query is ignored."""
    assert read_query({}) == read_query({"tenant": "vip"}) == Query(50, None, None)
    asked = {"limit": "200", "status": "done", "cursor": cursor_of((7, "0" * 32))}
    assert read_query(asked) == Query(200, (7, "0" * 32), Status.DONE)


@pytest.mark.parametrize("limit", [1, 200])
def test_a_page_holds_from_one_to_two_hundred(limit: int) -> None:
    """Both ends included."""
    assert read_query({"limit": str(limit)}).limit == limit


@pytest.mark.parametrize(
    ("place", "cursor"),
    [
        ((7, "0" * 32), "Ny4wMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMA"),
        ((1, "f" * 32), "MS5mZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZg"),
        ((1764464400000, "ab" * 16), "MTc2NDQ2NDQwMDAwMC5hYmFiYWJhYmFiYWJhYmFiYWJhYmFiYWJhYmFiYWJhYg"),
        ((12345, "0" * 32), "MTIzNDUuMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDA"),
    ],
)
def test_a_cursor_is_base64_without_its_padding(place: tuple[int, str], cursor: str) -> None:
    """Whichever padding that would have been."""
    assert cursor_of(place) == cursor
    assert read_cursor(cursor) == place


@pytest.mark.parametrize("cut", ["\n", "\n\n\n\n", "****", "-_-_", "+/+/"])
def test_a_cursor_with_something_else_in_it_is_none(cut: str) -> None:
    """What a lenient decoder would skip is an error, and what is of Base64's other alphabet means something else."""
    cursor = cursor_of((7, "0" * 32))
    with pytest.raises(QueryError):
        read_cursor(cursor[:8] + cut + cursor[8:])


@given(st.integers(0, 10**15 - 1), ids)
def test_a_cursor_stands_for_its_place(at: int, id_: str) -> None:
    """There and back, in letters that a query needs not encode."""
    cursor = cursor_of((at, id_))
    assert read_cursor(cursor) == (at, id_)
    assert cursor.replace("-", "").replace("_", "").isalnum()


@given(st.text(max_size=80))
def test_any_text_is_a_cursor_or_an_error(cursor: str) -> None:
    """Nothing else comes of it."""
    try:
        at, id_ = read_cursor(cursor)
    except QueryError:
        return
    assert 0 <= at < 10**15
    assert len(id_) == 32


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"limit": "0"}, "limit must be a whole number from 1 to 200."),
        ({"status": "open"}, "status must be one of queued, running, done, failed, expired, cancelled."),
        ({"cursor": "?"}, "cursor must be the next_cursor of an earlier page."),
    ],
)
def test_an_error_says_what_would_be_right(query: dict[str, str], words: str) -> None:
    """The message is for the caller."""
    with pytest.raises(QueryError) as caught:
        read_query(query)
    assert str(caught.value) == words

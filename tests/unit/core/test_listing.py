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

"""Wishes: what headers may ask, and how a malformed one is refused."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.core.request import Priority
from functions.core.wishes import WishError, Wishes, is_idempotency_key, read_wishes


def test_nothing_asked() -> None:
    """No header, no wish."""
    assert read_wishes({}) == Wishes(None, None, False)


def test_everything_asked() -> None:
    """Blanks around a value and its case do not matter; a deadline is kept as asked."""
    headers = {"x-inferlane-priority": " High ", "x-inferlane-deadline-ms": " 60000 ", "prefer": "respond-async"}
    assert read_wishes({**headers, "idempotency-key": "order 17"}) == Wishes(Priority.HIGH, 60_000, True)


@pytest.mark.parametrize(
    ("prefer", "asked"),
    [
        ("", False),
        (" , ,", False),
        ("respond-async", True),
        ("RESPOND-ASYNC", True),
        ("respond-async, wait=10", True),
        ("wait=10,respond-async", True),
        ('return=minimal; foo="a, b", respond-async', True),
        ('foo="respond-async"', False),
        ('foo="\\", respond-async"', False),
        ('respond-async=""', True),
        ("respond-async=", True),
        ("respond-async; x", True),
        ("respond-async;;x = y ;", True),
        ("respond-asynchronously", False),
    ],
)
def test_preferences_are_read_as_rfc_7240_says(prefer: str, asked: bool) -> None:
    """A list of tokens with values and parameters; what is not known is ignored."""
    assert read_wishes({"prefer": prefer}).respond_async is asked


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"prefer": "=x"}, "RFC 7240"),
        ({"prefer": "respond-async wait=1"}, "RFC 7240"),
        ({"prefer": 'foo="open'}, "RFC 7240"),
        ({"prefer": "☃"}, "RFC 7240"),
        ({"prefer": "respond-async=1"}, "takes no value"),
        ({"prefer": "wait=soon"}, "wait"),
        ({"prefer": "wait"}, "wait"),
        ({"prefer": "wait=-1"}, "wait"),
        ({"x-inferlane-priority": ""}, "low, normal, high"),
        ({"x-inferlane-deadline-ms": "1.5"}, "whole number"),
        ({"x-inferlane-deadline-ms": "000"}, "whole number"),
        ({"idempotency-key": ""}, "Idempotency-Key"),
        ({"idempotency-key": " "}, "Idempotency-Key"),
        ({"idempotency-key": "a" * 256}, "Idempotency-Key"),
        ({"idempotency-key": "a\nb"}, "Idempotency-Key"),
        ({"idempotency-key": "ü"}, "Idempotency-Key"),
    ],
)
def test_a_malformed_wish_is_refused_by_name(headers: dict[str, str], words: str) -> None:
    """The caller learns which header to mend."""
    with pytest.raises(WishError, match=words):
        read_wishes(headers)


def test_an_idempotency_key_has_255_visible_characters_at_most() -> None:
    """Both ends of the range."""
    assert is_idempotency_key("~")
    assert is_idempotency_key("a" * 255)


@given(st.text(alphabet='ar-sync=;, \t"\\\x7f☃', max_size=30))
def test_any_preference_is_read_or_refused(prefer: str) -> None:
    """Nothing but a WishError is ever raised."""
    with contextlib.suppress(WishError):
        assert read_wishes({"prefer": prefer}).respond_async in (True, False)


@pytest.mark.parametrize(
    "hostile", ["a" * 9_000 + "\x00", ";" * 9_000 + "\x00", "a=" + "b" * 9_000 + "\x00", ' ;a="' * 2_000]
)
def test_a_hostile_preference_costs_no_time(hostile: str) -> None:
    """10 KB, the most that the gateway lets through, are refused in milliseconds."""
    with pytest.raises(WishError):
        read_wishes({"prefer": hostile})

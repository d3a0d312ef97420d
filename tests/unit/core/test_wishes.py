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


PREFER = "Prefer must be a list of preferences as in RFC 7240, such as respond-async"
WAIT = "Prefer: wait must be a whole number of seconds"
PRIORITY = "X-Inferlane-Priority must be one of low, normal, high"
DEADLINE = "X-Inferlane-Deadline-Ms must be a whole number of milliseconds above zero"
KEY = "Idempotency-Key must be 1 to 255 printable ASCII characters"


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"prefer": "=x"}, PREFER),
        ({"prefer": "respond-async wait=1"}, PREFER),
        ({"prefer": 'foo="open'}, PREFER),
        ({"prefer": "☃"}, PREFER),
        ({"prefer": "respond-async=1"}, "Prefer: respond-async takes no value"),
        ({"prefer": "wait=soon"}, WAIT),
        ({"prefer": "wait"}, WAIT),
        ({"prefer": "wait=-1"}, WAIT),
        ({"prefer": "wait=٣"}, PREFER),
        ({"prefer": "wait=X1"}, WAIT),
        ({"x-inferlane-priority": ""}, PRIORITY),
        ({"x-inferlane-priority": "urgent"}, PRIORITY),
        ({"x-inferlane-deadline-ms": "1.5"}, DEADLINE),
        ({"x-inferlane-deadline-ms": "000"}, DEADLINE),
        ({"x-inferlane-deadline-ms": "٣"}, DEADLINE),
        ({"x-inferlane-deadline-ms": ""}, DEADLINE),
        ({"idempotency-key": ""}, KEY),
        ({"idempotency-key": " "}, KEY),
        ({"idempotency-key": "a" * 256}, KEY),
        ({"idempotency-key": "a\nb"}, KEY),
        ({"idempotency-key": "ü"}, KEY),
    ],
)
def test_a_malformed_wish_is_refused_in_these_words(headers: dict[str, str], words: str) -> None:
    """The caller learns which header to mend, and how."""
    with pytest.raises(WishError) as refused:
        read_wishes(headers)
    assert str(refused.value) == words


@pytest.mark.parametrize(
    ("text", "deadline_ms"),
    [("1", 1), (" 0042 ", 42), ("999999999999", 999_999_999_999), ("9" * 5_000, 10**12), ("1" + "0" * 12, 10**12)],
)
def test_a_deadline_is_any_whole_number(text: str, deadline_ms: int) -> None:
    """Beyond what anybody can wait it is as good as the farthest one."""
    assert read_wishes({"x-inferlane-deadline-ms": text}).deadline_ms == deadline_ms


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

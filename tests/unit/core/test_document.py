"""Reading plain values: what is taken, and the words of every refusal."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import pytest

from functions.core.document import (
    DocumentError,
    Fields,
    Problems,
    as_choice,
    as_integer,
    as_list,
    as_number,
    as_text,
    as_time,
    kind_of,
    show_path,
    show_time,
)
from functions.core.units import duration_s, percent, size_bytes

PLACE = ("a", 0, "b")


def refusal(read: Callable[[], object]) -> str:
    with pytest.raises(DocumentError) as refused:
        read()
    assert refused.value.path == PLACE
    assert str(refused.value) == f"a[0].b: {refused.value.cause}"
    return refused.value.cause


def test_a_place_is_written_as_in_a_program() -> None:
    """Dots between names, brackets around positions, nothing before the first."""
    assert show_path(("rules", 2, "when", "all", 0)) == "rules[2].when.all[0]"
    assert show_path((0, "x")) == "[0].x"
    assert show_path(()) == ""
    assert str(DocumentError((), "is wrong")) == "is wrong"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({}, "a mapping"),
        ([], "a list"),
        ("", "text"),
        (True, "a yes/no value"),
        (None, "nothing"),
        (1, "a number"),
        (1.5, "a number"),
        ((), "a tuple"),
    ],
)
def test_values_are_named_in_words(value: object, words: str) -> None:
    """For people who write YAML."""
    assert kind_of(value) == words


@pytest.mark.parametrize(
    ("read", "cause"),
    [
        (lambda: as_text(7, PLACE), "expected text, found a number"),
        (lambda: as_text("", PLACE), "expected text, found an empty one"),
        (lambda: as_number("7", PLACE), "expected a number, found text"),
        (lambda: as_number(True, PLACE), "expected a number, found a yes/no value"),
        (lambda: as_number(math.inf, PLACE), "expected a finite number"),
        (lambda: as_number(10**400, PLACE), "expected a finite number"),
        (lambda: as_number(1.9, PLACE, at_least=2), "must be at least 2, found 1.9"),
        (lambda: as_number(2, PLACE, above=2), "must be above 2, found 2"),
        (lambda: as_integer(1.5, PLACE), "expected a whole number, found 1.5"),
        (lambda: as_integer(1, PLACE, at_least=2), "must be at least 2, found 1"),
        (lambda: as_list("ab", PLACE), "expected a list, found text"),
        (lambda: as_choice("c", PLACE, ("a", "b")), "unknown value 'c' (known: a, b)"),
        (lambda: as_choice("c" * 70, PLACE, ("a",), "thing"), f"unknown thing '{'c' * 60}' (known: a)"),
        (lambda: as_choice(7, PLACE, ("a",)), "expected text, found a number"),
        (lambda: as_time(7, PLACE), "expected text, found a number"),
        (lambda: as_time("noon", PLACE), "expected an ISO 8601 time, found 'noon'"),
        (lambda: as_time("2026-12-01", PLACE), "time '2026-12-01' names no time zone (append Z for UTC)"),
        (
            lambda: as_time("0001-01-01T00:00:00+23:00", PLACE),
            "time '0001-01-01T00:00:00+23:00' is out of range",
        ),
        (lambda: Fields.of([], PLACE), "expected a mapping, found a list"),
        (lambda: Fields.of({7: 1}, PLACE), "key 7 is not text (quote it)"),
        (lambda: Fields({}, PLACE).require("x"), "key 'x' is missing"),
        (lambda: duration_s(7, PLACE), "expected a duration such as 20s, 5m or 1h, found a number"),
        (lambda: duration_s("s", PLACE), "expected a duration such as 20s, 5m or 1h, found 's'"),
        (lambda: duration_s("5w", PLACE), "unknown unit 'w' of a duration (known: ms, s, m, h, d)"),
        (lambda: duration_s("0.0s", PLACE), "a duration must be above zero"),
        (lambda: duration_s("61s", PLACE, at_most_s=60), "must be at most 1m"),
        (lambda: size_bytes(True, PLACE), "expected a number, found a yes/no value"),
        (lambda: size_bytes(-1, PLACE), "must be at least 0, found -1"),
        (
            lambda: size_bytes("x", PLACE),
            "expected a size such as 2MB, 512KiB or a count of bytes, found 'x'",
        ),
        (lambda: size_bytes("2TB", PLACE), "unknown unit 'TB' of a size (known: B, KB, MB, GB, KiB, MiB, GiB)"),
        (lambda: percent(10, PLACE), "expected a percentage such as 10%, found a number"),
        (lambda: percent("ten%", PLACE), "expected a percentage such as 10%, found 'ten%'"),
        (lambda: percent("10s", PLACE), "expected a percentage between 0% and 100%, found '10s'"),
        (lambda: percent("100.1%", PLACE), "expected a percentage between 0% and 100%, found '100.1%'"),
        (lambda: percent("", PLACE), "expected text, found an empty one"),
    ],
)
def test_every_refusal_in_its_words(read: Callable[[], object], cause: str) -> None:
    """The place as given, and the cause."""
    assert refusal(read) == cause


def test_bounds_belong_to_what_is_taken() -> None:
    """At least, at most, the shortest and the largest."""
    assert as_number(2, (), at_least=2) == 2.0
    assert isinstance(as_number(2, ()), float)
    assert as_number(2.1, (), above=2) == 2.1
    assert as_number(0, (), at_least=0) == 0.0
    assert as_integer(2.0, (), at_least=2) == 2
    assert isinstance(as_integer(2.0, ()), int)
    assert duration_s("60s", (), at_most_s=60) == 60.0
    assert duration_s(" 1 ms ", ()) == 0.001
    assert size_bytes(0, ()) == 0
    assert (percent("100%", ()), percent("0%", ()), percent("12.5 %", ())) == (1.0, 0.0, 0.125)
    assert as_list((1, 2), ()) == (1, 2)
    assert as_choice("b", (), ("a", "b")) == "b"


@pytest.mark.parametrize(
    ("text", "count"),
    [("3B", 3), ("3KB", 3e3), ("3MB", 3e6), ("3GB", 3e9), ("3KiB", 3072), ("3MiB", 3 * 2**20), ("3GiB", 3 * 2**30)],
)
def test_each_unit_of_a_size(text: str, count: float) -> None:
    """Powers of ten, and of two with an i."""
    assert size_bytes(text, ()) == count


def test_a_moment_is_read_in_any_offset_and_written_in_utc() -> None:
    """The same Unix second."""
    assert as_time("1970-01-01T08:00:00+08:00", ()) == 0.0
    assert as_time("1970-01-01T00:00:00Z", ()) == 0.0
    assert show_time(0) == "1970-01-01T00:00:00Z"
    assert show_time(1.25) == "1970-01-01T00:00:01.250000Z"


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose own time zone is not UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Shanghai")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_east")
def test_the_machines_own_zone_makes_no_difference() -> None:
    """Neither in reading nor in writing."""
    assert show_time(0) == "1970-01-01T00:00:00Z"
    assert as_time("1970-01-01T00:00:00Z", ()) == 0.0
    with pytest.raises(DocumentError, match="names no time zone"):
        as_time("1970-01-01T00:00:00", ())


DOCUMENT = Fields.of({"text": "x", "number": 1.5, "whole": 2, "null": None, "map": {"k": 1}, "list": [7, 8]}, ("at", 1))


def test_what_is_there_is_read_with_its_place() -> None:
    """Required or not, null counting as not there where there is a default."""
    assert (DOCUMENT.text("text"), DOCUMENT.text_or("text", "d"), DOCUMENT.text_or("null", "d")) == ("x", "x", "d")
    assert (DOCUMENT.number("number"), DOCUMENT.number_or("number", 9.0)) == (1.5, 1.5)
    assert (DOCUMENT.number_or("null", 9.0), DOCUMENT.number_or("none", 9.0)) == (9.0, 9.0)
    assert (DOCUMENT.number_or_none("number"), DOCUMENT.number_or_none("null")) == (1.5, None)
    assert (DOCUMENT.integer("whole"), DOCUMENT.integer_or("whole", 9), DOCUMENT.integer_or("null", 9)) == (2, 2, 9)
    assert DOCUMENT.fields("map") == Fields({"k": 1}, ("at", 1, "map"))
    assert DOCUMENT.fields_or_empty("map") == Fields({"k": 1}, ("at", 1, "map"))
    assert DOCUMENT.fields_or_empty("null") == Fields({}, ("at", 1, "null"))
    assert DOCUMENT.items("list") == [(7, ("at", 1, "list", 0)), (8, ("at", 1, "list", 1))]
    assert DOCUMENT.items("null") == []
    assert (DOCUMENT.get("text"), DOCUMENT.get("none"), DOCUMENT.require("null")) == ("x", None, None)
    assert DOCUMENT.at("k") == ("at", 1, "k")
    assert Fields.of({}) == Fields({}, ())


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: DOCUMENT.text("number"), "at[1].number: expected text, found a number"),
        (lambda: DOCUMENT.text("none"), "at[1]: key 'none' is missing"),
        (lambda: DOCUMENT.text_or("number", "d"), "at[1].number: expected text, found a number"),
        (lambda: DOCUMENT.number("text"), "at[1].text: expected a number, found text"),
        (lambda: DOCUMENT.number("number", at_least=2), "at[1].number: must be at least 2, found 1.5"),
        (lambda: DOCUMENT.number("number", above=1.5), "at[1].number: must be above 1.5, found 1.5"),
        (lambda: DOCUMENT.number("none"), "at[1]: key 'none' is missing"),
        (lambda: DOCUMENT.number_or("text", 9.0), "at[1].text: expected a number, found text"),
        (lambda: DOCUMENT.number_or("number", 9.0, at_least=2), "at[1].number: must be at least 2, found 1.5"),
        (lambda: DOCUMENT.number_or_none("text"), "at[1].text: expected a number, found text"),
        (lambda: DOCUMENT.number_or_none("number", at_least=2), "at[1].number: must be at least 2, found 1.5"),
        (lambda: DOCUMENT.integer("number"), "at[1].number: expected a whole number, found 1.5"),
        (lambda: DOCUMENT.integer("whole", at_least=3), "at[1].whole: must be at least 3, found 2"),
        (lambda: DOCUMENT.integer("none"), "at[1]: key 'none' is missing"),
        (lambda: DOCUMENT.integer_or("number", 9), "at[1].number: expected a whole number, found 1.5"),
        (lambda: DOCUMENT.integer_or("whole", 9, at_least=3), "at[1].whole: must be at least 3, found 2"),
        (lambda: DOCUMENT.fields("list"), "at[1].list: expected a mapping, found a list"),
        (lambda: DOCUMENT.fields("none"), "at[1]: key 'none' is missing"),
        (lambda: DOCUMENT.fields_or_empty("list"), "at[1].list: expected a mapping, found a list"),
        (lambda: DOCUMENT.items("map"), "at[1].map: expected a list, found a mapping"),
        (lambda: DOCUMENT.schema("v"), "at[1]: key 'schema' is missing"),
        (lambda: Fields({"schema": "w"}, ("at",)).schema("v"), "at.schema: expected 'v', found 'w'"),
    ],
)
def test_what_cannot_be_read_is_refused_at_its_place(read: Callable[[], object], message: str) -> None:
    """By every way of reading a key."""
    with pytest.raises(DocumentError) as refused:
        read()
    assert str(refused.value) == message


def test_every_unknown_key_is_told_with_the_known_ones() -> None:
    """In the document's order."""
    found = Fields({"x": 1, "a": 2, "y": 3}, ("at",)).unknown(("a", "b"))
    assert [str(error) for error in found] == [
        "at.x: unknown key (known here: a, b)",
        "at.y: unknown key (known here: a, b)",
    ]


def test_twenty_choices_are_listed_and_of_more_how_many() -> None:
    """An error stays a line."""
    with pytest.raises(DocumentError) as refused:
        as_choice("x", (), [f"c{i}" for i in range(20)])
    assert refused.value.cause == f"unknown value 'x' (known: {', '.join(f'c{i}' for i in range(20))})"
    with pytest.raises(DocumentError) as refused:
        as_choice("x", (), [f"c{i}" for i in range(21)])
    assert refused.value.cause == f"unknown value 'x' (known: {', '.join(f'c{i}' for i in range(20))} and 1 more)"


def test_problems_are_collected_and_reading_goes_on() -> None:
    """What cannot be read is replaced by the stand-in; only mappings without an error are returned."""
    notes = Problems()
    assert notes.attempt("instead", as_text, "x", ("a",)) == "x"
    assert notes.attempt("instead", as_text, 7, ("b",)) == "instead"
    assert notes.attempt(0.0, as_number, 1, ("c",), at_least=2) == 0.0
    notes.only(Fields({"k": 1}, ("d",)), ("x",))

    def read(fields: Fields) -> str:
        return notes.attempt("", fields.text, "name")

    items: list[tuple[object, tuple[str | int, ...]]] = [
        ({"name": "one"}, ("e", 0)),
        (7, ("e", 1)),
        ({"name": 2}, ("e", 2)),
        ({"name": "three"}, ("e", 3)),
    ]
    assert notes.each(items, read) == [(("e", 0), "one"), (("e", 3), "three")]
    assert [str(error) for error in notes.found] == [
        "b: expected text, found a number",
        "c: must be at least 2, found 1",
        "d.k: unknown key (known here: x)",
        "e[1]: expected a mapping, found a number",
        "e[2].name: expected text, found a number",
    ]


def test_errors_stand_in_the_documents_order() -> None:
    """Keys as they were written, elements as they are counted, a mapping of a list after its parts."""
    notes = Problems()
    document = {"z": [{"q": 1, "p": 2}, {"p": 3}], "a": {"y": 1, "x": 2}}
    places: list[tuple[str | int, ...]] = [
        ("a", "x"),
        ("a", "y"),
        ("a", "missing"),
        ("z", 1, "p"),
        ("z", 1),
        ("z", 0, "p"),
        ("z", 0, "q"),
        ("z", 2),
        ("z",),
    ]
    for place in places:
        notes.add(place, "wrong")
    assert [error.path for error in notes.in_order_of(document)] == [
        ("z", 0, "q"),
        ("z", 0, "p"),
        ("z", 1, "p"),
        ("z", 1),
        ("z", 2),
        ("z",),
        ("a", "y"),
        ("a", "x"),
        ("a", "missing"),
    ]
    assert [error.cause for error in notes.found] == ["wrong"] * len(places)

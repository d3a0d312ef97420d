"""Redaction: what the pointers name becomes null, and not a character besides."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.core.redaction import Pointer, read_pointer, redact


def pointers(*texts: str) -> list[Pointer]:
    return [read_pointer(text, ()) for text in texts]


@pytest.mark.parametrize(
    ("text", "named", "left"),
    [
        ('{"a": 1, "b": {"c": "x", "d": 2}}', ["/b/c"], '{"a": 1, "b": {"c": null, "d": 2}}'),
        ('{"a":[{"b":1},{"b":2},{"c":3}]}', ["/a/*/b"], '{"a":[{"b":null},{"b":null},{"c":3}]}'),
        ('{"a":[1,2,3]}', ["/a/1"], '{"a":[1,null,3]}'),
        ('{"a":[1,[2],3]}', ["/a/*"], '{"a":[null,null,null]}'),
        ('{"a":[{"b":1,"c":2},{"b":3,"c":4}]}', ["/a/*/b", "/a/1/c"], '{"a":[{"b":null,"c":2},{"b":null,"c":null}]}'),
        ('{"a":[{"b":{"x":1,"y":2}}]}', ["/a/*/b/x", "/a/0/b/y"], '{"a":[{"b":{"x":null,"y":null}}]}'),
        ('{"a":[{"b":1}]}', ["/a/*", "/a/0/b"], '{"a":[null]}'),
        ('{"a":[{"b":1}]}', ["/a/*/b", "/a/0"], '{"a":[null]}'),
        ('{"*":{"b":1},"c":{"b":2}}', ["/*/b"], '{"*":{"b":null},"c":{"b":2}}'),
        ('{"a":{"b":1}}', ["/a", "/a/b"], '{"a":null}'),
        ('{"a":{"b":1}}', ["/a/b", "/a"], '{"a":null}'),
        ('{"a":1,"a":2}', ["/a"], '{"a":null,"a":null}'),
        ('{"us\\u0065r":"x"}', ["/user"], '{"us\\u0065r":null}'),
        ('{"a/b":1,"~":2,"":3}', ["/a~1b", "/~0", "/"], '{"a/b":null,"~":null,"":null}'),
        (' [ 1 , {"a" : 1E400 , "b" : 1.10} ] ', ["/1/a"], ' [ 1 , {"a" : null , "b" : 1.10} ] '),
        ('{"a":{},"b":[]}', ["/a/x", "/b/0", "/c"], '{"a":{},"b":[]}'),
        ('{"a":"x"}', ["/a/b", "/a/0"], '{"a":"x"}'),
        ('"text"', ["/a"], '"text"'),
        ("7", ["/0"], "7"),
        ('{"a":"\\"}, \\"a\\":1"}', ["/b"], '{"a":"\\"}, \\"a\\":1"}'),
    ],
)
def test_what_is_named_becomes_null(text: str, named: list[str], left: str) -> None:
    """In place; digits, blanks, escapes and order stay as they were."""
    assert redact(text, pointers(*named)) == left


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "{", "[", '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"a":1 "b":2}', '{"a" 1}', "{1:2}", "[1", "[1 2]"),
        *("{}x", "[1,]", '{"a":1,}', "nul", '{"a":NaN}', "[Infinity]", "\ufeff{}", '{"b":{"a":tru}}', "'a'"),
        *("[" * 100_000, '{"b":' + "[" * 100_000, "9" * 10_000),
    ],
)
def test_what_is_no_json_cannot_be_searched(text: str) -> None:
    """Nothing of it can be vouched for."""
    assert redact(text, pointers("/a", "/0/a", "/*/b")) is None


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("ab*0/~") | st.text(max_size=2), inner),
    max_leaves=20,
)
parts = st.lists(st.sampled_from(["a", "b", "*", "0", "1", "/", "~", ""]), min_size=1, max_size=4).map(tuple)


def nulled(document: Any, pointer: Pointer) -> Any:
    """The same, told the plain way."""
    name, rest = pointer[0], pointer[1:]
    if isinstance(document, dict):
        places: list[Any] = [name] if name in document else []
    elif isinstance(document, list):
        places = [i for i in range(len(document)) if name in ("*", str(i))]
    else:
        places = []
    for place in places:
        document[place] = nulled(document[place], rest) if rest else None
    return document


@given(documents, st.lists(parts, min_size=1, max_size=4), st.sampled_from([None, 1]), st.booleans())
def test_redaction_removes_exactly_what_is_named(
    document: Any, named: list[Pointer], indent: int | None, ascii_only: bool
) -> None:
    """For any document, any pointers, and any way of writing it down."""
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    left = redact(text, named)
    assert left is not None
    expected = copy.deepcopy(document)
    for pointer in sorted(named, key=len, reverse=True):
        expected = nulled(expected, pointer)
    assert json.loads(left) == expected


@given(documents)
def test_what_is_not_named_is_untouched(document: Any) -> None:
    """Not a character of the text differs."""
    text = json.dumps(document)
    assert redact(text, [("never there",)]) == text


@given(st.text(max_size=30), st.lists(parts, min_size=1, max_size=3))
def test_any_text_is_redacted_or_refused(text: str, named: list[Pointer]) -> None:
    """Never an error."""
    left = redact(text, named)
    assert left is None or isinstance(json.loads(left), object)


@given(parts)
def test_a_pointer_is_read_as_rfc_6901_writes_it(pointer: Pointer) -> None:
    """`~0` is `~`, `~1` is `/`."""
    written = "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in pointer)
    assert read_pointer(written, ()) == pointer

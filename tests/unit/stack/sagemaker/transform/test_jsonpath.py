"""Filters: what each documented operator selects, and what is no path."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.stack.sagemaker.transform.jsonpath import PathError, parse

GUIDE = "developer guide: batch-transform-data-processing"
pytestmark = pytest.mark.fidelity(
    "batch transform",
    "Filters take the documented JSONPath operators, and an index out of range is an error",
    source=GUIDE,
)
ROW = ["a", "b", "c", "d", "e", "f"]
RECORD = {"id": 7, "features": [1, 2, 3], "meta": {"x": "u", "y": "v"}}

SELECTED: list[tuple[str, Any, Any]] = [
    ("$", RECORD, RECORD),
    ("$", ROW, ROW),
    ("$.id", RECORD, 7),
    ("$.features", RECORD, [1, 2, 3]),
    ("$.meta.x", RECORD, "u"),
    ("$['id']", RECORD, 7),
    ("$['id','features']", RECORD, {"id": 7, "features": [1, 2, 3]}),
    ("$.meta.['x','y']", RECORD, {"x": "u", "y": "v"}),
    ("$[ 'id' , 'features' ]", RECORD, {"id": 7, "features": [1, 2, 3]}),
    ("$.meta.*", RECORD, ["u", "v"]),
    ("$.*", ROW, ROW),
    ("$[*]", ROW, ROW),
    ("$.features[0]", RECORD, 1),
    ("$[1]", ROW, "b"),
    ("$[-1]", ROW, "f"),
    ("$[1,3,5]", ROW, ["b", "d", "f"]),
    ("$[0,-1]", ROW, ["a", "f"]),
    ("$[2:5]", ROW, ["c", "d", "e", "f"]),
    ("$[:5]", ROW, ROW),
    ("$[2:]", ROW, ["c", "d", "e", "f"]),
    ("$[1:4]", ROW, ["b", "c", "d", "e"]),
    ("$[0:-2]", ROW, ["a", "b", "c", "d", "e"]),
    ("$[0,5:]", ROW, ["a", "f"]),
    ("$[*].id", [{"id": 1}, {"id": 2}], [1, 2]),
]


@pytest.mark.parametrize(("path", "value", "selected"), SELECTED)
def test_selection(path: str, value: Any, selected: Any) -> None:
    """Each operator of the guide's table selects what the guide says."""
    assert parse(path).select(value) == selected


@pytest.mark.parametrize(
    ("path", "selected"), [("$[1:4]", ["b", "c", "d"]), ("$[0:-1]", ROW[:-1]), ("$[:6]", ROW), ("$[:0]", [])]
)
def test_ranges_without_their_end(path: str, selected: list[str]) -> None:
    """Told so, ranges leave out their end, as the JsonPath library does."""
    assert parse(path, inclusive=False).select(ROW) == selected


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        ("$[6]", ROW, "index 6 is out of range for 6 elements"),
        ("$[-7]", ROW, "index -7 is out of range for 6 elements"),
        ("$[0,6]", ROW, "index 6 is out of range"),
        ("$[6:]", ROW, "index 6 is out of range"),
        ("$[1:6]", ROW, "index 6 is out of range"),
        ("$.none", RECORD, "there is no attribute 'none'"),
        ("$['id','none']", RECORD, "there is no attribute 'none'"),
        ("$.id", ROW, "an attribute needs an object"),
        ("$[0]", RECORD, "an index needs an array"),
        ("$.id.*", RECORD, "* needs an object or an array"),
    ],
)
def test_what_does_not_fit(path: str, value: Any, why: str) -> None:
    """A name or an index that the value does not have is an error that names it."""
    with pytest.raises(PathError, match=r".") as caught:
        parse(path).select(value)
    assert str(caught.value).startswith(f"{path}: ")
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("id", "a path begins with $"),
        ("$id", "unexpected 'i' at position 1"),
        ("$.", "unexpected 'end' at position 2"),
        ("$[", "unexpected '[' at position 1"),
        ("$[a]", "'a' is neither an index, a range nor a quoted name"),
        ("$['a',1]", "\"'a'\" is neither an index"),
        ("$[1:2:3]", "'1:2:3' is neither an index"),
        ("$[]", "'' is neither an index"),
        ("$..id", "unexpected '.' at position 2"),
        ("$[?(@.id==7)]", "is neither an index, a range nor a quoted name"),
    ],
)
def test_what_is_no_path(path: str, why: str) -> None:
    """Anything outside the documented subset is refused with the place or the part."""
    with pytest.raises(PathError) as caught:
        parse(path)
    assert str(caught.value).startswith(f"Invalid JsonPath: {path}: ")
    assert why in str(caught.value)


@pytest.mark.fidelity(
    "batch transform", "A filter has at most one range in a bracket", source="GitHub: aws/sagemaker-python-sdk#1112"
)
def test_two_ranges() -> None:
    """Two ranges in one bracket are refused in the service's own words."""
    with pytest.raises(PathError) as caught:
        parse("$[0:2,246:]")
    assert str(caught.value) == (
        "Invalid JsonPath: $[0:2,246:]: only single range filters of format (eg: [1:5]) are supported. "
        "Format [0:2,246:] is not supported"
    )


@given(st.lists(st.integers(), min_size=1, max_size=8), st.data())
def test_ranges_are_pythons(values: list[int], data: st.DataObject) -> None:
    """A range within the value selects what Python's slice does, one further where its end is included."""
    start = data.draw(st.integers(0, len(values) - 1))
    end = data.draw(st.integers(start, len(values) - 1))
    assert parse(f"$[{start}:{end}]").select(values) == values[start : end + 1]
    assert parse(f"$[{start}:{end}]", inclusive=False).select(values) == values[start:end]
    assert parse(f"$[{start}]").select(values) == values[start]

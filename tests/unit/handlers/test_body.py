"""The model that a body names."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.body import LONGEST_LOOK, named_in


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"model":"chat","messages":[]}', "chat"),
        (b'\xef\xbb\xbf {\n "a" : {"model": "inner"}, "b": [1, "model"], "model" : "chat" }', "chat"),
        (b'{"model":"first","model":"second"}', "first"),
        ('{"model":"\\u0063hat","x":"\u00e9"}'.encode(), "chat"),
        (b'{"model":"chat", broken', "chat"),
        (b'{"model":null}', None),
        (b'{"model":""}', None),
        (b'{"model":["chat"]}', None),
        (b'{"other":"chat"}', None),
        (b'["model","chat"]', None),
        (b'{"a":{"model":"inner"}}', None),
        (b'{1:2,"model":"chat"}', None),
        (b'{"a" "b","model":"chat"}', None),
        (b"{", None),
        (b"{}", None),
        (b"", None),
        (b"\xff\xfe", None),
        (b'{"a":' + b"[" * 50_000, None),
    ],
)
def test_the_top_level_text_names_the_model(body: bytes, found: str | None) -> None:
    """In whatever JSON it stands, and in nothing else."""
    assert named_in(body, "model") == found


def test_a_large_body_is_looked_at_from_its_beginning_only() -> None:
    """Megabytes after the model are not read; a model after them is not found."""
    picture = "x" * 5_000_000
    assert named_in(json.dumps({"model": "chat", "image": picture}).encode(), "model") == "chat"
    assert named_in(json.dumps({"image": picture, "model": "chat"}).encode(), "model") is None
    exactly = json.dumps({"a": "x" * (LONGEST_LOOK - 60), "model": "chat"}).encode()
    assert named_in(exactly, "model") == "chat"


@given(st.binary(max_size=200))
def test_any_bytes_name_a_model_or_none(body: bytes) -> None:
    """Never an error."""
    found = named_in(body, "model")
    assert found is None or isinstance(found, str)


@given(st.dictionaries(st.text(max_size=5), st.recursive(st.none() | st.text(max_size=5), st.lists), max_size=5))
def test_it_agrees_with_a_whole_parse(document: dict[str, object]) -> None:
    """For every object without repeated keys."""
    document = {**document, "model": "chat"}
    assert named_in(json.dumps(document).encode(), "model") == "chat"

"""Reading captures: whose a line is, what can be rechecked of it, and why not."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.core.capture import Body, Exchange, line_of
from functions.core.policy import Capture as Wish
from functions.core.recheck_capture import (
    Capture,
    Item,
    Stub,
    Unchecked,
    Verdict,
    name,
    read,
    stub,
    texts_of,
    verdicts_of,
)

LARGEST = 1000
TOXIC = {"label": "toxic", "score": 0.9, "threshold": 0.5, "model": "light", "version": "v1"}
OK = {**TOXIC, "label": "ok", "score": 0.1}


def exchange(asked: bytes, answered: bytes, kind: str = "application/json", **more: Any) -> Exchange:
    about = {"at": 100.5, "request_id": "r-1", "route": "/chat", "model": "light", "lane": "dedicated"}
    bodies = {"input": Body(asked, kind), "output": Body(answered, kind)}
    return Exchange(**{**about, "rule": "default", "cost_center": None, **bodies, **more})


def captured(asked: object, answered: object, *pointers: str, **more: Any) -> bytes:
    """A line as the router writes it."""
    wish = Wish(1.0, pointers=tuple(tuple(pointer[1:].split("/")) for pointer in pointers))
    return line_of(exchange(json.dumps(asked).encode(), json.dumps(answered).encode(), **more), wish).rstrip(b"\n")


def changed(**parts: object) -> bytes:
    """A line with some of its members replaced."""
    return json.dumps({**json.loads(captured({"text": "a"}, OK)), **parts}).encode()


def test_one_text_is_one_record_with_one_verdict() -> None:
    """The body as it was, and what the light model said of it."""
    item = Item(b'{"text": "hello"}', (Verdict("toxic", 0.9, "v1"),))
    line = captured({"text": "hello"}, TOXIC)
    assert stub(line) == Stub("r-1", 100.5)
    assert read(line, LARGEST) == Capture("r-1", 100.5, "/chat", "dedicated", (item,))


def test_many_texts_are_one_record_with_many_verdicts() -> None:
    """In their order."""
    found = read(captured({"texts": ["a", "b"]}, {"results": [TOXIC, OK]}), LARGEST)
    assert isinstance(found, Capture)
    assert [said.label for said in found.items[0].verdicts] == ["toxic", "ok"]


def test_json_lines_are_a_record_each() -> None:
    """Blank lines are none; a body of lines has an answer of lines."""
    asked, answered = (
        b'{"text":"a"}\n\n{"text":"b"}\n',
        b"".join(json.dumps(each).encode() + b"\n" for each in (OK, TOXIC)),
    )
    found = read(line_of(exchange(asked, answered, "application/jsonlines"), Wish(1.0)), LARGEST)
    assert isinstance(found, Capture)
    assert [item.line for item in found.items] == [b'{"text":"a"}', b'{"text":"b"}']
    assert [item.verdicts[0].label for item in found.items] == ["ok", "toxic"]


def test_a_record_is_one_line_and_means_the_same() -> None:
    """Line breaks between tokens become spaces; a number keeps its digits, a text its escapes."""
    asked = b'{\r\n "text": "a\\nb",\n "n": 1.10\n}\n'
    found = read(line_of(exchange(asked, json.dumps(OK).encode()), Wish(1.0)), LARGEST)
    assert isinstance(found, Capture)
    assert found.items[0].line == b'{   "text": "a\\nb",  "n": 1.10 }'


@given(st.text(st.characters(codec="utf-8"), max_size=30), st.sampled_from([None, 0, 2]))
def test_any_text_survives(text: str, indent: int | None) -> None:
    """What the heavy model is asked is what the light one was asked, on one line."""
    asked = json.dumps({"text": text}, ensure_ascii=False, indent=indent).encode()
    found = read(line_of(exchange(asked, json.dumps(OK).encode()), Wish(1.0)), LARGEST)
    assert isinstance(found, Capture)
    assert b"\n" not in found.items[0].line
    assert texts_of(json.loads(found.items[0].line)) == [text]


def test_what_was_redacted_beside_the_text_does_not_matter() -> None:
    """A user's name that is gone leaves the text to be judged."""
    found = read(captured({"text": "a", "user": "eve"}, OK, "/user"), LARGEST)
    assert isinstance(found, Capture)
    assert json.loads(found.items[0].line) == {"text": "a", "user": None}


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [({"text": "a"}, "/text"), ({"texts": ["a", "b"]}, "/texts"), ({"texts": ["a", "b"]}, "/texts/1")],
)
def test_a_text_that_was_redacted_cannot_be_checked(asked: object, pointer: str) -> None:
    """Whether the field, the list or one of it is gone."""
    answer = {"results": [OK, OK]} if "texts" in str(asked) else OK
    assert read(captured(asked, answer, pointer), LARGEST) is Unchecked.REDACTED


def test_bodies_that_were_not_kept_cannot_be_checked() -> None:
    """Neither side may be missing."""
    line = line_of(exchange(b'{"text":"a"}', b"{}"), Wish(1.0, bodies=False))
    assert read(line, LARGEST) is Unchecked.REDACTED
    assert read(changed(output={"body": None, "bytes": 3}), LARGEST) is Unchecked.REDACTED
    assert read(changed(input=None), LARGEST) is Unchecked.REDACTED


@pytest.mark.parametrize(
    "line",
    [
        line_of(exchange(b"\x89PNG", b"{}", "image/png"), Wish(1.0)),
        line_of(exchange(b"{", b"{}"), Wish(1.0)),
        line_of(exchange(b"\xff\xfe", b"{}"), Wish(1.0)),
        line_of(exchange(b"[" * 100_000, b"{}"), Wish(1.0)),
        changed(input={"body": '{"text":"\ud800"}', "encoding": "text"}),
        changed(input={"body": "not Base64", "encoding": "base64"}),
        changed(input={"body": "eyJ0ZXh0IjoiYSJ9*", "encoding": "base64"}),
    ],
)
def test_what_is_no_json_cannot_be_checked(line: bytes) -> None:
    """An image, half a document, bytes that are no text, brackets without end, half a character."""
    assert stub(line) is not None
    assert read(line, LARGEST) is Unchecked.NOT_JSON


def test_base64_is_read() -> None:
    """A body may come so, with a mark of its byte order before it."""
    body = base64.b64encode(b'\xef\xbb\xbf{"text":"a"}').decode()
    assert isinstance(read(changed(input={"body": body, "encoding": "base64"}), LARGEST), Capture)


def test_a_type_that_is_not_told_is_taken_for_json() -> None:
    """As the models do; parameters do not matter."""
    assert isinstance(read(changed(content_type=None), LARGEST), Capture)
    assert isinstance(read(changed(content_type="Application/JSON; charset=utf-8"), LARGEST), Capture)


def test_what_the_batch_lane_does_not_take_cannot_be_checked() -> None:
    """It would sink its whole file."""
    line = captured({"text": "a" * 500}, OK)
    assert isinstance(read(line, 512), Capture)
    assert read(line, 511) is Unchecked.TOO_LARGE


@pytest.mark.parametrize(
    "answer",
    [{}, [], "toxic", {"label": 1}, {"results": {}}, {"results": []}, {"results": [OK, {}]}, {"results": [OK, 3]}],
)
def test_an_answer_without_verdicts_cannot_be_checked(answer: object) -> None:
    """Nor one in which only some are."""
    assert read(captured({"text": "a"}, answer), LARGEST) is Unchecked.NO_VERDICT


def test_an_answer_that_is_no_json_has_no_verdict() -> None:
    """Or one with fewer lines than were asked, or a question without any."""
    assert read(line_of(exchange(b'{"text":"a"}', b"yes"), Wish(1.0)), LARGEST) is Unchecked.NO_VERDICT
    lines = exchange(b'{"text":"a"}\n{"text":"b"}', json.dumps(OK).encode(), "application/jsonlines")
    assert read(line_of(lines, Wish(1.0)), LARGEST) is Unchecked.NO_VERDICT
    nothing = exchange(b"\n", b"\n", "application/x-ndjson")
    assert read(line_of(nothing, Wish(1.0)), LARGEST) is Unchecked.NO_VERDICT


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b'{"at": 1}',
        b'{"request_id": "r"}',
        b'{"request_id": "r", "at": -1}',
        b'{"request_id": "r", "at": "noon"}',
        b'{"request_id": "", "at": 1}',
        b'{"request_id": "r", "at": NaN}',
    ],
)
def test_a_line_that_says_not_whose_it_is_is_unreadable(line: bytes) -> None:
    """Whatever it is."""
    assert stub(line) is None


def test_a_time_may_be_written_out() -> None:
    """ISO 8601 with its zone."""
    assert stub(b'{"request_id": "r", "at": "1970-01-01T00:01:00Z"}') == Stub("r", 60.0)


@pytest.mark.parametrize("score", [None, "0.9", True, -0.1, 1.1, float("nan"), float("inf")])
def test_a_score_that_is_none_is_left_out(score: object) -> None:
    """The label counts all the same."""
    assert verdicts_of({"label": "toxic", "score": score}) == (Verdict("toxic", None, None),)


@pytest.mark.parametrize("score", [0, 1, 0.0, 1.0, 0.25])
def test_a_score_reaches_from_nothing_to_certainty(score: float) -> None:
    """Both ends included."""
    assert verdicts_of({"label": "toxic", "score": score}) == (Verdict("toxic", float(score), None),)


@pytest.mark.parametrize(
    ("record", "texts"), [({"text": "a"}, ["a"]), ({"texts": ["a", "b"]}, ["a", "b"]), ({"texts": [], "text": "a"}, [])]
)
def test_texts_are_those_that_are_asked_about(record: object, texts: list[str]) -> None:
    """One, or several; those that are said as several count."""
    assert texts_of(record) == texts


def test_names_are_bounded_and_whole() -> None:
    """Whoever wrote them; nothing is called none."""
    assert (name(None), name(""), name("x" * 500), name("a\ud800"), name(7)) == ("none", "none", "x" * 100, "a?", "7")


@pytest.mark.parametrize("record", [[], {"text": 1}, {"texts": "a"}, {"texts": ["a", 1]}, {}, "a"])
def test_texts_that_are_none_are_not_shown(record: object) -> None:
    """A model of another kind may be asked in other words."""
    assert texts_of(record) == ()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda some: st.lists(some) | st.dictionaries(st.text(), some),
    )
)
def test_any_answer_is_read_or_has_no_verdict(answer: object) -> None:
    """Nothing that a model says breaks the recheck."""
    for said in verdicts_of(answer):
        assert said.score is None or 0 <= said.score <= 1


def test_a_model_may_be_asked_in_other_words() -> None:
    """What a record is made of is the models' business; what it said is what counts."""
    found = read(captured([1, 2], OK), LARGEST)
    assert isinstance(found, Capture)
    assert found.items[0].line == b"[1, 2]"

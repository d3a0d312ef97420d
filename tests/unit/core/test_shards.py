"""Jobs into objects, and output into answers."""

from __future__ import annotations

import json

import pytest

from functions.core.job import JobError, JobKey
from functions.core.run import Group, Line, Part
from functions.core.shards import (
    Record,
    answer_type,
    answers,
    as_line,
    body_of,
    group_of,
    heaps,
    job_types,
    lined,
    media_type,
    read_index,
    refusal,
    shard,
    write_index,
)

JSON = "application/json"
DEEP = b"[" * 100_000 + b"]" * 100_000


def record(number: int, body: bytes, due_at: float = 50.0) -> Record:
    """A record of tenant `t`."""
    return Record(JobKey("t", f"i{number}"), due_at, ("serverless",), body)


def line(number: int | None) -> Line:
    """A line of the file `f`."""
    return Line("t", "i", 1.5, "f", number, ())


def test_a_media_type_has_no_parameters() -> None:
    """Nor capitals, nor blanks; none is empty."""
    assert media_type(" Text/CSV ; header=present") == "text/csv"
    assert media_type(None) == ""


@pytest.mark.parametrize("content_type", [JSON, "Application/JSON; charset=utf-8"])
@pytest.mark.parametrize("accept", [None, "*/*", "application/*", JSON, "application/json; q=0.5"])
def test_json_becomes_a_line(content_type: str, accept: str | None) -> None:
    """Line breaks between tokens become spaces; those within a string are escaped anyway, and nothing else changes."""
    body = '{\r\n "a":\t"x\\ny",\n "ü": 1.0 }'.encode()
    assert as_line(content_type, accept, body) == '{   "a":\t"x\\ny",  "ü": 1.0 }'.encode()


@pytest.mark.parametrize(
    ("content_type", "accept", "body"),
    [
        (None, None, b"{}"),
        ("application/jsonlines", None, b"{}"),
        ("text/plain", None, b"{}"),
        (JSON, "text/csv", b"{}"),
        (JSON, "application/json, text/csv", b"{}"),
        (JSON, None, b""),
        (JSON, None, b" "),
        (JSON, None, b"{}\n{}"),
        (JSON, None, b'{"a": NaN}'),
        (JSON, None, b"-Infinity"),
        (JSON, None, b'"a\nb"'),
        (JSON, None, b'"\xff"'),
        (JSON, None, '{"a": 1}'.encode("utf-16")),
        (JSON, None, b"\xef\xbb\xbf{}"),
        (JSON, None, DEEP),
    ],
)
def test_anything_else_is_an_object(content_type: str | None, accept: str | None, body: bytes) -> None:
    """Another type, another answer wanted, or bytes that only claim to be JSON."""
    assert as_line(content_type, accept, body) is None


def test_lines_are_all_alike_and_objects_are_not() -> None:
    """So there is one run of lines a model, and one of objects for each pair of types."""
    assert group_of("m", "Application/JSON; a=b", "*/*", line=True) == Group("m", JSON, None, "lines")
    assert group_of("m", "image/png", "text/csv", line=False) == Group("m", "image/png", "text/csv", "objects")


@pytest.mark.parametrize(
    ("group", "expected", "types"),
    [
        (Group("m", JSON, None, "lines"), True, ("application/jsonlines", "application/jsonlines")),
        (Group("m", JSON, "text/csv", "objects"), False, (JSON, "text/csv")),
        (Group("m", "application/jsonlines", None, "objects"), False, ("application/jsonlines", None)),
        (Group("m", JSON, None, "dataset"), False, (JSON, None)),
        (Group("m", None, None, "dataset"), False, (None, None)),
        (Group("m", "text/csv; x", "text/csv", "dataset"), True, ("text/csv; x", "text/csv")),
        (Group("m", "application/jsonlines", None, "dataset"), True, ("application/jsonlines", None)),
        (Group("m", "application/jsonl", None, "dataset"), True, ("application/jsonl", None)),
        (Group("m", "application/x-ndjson", None, "dataset"), True, ("application/x-ndjson", None)),
    ],
)
def test_how_a_transform_job_reads_a_group(group: Group, expected: bool, types: tuple[str | None, str | None]) -> None:
    """Our own lines by line; a data set by line when its type has records in lines."""
    assert lined(group) is expected
    assert job_types(group) == types


def test_a_shard_of_lines_is_one_object() -> None:
    """A record a line, in order, and an index of whose each is."""
    made = shard("r", "lines", "p", [record(1, b"{}"), record(2, b"[1]", due_at=40.0)])
    assert made.inputs == {"batch/r/in/p.jsonl": b"{}\n[1]\n"}
    assert made.part == Part("p", 2, 5, 40.0)
    assert made.index_key == "batch/r/index/p"
    assert read_index(made.index) == (
        Line("t", "i1", 50.0, "p.jsonl", 0, ("serverless",)),
        Line("t", "i2", 40.0, "p.jsonl", 1, ("serverless",)),
    )


def test_a_shard_of_objects_has_one_for_each_record() -> None:
    """Flat names; the bytes as they came."""
    made = shard("r", "objects", "p", [record(1, b"\n\xff"), record(2, b"b")])
    assert made.inputs == {"batch/r/in/p-0": b"\n\xff", "batch/r/in/p-1": b"b"}
    assert [(one.id, one.file, one.line) for one in read_index(made.index)] == [
        ("i1", "p-0", None),
        ("i2", "p-1", None),
    ]
    assert made.part == Part("p", 2, 3, 50.0)


def test_a_shard_of_a_data_set_is_an_index_only() -> None:
    """Its input is somebody else's."""
    made = shard("r", "dataset", "p", [record(1, b"")])
    assert made.inputs == {}
    assert [(one.id, one.file, one.line) for one in read_index(made.index)] == [("i1", "", None)]


def test_an_index_is_json_lines() -> None:
    """Deadlines in whole milliseconds; no line break within a line, whatever the names are."""
    odd = Line("t\n\u2028", "i", 1796000400.1234, "f", 3, ("a", "b"))
    text = write_index([odd, line(None)])
    first, second, rest = text.split(b"\n")
    assert rest == b""
    assert json.loads(first) == {
        "tenant": "t\n\u2028",
        "id": "i",
        "due_at_ms": 1796000400123,
        "file": "f",
        "line": 3,
        "lanes": ["a", "b"],
    }
    assert b" " not in first
    assert read_index(text) == (Line("t\n\u2028", "i", 1796000400.123, "f", 3, ("a", "b")), line(None))
    assert json.loads(second)["line"] is None


def test_a_body_is_found_again() -> None:
    """By its line, or as the whole object; a line that is not there is none."""
    assert [body_of(line(number), b"a\nb\nc") for number in (0, 1, 2, 3)] == [b"a", b"b", b"c", None]
    assert body_of(line(None), b"a\nb") == b"a\nb"


def test_answers_are_as_many_as_records() -> None:
    """In order; line breaks more do not matter, answers more or fewer do."""
    assert answers(b"1\n2\n", [line(0), line(1)]) == [b"1", b"2"]
    assert answers(b"1\n\n2", [line(0), line(1)]) == [b"1", b"2"]
    assert answers(b"1\n \n", [line(0)]) == [b"1"]
    assert answers(b"1\n", [line(0), line(1)]) is None
    assert answers(b"1\n2\n3\n", [line(0), line(1)]) is None
    assert answers(b"1\n\n2\n", [line(None)]) == [b"1\n\n2\n"]
    assert answers(b"", [line(None)]) == [b""]
    assert answers(b"12", [line(None), line(None)]) is None


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b'{"inferlane_error":{"status":404,"detail":"no such thing"}}', JobError(404, "no such thing")),
        (b' {"inferlane_error": {"status": 400, "detail": "a", "more": 1}} ', JobError(400, "a")),
        (b'{"inferlane_error":{"status":599,"detail":"a"}}', JobError(599, "a")),
        (b'{"inferlane_error":{"status":399,"detail":"a"}}', JobError(422, "a")),
        (b'{"inferlane_error":{"status":600,"detail":"a"}}', JobError(422, "a")),
        (b'{"inferlane_error":{"status":"404"}}', JobError(422, "The model refused the request.")),
        (b'{"inferlane_error":{"detail":""}}', JobError(422, "The model refused the request.")),
        (b'{"inferlane_error":{"detail":7}}', JobError(422, "The model refused the request.")),
        (b'{"inferlane_error":{"detail":"%s"}}' % (b"x" * 1001), JobError(422, "x" * 1000)),
    ],
)
def test_an_error_line_is_an_error(answer: bytes, error: JobError) -> None:
    """With its status where that is one of an error, and its words up to a thousand letters."""
    assert refusal(answer) == error


@pytest.mark.parametrize(
    "answer",
    [
        b'{"label":"ok"}',
        b'{"inferlane_error":{"status":404},"label":"ok"}',
        b'{"inferlane_error":"no"}',
        b'{"text":"inferlane_error"}',
        b'"inferlane_error"',
        b'{"inferlane_error":{}',
        b'{"inferlane_error":' + DEEP,
        b"",
    ],
)
def test_anything_else_is_a_result(answer: bytes) -> None:
    """Also one that only speaks of errors."""
    assert refusal(answer) is None


def test_the_type_of_an_answer_is_what_was_asked_for() -> None:
    """Where that names one; else JSON, if it is JSON."""
    assert answer_type("image/png", b"{}") == "image/png"
    assert answer_type(None, b"{}") == JSON
    assert answer_type("*/*", b" 1 ") == JSON
    assert answer_type("a/b, c/d", b"{}") == JSON
    assert answer_type(None, b"\x89PNG") is None
    assert answer_type(None, b"no") is None
    assert answer_type(None, DEEP) is None


def test_heaps_are_bounded_in_number_and_in_bytes() -> None:
    """In order, none empty; what is too large alone is a heap of its own."""
    assert list(heaps([], len, 2, 10)) == []
    assert list(heaps(["a", "b", "c"], len, 2, 10)) == [["a", "b"], ["c"]]
    assert list(heaps(["aa", "bb", "cc"], len, 9, 4)) == [["aa", "bb"], ["cc"]]
    assert list(heaps(["aaaaa", "b", "cccccc"], len, 9, 4)) == [["aaaaa"], ["b"], ["cccccc"]]

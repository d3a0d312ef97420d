"""How jobs become a run's objects, and a transform job's output becomes answers again.

A JSON body is one line of a JSON Lines object: newlines between its tokens become spaces, which is all that changes
(within a string JSON allows none). Any other body is an object of its own. Beside its input a part has an index, a line
a record: whose it is, where it lies, and what promotion must know.

The container answers a line with a line, in order. An output with another number of lines says nothing about any of
them. A record that the model refuses is answered by a line `{"inferlane_error": {"status": 422, "detail": "…"}}`, so
that it does not take its neighbours with it; any other answer is the model's result, whatever it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, TypeVar

from functions.core.job import JobError, JobKey
from functions.core.run import Form, Group, Line, Part, index_prefix, input_prefix

ERROR: Final = "inferlane_error"
JSON: Final = "application/json"
JSON_LINES: Final = "application/jsonlines"
"""What SageMaker's own serving containers call JSON Lines."""
_LINED: Final = frozenset(
    {JSON_LINES, "application/jsonl", "application/x-ndjson", "application/x-jsonlines", "text/csv"}
)
"""Content types of data sets whose objects hold a record a line."""
_ANY: Final = frozenset({"", "*/*", "application/*", JSON})
_DETAIL: Final = 1000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Record:
    """One job on its way into a run."""

    key: JobKey
    due_at: float
    lanes: tuple[str, ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class Shard:
    """A part, as it is to be written."""

    part: Part
    inputs: Mapping[str, bytes]
    """By key."""
    index: bytes
    index_key: str


def media_type(content_type: str | None) -> str:
    """Without parameters, in small letters; empty when there is none."""
    return (content_type or "").partition(";")[0].strip().lower()


def as_line(content_type: str | None, accept: str | None, body: bytes) -> bytes | None:
    """The body as a line of JSON Lines; None where only an object of its own will do."""
    if media_type(content_type) != JSON or media_type(accept) not in _ANY:
        return None
    try:
        json.loads(body.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return body.replace(b"\r", b" ").replace(b"\n", b" ")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def group_of(model: str, content_type: str | None, accept: str | None, *, line: bool) -> Group:
    """With which others a body can be in one transform job. Lines are all alike: JSON in, JSON out."""
    return Group(model, JSON, None, "lines") if line else Group(model, content_type, accept, "objects")


def lined(group: Group) -> bool:
    """Whether SageMaker is to split the input objects by line."""
    return group.form == "lines" or (group.form == "dataset" and media_type(group.content_type) in _LINED)


def job_types(group: Group) -> tuple[str | None, str | None]:
    """The content type and the accept header of the group's transform job."""
    return (JSON_LINES, JSON_LINES) if group.form == "lines" else (group.content_type, group.accept)


def shard(run: str, form: Form, name: str, records: Sequence[Record]) -> Shard:
    """The part `name` of `run`, at least one record."""
    if form == "lines":
        file = f"{name}.jsonl"
        inputs = {input_prefix(run) + file: b"".join(record.body + b"\n" for record in records)}
        places: list[tuple[str, int | None]] = [(file, number) for number in range(len(records))]
    else:
        places = [("" if form == "dataset" else f"{name}-{number}", None) for number in range(len(records))]
        inputs = {input_prefix(run) + file: record.body for (file, _), record in zip(places, records, strict=True)}
    lines = [
        Line(record.key.tenant, record.key.id, record.due_at, file, line, record.lanes)
        for (file, line), record in zip(places, records, strict=True)
    ]
    size = sum(len(record.body) for record in records)
    part = Part(name, len(records), size, min(record.due_at for record in records))
    return Shard(part, {} if form == "dataset" else inputs, write_index(lines), index_prefix(run) + name)


def write_index(lines: Iterable[Line]) -> bytes:
    """JSON Lines."""
    return b"".join(
        json.dumps(
            {
                "tenant": line.tenant,
                "id": line.id,
                "due_at_ms": round(line.due_at * 1000),
                "file": line.file,
                "line": line.line,
                "lanes": line.lanes,
            },
            separators=(",", ":"),
        ).encode()
        + b"\n"
        for line in lines
    )


def read_index(index: bytes) -> tuple[Line, ...]:
    """What `write_index` wrote."""
    rows = [json.loads(row) for row in index.splitlines()]
    return tuple(
        Line(row["tenant"], row["id"], row["due_at_ms"] / 1000, row["file"], row["line"], tuple(row["lanes"]))
        for row in rows
    )


def body_of(line: Line, source: bytes) -> bytes | None:
    """A record's body out of its input object; None where the object has no such line."""
    if line.line is None:
        return source
    lines = source.split(b"\n")
    return lines[line.line] if line.line < len(lines) else None


def answers(output: bytes, lines: Sequence[Line]) -> list[bytes] | None:
    """What a file's output says to each of its records, in order; None when their numbers differ.

    Empty lines are none of them: an answer to JSON has at least a character, and some servers end each payload's
    answers with a newline where SageMaker adds its own.
    """
    if len(lines) == 1 and lines[0].line is None:
        return [output]
    found = [answer for answer in output.split(b"\n") if answer.strip()]
    return found if len(found) == len(lines) else None


def refusal(answer: bytes) -> JobError | None:
    """The error that this answer stands for; None: it is a result."""
    if not answer.lstrip().startswith(b"{") or ERROR.encode() not in answer:
        return None
    try:
        said = json.loads(answer)
    except (ValueError, RecursionError):
        return None
    if said.keys() != {ERROR} or not isinstance(said[ERROR], dict):
        return None
    status, detail = said[ERROR].get("status"), said[ERROR].get("detail")
    return JobError(
        status if isinstance(status, int) and 400 <= status <= 599 else 422,
        detail[:_DETAIL] if isinstance(detail, str) and detail else "The model refused the request.",
    )


def answer_type(accept: str | None, answer: bytes) -> str | None:
    """The content type of an answer, which a transform job does not tell: what was asked for, else JSON if it is."""
    if accept is not None and "*" not in accept and "," not in accept:
        return accept
    try:
        json.loads(answer)
    except (ValueError, RecursionError):
        return None
    return JSON


def heaps(items: Iterable[T], size_of: Callable[[T], int], most: int, most_bytes: int) -> Iterator[list[T]]:
    """In order, by heaps of at most so many and, but for one too large alone, at most so many bytes."""
    heap: list[T] = []
    filled = 0
    for item in items:
        size = size_of(item)
        if heap and (len(heap) == most or filled + size > most_bytes):
            yield heap
            heap, filled = [], 0
        heap.append(item)
        filled += size
    if heap:
        yield heap

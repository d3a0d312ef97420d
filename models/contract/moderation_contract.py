"""What every moderation model takes and answers under the SageMaker inference contract; packed into each archive.

Rules
- A request is `application/json`, `{"text": "…"}` or `{"texts": ["…", …]}` (1 to 256 texts), or `application/jsonlines`
  with one such object a line. Other fields of an object are ignored. Blank lines are skipped. Bodies are UTF-8.
- `text` is answered with one verdict, `texts` with `{"results": [verdict, …]}` in the same order; JSON lines with one
  line of that form a record. A text is `toxic` exactly when its score is at least the threshold.
- A bad request raises BadRequest, whose message is meant for the caller and whose `status` is the HTTP status.
- Under batch transform (SageMaker sets SAGEMAKER_BATCH) a record, be it a line or an object of its own, stands for a
  caller of its own: a bad one is answered in its place, `{"inferlane_error": {"status": 400, "detail": "…"}}`, so that
  it costs no neighbour and keeps its reason, which a failed transform job would not tell. A blank line is a bad record
  there, so that answers and records stay in step.

A model has `judge(texts)`, which returns one verdict a text. The functions here are its `input_fn`, `predict_fn` and
`output_fn`. Importing this file loads nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    _ToolkitError = Exception
else:
    # AWS's serving toolkit answers 500 to any exception but its own, and a 500 would be retried on another lane.
    # Where the toolkit is loaded (it always is before this file), BadRequest is one of its errors too: 400, 415, 406
    # reach the caller there too, with the toolkit's traceback under the message. Our own servers read only `status`.
    _ToolkitError = getattr(sys.modules.get("sagemaker_inference.errors"), "BaseInferenceToolkitError", Exception)

JSON, JSON_LINES = "application/json", "application/jsonlines"
MAX_TEXTS = 256


class BadRequest(ValueError, _ToolkitError):  # noqa: N818 (the contract with our model server)
    """The caller's fault: `str()` says what is wrong and what is wanted, `status` is 400, 415 or 406."""

    def __init__(self, message: str, status: int = 400) -> None:
        ValueError.__init__(self, message)
        self.status = status
        self.status_code, self.message, self.phrase = status, message, message  # the toolkit's names for the same


@dataclass(frozen=True)
class Record:
    """One object of a request: its texts, and whether it came as a single `text`."""

    texts: tuple[str, ...]
    single: bool


@dataclass(frozen=True)
class BadRecord:
    """A record of a batch that cannot be judged, and why."""

    status: int
    detail: str


@dataclass(frozen=True)
class Request:
    """A parsed body: one record from JSON, one a line from JSON lines."""

    records: tuple[Record | BadRecord, ...]
    lines: bool


@dataclass(frozen=True)
class Verdict:
    label: str
    score: float
    threshold: float
    model: str
    version: str


@dataclass(frozen=True)
class Prediction:
    """The verdicts of a request, record by record, in the order asked; none for a record that is bad."""

    request: Request
    verdicts: tuple[tuple[Verdict, ...], ...]


class Model(Protocol):
    """What `model_fn` returns."""

    def judge(self, texts: Sequence[str]) -> Sequence[Verdict]:
        """One verdict a text, in order; `texts` may be empty."""
        ...


def input_fn(body: bytes | bytearray | str, content_type: str | None) -> Request:
    """Parse a request body (the toolkit hands JSON over already decoded). No content type is taken for JSON."""
    kind, _, parameters = (content_type or JSON).partition(";")
    kind = kind.strip().lower()
    if kind not in (JSON, JSON_LINES):
        raise BadRequest(f"content type {kind!r} is not served; send {JSON} or {JSON_LINES}", status=415)
    _refuse_foreign_charset(parameters)
    if _batch(os.environ):
        records = _batch_records(body) if kind == JSON_LINES else (_batch_record(body),)
        return Request(tuple(records), lines=kind == JSON_LINES)
    text = _decoded(body)
    if not text.strip():
        raise BadRequest('the body is empty; send {"text": "…"} or {"texts": ["…"]}')
    if kind == JSON:
        return Request((_record(text, ""),), lines=False)
    numbered = ((number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip())
    return Request(tuple(_record(line, f"line {number}: ") for number, line in numbered), lines=True)


def predict_fn(data: Request, model: Model) -> Prediction:
    """Judge every text of the request, all records together."""
    texts = [_texts(record) for record in data.records]
    verdicts = iter(model.judge([text for record in texts for text in record]))
    return Prediction(data, tuple(tuple(next(verdicts) for _ in record) for record in texts))


def output_fn(prediction: Prediction, accept: str | None) -> tuple[str, str]:
    """Return the body and its content type: JSON lines for a JSON lines request or where only those are accepted."""
    accepted = set(_accepted(accept or "*/*"))
    if not accepted & {JSON, JSON_LINES, "application/*", "*/*"}:
        raise BadRequest(f"no type in Accept {accept!r} is served; accept {JSON} or {JSON_LINES}", status=406)
    answers = [
        _answer(record, verdicts)
        for record, verdicts in zip(prediction.request.records, prediction.verdicts, strict=True)
    ]
    lines = [json.dumps(answer) for answer in answers]
    if prediction.request.lines or not accepted & {JSON, "application/*", "*/*"}:
        return "".join(line + "\n" for line in lines), JSON_LINES
    return lines[0], JSON


def _answer(record: Record | BadRecord, verdicts: Sequence[Verdict]) -> dict[str, object]:
    if isinstance(record, BadRecord):
        return {"inferlane_error": asdict(record)}
    return asdict(verdicts[0]) if record.single else {"results": [asdict(verdict) for verdict in verdicts]}


def _texts(record: Record | BadRecord) -> tuple[str, ...]:
    return record.texts if isinstance(record, Record) else ()


def _batch(environment: Mapping[str, str]) -> bool:
    return environment.get("SAGEMAKER_BATCH", "").lower() == "true"  # the SDK's local mode writes it as "True"


def _batch_records(body: bytes | bytearray | str) -> Iterator[Record | BadRecord]:
    # Lines are told apart before they are decoded: a byte that is no UTF-8 is its own record's fault alone.
    raw = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else bytes(body)
    lines = raw.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for line in lines[:-1] if lines[-1] == b"" else lines:
        yield _batch_record(line)


def _batch_record(body: bytes | bytearray | str) -> Record | BadRecord:
    try:
        return _record(_decoded(body, "the record"), "")
    except BadRequest as error:
        return BadRecord(error.status, str(error))


def _record(text: str, where: str) -> Record:
    if not text.strip():
        raise BadRequest(f"{where}the record is empty")
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadRequest(f"{where}not valid JSON: {error.msg} at column {error.colno}") from None
    except (ValueError, RecursionError) as error:  # a number of more than 4,300 digits; thousands of brackets
        raise BadRequest(f"{where}JSON that cannot be read: {error}") from None
    if not isinstance(value, Mapping):
        raise BadRequest(f'{where}expected an object like {{"text": "…"}}, not {_kind(value)}')
    if ("text" in value) == ("texts" in value):
        found = "both" if "text" in value else "neither"
        raise BadRequest(f'{where}expected one of "text" and "texts", found {found}')
    if "text" in value:
        return Record((_text(value["text"], f"{where}text"),), single=True)
    texts = value["texts"]
    if not isinstance(texts, list):
        raise BadRequest(f"{where}texts must be a list of strings, not {_kind(texts)}")
    if not 1 <= len(texts) <= MAX_TEXTS:
        raise BadRequest(f"{where}texts must hold 1 to {MAX_TEXTS} strings, not {len(texts)}; split the request")
    return Record(tuple(_text(item, f"{where}texts[{index}]") for index, item in enumerate(texts)), single=False)


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise BadRequest(f"{where} must be a string, not {_kind(value)}")
    if not value.strip():
        raise BadRequest(f"{where} is empty")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadRequest(f"{where} holds half of a surrogate pair at character {error.start}") from None
    return value


def _decoded(body: bytes | bytearray | str, what: str = "the body") -> str:
    if isinstance(body, str):
        return body.removeprefix("\ufeff")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRequest(f"{what} is not valid UTF-8 (byte {error.start})") from None


def _refuse_foreign_charset(parameters: str) -> None:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        charset = value.strip().strip('"').lower()
        if name.strip().lower() == "charset" and charset not in ("utf-8", "utf8", "us-ascii"):
            raise BadRequest(f"charset {charset!r} is not served; send UTF-8", status=415)


def _accepted(accept: str) -> Iterator[str]:
    for choice in accept.lower().split(","):
        kind, *parameters = (part.strip().replace(" ", "") for part in choice.split(";"))
        if not any(parameter in ("q=0", "q=0.0", "q=0.00", "q=0.000") for parameter in parameters):
            yield kind


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")

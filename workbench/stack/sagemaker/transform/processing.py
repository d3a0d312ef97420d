"""DataProcessing: what of each record the model sees, and what of record and answer is stored. Pure.

InputFilter selects of the record, JoinSource=Input puts record and answer together, OutputFilter selects of that:
- CSV: a row is an array, so only index paths apply; the answer's columns are appended to the row's. Fields keep their
  own text, quotes and all. A field must not hold a newline (RFC 4180 otherwise).
- JSON, JSON Lines: an object gets the answer as its `SageMakerOutput` (one it has is overwritten); anything else
  becomes `{"SageMakerInput": ..., "SageMakerOutput": ...}`. What is written is compact JSON.
- With several records in a request the answer must have one line for each, or the object fails.
Without a filter or a join nothing is parsed: bytes go through as they are.

Source: developer guide, "Associate Prediction Results with Input Records"; API reference, DataProcessing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from workbench.stack.sagemaker.transform.jsonpath import Path, PathError
from workbench.stack.sagemaker.transform.packing import BatchStrategy, Item, Payload
from workbench.stack.sagemaker.transform.splitting import Record

Format = Literal["text/csv", "application/json", "application/jsonlines"]
FORMATS: tuple[Format, ...] = ("text/csv", "application/json", "application/jsonlines")
INPUT, OUTPUT = "SageMakerInput", "SageMakerOutput"
_FIELD = re.compile(rb'(?:"(?:[^"]|"")*"|[^",]*)(?=,|$)')


class ProcessingError(ValueError):
    """A record or an answer cannot be filtered or joined as asked; the message says why."""


@dataclass(frozen=True, slots=True)
class Processing:
    """Filters and join of a job, with the format of its records and answers."""

    format: Format
    input_filter: Path
    output_filter: Path
    join: bool

    @property
    def reads_answers(self) -> bool:
        """Whether answers have to be parsed."""
        return self.join or not self.output_filter.whole

    def items(self, records: Iterable[Record], strategy: BatchStrategy) -> Iterator[Item]:
        """Records as they are sent. Raises `ProcessingError`."""
        for record in records:
            end = b"\n" if record.body.endswith(b"\n") else b""
            if strategy == "MultiRecord" and record.framed.endswith(b"\n"):
                end = b"\n"
            values = _parse(self.format, record.body, "input")
            sent = values if self.input_filter.whole else [self._select(self.input_filter, v) for v in values]
            body = record.body if self.input_filter.whole else _written(self.format, sent) + end
            yield Item(body, tuple(values) if self.join else (), len(values))

    def output(self, payload: Payload, answer: bytes) -> bytes:
        """What is stored of a payload's answer. Raises `ProcessingError`."""
        if not self.reads_answers:
            return answer
        outputs = self._outputs(payload, answer)
        if self.join:
            outputs = [self._joined(i, o) for i, o in zip(payload.inputs, outputs, strict=True)]
        return _written(self.format, [self._select(self.output_filter, value) for value in outputs])

    def _outputs(self, payload: Payload, answer: bytes) -> list[Any]:
        several = payload.records > 1 or self.format != "application/json"
        outputs = _lines_parsed(self.format, answer) if several else _parse(self.format, answer, "output")
        if len(outputs) != payload.records:
            raise ProcessingError(
                f"the model answered {payload.records} records with {len(outputs)} lines: they cannot be told apart"
            )
        return outputs

    def _joined(self, value: Any, output: Any) -> Any:
        if self.format == "text/csv":
            return value + output
        return {**value, OUTPUT: output} if isinstance(value, dict) else {INPUT: value, OUTPUT: output}

    def _select(self, path: Path, value: Any) -> Any:
        try:
            selected = path.select(value)
        except PathError as error:
            raise ProcessingError(str(error)) from error
        # One column of a row is a row of one column.
        return [selected] if self.format == "text/csv" and not isinstance(selected, list) else selected


def _parse(kind: Format, body: bytes, side: str) -> list[Any]:
    match kind:
        case "text/csv":
            return [_row(body.removesuffix(b"\n").removesuffix(b"\r"), side)]
        case "application/json":
            return [_json(body, side)]
        case "application/jsonlines":
            return [_json(line, side) for line in _lines(body)]


def _lines_parsed(kind: Format, answer: bytes) -> list[Any]:
    if kind == "text/csv":
        return [_row(line.removesuffix(b"\r"), "output") for line in _lines(answer)]
    return [_json(line, "output") for line in _lines(answer)]


def _lines(body: bytes) -> list[bytes]:
    return body.removesuffix(b"\n").split(b"\n") if body else []


def _row(line: bytes, side: str) -> list[bytes]:
    if b'"' not in line:
        return line.split(b",")
    fields, at = [], 0
    while True:
        match = _FIELD.match(line, at)
        if match is None:
            source = "input" if side == "input" else "output from the algorithm"
            shown = line[at : at + 40].decode(errors="replace")
            # The service's words: aws/amazon-sagemaker-examples#898, aws/sagemaker-tensorflow-serving-container#154.
            raise ProcessingError(f'Failed to parse {source} as CSV: bare " in non quoted field found near: {shown}')
        fields.append(match[0])
        at = match.end() + 1
        if at > len(line):
            return fields


def _json(text: bytes, side: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        source = "input" if side == "input" else "output from the algorithm"
        raise ProcessingError(f"Failed to parse {source} as JSON: {error}") from error


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _written(kind: Format, values: Sequence[Any]) -> bytes:
    if kind == "text/csv":
        return b"\n".join(b",".join(row) for row in values)
    return b"\n".join(_dumped(value) for value in values)


def _dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

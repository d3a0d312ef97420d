"""Split x strategy x assemble x join: what is sent, and what is stored, for the same three records.

The expected bytes are written by hand from the documented rules (developer guide, "Use Batch Transform" and "Associate
Prediction Results with Input Records"; API reference, TransformInput and TransformOutput). The models are as simple as
models can be: one adds up the numbers of each row, one doubles `x` of each object; both answer in lines, without a
newline after the last.
"""

from __future__ import annotations

import gzip
import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.unit.stack.sagemaker.transform.fakes import Answer, FakeModel, FakeStore, refuse
from workbench.stack.sagemaker.records import Container
from workbench.stack.sagemaker.transform.objects import Task, location
from workbench.stack.sagemaker.transform.request import Parameters, check, effective, parse
from workbench.stack.sagemaker.transform.work import Plan, TaskError, transform

CSV, JSON, LINES = "text/csv", "application/json", "application/jsonlines"
ROWS = b"1,2\n3,4\n5,6\n"
OBJECTS = b'{"id":"a","x":1}\n{"id":"b","x":2}\n{"id":"c","x":3}\n'
GUIDE = "developer guide: batch-transform"


def sums(body: bytes) -> bytes:
    """The sum of each row."""
    return b"\n".join(str(sum(map(int, row.split(b",")))).encode() for row in body.splitlines())


def doubles(body: bytes) -> bytes:
    """Twice the x of each object."""
    return b"\n".join(json.dumps({"y": json.loads(line)["x"] * 2}).encode() for line in body.splitlines())


def lengths(body: bytes) -> bytes:
    """How much was sent."""
    return str(len(body)).encode()


def recordio(body: bytes) -> bytes:
    """One RecordIO frame."""
    return struct.pack("<II", 0xCED7230A, len(body)) + body + bytes(-len(body) % 4)


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    id: str
    content: bytes
    answer: Answer
    sent: list[bytes]
    stored: bytes
    kind: str = CSV
    split: str = "None"
    strategy: str | None = None
    assemble: str = "None"
    processing: dict[str, str] | None = None


JOIN = {"JoinSource": "Input"}
THREE = [b"1,2\n", b"3,4\n", b"5,6\n"]
FRAMES = [recordio(b"abc"), recordio(b"defgh"), recordio(b"")]
TABLE = [
    # None: the object is the request; a strategy says nothing.
    Row("none", ROWS, sums, [ROWS], b"3\n7\n11"),
    Row("none-line", ROWS, sums, [ROWS], b"3\n7\n11\n", assemble="Line"),
    Row("none-single", ROWS, sums, [ROWS], b"3\n7\n11", strategy="SingleRecord"),
    Row("none-multi", ROWS, sums, [ROWS], b"3\n7\n11", strategy="MultiRecord"),
    # Line: one request a record, or one for all that fit; None concatenates, Line ends each answer with a newline.
    Row("single", ROWS, sums, THREE, b"3711", split="Line", strategy="SingleRecord"),
    Row("single-line", ROWS, sums, THREE, b"3\n7\n11\n", split="Line", strategy="SingleRecord", assemble="Line"),
    Row("multi", ROWS, sums, [ROWS], b"3\n7\n11", split="Line", strategy="MultiRecord"),
    Row("multi-line", ROWS, sums, [ROWS], b"3\n7\n11\n", split="Line", strategy="MultiRecord", assemble="Line"),
    Row("default-is-multi", ROWS, sums, [ROWS], b"3\n7\n11\n", split="Line", assemble="Line"),
    # Joins of CSV: the answer's columns come last.
    Row("csv-join-single", ROWS, sums, THREE, b"1,2,3\n3,4,7\n5,6,11\n",
        split="Line", strategy="SingleRecord", assemble="Line", processing=JOIN),
    Row("csv-join-multi", ROWS, sums, [ROWS], b"1,2,3\n3,4,7\n5,6,11\n",
        split="Line", strategy="MultiRecord", assemble="Line", processing=JOIN),
    Row("csv-in", ROWS, sums, [b"2\n", b"4\n", b"6\n"], b"2\n4\n6\n",
        split="Line", strategy="SingleRecord", assemble="Line", processing={"InputFilter": "$[1:]"}),
    Row("csv-in-join-out", ROWS, sums, [b"2\n4\n6\n"], b"1,2\n3,4\n5,6\n",
        split="Line", strategy="MultiRecord", assemble="Line",
        processing={"InputFilter": "$[1:]", "JoinSource": "Input", "OutputFilter": "$[0,-1]"}),
    Row("csv-quotes", b'"a, ""b""",2\n', lambda _: b'"x,y",9', [b'"a, ""b""",2\n'], b'"a, ""b""",2,"x,y",9\n',
        split="Line", strategy="SingleRecord", assemble="Line", processing=JOIN),
    # Joins of JSON Lines: the answer becomes the object's SageMakerOutput.
    Row("lines-join-single", OBJECTS, doubles,
        [b'{"id":"a","x":1}\n', b'{"id":"b","x":2}\n', b'{"id":"c","x":3}\n'],
        b'{"id":"a","x":1,"SageMakerOutput":{"y":2}}\n{"id":"b","x":2,"SageMakerOutput":{"y":4}}\n'
        b'{"id":"c","x":3,"SageMakerOutput":{"y":6}}\n',
        kind=LINES, split="Line", strategy="SingleRecord", assemble="Line", processing=JOIN),
    Row("lines-join-multi", OBJECTS, doubles, [OBJECTS],
        b'{"id":"a","x":1,"SageMakerOutput":{"y":2}}\n{"id":"b","x":2,"SageMakerOutput":{"y":4}}\n'
        b'{"id":"c","x":3,"SageMakerOutput":{"y":6}}\n',
        kind=LINES, split="Line", strategy="MultiRecord", assemble="Line", processing=JOIN),
    Row("lines-join-whole", OBJECTS, doubles, [OBJECTS],
        b'{"id":"a","x":1,"SageMakerOutput":{"y":2}}\n{"id":"b","x":2,"SageMakerOutput":{"y":4}}\n'
        b'{"id":"c","x":3,"SageMakerOutput":{"y":6}}',
        kind=LINES, processing=JOIN),
    Row("lines-in-join-out", b'{"id":"a","features":{"x":5}}\n', doubles, [b'{"x":5}\n'],
        b'{"id":"a","SageMakerOutput":{"y":10}}\n', kind=LINES, split="Line", strategy="SingleRecord",
        assemble="Line", processing={
            "InputFilter": "$.features", "JoinSource": "Input", "OutputFilter": "$['id','SageMakerOutput']"}),
    Row("lines-out", OBJECTS, doubles, [OBJECTS], b"2\n4\n6\n",
        kind=LINES, split="Line", assemble="Line", processing={"OutputFilter": "$.y"}),
    # Joins of JSON: an object gets the answer, anything else goes beside it; a SageMakerOutput of its own is lost.
    Row("json-join", b'{"key": 1}', lambda _: b'{"label": 1}', [b'{"key": 1}'],
        b'{"key":1,"SageMakerOutput":{"label":1}}', kind=JSON, processing=JOIN),
    Row("json-join-array", b"[1, 2]", lambda _: b"[3]", [b"[1, 2]"],
        b'{"SageMakerInput":[1,2],"SageMakerOutput":[3]}', kind=JSON, processing=JOIN),
    Row("json-join-overwrites", b'{"SageMakerOutput": 0, "a": 1}', lambda _: b"5", [b'{"SageMakerOutput": 0, "a": 1}'],
        b'{"SageMakerOutput":5,"a":1}', kind=JSON, processing=JOIN),
    Row("json-lines-join-multi", b'{"x":1}\n7\n', lambda _: b"2\n8\n", [b'{"x":1}\n7\n'],
        b'{"x":1,"SageMakerOutput":2}\n{"SageMakerInput":7,"SageMakerOutput":8}\n',
        kind=JSON, split="Line", strategy="MultiRecord", assemble="Line", processing=JOIN),
    # Binary records: bare with SingleRecord, in their frames with MultiRecord.
    Row("recordio-single", b"".join(FRAMES), lengths, [b"abc", b"defgh", b""], b"3\n5\n0\n",
        kind="application/x-recordio", split="RecordIO", strategy="SingleRecord", assemble="Line"),
    Row("recordio-multi", b"".join(FRAMES), lengths, [b"".join(FRAMES)], b"36",
        kind="application/x-recordio", split="RecordIO", strategy="MultiRecord"),
    # Nothing in, nothing out.
    Row("empty-lines", b"", sums, [], b"", split="Line", assemble="Line"),
]  # fmt: skip


def plan(row: Row, **more: Any) -> Plan:
    """How a row's object is worked on, from its request."""
    request: dict[str, Any] = {
        "TransformJobName": "job",
        "ModelName": "model",
        "TransformInput": {
            "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/in/"}},
            "ContentType": row.kind,
            "SplitType": row.split,
        },
        "TransformOutput": {"S3OutputPath": "s3://b/out", "Accept": row.kind, "AssembleWith": row.assemble},
        "TransformResources": {"InstanceType": "ml.m5.large", "InstanceCount": 1},
    }
    if row.strategy:
        request["BatchStrategy"] = row.strategy
    if row.processing:
        request["DataProcessing"] = row.processing
    for name, value in more.items():
        if isinstance(value, dict):
            request[name] = request.get(name, {}) | value
        else:
            request[name] = value
    check(request)
    spec = parse(request, Container("image", None, {}))
    prepared = spec.filters.prepared(inclusive=True) if spec.filters else None
    return Plan(spec, effective(spec.asked, Parameters()), prepared, keep_newlines=True)


async def run(row: Row, model: FakeModel, folder: Path, **more: Any) -> FakeStore:
    """Take a row's object all the way."""
    store = FakeStore(**{"in": row.content})
    await transform(Task(location("s3://b/in"), location("s3://b/out")), plan(row, **more), model, store, folder)
    return store


@pytest.mark.fidelity("batch transform", "Splitting, strategy, assembling and joining give these bytes", source=GUIDE)
@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("row", TABLE, ids=[row.id for row in TABLE])
async def test_table(row: Row, concurrency: int, tmp_path: Path) -> None:
    """Each combination sends and stores exactly these bytes, however many requests overlap."""
    model = FakeModel(row.answer, concurrency)
    store = await run(row, model, tmp_path)
    assert model.sent == row.sent
    assert store.objects["out"] == row.stored


@pytest.mark.fidelity("batch transform", "Outputs are in the order of the records, one for each", source=GUIDE)
@pytest.mark.parametrize("strategy", ["SingleRecord", "MultiRecord"])
async def test_as_many_out_as_in(strategy: str, tmp_path: Path) -> None:
    """A thousand records make a thousand lines, in their order, although requests overlap."""
    content = b"".join(b"%d,%d\n" % (n, n) for n in range(1000))
    row = Row("many", content, sums, [], b"", split="Line", strategy=strategy, assemble="Line", processing=JOIN)
    model = FakeModel(sums, concurrency=4)
    store = await run(row, model, tmp_path)
    assert store.objects["out"] == b"".join(b"%d,%d,%d\n" % (n, n, 2 * n) for n in range(1000))
    assert model.most_in_flight == (4 if strategy == "SingleRecord" else 1)
    assert model.slots._value == 4


@pytest.mark.fidelity(
    "batch transform",
    "Gzip input is decompressed before it is split; output is not compressed",
    source="API reference: TransformInput.CompressionType",
)
async def test_gzip(tmp_path: Path) -> None:
    """A gzip-compressed object is decompressed on its way to the model; the output is not compressed."""
    row = Row("gzip", gzip.compress(ROWS), sums, [], b"", split="Line", assemble="Line")
    store = await run(row, FakeModel(sums), tmp_path, TransformInput={"CompressionType": "Gzip"})
    assert store.objects["out"] == b"3\n7\n11\n"


@pytest.mark.fidelity(
    "batch transform",
    "MaxPayloadInMB 0 sends HTTP chunked, without a limit",
    source="API reference: CreateTransformJob",
)
@pytest.mark.parametrize(
    ("split", "strategy", "sent"),
    [("None", None, [ROWS]), ("Line", "MultiRecord", [ROWS]), ("Line", "SingleRecord", THREE)],
)
async def test_streaming(split: str, strategy: str | None, sent: list[bytes], tmp_path: Path) -> None:
    """Without a limit an object is one chunked request, unless its records go one by one."""
    row = Row("streamed", ROWS, sums, [], b"", split=split, strategy=strategy, assemble="Line")
    model = FakeModel(sums)
    store = await run(row, model, tmp_path, MaxPayloadInMB=0)
    assert (model.sent, set(model.chunked)) == (sent, {True})
    assert store.objects["out"] == b"3\n7\n11\n"


async def test_packing_by_the_limit(tmp_path: Path) -> None:
    """Records of 0.4 MB go two by two under a limit of 1 MB, and each pair's answer is assembled."""
    line = b"1" * 400_000 + b"\n"
    row = Row("large", line * 5, lengths, [], b"", split="Line", assemble="Line")
    model = FakeModel(lengths)
    store = await run(row, model, tmp_path, MaxPayloadInMB=1)
    assert store.objects["out"] == b"800002\n800002\n400001\n"


FAILURES = [
    ("too-large", b"1" * 1_100_000, {"MaxPayloadInMB": 1}, "larger than MaxPayloadInMB (1048576 bytes)"),
    ("index", b"1,2\n3\n", {"DataProcessing": {"InputFilter": "$[1]"}}, "$[1]: index 1 is out of range for 1 elements"),
    (
        "quote",
        b'1,"2\n',
        {"DataProcessing": {"InputFilter": "$[1]"}},
        'Failed to parse input as CSV: bare " in non quoted field found near: "2',
    ),
]


@pytest.mark.fidelity(
    "batch transform", "A record that cannot be processed leaves its object without output", source=GUIDE
)
@pytest.mark.parametrize(("id_", "content", "more", "why"), FAILURES, ids=[f[0] for f in FAILURES])
async def test_failures(id_: str, content: bytes, more: dict[str, Any], why: str, tmp_path: Path) -> None:
    """The input's fault is told as such, and nothing is stored."""
    row = Row(id_, content, lengths, [], b"", split="Line", strategy="SingleRecord", assemble="Line")
    model, store = FakeModel(lengths), FakeStore(**{"in": content})
    with pytest.raises(TaskError) as caught:
        await transform(Task(location("s3://b/in"), location("s3://b/out")), plan(row, **more), model, store, tmp_path)
    assert why in str(caught.value)
    assert caught.value.caller
    assert set(store.objects) == {"in"}


@pytest.mark.fidelity(
    "batch transform",
    "Answers that cannot be joined with their records fail the file",
    source="developer guide: batch-transform-data-processing",
)
@pytest.mark.parametrize(
    ("kind", "content", "answer", "why"),
    [
        (CSV, ROWS, b"3\n7", "the model answered 3 records with 2 lines"),
        (CSV, b"1\n", b'{"predictions": ["a"]}', "Failed to parse output from the algorithm as CSV"),
        (LINES, b"{}\n", b"one", "Failed to parse output from the algorithm as JSON"),
        (LINES, b"{}\n", b"NaN", "NaN is not JSON"),
        (LINES, b"{}\n{\n", b"1", "Failed to parse input as JSON"),
        (LINES, b"{}\n{}\n", b"", "the model answered 2 records with 0 lines"),
    ],
)
async def test_unjoinable_answers(kind: str, content: bytes, answer: bytes, why: str, tmp_path: Path) -> None:
    """An answer that cannot be told apart or read fails the object."""
    row = Row("join", content, lambda _: answer, [], b"", kind=kind, split="Line", assemble="Line", processing=JOIN)
    with pytest.raises(TaskError) as caught:
        await run(row, FakeModel(row.answer), tmp_path)
    assert why in str(caught.value)


@pytest.mark.fidelity(
    "batch transform",
    "One bad record fails its whole file, which gets no output",
    source="developer guide: batch-transform-errors",
)
@pytest.mark.parametrize("concurrency", [1, 3])
async def test_a_poison_record(concurrency: int, tmp_path: Path) -> None:
    """A record that the model refuses fails the object, frees every slot and ends the other requests."""

    def refusing(body: bytes) -> bytes:
        if body == b"3,4\n":
            raise refuse(400)
        return sums(body)

    row = Row("poison", ROWS * 50, refusing, [], b"", split="Line", strategy="SingleRecord", assemble="Line")
    model = FakeModel(refusing, concurrency)
    with pytest.raises(TaskError, match="ClientError: 400"):
        await run(row, model, tmp_path)
    assert model.slots._value == concurrency
    assert len(model.sent) <= 2 + concurrency


async def test_a_missing_object(tmp_path: Path) -> None:
    """An object that is gone is the input's fault."""
    task = Task(location("s3://b/none"), location("s3://b/out"))
    with pytest.raises(TaskError, match="s3://b/none cannot be read"):
        await transform(task, plan(TABLE[0]), FakeModel(sums), FakeStore(), tmp_path)


async def test_not_gzip(tmp_path: Path) -> None:
    """An object that is not gzip fails by that name."""
    row = Row("gzip", ROWS, sums, [], b"", split="Line", assemble="Line")
    with pytest.raises(TaskError, match="not gzip, as CompressionType says"):
        await run(row, FakeModel(sums), tmp_path, TransformInput={"CompressionType": "Gzip"})


@pytest.mark.fidelity(
    "batch transform",
    "TransformOutput.KmsKeyId encrypts the output",
    source="API reference: TransformOutput.KmsKeyId",
)
async def test_a_kms_key_goes_with_the_output(tmp_path: Path) -> None:
    """The output is stored under the key that the request names."""
    store = await run(TABLE[0], FakeModel(sums), tmp_path, TransformOutput={"KmsKeyId": "alias/mine"})
    assert store.keys["out"] == "alias/mine"

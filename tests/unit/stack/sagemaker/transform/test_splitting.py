"""Objects to records, whatever the blocks they come in."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.stack.sagemaker.transform.splitting import Record, SplitError, SplitType, split

API = "API reference: TransformInput"
MAGIC = struct.pack("<I", 0xCED7230A)


def cut(content: bytes, size: int) -> Iterator[bytes]:
    """The content in blocks."""
    for at in range(0, len(content), size):
        yield content[at : at + size]


def recordio(body: bytes, part: int = 0) -> bytes:
    """One RecordIO frame."""
    return MAGIC + struct.pack("<I", part << 29 | len(body)) + body + bytes(-len(body) % 4)


def crc32c(data: bytes) -> int:
    """CRC-32C by long division of polynomials."""
    remainder = int.from_bytes(bytes(int(f"{b:08b}"[::-1], 2) for b in data)) << 32
    remainder ^= 0xFFFFFFFF << (8 * len(data))
    for bit in range(8 * len(data) + 31, 31, -1):
        if remainder >> bit & 1:
            remainder ^= 0x11EDC6F41 << (bit - 32)
    return int(f"{remainder:032b}"[::-1], 2) ^ 0xFFFFFFFF


def tfrecord(body: bytes, *, broken: bool = False) -> bytes:
    """One TFRecord frame; the checksum of its bytes is not looked at."""
    length = struct.pack("<Q", len(body))
    crc = crc32c(length)
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return length + struct.pack("<I", masked ^ broken) + body + b"CRCC"


def test_the_tests_checksum() -> None:
    """The tests' CRC-32C has the published check value, and an empty TFRecord the header TensorFlow writes."""
    assert crc32c(b"123456789") == 0xE3069283
    assert tfrecord(b"")[:12] == bytes(8) + bytes.fromhex("29039807")


@pytest.mark.fidelity(
    "batch transform", "SplitType None sends the whole object, Line cuts after each newline", source=API
)
@pytest.mark.parametrize(
    ("kind", "content", "bodies"),
    [
        ("None", b"a\nb\n", [b"a\nb\n"]),
        ("None", b"", [b""]),
        ("Line", b"a\nb\n", [b"a\n", b"b\n"]),
        ("Line", b"a\nb", [b"a\n", b"b"]),
        ("Line", b"a\r\nb\r\n", [b"a\r\n", b"b\r\n"]),
        ("Line", b"a\n\nb\n", [b"a\n", b"\n", b"b\n"]),
        ("Line", b"\n", [b"\n"]),
        ("Line", b"", []),
        ("RecordIO", b"", []),
        ("TFRecord", b"", []),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_records(kind: SplitType, content: bytes, bodies: list[bytes], size: int) -> None:
    """An object falls into exactly these records."""
    assert list(split(kind, cut(content, size), None)) == [Record(body, body) for body in bodies]


@pytest.mark.fidelity(
    "batch transform",
    "Binary records lose their frame and padding with SingleRecord and keep them with MultiRecord",
    source=API,
)
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_recordio(size: int) -> None:
    """RecordIO frames are told apart; a record in parts gets back the magic number it was cut at."""
    frames = [recordio(b"hello"), recordio(b"ab", 1) + recordio(b"cdef", 2) + recordio(b"g", 3), recordio(b"")]
    records = list(split("RecordIO", cut(b"".join(frames), size), None))
    assert [r.framed for r in records] == frames
    assert [r.body for r in records] == [b"hello", b"ab" + MAGIC + b"cdef" + MAGIC + b"g", b""]


@pytest.mark.fidelity(
    "batch transform",
    "TFRecord input is split by its frames",
    source="botocore: TransformInput.SplitType",
)
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_tfrecords(size: int) -> None:
    """TFRecord frames are told apart by their lengths, which carry a checksum."""
    frames = [tfrecord(b"hello"), tfrecord(b""), tfrecord(b"world")]
    records = list(split("TFRecord", cut(b"".join(frames), size), None))
    assert [r.framed for r in records] == frames
    assert [r.body for r in records] == [b"hello", b"", b"world"]


@pytest.mark.parametrize(
    ("kind", "content", "limit", "why"),
    [
        ("None", b"12345", 4, r"the object is larger than MaxPayloadInMB \(4 bytes\)"),
        ("Line", b"123456789", 4, r"a record is larger than MaxPayloadInMB \(4 bytes\)"),
        ("RecordIO", recordio(b"12345"), 4, "a record is larger"),
        ("TFRecord", tfrecord(b"hello"), 4, "a record is larger"),
        ("RecordIO", b"nothing here", None, "does not begin with its magic number"),
        ("RecordIO", recordio(b"hello")[:-1], None, "ends within a RecordIO record"),
        ("RecordIO", recordio(b"a", 1), None, "ends within a RecordIO record of several parts"),
        ("RecordIO", recordio(b"a", 3), None, "out of order"),
        ("RecordIO", MAGIC, None, "ends within a RecordIO header"),
        ("TFRecord", tfrecord(b"hello", broken=True), None, "the checksum of a record's length is wrong"),
        ("TFRecord", tfrecord(b"hello")[:-1], None, "ends within a TFRecord record"),
        ("TFRecord", b"short", None, "ends within a TFRecord header"),
    ],
)
def test_refusals(kind: SplitType, content: bytes, limit: int | None, why: str) -> None:
    """A record over the limit, or bytes that are not in the format, are errors that say so."""
    with pytest.raises(SplitError, match=why):
        list(split(kind, cut(content, 3), limit))


@given(st.binary(max_size=200), st.integers(1, 50))
def test_lines_lose_nothing(content: bytes, size: int) -> None:
    """Lines put together again are the object, and only the last may lack its newline."""
    records = list(split("Line", cut(content, size), None))
    assert b"".join(r.body for r in records) == content
    assert all(r.body.count(b"\n") == 1 and r.body.endswith(b"\n") for r in records[:-1])
    assert len(records) == content.count(b"\n") + (not content.endswith(b"\n") and content != b"")


@given(st.lists(st.binary(max_size=30), max_size=8), st.integers(1, 50))
def test_recordio_round_trip(bodies: list[bytes], size: int) -> None:
    """What was framed comes back, record by record, and the frames together are the object."""
    content = b"".join(map(recordio, bodies))
    records = list(split("RecordIO", cut(content, size), None))
    assert [r.body for r in records] == bodies
    assert b"".join(r.framed for r in records) == content

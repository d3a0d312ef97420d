"""Puts a day's captured lines in order on disk, each request once: memory holds one part of them at a time.

A line goes to one of `PARTS` files by its request id's hash, so that all copies of a request meet in one file, in
whatever object or order they came. Files are read back one by one, each in the order of time; of copies the first is
taken. The order depends on the lines only, never on how they were delivered.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from functions.core.recheck_capture import Stub, stub

PARTS: Final = 256
LONGEST_LINE: Final = 4 * 1024 * 1024
"""Bytes; Firehose takes records of up to 1,000 KiB. A longer line is no capture."""
_GZIP: Final = b"\x1f\x8b"


class CaptureSpool:
    """Lines on disk, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        """`folder` exists and is empty."""
        self._folder = folder
        self._files: dict[int, BinaryIO] = {}
        self.duplicates = 0

    def add(self, whose: Stub, line: bytes) -> None:
        """Keep a line (without its end)."""
        part = hashlib.sha256(whose.request_id.encode()).digest()[0] % PARTS
        if part not in self._files:
            self._files[part] = (self._folder / f"{part:03d}").open("wb")
        self._files[part].write(line + b"\n")

    def requests(self) -> Iterator[bytes]:
        """Every request's line once, in order; afterwards the spool is empty and `duplicates` is told."""
        for file in self._files.values():
            file.close()
        for part in sorted(self._files):
            path = self._folder / f"{part:03d}"
            yield from self._unique(path.read_bytes())
            path.unlink()
        self._files.clear()

    def _unique(self, content: bytes) -> Iterator[bytes]:
        found: dict[str, tuple[float, bytes]] = {}
        for line in content.split(b"\n"):
            whose = stub(line)
            if whose is None:  # cannot be: `add` was told whose it is
                continue
            held = found.get(whose.request_id)
            self.duplicates += held is not None
            if held is None or (whose.at, line) < held:
                found[whose.request_id] = (whose.at, line)
        for _, line in sorted((at, line) for at, line in found.values()):
            yield line


def lines_of(body: bytes) -> Iterator[bytes]:
    """The lines of a captured object, gzip or not, without blank ones. Where gzip is broken, one line that is none."""
    if not body.startswith(_GZIP):
        yield from _lines(io.BytesIO(body))
        return
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
            yield from _lines(file)
    except (OSError, EOFError, zlib.error):
        yield b"\xff"


def _lines(file: io.BytesIO | gzip.GzipFile) -> Iterator[bytes]:
    while line := file.readline(LONGEST_LINE):
        if stripped := line.strip():
            yield stripped

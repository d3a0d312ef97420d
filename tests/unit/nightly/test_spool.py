"""Lines on disk: once each, in order, whatever came in whichever way."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

from functions.capture_spool import LONGEST_LINE, CaptureSpool, lines_of
from functions.core.recheck_capture import stub


def captured(request_id: str, at: float, more: str = "") -> bytes:
    return json.dumps({"request_id": request_id, "at": at, "more": more}).encode()


def spooled(folder: Path, lines: list[bytes]) -> tuple[list[bytes], int]:
    folder.mkdir()
    spool = CaptureSpool(folder)
    for line in lines:
        whose = stub(line)
        assert whose is not None
        spool.add(whose, line)
    found = list(spool.requests())
    assert list(folder.iterdir()) == []
    return found, spool.duplicates


def test_each_request_comes_once_and_the_order_is_its_own(tmp_path: Path) -> None:
    """A thousand, doubled and shuffled: the same thousand in the same order as straight."""
    lines = [captured(f"r-{n}", float(n % 7)) for n in range(1000)]
    straight, none = spooled(tmp_path / "a", lines)
    mixed = lines + random.Random(3).choices(lines, k=300)
    random.Random(4).shuffle(mixed)
    assert spooled(tmp_path / "b", mixed) == (straight, 300)
    assert (sorted(straight), none) == (sorted(lines), 0)


def test_of_two_that_differ_the_earlier_counts(tmp_path: Path) -> None:
    """A request id is one request, whatever is written under it; of equal times the lesser line."""
    first, second, third = captured("r", 1.0, "z"), captured("r", 2.0, "a"), captured("r", 1.0, "y")
    assert spooled(tmp_path / "a", [second, first, third]) == ([third], 2)
    assert spooled(tmp_path / "b", [third, first, second]) == ([third], 2)


def test_lines_are_unpacked(tmp_path: Path) -> None:
    """gzip in one piece or several, or none at all; blank lines are none."""
    body = b"one\n\r\n  two \nthree"
    wanted = [b"one", b"two", b"three"]
    assert list(lines_of(body)) == wanted
    assert list(lines_of(gzip.compress(body))) == wanted
    assert list(lines_of(gzip.compress(b"one\ntwo\n") + gzip.compress(b"three\n"))) == wanted
    assert list(lines_of(b"")) == []


def test_broken_gzip_is_one_unreadable_line() -> None:
    """After what could be read of it."""
    packed = gzip.compress(b"".join(b"%d\n" % n for n in range(10_000)))
    found = list(lines_of(packed[: len(packed) // 2]))
    assert found[0] == b"0"
    assert stub(found[-1]) is None


def test_a_line_without_end_is_taken_in_pieces() -> None:
    """Ten megabytes of nothing, packed into kilobytes, are never held whole."""
    pieces = list(lines_of(gzip.compress(b"x" * (2 * LONGEST_LINE + 5))))
    assert [len(piece) for piece in pieces] == [LONGEST_LINE, LONGEST_LINE, 5]

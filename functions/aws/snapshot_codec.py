"""A snapshot as the bytes of one DynamoDB item: the contract's JSON, with its series in columns, compressed.

Points lie on a grid, so a series is `[period, first stamp, [value or null, …]]` instead of a list of ISO times: a
sixth of the size, and read in a tenth of the time. Values keep six significant digits, far more than CloudWatch's own
averages are good for. A series off the grid keeps its stamps: `[period, [stamp, …], [value, …]]`. 400 KB, DynamoDB's
limit, hold some 150 lanes.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, cast

from functions.core.snapshot import LaneState, ModelState, Point, Series, Snapshot

_LEVEL: Final = 6
_LONGEST_GAP: Final = 120
"""Missing points that a column may spell out, before naming the stamps is shorter."""
_LARGEST: Final = 16 * 1024 * 1024
"""Decompressed: far beyond what fits compressed, and no bomb."""


class CodecError(ValueError):
    """The bytes are no snapshot of this form."""


def encode(snapshot: Snapshot) -> bytes:
    """The item's body."""
    series = {
        model: {
            lane: {name: _columns(points) for name, points in known.series.items()}
            for lane, known in state.lanes.items()
        }
        for model, state in snapshot.models.items()
    }
    bare = replace(snapshot, models={name: _with(state, {}) for name, state in snapshot.models.items()})
    document = {"snapshot": bare.to_json(), "series": series}
    return zlib.compress(json.dumps(document, separators=(",", ":"), allow_nan=False).encode(), _LEVEL)


def decode(body: bytes) -> Snapshot:
    """The snapshot. Raises `CodecError`."""
    try:
        unpacked = zlib.decompressobj()
        document = json.loads(unpacked.decompress(body, _LARGEST))
        bare = Snapshot.from_json(document["snapshot"])
        series = {
            model: {lane: {name: _series(value) for name, value in names.items()} for lane, names in lanes.items()}
            for model, lanes in document["series"].items()
        }
        whole = unpacked.eof
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, zlib.error) as error:
        raise CodecError(f"not a shared snapshot: {type(error).__name__}") from error
    if not whole:
        raise CodecError("not a shared snapshot: cut off")
    return replace(bare, models={name: _with(state, series.get(name, {})) for name, state in bare.models.items()})


def _with(state: ModelState, series: Mapping[str, Mapping[str, Series]]) -> ModelState:
    lanes: dict[str, LaneState] = {
        name: replace(known, series=series.get(name, {})) for name, known in state.lanes.items()
    }
    return replace(state, lanes=lanes)


def _columns(series: Series) -> list[object]:
    period, points = series.period_s, series.points
    if not points:
        return [period, [], []]
    first = points[0][0]
    at = {round((stamp - first) / period): value for stamp, value in points}
    on_grid = len(at) == len(points) and all(
        abs(first + index * period - stamp) < 1e-6 for index, (stamp, _) in zip(at, points, strict=True)
    )
    last = max(at)
    if on_grid and last < len(points) + _LONGEST_GAP:
        return [period, first, [_short(at.get(index)) for index in range(last + 1)]]
    return [period, [stamp for stamp, _ in points], [_short(value) for _, value in points]]


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def _series(columns: list[object]) -> Series:
    period, start, values = cast("tuple[float, float | list[float], list[float | None]]", columns)
    stamps = start if isinstance(start, list) else [start + index * period for index in range(len(values))]
    points: list[Point] = [(stamp, value) for stamp, value in zip(stamps, values, strict=True) if value is not None]
    return Series(tuple(points), float(period))

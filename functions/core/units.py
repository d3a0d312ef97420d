"""Durations, sizes and percents as people write them.

Durations: `500ms`, `20s`, `5m`, `1h`, `1d` → seconds. Sizes: `2MB` (10⁶), `2MiB` (2²⁰), or a bare count → bytes.
Percents: `10%` → 0.1. A duration needs its unit; a bare number would hide a factor of 1,000.
"""

from __future__ import annotations

import re
from typing import Final

from functions.core.document import DocumentError, Path, as_number, as_text, kind_of

_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES: Final = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_QUANTITY: Final = re.compile(r"(\d{1,12}(?:\.\d{1,9})?) ?([A-Za-z%]{1,3})", re.ASCII)


def duration_s(value: object, path: Path, *, at_most_s: float | None = None) -> float:
    """A duration above zero, in seconds. Raises `DocumentError`."""
    number, unit = _split(value, path, "a duration such as 20s, 5m or 1h")
    if unit not in _SECONDS:
        raise DocumentError(path, f"unknown unit {unit!r} of a duration (known: {', '.join(_SECONDS)})")
    seconds = number * _SECONDS[unit]
    if seconds <= 0:
        raise DocumentError(path, "a duration must be above zero")
    if at_most_s is not None and seconds > at_most_s:
        raise DocumentError(path, f"must be at most {at_most_s / 60:g}m")
    return seconds


def size_bytes(value: object, path: Path) -> float:
    """A size in bytes. Raises `DocumentError`."""
    if not isinstance(value, str):
        return as_number(value, path, at_least=0)
    number, unit = _split(value, path, "a size such as 2MB, 512KiB or a count of bytes")
    if unit not in _BYTES:
        raise DocumentError(path, f"unknown unit {unit!r} of a size (known: {', '.join(_BYTES)})")
    return number * _BYTES[unit]


def percent(value: object, path: Path) -> float:
    """A share between 0 % and 100 %, as 0–1. Raises `DocumentError`."""
    number, unit = _split(value, path, "a percentage such as 10%")
    if unit != "%" or number > 100:
        raise DocumentError(path, f"expected a percentage between 0% and 100%, found {value!r}")
    return number / 100


def _split(value: object, path: Path, wanted: str) -> tuple[float, str]:
    if not isinstance(value, str):
        raise DocumentError(path, f"expected {wanted}, found {kind_of(value)}")
    match = _QUANTITY.fullmatch(as_text(value, path).strip())
    if match is None:
        raise DocumentError(path, f"expected {wanted}, found {value!r:.40}")
    return float(match[1]), match[2]

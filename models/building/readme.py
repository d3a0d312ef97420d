"""Writes the measured figures into the README, between two markers, so that none is ever typed by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

BEGIN = "<!-- figures: written by `build.py --write-readme`; do not edit -->"
END = "<!-- end of figures -->"
MARKERS = {
    "figures": (BEGIN, END),
    "candidates": ("<!-- candidates: written by `compare.py`; do not edit -->", "<!-- end of candidates -->"),
}


class MarkerError(Exception):
    """The README has no place for the figures."""


def write(path: Path, content: str, block: str = "figures") -> None:
    """Replace what stands between the block's markers with `content`, Markdown."""
    first, last = MARKERS[block]
    text = path.read_text(encoding="utf-8")
    head, begin, rest = text.partition(first)
    _, end, tail = rest.partition(last)
    if not begin or not end:
        raise MarkerError(f"{path.name} lacks the line {first if not begin else last}; put the pair back")
    path.write_text(f"{head}{first}\n\n{content}\n\n{last}{tail}", encoding="utf-8")


def interval(figure: Mapping[str, float]) -> str:
    """Return two cells of a table: the value, and its 95 % interval."""
    return f"{figure['value']:.3f} | {figure['low']:.3f} to {figure['high']:.3f}"


def confusion(matrix: Mapping[str, int]) -> list[str]:
    """Return the table of what was judged how."""
    return [
        "| | judged toxic | judged ok |",
        "|---|---|---|",
        f"| **toxic** | {matrix['true_toxic']} | {matrix['false_ok']} |",
        f"| **ok** | {matrix['false_toxic']} | {matrix['true_ok']} |",
    ]


def serving(report: Mapping[str, Any]) -> list[str]:
    """Return the table of latency and memory, and the machine's line."""
    served, machine = report["serving"], report["machine"]
    return [
        f"Served from the packed archive ({report['archive']['bytes'] / 1e6:.1f} MB), {served['requests']} requests of "
        f"one text, one thread, {served['provider']}:",
        "",
        "| serving | value |",
        "|---|---|",
        f"| latency P50 | {served['p50_ms']:.1f} ms |",
        f"| latency P99 | {served['p99_ms']:.1f} ms |",
        f"| first request | {served['first_ms']:.0f} ms |",
        f"| load (import and `model_fn`) | {served['import_s'] + served['load_s']:.2f} s |",
        f"| peak memory of the process | {served['peak_rss_mb']:.0f} MB |",
        "",
        f"Machine: {machine['cpu']}, {machine['cores']} cores; Python {machine['python']}, "
        f"onnxruntime {machine['onnxruntime']}, tokenizers {machine['tokenizers']}, numpy {machine['numpy']}.",
    ]

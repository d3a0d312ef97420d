"""Writes the measured figures into the README, between two markers, so that none is ever typed by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

BEGIN = "<!-- figures: written by `build.py --write-readme`; do not edit -->"
END = "<!-- end of figures -->"


class MarkerError(Exception):
    """The README has no place for the figures."""


def write(path: Path, report: Mapping[str, Any]) -> None:
    """Replace what stands between the markers with the figures of `report` (quality.json)."""
    text = path.read_text(encoding="utf-8")
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise MarkerError(f"{path.name} lacks the line {BEGIN if not begin else END}; put the pair back")
    path.write_text(f"{head}{BEGIN}\n\n{figures(report)}\n\n{END}{tail}", encoding="utf-8")


def figures(report: Mapping[str, Any]) -> str:
    """Return the figures as Markdown."""
    held_out, data, head = report["held_out"], report["data"], report["head"]
    serving, machine, confusion = report["serving"], report["machine"], held_out["confusion"]
    quality = [
        f"| {name} | {held_out[key]['value']:.3f} | {held_out[key]['low']:.3f} to {held_out[key]['high']:.3f} |"
        for name, key in (
            ("accuracy", "accuracy"),
            ("precision (toxic)", "precision"),
            ("recall (toxic)", "recall"),
            ("F1 (toxic)", "f1"),
            ("ROC-AUC", "roc_auc"),
        )
    ]
    slices = [
        f"| {band['name']} | {band['texts']} | {band['accuracy']['value']:.3f} | {band['accuracy']['low']:.3f} to "
        f"{band['accuracy']['high']:.3f} | {band['missed_toxic']} | {band['flagged_ok']} |"
        for band in held_out["by_length"]
    ]
    archive_mb = report["archive"]["bytes"] / 1e6
    return "\n".join(
        [
            f"Version `{report['version']}`: trained on {data['train']} texts ({data['train_toxic']} toxic), measured "
            f"once on the {held_out['texts']} held out ({held_out['toxic']} toxic). L2 penalty {head['penalty']:g} and "
            f"threshold {head['threshold']:.2f} come from the training half alone.",
            "",
            "| held out | value | 95 % interval |",
            "|---|---|---|",
            *quality,
            "",
            "| | judged toxic | judged ok |",
            "|---|---|---|",
            f"| **toxic** | {confusion['true_toxic']} | {confusion['false_ok']} |",
            f"| **ok** | {confusion['false_toxic']} | {confusion['true_ok']} |",
            "",
            "| length | texts | accuracy | 95 % interval | toxic missed | ok flagged |",
            "|---|---|---|---|---|---|",
            *slices,
            "",
            f"Served from the packed archive ({archive_mb:.1f} MB), {serving['requests']} requests of one text, one "
            f"thread, {serving['provider']}:",
            "",
            "| serving | value |",
            "|---|---|",
            f"| latency P50 | {serving['p50_ms']:.1f} ms |",
            f"| latency P99 | {serving['p99_ms']:.1f} ms |",
            f"| first request | {serving['first_ms']:.0f} ms |",
            f"| load (import and `model_fn`) | {serving['import_s'] + serving['load_s']:.2f} s |",
            f"| peak memory of the process | {serving['peak_rss_mb']:.0f} MB |",
            "",
            f"Machine: {machine['cpu']}, {machine['cores']} cores; Python {machine['python']}, "
            f"onnxruntime {machine['onnxruntime']}, tokenizers {machine['tokenizers']}, numpy {machine['numpy']}.",
        ]
    )

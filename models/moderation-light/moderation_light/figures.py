"""The README's figures, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from building import readme


def figures(report: Mapping[str, Any]) -> str:
    """Return the measured figures of `report` (quality.json)."""
    held_out, data, head = report["held_out"], report["data"], report["head"]
    quality = [
        f"| {name} | {readme.interval(held_out[key])} |"
        for name, key in (
            ("accuracy", "accuracy"),
            ("precision (toxic)", "precision"),
            ("recall (toxic)", "recall"),
            ("F1 (toxic)", "f1"),
            ("ROC-AUC", "roc_auc"),
        )
    ]
    slices = [
        f"| {band['name']} | {band['texts']} | {readme.interval(band['accuracy'])} | {band['missed_toxic']} | "
        f"{band['flagged_ok']} |"
        for band in held_out["by_length"]
    ]
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
            *readme.confusion(held_out["confusion"]),
            "",
            "| length | texts | accuracy | 95 % interval | toxic missed | ok flagged |",
            "|---|---|---|---|---|---|",
            *slices,
            "",
            *readme.serving(report),
        ]
    )

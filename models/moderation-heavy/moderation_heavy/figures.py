"""The figures of moderation-heavy for its README, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from building import readme

MEASURES = (
    ("accuracy", "accuracy"),
    ("precision (toxic)", "precision"),
    ("recall (toxic)", "recall"),
    ("F1 (toxic)", "f1"),
    ("ROC-AUC", "roc_auc"),
)


def figures(report: Mapping[str, Any]) -> str:
    """Return the measured figures of `report` (quality.json)."""
    return "\n".join(
        [
            f"Version `{report['version']}`.",
            "",
            *_heads(report),
            "",
            *(line for language in report["by_language"] for line in _language(language, report)),
            *_against(report),
            "",
            *readme.serving(report),
            "",
            *_batched(report),
        ]
    )


def _heads(report: Mapping[str, Any]) -> list[str]:
    return [
        "| head | trained on | toxic | looks at | L2 penalty | threshold | accuracy out of fold |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {language} | {report['data'][language]['train']} texts | {report['data'][language]['train_toxic']} | "
            f"{', '.join(head['blocks'])} | {head['penalty']:g} | {head['threshold']:.2f} | "
            f"{head['out_of_fold_accuracy']:.3f} |"
            for language, head in report["heads"].items()
        ),
    ]


def _language(language: str, report: Mapping[str, Any]) -> list[str]:
    held_out = report["by_language"][language]
    return [
        f"**{language.capitalize()}**, measured once on {held_out['texts']} held-out texts "
        f"({held_out['toxic']} toxic):",
        "",
        "| held out | value | 95 % interval |",
        "|---|---|---|",
        *(f"| {name} | {readme.interval(held_out[key])} |" for name, key in MEASURES),
        "",
        *readme.confusion(held_out["confusion"]),
        "",
    ]


def _against(report: Mapping[str, Any]) -> list[str]:
    against = report["against"]
    return [
        f"**Against {against['model']}** (version `{against['version']}`), text by text, McNemar's exact test, "
        "two-sided:",
        "",
        "| held out | texts | accuracy | light's | gain | 95 % interval | both right | only this | only light | p |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(
            f"| {name} | {pair['texts']} | {pair['heavy_accuracy']:.3f} | {pair['light_accuracy']:.3f} | "
            f"{readme.interval(pair['gain'])} | {pair['both_right']} | {pair['only_first']} | {pair['only_second']} | "
            f"{_p(pair['p_value'])} |"
            for name, pair in (("English", against["english"]), ("English and as many Chinese", against["mixed"]))
        ),
    ]


def _batched(report: Mapping[str, Any]) -> list[str]:
    serving = report["serving"]
    p50 = ", ".join(f"{language} {ms:.1f} ms" for language, ms in serving["p50_ms_by_language"].items())
    return [
        f"Latency P50 by language: {p50}. Every fourth of these texts, all in one JSON Lines request:",
        "",
        "| threads | texts | texts a second | peak memory |",
        "|---|---|---|---|",
        *(
            f"| {run['threads']} | {run['texts']} | {run['texts'] / run['seconds']:.0f} | {run['peak_rss_mb']:.0f} MB |"
            for run in serving["lines"]
        ),
    ]


def _p(value: float) -> str:
    return f"{value:.4f}" if value >= 0.0001 else f"{value:.1e}"

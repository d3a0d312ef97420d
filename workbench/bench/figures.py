"""The figures as they stand in the README: a block between two markers, rewritten from `build/bench/*.json`.

Nothing in it is typed by hand: each row is a budget with what was measured; below stand the other routers, and what
the lanes cost. docs/batch.md has a block of its own, with all that the bench of the batch lane found.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from workbench.bench import batch_report
from workbench.bench.budgets import BUDGETS, Verdict, verdicts
from workbench.bench.processes import BenchError

BEGIN: Final = "<!-- bench: written by `python -m workbench.bench --write-readme` -->"
END: Final = "<!-- bench: end -->"
_NAMES: Final = {
    "direct": "the backend itself",
    "inferlane_http": "inferlane's handler behind the standard library's HTTP server",
    "article_fastapi": "the article's FastAPI sketch",
    "litellm_proxy": "LiteLLM's proxy",
}


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """The last figures of every measurement that has a budget. Raises `BenchError` naming one that is missing."""
    found: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(budget.bench for budget in BUDGETS):
        try:
            found[name] = json.loads((folder / f"{name}.json").read_text())
        except FileNotFoundError:
            raise BenchError(f"{name} was not measured yet: run `python -m workbench.bench {name}`") from None
    return found


def rewrite(text: str, figures: Mapping[str, Mapping[str, Any]]) -> str:
    """`text` with the block between the markers replaced. Raises `BenchError` unless each marker stands there once."""
    return _between(text, block(figures))


def rewrite_batch(text: str, document: Mapping[str, Any]) -> str:
    """The text of docs/batch.md with its block replaced. Raises `BenchError` unless each marker stands there once."""
    return _between(text, "\n".join(batch_report.full(document)))


def _between(text: str, made: str) -> str:
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise BenchError(f"the text needs one line {BEGIN} and after it one line {END}")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{made}\n{END}{rest.partition(END)[2]}"


def block(figures: Mapping[str, Mapping[str, Any]]) -> str:
    """The Markdown between the markers."""
    judged = [verdict for name, document in figures.items() for verdict in verdicts(name, document)]
    days = sorted({str(document["at"])[:10] for document in figures.values()})
    pythons = sorted({str(document["python"]) for document in figures.values()})
    head = f"Measured {' to '.join(days[:: max(1, len(days) - 1)])} with Python {', '.join(pythons)}:"
    lines = [head, "", "| what | measured | budget |", "|---|--:|--:|", *map(_row, judged)]
    lines += _others(figures.get("router", {}))
    if "batch" in figures:
        lines += ["", *batch_report.short(figures["batch"])]
    return "\n".join(lines)


def _row(verdict: Verdict) -> str:
    budget = verdict.budget
    bound = "≥" if budget.least else "≤"
    broken = "" if verdict.held else " **over**"
    measured, limit = _amount(verdict.value, budget.unit), _amount(budget.limit, budget.unit)
    return f"| {budget.what} | {measured}{broken} | {bound} {limit} |"


def _others(router: Mapping[str, Any]) -> Iterator[str]:
    compared = router.get("over_http_ms")
    if compared is None:
        return
    yield from ("", "| over HTTP, same backend and payload | P50 | P99 |", "|---|--:|--:|")
    for name, row in compared.items():
        yield f"| {_NAMES.get(name, name)} | {row['p50']:.2f} ms | {row['p99']:.2f} ms |"
    yield ""
    yield f"Versions: {', '.join(router['versions'])}."


def _amount(value: float, unit: str) -> str:
    number = f"{value:,.0f}" if value >= 1000 else f"{value:.2f}"
    return f"{number}{'' if unit in ('×', '/s') else ' '}{unit}"

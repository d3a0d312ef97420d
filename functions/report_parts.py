"""What the sections of a report are made of: figures as text, tables that scroll by themselves, tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from functions.core.recheck_measures import Estimate
from functions.markup import Child, Markup, tag
from functions.report_charts import interval_bar

NONE: Final = "–"
"""Stands where there is no figure."""
NUMBER, BAR, TEXT = "number", "bar", "text"
"""Kinds of columns: figures, intervals drawn as bars, captured text."""


def section(title: str, *children: Child) -> Markup:
    return tag("section", tag("h2", title), *children)


def tile(kind: str | None, figure: str, about: str) -> Markup:
    return tag("li", tag("b", figure, class_=kind), tag("span", about), class_="tile")


def table(caption: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Child]]) -> Markup:
    """A table that scrolls by itself. Columns are headings with kinds; the first one heads the rows, or is text."""
    head = tag("tr", *(tag("th", name, scope="col", class_=kind or None) for name, kind in columns))
    kinds = [kind for _, kind in columns]
    body = [tag("tr", *(_cell(each, kinds[i], heads=i == 0) for i, each in enumerate(row))) for row in rows]
    return scroll(tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body)), caption)


def _cell(child: Child, kind: str, *, heads: bool) -> Markup:
    if heads and kind != TEXT:
        return tag("th", child, scope="row")
    return tag("td", child, class_=kind or None)


def scroll(child: Markup, about: str) -> Markup:
    return tag("div", child, class_="scroll", role="region", tabindex=0, aria_label=about)


def bar_of(estimate: Estimate | None) -> Child:
    return NONE if estimate is None else interval_bar(estimate)


def shade(share: float, kind: str) -> str:
    """The class of a cell that holds this share: darker where there is more."""
    steps = (0.02, 0.25, 0.75)
    level = sum(share >= step for step in steps)
    return f"{kind}{level}" if level else ""


def count(number: int) -> str:
    return f"{number:,}"


def percent(estimate: Estimate | None) -> str:
    return NONE if estimate is None else f"{estimate.value * 100:.2f} %"


def interval(estimate: Estimate | None) -> str:
    return "" if estimate is None else f"({span(estimate, percent=True)})"


def span(estimate: Estimate | None, *, percent: bool = False) -> str:
    if estimate is None:
        return NONE
    if percent:
        return f"{estimate.low * 100:.2f} to {estimate.high * 100:.2f} %"
    return f"({estimate.low:.3f} to {estimate.high:.3f})"


def figure(estimate: Estimate | None) -> str:
    return NONE if estimate is None else f"{estimate.value:.3f}"


def score(score: float | None) -> str:
    return "" if score is None else f"{score:.3f}"

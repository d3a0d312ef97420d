"""A recheck's report as one page that an auditor can read, keep and print: it needs nothing from anywhere.

No script, no request (the policy in its head forbids both), no clock: the same report gives the same bytes. Whatever
was captured or said by a model passes through `markup` as text.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Final

from functions.core.document import show_time
from functions.core.recheck import Slice
from functions.core.recheck_report import Report
from functions.markup import Child, Markup, tag, verbatim_style
from functions.report_charts import hours_chart, scores_chart
from functions.report_parts import (
    BAR,
    NONE,
    NUMBER,
    bar_of,
    count,
    figure,
    interval,
    percent,
    scroll,
    section,
    shade,
    span,
    table,
    tile,
)
from functions.report_sections import LEVELS, drift_section, examples_section, left_out_section, method_section
from functions.report_style import CSS

_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(CSS.encode()).digest()).decode()
POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; img-src data:; base-uri 'none'; form-action 'none'"
)
_SLICE_COLUMNS: Final = (
    *(("verdicts", NUMBER), ("agreement", NUMBER), ("95 % interval", BAR)),
    *(("misses", NUMBER), ("false alarms", NUMBER)),
)


def page(report: Report) -> str:
    """The page."""
    title = f"Recheck of {report.light_model}, {report.day.date}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="robots", content="noindex"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        verbatim_style(CSS),
    )
    body = tag(
        "main",
        _top(report, title),
        _disagreement(report),
        _when(report),
        _slices(report),
        drift_section(report),
        examples_section(report),
        left_out_section(report),
        method_section(report),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', body), lang='en')}\n"


def _top(report: Report, title: str) -> Markup:
    found, sources = report.findings, report.sources
    total = found.total
    level, kind = LEVELS[report.light_drift.level]
    tiles = [
        ("good", percent(total.agreement), f"agreement {interval(total.agreement)}"),
        (None, figure(found.kappa), f"Cohen's kappa {span(found.kappa)}"),
        ("miss", count(total.missed), f"misses: {percent(total.missed_of_passed)} of what passed"),
        ("alarm", count(total.alarmed), f"false alarms: {percent(total.alarmed_of_flagged)} of what was flagged"),
        (None, count(total.verdicts), f"verdicts rechecked, of {count(sources.verdicts)}"),
        (None, count(sources.requests - sources.checked), f"of {count(sources.requests)} requests not checkable"),
        (kind, level, "scores against the days before"),
        (None, NONE if report.job.cost_usd is None else f"${report.job.cost_usd:.4f}", "the recheck's compute"),
    ]
    return tag(
        "header",
        tag("h1", title),
        tag(
            "p",
            f"{report.light_model} was rechecked by {report.heavy_model} on stack {report.stack}: what was taken in on "
            f"{report.day.date} in {report.day.zone}, from {show_time(report.day.begins)} to "
            f"{show_time(report.day.ends)}.",
            class_="quiet",
        ),
        *(tag("p", notice, class_="notice", role="note") for notice in _notices(report)),
        tag("ul", *(tile(*each) for each in tiles), class_="tiles", aria_label="The day in figures"),
    )


def _notices(report: Report) -> list[str]:
    notices = []
    if not report.complete:
        notices.append("This report was made before its day was over: it covers what had been captured until then.")
    if report.replaces:
        last = report.replaces[-1]
        notices.append(
            f"This report replaces run {last.run} of {last.ended}, which looked at {count(last.requests)} requests: "
            "captures came in late, or the models are others."
        )
    if report.unanswered:
        notices.append(f"The heavy model left {count(sum(report.unanswered.values()))} verdicts without an answer.")
    return notices


def _disagreement(report: Report) -> Markup:
    found = report.findings
    largest = max((n for i, row in enumerate(found.table) for j, n in enumerate(row) if i != j), default=0)
    rows = []
    for i, (label, row) in enumerate(zip(found.labels, found.table, strict=True)):
        whole = max(1, sum(row))
        cells = [
            tag(
                "td",
                count(n),
                class_=f"number {shade(n / whole, 'h') if i == j else shade(n / max(1, largest), 'o')}",
            )
            for j, n in enumerate(row)
        ]
        rows.append(tag("tr", tag("th", label, scope="row"), *cells, tag("td", count(sum(row)), class_="number")))
    columns = [*(tag("th", label, scope="col", class_="number") for label in found.labels)]
    matrix = tag(
        "table",
        tag(
            "caption",
            "Verdict by verdict",
            tag("span", f"Rows: what {report.light_model} said. Columns: what {report.heavy_model} said."),
        ),
        tag("thead", tag("tr", tag("td"), *columns, tag("th", "all", scope="col", class_="number"))),
        tag("tbody", *rows),
        class_="matrix",
        id="confusion",
    )
    total = found.total
    shares = [
        ("Misses, of what the heavy model flags", total.missed_of_flagged),
        ("Misses, of what the light model let pass", total.missed_of_passed),
        ("False alarms, of what the light model flags", total.alarmed_of_flagged),
        ("Same verdict", total.agreement),
    ]
    shown = table(
        "Shares with their 95 % intervals",
        (("share", ""), ("value", NUMBER), ("95 % interval", NUMBER), ("", BAR)),
        [(name, percent(each), span(each, percent=True), bar_of(each)) for name, each in shares],
    )
    return section(
        "Where the models disagree",
        tag(
            "p",
            f"“{report.passing}” lets a text pass, every other label flags it. A miss passed and should not have, by "
            "the heavy model's word; a false alarm is the reverse.",
        ),
        tag("div", scroll(matrix, "Confusion matrix"), shown, class_="charts"),
    )


def _when(report: Report) -> Markup:
    found = report.findings
    curves = {"light": (report.light_model, found.light_scores), "heavy": (report.heavy_model, found.heavy_scores)}
    if report.light_baseline:
        curves["before"] = ("days before", report.light_baseline)
    hours = table(
        f"By hour of the day, {report.day.zone}",
        (("hour", ""), ("verdicts", NUMBER), ("misses", NUMBER), ("false alarms", NUMBER)),
        [
            (f"{hour:02d}:00", count(each.verdicts), count(each.missed), count(each.alarmed))
            for hour, each in enumerate(found.hours)
        ],
    )
    return section(
        "Through the day, and by score",
        tag(
            "div",
            tag(
                "figure",
                hours_chart(found.hours),
                tag("figcaption", f"By hour of the day, {report.day.zone}."),
                tag("details", tag("summary", "Figures"), hours),
            ),
            tag(
                "figure",
                scores_chart(curves),
                tag("figcaption", "Share of the verdicts by score, logarithmic; the lowest line is 0.05 % or none."),
            ),
            class_="charts",
        ),
    )


def _slices(report: Report) -> Markup:
    found = report.findings
    groups = (
        ("By route", "route", found.routes),
        ("By lane", "lane", found.lanes),
        (f"By version of {report.light_model}", "version", found.light_versions),
        (f"By version of {report.heavy_model}", "version", found.heavy_versions),
    )
    tables = [
        table(title, ((what, ""), *_SLICE_COLUMNS), [_slice_row(name, each) for name, each in slices.items()])
        for title, what, slices in groups
    ]
    return section("By route, lane and version", *tables)


def _slice_row(name: str, each: Slice) -> tuple[Child, ...]:
    bar = bar_of(each.agreement)
    return name, count(each.verdicts), percent(each.agreement), bar, count(each.missed), count(each.alarmed)

"""A recheck's report as one page that an auditor can read, keep and print: it needs nothing from anywhere.

No script, no request (the policy in its head forbids both), no clock: the same report gives the same bytes. Whatever
was captured or said by a model passes through `markup` as text.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from functions.core.document import show_time
from functions.core.recheck import Example, Slice
from functions.core.recheck_measures import FEWEST, KS_LOOK, KS_SHIFT, PSI_LOOK, PSI_SHIFT, Drift, Level
from functions.core.recheck_report import Report
from functions.markup import Child, Markup, joined, tag, verbatim_style
from functions.report_charts import hours_chart, scores_chart
from functions.report_parts import (
    NONE,
    bar_of,
    count,
    figure,
    interval,
    percent,
    score,
    scroll,
    section,
    shade,
    span,
    table,
    tile,
)
from functions.report_style import CSS

_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(CSS.encode()).digest()).decode()
POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; img-src data:; base-uri 'none'; form-action 'none'"
)
_LEVELS: Final[Mapping[Level, tuple[str, str]]] = {
    "unknown": ("cannot be told", "quiet"),
    "stable": ("stable", "good"),
    "look": ("worth a look", "alarm"),
    "shift": ("shifted", "miss"),
}


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
        _drift(report),
        _examples(report),
        _left_out(report),
        _method(report),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', body), lang='en')}\n"


def _top(report: Report, title: str) -> Markup:
    found, sources = report.findings, report.sources
    total = found.total
    level, kind = _LEVELS[report.light_drift.level]
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
        tag("caption", f"Rows: what {report.light_model} said. Columns: what {report.heavy_model} said."),
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
        ("share", "value", "95 % interval", ""),
        [(name, percent(each), span(each, percent=True), bar_of(each)) for name, each in shares],
        numbers=(1, 2),
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
        ("hour", "verdicts", "misses", "false alarms"),
        [
            (f"{hour:02d}:00", count(each.verdicts), count(each.missed), count(each.alarmed))
            for hour, each in enumerate(found.hours)
        ],
        numbers=(1, 2, 3),
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
    columns = ("verdicts", "agreement", "95 % interval", "misses", "false alarms")
    tables = [
        joined(
            tag("h3", title),
            table(title, (what, *columns), [_slice_row(name, each) for name, each in slices.items()], (1, 2, 4, 5)),
        )
        for title, what, slices in groups
    ]
    return section("By route, lane and version", *tables)


def _slice_row(name: str, each: Slice) -> tuple[Child, ...]:
    bar = bar_of(each.agreement)
    return name, count(each.verdicts), percent(each.agreement), bar, count(each.missed), count(each.alarmed)


def _drift(report: Report) -> Markup:
    rows = [
        _drift_row(name, each)
        for name, each in ((report.light_model, report.light_drift), (report.heavy_model, report.heavy_drift))
    ]
    compared = ", ".join(each.date for each in report.baseline) or "no earlier report within seven days"
    return section(
        "Drift of the scores",
        tag("p", f"Compared with: {compared}."),
        table(
            "Scores of the day against the days before",
            ("model", "verdict", "PSI", "by chance", "KS distance", "by chance", "scores", "before"),
            rows,
            numbers=(2, 3, 4, 5, 6, 7),
        ),
        tag(
            "p",
            f"Worth a look from a population stability index (PSI) of {PSI_LOOK:g} or a Kolmogorov-Smirnov distance "
            f"of {KS_LOOK:g}, shifted from {PSI_SHIFT:g} or {KS_SHIFT:g}, and only above what chance alone stays under "
            f"999 times in 1,000; with fewer than {FEWEST} scores on a side nothing is said. When both models move, "
            "the traffic has changed; when one does, that model has.",
            class_="quiet",
        ),
    )


def _drift_row(name: str, each: Drift) -> tuple[Child, ...]:
    word, kind = _LEVELS[each.level]
    figures = (each.psi, each.psi_chance, each.ks, each.ks_chance)
    told = (NONE if value is None else f"{value:.4f}" for value in figures)
    return name, tag("span", word, class_=kind), *told, count(each.scores), count(each.baseline)


def _examples(report: Report) -> Markup:
    found = report.findings
    return section(
        "The clearest disagreements",
        tag(
            "p",
            "Texts as they were captured, cut where they are long: those on which the model that flags is surest. They "
            "may offend, and they are somebody's words: this report is as confidential as the captures.",
        ),
        _example_table("Misses", found.missed),
        _example_table("False alarms", found.alarmed),
    )


def _example_table(title: str, examples: Sequence[Example]) -> Markup:
    if not examples:
        return joined(tag("h3", title), tag("p", "None is shown.", class_="quiet"))
    rows: list[tuple[Child, ...]] = [
        (
            tag("bdi", each.text, dir="auto"),
            f"{each.light.label} {score(each.light.score)}",
            f"{each.heavy.label} {score(each.heavy.score)}",
            tag("code", f"{each.request_id} #{each.number}"),
        )
        for each in examples
    ]
    return joined(tag("h3", title), table(title, ("text", "light", "heavy", "request"), rows, first="text"))


def _left_out(report: Report) -> Markup:
    sources = report.sources
    rows: list[tuple[Child, ...]] = [
        ("Lines captured around the day", count(sources.lines)),
        ("of another day", count(sources.elsewhere)),
        ("delivered twice", count(sources.duplicates)),
        ("not readable as captures", count(sources.unreadable)),
        ("Requests of the day", count(sources.requests)),
        *((f"not checkable: {reason}", count(number)) for reason, number in sources.unchecked.items()),
        ("rechecked", count(sources.checked)),
        ("Verdicts in them", count(sources.verdicts)),
        *((f"not answered: {reason}", count(number)) for reason, number in report.unanswered.items()),
        ("compared", count(report.findings.total.verdicts)),
    ]
    return section("What was looked at, and what was not", table("Requests and verdicts", ("", "count"), rows, (1,)))


def _method(report: Report) -> Markup:
    job = report.job
    lasted = "" if job.seconds is None else f", {job.seconds:.0f} s"
    price = "" if job.cost_usd is None else f", ${job.cost_usd:.6f}"
    facts = (
        ("Run", f"{report.run}, made {report.made_at}"),
        ("Transform job", f"{job.name}: {job.instance_count} × {job.instance_type}{lasted}{price}"),
        (
            "Agreement beyond chance",
            "Cohen's kappa, 1 at full agreement and 0 at chance; its interval is Fleiss, Cohen and Everitt's (1969). "
            "Shares have Wilson's interval. Both at 95 %, and both take verdicts for independent.",
        ),
        (
            "What it does not say",
            "The heavy model is a yardstick, not the truth. Only captured traffic is rechecked: routes that opted in, "
            "at the share they are captured with, and what was not redacted.",
        ),
    )
    return section("How this was made", tag("dl", *(joined(tag("dt", name), tag("dd", text)) for name, text in facts)))

"""The later sections of a recheck's report: drift, the clearest disagreements, what was left out, how it was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from functions.core.recheck import Example
from functions.core.recheck_measures import FEWEST, KS_LOOK, KS_SHIFT, PSI_LOOK, PSI_SHIFT, Drift, Level
from functions.core.recheck_report import Report
from functions.markup import Child, Markup, joined, tag
from functions.report_parts import NONE, NUMBER, TEXT, count, score, section, table

LEVELS: Final[Mapping[Level, tuple[str, str]]] = {
    "unknown": ("cannot be told", "quiet"),
    "stable": ("stable", "good"),
    "look": ("worth a look", "alarm"),
    "shift": ("shifted", "miss"),
}
"""What a level of drift is called, and the class that colours it."""
_DRIFT_COLUMNS: Final = (
    *(("model", ""), ("verdict", ""), ("PSI", NUMBER), ("by chance", NUMBER)),
    *(("KS distance", NUMBER), ("by chance", NUMBER), ("scores", NUMBER), ("before", NUMBER)),
)


def drift_section(report: Report) -> Markup:
    """How far the scores lie from those of the days before."""
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
            _DRIFT_COLUMNS,
            rows,
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
    word, kind = LEVELS[each.level]
    figures = (each.psi, each.psi_chance, each.ks, each.ks_chance)
    told = (NONE if value is None else f"{value:.4f}" for value in figures)
    return name, tag("span", word, class_=kind), *told, count(each.scores), count(each.baseline)


def examples_section(report: Report) -> Markup:
    """What was captured, where the models disagree most clearly."""
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
        return tag("p", f"{title}: none is shown.", class_="quiet")
    rows: list[tuple[Child, ...]] = [
        (
            tag("bdi", each.text, dir="auto"),
            f"{each.light.label} {score(each.light.score)}",
            f"{each.heavy.label} {score(each.heavy.score)}",
            tag("code", f"{each.request_id} #{each.number}"),
        )
        for each in examples
    ]
    return table(title, (("text", TEXT), ("light", ""), ("heavy", ""), ("request", "")), rows)


def left_out_section(report: Report) -> Markup:
    """What became of every captured line."""
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
    shown = table("Requests and verdicts", (("what", ""), ("count", NUMBER)), rows)
    return section("What was looked at, and what was not", shown)


def method_section(report: Report) -> Markup:
    """Run, job, and what the figures mean."""
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

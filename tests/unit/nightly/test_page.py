"""The page: whole HTML, nothing from outside, nothing unescaped, every figure in words for who cannot see a chart."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from functions.core.recheck import Pair, Recheck
from functions.core.recheck_capture import Verdict
from functions.core.recheck_measures import Drift, Estimate
from functions.core.recheck_report import Report
from functions.report_charts import grouped, hours_chart, interval_bar, scores_chart
from functions.report_page import POLICY, page
from functions.report_style import CSS
from tests.unit.core.test_recheck_report import report
from tests.unit.nightly.test_markup import HOSTILE, Reader, read


def parsed(text: str) -> Reader:
    """The page as a parser sees it."""
    return read(text.removeprefix("<!doctype html>\n"))


def hostile(text: str) -> Report:
    """A report in which everything that was captured, or said by a model, is this text."""
    counts = Recheck("ok", 5)
    for number, labels in enumerate((("ok", text), (text, "ok"), (text, text))):
        verdicts = [Verdict(label, 0.5, text) for label in labels]
        counts.add(Pair(text, number, 1, text, text, text, *verdicts))
    return report(findings=counts.findings(), passing="ok")


def test_the_page_is_whole_and_asks_for_nothing() -> None:
    """Every element ends, no script, no address but the empty icon, and a policy that forbids the rest."""
    found = parsed(page(report()))
    names = {name for name, _ in found.elements}
    assert not names & {"script", "img", "iframe", "object", "form", "a", "base", "embed", "video", "audio"}
    addresses = [
        attributes[key] for _, attributes in found.elements for key in ("href", "src", "action") if key in attributes
    ]
    assert addresses == ["data:,"]
    assert not any(key.startswith("on") or key == "style" for _, attributes in found.elements for key in attributes)
    assert "url(" not in CSS
    assert "@import" not in CSS
    policies = [each["content"] for name, each in found.elements if each.get("http-equiv") == "Content-Security-Policy"]
    assert policies == [POLICY]
    style = re.search("<style>(.*?)</style>", page(report()), re.DOTALL)
    assert style is not None
    assert base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode() in POLICY


def test_the_same_report_is_the_same_page() -> None:
    """To the byte."""
    assert page(report()) == page(report())


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(HOSTILE)
def test_nothing_that_was_captured_becomes_markup(text: str) -> None:
    """The elements of a page with hostile texts are those of one with harmless texts."""
    plain, attacked = (parsed(page(hostile(each))) for each in ("zzz", text or "-"))

    def shape(found: Reader) -> list[tuple[str, tuple[str, ...]]]:
        return [(name, tuple(attributes)) for name, attributes in found.elements]

    assert shape(attacked) == shape(plain)


def test_figures_are_there_in_words() -> None:
    """Tiles, matrix, charts with title and description, tables with captions and headings."""
    text = page(report())
    words = " ".join(parsed(text).words)
    for wanted in (
        "71.43 %",
        "0.300",
        "Recheck of moderation, 2026-12-01",
        "2026-12-01T17:10:00Z",
        "$0.0680",
        "text 5",
    ):
        assert wanted in words
    found = parsed(text)
    charts = [attributes for name, attributes in found.elements if name == "svg" and "id" in attributes]
    ids = {attributes["id"] for _, attributes in found.elements if "id" in attributes}
    assert {chart["id"] for chart in charts} == {"chart-hours", "chart-scores"}
    for chart in charts:
        assert set(str(chart["aria-labelledby"]).split()) <= ids
    assert [name for name, _ in found.elements].count("table") == [name for name, _ in found.elements].count("caption")
    assert [name for name, _ in found.elements].count("h1") == 1
    assert ("html", {"lang": "en"}) in found.elements


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"unanswered": {"refused": 3}}, "left 3 verdicts without an answer"),
        ({"baseline": ()}, "no earlier report within seven days"),
        ({"light_drift": Drift("shift", 0.5, 0.1, 0.3, 0.1, 200, 300)}, "shifted"),
    ],
)
def test_what_an_auditor_must_know_is_said(more: dict[str, object], words: str) -> None:
    """What is missing, and what moved."""
    assert words in page(report(**more))


def test_an_empty_report_has_no_figures() -> None:
    """Dashes rather than zeros; no example."""
    text = page(report(findings=Recheck("ok", 5).findings(), light_baseline={}))
    parsed(text)
    assert text.count(": none is shown.") == 2
    assert "days before</text>" not in text


def test_an_early_report_says_so() -> None:
    """It was made before its day was over."""
    made = report()
    early = replace(made.job, ended=made.day.ends - 1, began=None)
    assert "before its day was over" in page(replace(made, job=early))


@given(st.dictionaries(st.integers(0, 99), st.integers(1, 1000)))
def test_groups_of_scores_are_shares(histogram: dict[int, int]) -> None:
    """They add up to one, or are all nothing."""
    shares = grouped(histogram)
    assert len(shares) == 20
    assert sum(shares) == pytest.approx(1 if histogram else 0)


def test_charts_stay_within_their_bounds() -> None:
    """Every mark lies in the picture, whatever the counts."""
    found = report().findings
    charts = [
        hours_chart(found.hours),
        scores_chart({"light": ("light", {0: 10**9, 99: 1}), "heavy": ("heavy", {}), "before": ("before", {50: 1})}),
        interval_bar(Estimate(0.0, 0.0, 1.0)),
    ]
    for chart in charts:
        _, _, width, height = (float(part) for part in re.search('viewBox="([^"]*)"', chart)[1].split())  # type: ignore[index]
        for x in re.findall(r' (?:x|x1|x2|cx)="([^"]*)"', chart):
            assert 0 <= float(x) <= width
        for y in re.findall(r' (?:y|y1|y2|cy)="([^"]*)"', chart):
            assert 0 <= float(y) <= height
        for points in re.findall(r'points="([^"]*)"', chart):
            for point in points.split():
                x, y = map(float, point.split(","))
                assert 0 <= x <= width
                assert 0 <= y <= height


def test_counts_on_an_axis_are_short() -> None:
    """Thousands and millions by their letters."""
    hours = report().findings.hours
    for count, shown in ((950, "950"), (12_000, "12k"), (3_400_000, "3.4M")):
        busy = [replace(hours[0], verdicts=count), *hours[1:]]
        assert f">{shown}</text>" in hours_chart(busy)

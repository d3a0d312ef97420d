"""The report as a document, what is read back of it, and how a run is named."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from functions.core.document import DocumentError, Fields
from functions.core.recheck import Pair, Recheck
from functions.core.recheck_capture import Verdict
from functions.core.recheck_day import day
from functions.core.recheck_measures import drift
from functions.core.recheck_report import Before, Job, Known, Report, Sources
from functions.core.recheck_run import MOST_TRIES, Folders, Manifest, job_names, run_name

DAY = day("2026-12-01", "Asia/Shanghai")
SOURCES = Sources(
    objects=2,
    lines=12,
    unreadable=1,
    elsewhere=1,
    duplicates=1,
    requests=9,
    unchecked={"redacted": 2, "not JSON": 1},
    records=6,
    verdicts=7,
)
BEFORE = Before("2026-11-30", "b" * 16, 5, "2026-11-30T17:10:00Z")


def report(**more: object) -> Report:
    """Seven pairs: five agree, one is a miss, one a false alarm without a score."""
    counts = Recheck("ok", 5)
    said = [("ok", "ok")] * 4 + [("toxic", "toxic"), ("ok", "toxic"), ("toxic", "ok")]
    for number, (light, heavy) in enumerate(said):
        score = None if number == 6 else 0.125 * number
        verdicts = Verdict(light, score, "v1"), Verdict(heavy, score, None)
        counts.add(Pair(f"r-{number}", number, 8, "/chat", "serverless", f"text {number}", *verdicts))
    found = counts.findings()
    made = Report(
        stack="mature",
        day=DAY,
        run="a" * 16,
        light_model="moderation",
        heavy_model="moderation-heavy",
        passing="ok",
        sources=SOURCES,
        unanswered={},
        findings=found,
        job=Job("job", DAY.ends + 3600, DAY.ends + 4200, "ml.c5.xlarge", 2, 0.068),
        baseline=(BEFORE,),
        light_drift=drift(found.light_scores, {}),
        heavy_drift=drift({1: 200}, {1: 200}),
        light_baseline={1: 200},
    )
    return replace(made, **more)  # type: ignore[arg-type]


def test_the_headline_has_the_figures_of_a_note() -> None:
    """What was looked at, what came of it, what it cost."""
    assert report().headline() == {
        "requests": 9,
        "checked": 6,
        "verdicts": 7,
        "agreement": 0.714286,
        "kappa": 0.3,
        "missed": 1,
        "missed_of_flagged": 0.5,
        "missed_of_passed": 0.2,
        "false_alarms": 1,
        "drift": "unknown",
        "cost_usd": 0.068,
    }


def test_the_document_is_json_and_tells_its_time_from_its_job() -> None:
    """No clock is read: the same report is the same text."""
    document = json.loads(json.dumps(report().to_json()))
    assert document == json.loads(json.dumps(report().to_json()))
    assert document["made_at"] == "2026-12-01T17:10:00Z"
    assert document["window"] == {"from": "2026-11-30T16:00:00Z", "to": "2026-12-01T16:00:00Z"}
    assert document["confusion"] == {"labels": ["ok", "toxic"], "light_by_heavy": [[4, 1], [1, 1]]}
    assert document["job"]["seconds"] == 600.0
    assert document["drift"]["heavy"]["level"] == "stable"
    assert document["drift"]["light"]["psi"] is None
    assert document["complete"] is True
    assert document["examples"]["missed"][0]["text"] == "text 5"


def test_what_is_not_known_is_null() -> None:
    """A price, a start, a share of nothing."""
    bare = report(job=Job("job", None, DAY.ends - 1, "ml.c5.xlarge", 1, None), findings=Recheck("ok", 5).findings())
    document = bare.to_json()
    assert document["complete"] is False
    assert document["kappa"] is None
    assert bare.headline()["cost_usd"] is None
    assert bare.headline()["agreement"] is None
    assert bare.job.seconds is None


def test_what_later_reports_need_is_read_back() -> None:
    """From the text that was written."""
    made = report(replaces=(BEFORE,))
    known = Known.from_json(json.loads(json.dumps(made.to_json())))
    assert known == Known(
        before=Before("2026-12-01", "a" * 16, 9, "2026-12-01T17:10:00Z"),
        baseline=(BEFORE,),
        replaces=(BEFORE,),
        light_scores=made.findings.light_scores,
        heavy_scores=made.findings.heavy_scores,
        headline=made.headline(),
    )


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"schema": "inferlane/recheck/v0"}, "schema"),
        ({"scores": {"light": {"100": 1}, "heavy": {}}}, "is no bin"),
        ({"scores": {"light": {"-1": 1}, "heavy": {}}}, "is no bin"),
        ({"scores": {"light": {"1": "x"}, "heavy": {}}}, "a number"),
        ({"baseline": [{"date": "2026-11-30"}]}, "missing"),
        ({"run": ""}, "empty"),
    ],
)
def test_a_report_of_another_make_is_refused(change: dict[str, object], cause: str) -> None:
    """Naming the place."""
    with pytest.raises(DocumentError, match=cause):
        Known.from_json({**report().to_json(), **change})


def test_sources_are_read_back() -> None:
    """All of them."""
    assert Sources.from_json(Fields.of(json.loads(json.dumps(SOURCES.to_json())))) == SOURCES
    assert SOURCES.checked == 6


def test_a_manifest_is_read_back() -> None:
    """With its sources."""
    manifest = Manifest("a" * 16, SOURCES, ("00000.jsonl",))
    assert Manifest.from_json(json.loads(json.dumps(manifest.to_json()))) == manifest


def test_a_run_is_named_by_all_that_it_is_made_of() -> None:
    """The heavy model, each shard, and their order; parts cannot run into each other."""
    names = {
        run_name("heavy-1", ["a", "b"]),
        run_name("heavy-2", ["a", "b"]),
        run_name("heavy-1", ["b", "a"]),
        run_name("heavy-1", ["ab"]),
        run_name("heavy-1", []),
        run_name("heavy-1a", ["b"]),
    }
    assert len(names) == 6
    assert all(len(name) == 16 for name in names)
    assert run_name("heavy-1", ["a", "b"]) in names


def test_each_try_of_a_job_has_a_name_of_its_own() -> None:
    """All within SageMaker's length, all the nightly's."""
    names = job_names("mature", "2026-12-01", "0123456789abcdef")
    assert names[:2] == [
        "inferlane-mature-nightly-20261201-0123456789",
        "inferlane-mature-nightly-20261201-0123456789-2",
    ]
    assert len(set(names)) == MOST_TRIES


def test_a_stack_whose_name_is_too_long_is_told() -> None:
    """Before SageMaker refuses it in the night."""
    assert max(map(len, job_names("s" * 23, "2026-12-01", "a" * 16))) == 63
    with pytest.raises(ValueError, match="too long"):
        job_names("s" * 24, "2026-12-01", "a" * 16)


def test_files_of_a_model_lie_apart_by_their_kind() -> None:
    """Captures, runs and reports each under a prefix that a lifecycle rule can name."""
    folders = Folders("capture/", "nightly/", "moderation")
    assert folders.captured("date=2026-12-01/") == "capture/model=moderation/date=2026-12-01/"
    base = "nightly/runs/model=moderation/date=2026-12-01/r/"
    where = (folders.records, folders.verdicts, folders.answers, folders.manifest)
    assert [each("2026-12-01", "r") for each in where] == [
        f"{base}in/",
        f"{base}light/",
        f"{base}out/",
        f"{base}manifest.json",
    ]
    assert folders.report("2026-12-01", "html") == "nightly/reports/model=moderation/date=2026-12-01/report.html"
    assert folders.report("2026-12-01", "json").startswith(folders.reports)

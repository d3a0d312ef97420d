"""The nightly recheck from captures to report, over fakes: what counts, what repeats, what is told."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.batch_ports import TransformStatus, UnavailableError
from functions.core.capture import Body, line_of
from functions.core.policy import Capture as Wish
from functions.nightly_ports import RecheckError
from tests.unit.nightly.night import DATE, DAY, FOLDERS, LANE, Night, exchange, line, verdict

TEXTS = ["fine", "bad", "worse", "bad and worse", "fine again"]


def lines(number: int = 40) -> list[bytes]:
    return [line(n, f"{TEXTS[n % len(TEXTS)]} {n}") for n in range(number)]


def test_a_day_becomes_a_report() -> None:
    """Forty requests: eight are misses, eight false alarms; page, document, metrics and note say so."""
    night = Night()
    night.capture(lines())
    result = night.run()
    assert result["outcome"] == "reported"
    assert result["report"] == {form: FOLDERS.report(DATE, form) for form in ("html", "json")}
    document = night.document()
    assert document["headline"] == result["headline"]
    assert document["confusion"] == {"labels": ["ok", "toxic"], "light_by_heavy": [[16, 8], [8, 8]]}
    assert (document["headline"]["missed"], document["headline"]["false_alarms"]) == (8, 8)
    assert document["hours"][0]["verdicts"] == 40
    assert document["heavy_versions"]["h7"]["verdicts"] == 40
    assert document["job"]["cost_usd"] == pytest.approx(120 / 3600 * 0.204)
    assert len(document["examples"]["missed"]) == 5
    assert "worse 2" in night.page()
    ((model, at, figures),) = night.told.figures
    assert (model, at) == ("moderation", DAY.ends + 3600 + 120)
    assert figures["RecheckAgreement"] == 0.6
    assert figures["RecheckMissed"] == 0.5
    ((subject, text),) = night.told.notes
    assert subject == "Recheck of moderation on 2026-12-01: 8 missed"
    assert "s3://data/nightly/reports/model=moderation/date=2026-12-01/report.html" in text
    assert "fine" not in text


def test_the_transform_job_is_asked_for_in_full() -> None:
    """The heavy model of the topology, by line, over the run's records and nothing else."""
    night = Night()
    night.capture(lines())
    state = night.prepare()
    spec = night.transforms.specs[state["job_name"]]
    assert state["transform"] == {"TransformJobName": spec.name, "ModelName": LANE.model_name}
    assert state["job_name"] == f"inferlane-mature-nightly-20261201-{state['run'][:10]}"
    base = f"s3://data/nightly/runs/model=moderation/date={DATE}/{state['run']}"
    assert (spec.input, spec.output, spec.lines) == (f"{base}/in/", f"{base}/out", True)
    written = [key for key in night.objects.rows if "/in/" in key]
    assert [night.objects.rows[key].count(b"\n") for key in sorted(written)] == [10, 10, 10, 10]


def test_running_again_changes_nothing() -> None:
    """Not a byte in the bucket, no metric, no note."""
    night = Night()
    night.capture(lines())
    first = night.run()
    before, told = dict(night.objects.rows), len(night.told.figures)
    night.clock.advance(86_400)
    again = night.run()
    assert again["outcome"] == "unchanged"
    assert (again["report"], again["headline"]) == (first["report"], first["headline"])
    assert night.objects.rows == before
    assert len(night.told.figures) == told == len(night.told.notes)


@settings(max_examples=25)
@given(st.randoms(use_true_random=False), st.integers(1, 5))
def test_however_captures_are_delivered_the_report_is_the_same(chance: random.Random, objects: int) -> None:
    """Shuffled, doubled, spread over objects, packed or not: the same run and the same bytes."""
    straight, mixed = Night(), Night()
    given_lines = lines(30)
    straight.capture(given_lines)
    straight.run()
    delivered = given_lines + chance.choices(given_lines, k=10)
    chance.shuffle(delivered)
    for number in range(objects):
        key = f"date=2026-12-01/hour={number:02d}/{chance.random()}"
        mixed.capture(delivered[number::objects], key, packed=chance.random() < 0.5)
    mixed.run()
    ours, theirs = straight.document(), mixed.document()
    assert theirs["sources"]["duplicates"] == 10
    for told in (ours, theirs):
        for count in ("objects", "lines", "duplicates"):
            del told["sources"][count]
    assert theirs == ours


def test_the_same_state_gives_the_same_bytes() -> None:
    """Reported twice, as a retry would: page and document are the same."""
    night = Night()
    night.capture(lines())
    state = night.prepare()
    night.transforms.create(night.transforms.specs[state["job_name"]])
    night.clock.advance(120)
    night.transforms.pass_time()
    night.report(state)
    before = dict(night.objects.rows)
    night.clock.advance(1000)
    night.report(state)
    assert night.objects.rows == before


def test_what_arrives_late_replaces_the_report_and_says_so() -> None:
    """Another run, another job, the same place; once more, and nothing changes."""
    night = Night()
    night.capture(lines(20))
    first = night.run()
    night.capture([line(77, "worse, late")], "date=2026-12-02/hour=00/b.gz")
    second = night.run()
    assert second["run"] != first["run"]
    assert "replaces run" in second["message"]
    (replaced,) = night.document()["replaces"]
    assert (replaced["run"], replaced["requests"]) == (first["run"], 20)
    assert f"replaces run {first['run']}" in night.page()
    assert night.run()["outcome"] == "unchanged"
    assert len(night.document()["replaces"]) == 1


def test_a_day_ends_at_its_own_midnight() -> None:
    """What came in before it counts although it arrived after; what came in after it is the next day's."""
    night = Night()
    night.capture([line(1, "first", DAY.begins), line(2, "early", DAY.begins - 0.001)])
    night.capture([line(3, "last", DAY.ends - 0.001), line(4, "next", DAY.ends)], "date=2026-12-02/hour=00/a.gz")
    night.capture([line(5, "last", DAY.ends - 0.001)], "date=2026-12-02/hour=01/a.gz")
    night.run()
    sources = night.document()["sources"]
    assert (sources["requests"], sources["elsewhere"], sources["lines"]) == (2, 2, 4)


def test_a_day_without_captures_is_told() -> None:
    """No job, no report, and where to look."""
    night = Night()
    result = night.run()
    assert result["outcome"] == "nothing"
    assert result["message"].startswith("nothing of model moderation was captured on 2026-12-01 (Asia/Shanghai)")
    assert night.objects.rows == {}


def test_a_day_of_which_nothing_can_be_checked_is_told() -> None:
    """By reason."""
    night = Night()
    night.capture([line_of(exchange(n, "fine"), Wish(1.0, bodies=False)) for n in range(3)])
    result = night.run()
    assert result["outcome"] == "nothing"
    assert result["message"].endswith("can be rechecked: 3 redacted")


def test_what_cannot_be_checked_is_in_the_report() -> None:
    """Bad lines, broken gzip, images, bodies too large, and what the heavy model left open."""
    night = Night()
    large = exchange(3, "x" * (1024 * 1024))
    night.capture(
        [
            line(1, "fine"),
            b"no JSON\n",
            line_of(exchange(2, "fine", input=Body(b"\x89PNG", "image/png")), Wish(1.0)),
            line(4, "refuse this"),
            line(5, "odd"),
            line_of(replace(large, request_id="r-00003"), Wish(1.0)),
        ]
    )
    night.objects.rows["capture/model=moderation/date=2026-12-01/hour=09/broken.gz"] = b"\x1f\x8b broken"
    night.run()
    document = night.document()
    assert document["sources"]["unreadable"] == 2
    assert document["sources"]["unchecked"] == {"redacted": 1, "not JSON": 1}
    assert document["unanswered"] == {"no verdict, or another number of them": 1, "refused by the heavy model": 1}
    assert "not checkable: not JSON" in night.page()
    assert ("warning", "captured lines that cannot be read") in [log[:2] for log in night.log.lines]


def test_texts_of_one_request_are_counted_each() -> None:
    """Three verdicts; the miss is the second, and is shown as such."""
    night = Night()
    texts = Body(json.dumps({"texts": ["fine", "worse", "bad"]}).encode(), "application/json")
    said = Body(
        json.dumps({"results": [verdict("ok", 0.1), verdict("ok", 0.2), verdict("toxic", 0.9)]}).encode(),
        "application/json",
    )
    night.capture([line_of(exchange(1, "", input=texts, output=said), Wish(1.0))])
    night.run()
    document = night.document()
    assert document["total"]["verdicts"] == 3
    assert [(each["number"], each["text"]) for each in document["examples"]["missed"]] == [(1, "worse")]


def test_versions_of_the_light_model_are_told_apart() -> None:
    """Several may serve on one day."""
    night = Night()
    new = Body(json.dumps(verdict("ok", 0.1, "v2")).encode(), "application/json")
    night.capture([line(1, "fine"), line(2, "fine"), line_of(exchange(3, "worse", output=new), Wish(1.0))])
    night.run()
    assert {name: each["missed"] for name, each in night.document()["light_versions"].items()} == {"v1": 0, "v2": 1}


def test_a_job_that_goes_on_is_gone_on_with() -> None:
    """Prepared again while its job works: the same name, and no file is written again."""
    night = Night()
    night.capture(lines())
    state = night.prepare()
    night.transforms.create(night.transforms.specs[state["job_name"]])
    night.objects.frozen = set(night.objects.rows)
    assert night.prepare()["job_name"] == state["job_name"]


def test_a_failed_job_is_tried_again_under_another_name() -> None:
    """Names are spent; after five a person should look."""
    night = Night()
    night.capture(lines())
    night.transforms.fail_next = 100
    names = []
    for _ in range(5):
        state = night.prepare()
        names.append(state["job_name"])
        night.transforms.create(night.transforms.specs[state["job_name"]])
        night.clock.advance(120)
        night.transforms.pass_time()
    assert [name[-2:] for name in names[1:]] == ["-2", "-3", "-4", "-5"]
    with pytest.raises(RecheckError, match=r"no transform job of run .* succeeded; the last one: InternalServerError"):
        night.prepare()


def test_a_job_whose_output_is_gone_is_run_again() -> None:
    """Completed long ago, expired since."""
    night = Night()
    night.capture(lines())
    first = night.run()
    for key in [key for key in night.objects.rows if "/out/" in key or "/reports/" in key]:
        del night.objects.rows[key]
    assert night.prepare()["job_name"].endswith("-2")
    assert night.run()["run"] == first["run"]


def test_files_that_the_heavy_model_left_out_count_as_not_answered() -> None:
    """One file without output, one of too few lines: the report covers the rest."""
    night = Night()
    night.capture(lines())
    state = night.prepare()
    night.transforms.create(night.transforms.specs[state["job_name"]])
    night.clock.advance(120)
    night.transforms.pass_time()
    outputs = sorted(key for key in night.objects.rows if "/out/" in key)
    del night.objects.rows[outputs[0]]
    night.objects.rows[outputs[1]] = night.objects.rows[outputs[1]].split(b"\n")[0]
    night.report(state)
    document = night.document()
    assert document["unanswered"] == {"no output of its file": 20}
    assert document["total"]["verdicts"] == 20


def test_a_report_of_nothing_is_an_error() -> None:
    """The heavy model refused them all: the reasons are told, no report is written."""
    night = Night()
    night.capture([line(1, "refuse"), line(2, "refuse")])
    with pytest.raises(RecheckError, match="answered none of the 2 verdicts of 2026-12-01: 2 refused"):
        night.run()
    assert FOLDERS.report(DATE, "json") not in night.objects.rows


@pytest.mark.parametrize("asked", [{}, {"run": "0" * 16, "job_name": "x"}])
def test_a_run_that_is_not_prepared_is_refused(asked: dict[str, object]) -> None:
    """By its name."""
    with pytest.raises(RecheckError, match="is not prepared"):
        Night().report({"date": DATE, **asked})


def test_a_job_that_is_not_completed_is_refused() -> None:
    """Nor one that nobody knows."""
    night = Night()
    night.capture(lines())
    state = night.prepare()
    with pytest.raises(RecheckError, match="is not completed: unknown"):
        night.report(state)
    night.transforms.create(night.transforms.specs[state["job_name"]])
    with pytest.raises(RecheckError, match="is not completed: InProgress"):
        night.report(state)


def test_a_run_that_lost_files_is_refused() -> None:
    """What the light model said is gone: nothing can be compared."""
    night = Night()
    night.capture(lines())
    state = night.prepare()
    night.transforms.create(night.transforms.specs[state["job_name"]])
    night.clock.advance(120)
    night.transforms.pass_time()
    del night.objects.rows[next(key for key in night.objects.rows if "/light/" in key)]
    with pytest.raises(RecheckError, match="has lost files"):
        night.report(state)


def test_scores_are_compared_with_the_days_before() -> None:
    """Once there is a report of one; when that one is replaced, this one is made again, by the same job."""
    night = Night()
    before = [line(n, f"{TEXTS[n % 5]} {n}", DAY.begins - 86_400 + n) for n in range(200)]
    night.capture(before, "date=2026-11-30/hour=08/a.gz")
    night.run(date="2026-11-30")
    night.capture([line(n, f"bad {n}") for n in range(200)])
    first = night.run()
    document = night.document()
    assert document["drift"]["light"]["level"] == "shift"
    assert "scores moved" in first["message"]
    assert [each["date"] for each in document["baseline"]] == ["2026-11-30"]
    assert first["headline"]["drift"] == "shift"
    night.capture([line(900, "fine", DAY.begins - 1)], "date=2026-12-01/hour=00/late.gz")
    assert night.run(date="2026-11-30")["outcome"] == "reported"
    jobs = set(night.transforms.jobs)
    again = night.run()
    assert (again["outcome"], again["run"]) == ("reported", first["run"])
    assert set(night.transforms.jobs) == jobs
    assert night.document()["replaces"] == []
    assert night.run()["outcome"] == "unchanged"


def test_a_report_that_cannot_be_read_is_made_anew() -> None:
    """An older format, or a broken file: told in the log, written over."""
    night = Night()
    night.capture(lines())
    night.objects.rows[FOLDERS.report(DATE, "json")] = b"{}"
    assert night.run()["outcome"] == "reported"
    assert ("warning", "a report cannot be read") in [log[:2] for log in night.log.lines]


def test_a_day_that_is_not_over_may_be_rechecked() -> None:
    """The report says that it is not whole."""
    night = Night()
    night.clock.advance(-7200)
    night.capture(lines())
    result = night.run()
    assert result["message"].endswith("the day was not over")
    assert night.document()["complete"] is False
    assert "before its day was over" in night.page()


def test_without_a_date_it_is_yesterday() -> None:
    """In the policy's zone."""
    night = Night()
    night.capture(lines())
    assert night.prepare(date=None)["date"] == DATE


@pytest.mark.parametrize(
    ("asked", "cause"),
    [({"date": "2026-13-01"}, "is not a date"), ({"model": "other"}, "rechecks model 'moderation', not 'other'")],
)
def test_what_cannot_be_meant_is_refused(asked: dict[str, object], cause: str) -> None:
    """A date that is none, a model that this stack does not recheck."""
    with pytest.raises(RecheckError, match=cause):
        Night().prepare(**asked)


def test_no_text_is_quoted_where_none_is_wanted() -> None:
    """With no examples, neither page nor document holds a word of what was captured."""
    night = Night()
    night.examples = 0
    night.capture(lines())
    night.run()
    assert "worse" not in night.page()
    assert "worse" not in json.dumps(night.document())


def test_a_kill_anywhere_is_made_good_by_the_next_run() -> None:
    """Stopped before any of its steps, and run again: the report is the one that an undisturbed night gives."""
    straight = Night()
    straight.capture(lines())
    straight.run()
    for step in range(200):
        night = Night()
        night.capture(lines())
        night.weather.kill_in(step)
        try:
            night.run()
            break
        except BaseException:
            night.weather.clear()
        night.clock.advance(-night.clock.passed)
        assert night.run()["outcome"] in ("reported", "unchanged")
        assert night.document()["headline"] == straight.document()["headline"]
        assert night.document()["run"] == straight.document()["run"]
    else:
        pytest.fail("the night never ended")


def test_a_service_that_fails_is_the_callers_to_retry() -> None:
    """Its error goes through."""
    night = Night()
    night.capture(lines())
    night.weather.trouble = 1.0
    with pytest.raises(Exception, match=r".") as failed:
        night.prepare()
    assert isinstance(failed.value, UnavailableError) or type(failed.value).__name__ == "BusyError"


def test_a_job_may_not_say_when_it_began() -> None:
    """Then its cost is not known, and not made up."""
    night = Night()
    night.capture(lines())
    state = night.prepare()
    spec = night.transforms.specs[state["job_name"]]
    night.transforms.create(spec)
    night.clock.advance(120)
    night.transforms.pass_time()
    night.transforms.jobs[spec.name].status = TransformStatus("Completed", ended=DAY.ends + 5)
    assert night.report(state)["headline"]["cost_usd"] is None
    assert "RecheckCostUsd" not in night.told.figures[0][2]

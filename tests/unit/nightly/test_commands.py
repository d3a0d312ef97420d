"""`inferlane nightly`: what is started, followed, found, printed, and how it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner, Result

from tests.unit.nightly.cloud import ARN, FakeBucket, FakeStates, machine
from tests.unit.nightly.night import DATE, Night, line
from workbench.errors import UserError
from workbench.nightly import commands, reports
from workbench.nightly.machine import MOST_ATTEMPTS, Execution, machine_of
from workbench.nightly.reports import Entry

FIGURES = {
    "requests": 1200,
    "checked": 1100,
    "verdicts": 1500,
    "agreement": 0.975,
    "kappa": 0.91,
    "missed": 12,
    "missed_of_passed": 0.01,
    "false_alarms": 3,
    "drift": "stable",
    "cost_usd": 0.0123,
}
REPORTED = {
    "outcome": "reported",
    "date": DATE,
    "model": "moderation",
    "message": "2026-12-01: 1500 verdicts",
    "report": {"html": "nightly/reports/model=moderation/date=2026-12-01/report.html"},
    "headline": FIGURES,
}


def ended(answer: dict[str, Any], status: str = "SUCCEEDED") -> FakeStates:
    return FakeStates(ends={"status": status, "output": json.dumps(answer)})


def bucket() -> FakeBucket:
    """The reports of a night that was really run, and of two others."""
    night = Night()
    night.capture([line(n, "worse") for n in range(3)])
    night.run()
    rows = {key: body for key, body in night.objects.rows.items() if "/reports/" in key}
    older = {f"nightly/reports/model=moderation/date=2026-11-{n}/report.json": b'{"headline": {}}' for n in (29, 30)}
    return FakeBucket({**older, **rows, "nightly/reports/readme.txt": b""})


def cli(states: FakeStates, *arguments: str, of: FakeBucket | None = None) -> Result:
    """A command on a stack whose recheck is found to be this."""
    return CliRunner().invoke(commands.app, ["nightly", *arguments], obj=lambda _stack: machine(states, of))


def test_a_run_is_started_and_waited_for() -> None:
    """Named by its day, model and attempt; what is being done is told once each."""
    states, said, slept = ended(REPORTED), list[str](), list[float]()
    done = machine(states, slept=slept).run(DATE, "moderation", said.append)
    assert done == Execution("recheck-moderation-2026-12-01-1", "reported", REPORTED)
    assert [found["input"] for found in states.executions.values()] == [{"date": DATE, "model": "moderation"}]
    assert said == ["gathering the day's captures", "the heavy model works", "writing the report"]
    assert slept == [1.0, 1.0, 1.0]


def test_a_run_that_goes_on_is_joined() -> None:
    """Nothing is started a second time; once it has ended, the next attempt is."""
    states = ended(REPORTED)
    states.looks = 100
    running = states.start_execution(stateMachineArn=ARN, name="recheck-all-2026-12-01-1", input="{}")
    states.looks = 2
    assert machine(states).run(DATE, None, lambda _text: None).name == "recheck-all-2026-12-01-1"
    assert list(states.executions) == [running["executionArn"]]
    assert machine(states).run(DATE, None, lambda _text: None).name == "recheck-all-2026-12-01-2"


def test_without_a_day_the_machine_chooses_it() -> None:
    """Yesterday in its own zone, which only it knows."""
    states = ended(REPORTED)
    assert machine(states).run(None, None, lambda _text: None).name == "recheck-all-latest-1"
    assert [found["input"] for found in states.executions.values()] == [{}]


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (
            {"status": "FAILED", "error": "E", "cause": '{"errorMessage": "no such day", "errorType": "E"}'},
            "failed: no such day",
        ),
        (
            {"status": "FAILED", "error": "TransformFailed", "cause": "transform job x has Failed"},
            "failed: transform job x has Failed",
        ),
        ({"status": "FAILED", "error": "States.Runtime"}, "failed: States.Runtime"),
        ({"status": "FAILED", "cause": '["odd"]'}, r'failed: \["odd"\]'),
        ({"status": "TIMED_OUT"}, "timed_out: no cause is given"),
        ({"status": "ABORTED", "cause": "by\nhand"}, "aborted: by"),
    ],
)
def test_a_failure_is_told_by_its_cause(end: dict[str, str], words: str) -> None:
    """In one line, in the words of whatever failed."""
    with pytest.raises(UserError, match=f"the recheck recheck-all-2026-12-01-1 of stack mature {words}") as failed:
        machine(FakeStates(ends=end)).run(DATE, None, lambda _text: None)
    assert str(failed.value).isprintable()


def test_names_do_not_run_out_silently() -> None:
    """After hundreds of attempts in 90 days something else is wrong."""
    states = FakeStates(looks=0)
    for attempt in range(1, MOST_ATTEMPTS + 1):
        states.start_execution(stateMachineArn=ARN, name=f"recheck-all-2026-12-01-{attempt}", input="{}")
    with pytest.raises(UserError, match="its names are used up"):
        machine(states).run(DATE, None, lambda _text: None)


def test_a_stack_is_found_by_its_machine_and_the_machines_tag() -> None:
    """Wherever it is."""
    states, objects = FakeStates(), FakeBucket()
    found = machine_of("mature", lambda service: {"stepfunctions": states, "s3": objects}[service], pause_s=2)
    assert (found.arn, found.bucket, found.pause_s) == (ARN, "data", 2)
    assert found.objects is cast(Any, objects)


def test_a_stack_without_a_recheck_is_told() -> None:
    """Not deployed, not configured, or of an older program."""
    states = FakeStates(machines={})
    with pytest.raises(UserError, match=r"stack mature has no nightly recheck here: is it .* Stacks with one: none"):
        machine_of("mature", lambda _service: states, pause_s=1)
    states.machines = {ARN: {}, ARN.replace("inferlane-mature-nightly", "another"): {}}
    with pytest.raises(UserError, match=r"Stacks with one: mature$"):
        machine_of("local", lambda _service: states, pause_s=1)
    states.machines = {ARN: {}}
    with pytest.raises(UserError, match="no tag 'inferlane:bucket': deploy the stack again"):
        machine_of("mature", lambda _service: states, pause_s=1)


def test_run_prints_where_the_report_is() -> None:
    """The message, the headline, the object, and what to do next; with --json one object."""
    done = cli(ended(REPORTED), "run", "--date", DATE, "--stack", "mature")
    assert done.exit_code == 0, done.output
    assert "97.50% agreement, kappa 0.910" in done.stdout
    assert "12 missed (1.00% of what passed), 3 false alarms, scores stable, $0.0123" in done.stdout
    assert "s3://data/nightly/reports/model=moderation/date=2026-12-01/report.html" in done.stdout
    assert "inferlane nightly report --date 2026-12-01 --stack mature --open" in done.stdout
    told = json.loads(cli(ended(REPORTED), "run", "--date", DATE, "--json").stdout)
    assert (told["outcome"], told["bucket"], told["execution"]) == ("reported", "data", "recheck-all-2026-12-01-1")


def test_a_day_without_captures_has_its_own_exit_code() -> None:
    """3, with the reason on standard output, or in the object."""
    nothing = {"outcome": "nothing", "date": DATE, "model": "moderation", "message": "nothing was captured"}
    done = cli(ended(nothing), "run", "--date", DATE)
    assert (done.exit_code, done.stdout) == (3, "nothing was captured\n")
    told = cli(ended(nothing), "run", "--date", DATE, "--json")
    assert (told.exit_code, json.loads(told.stdout)["outcome"]) == (3, "nothing")


def test_a_day_that_is_none_starts_nothing() -> None:
    """Refused before any call."""
    states = FakeStates()
    done = cli(states, "run", "--date", "tomorrow")
    assert isinstance(done.exception, UserError)
    assert states.executions == {}


def test_report_prints_what_was_found() -> None:
    """For a person, or the whole document."""
    done = cli(FakeStates(), "report", "--date", DATE, of=bucket())
    assert done.stdout.startswith(f"moderation on {DATE}, made ")
    assert "3 verdicts of 3 requests (3 captured), 0.00% agreement" in done.stdout
    told = json.loads(cli(FakeStates(), "report", "--date", DATE, "--json", of=bucket()).stdout)
    assert told["schema"] == "inferlane/recheck/v1"


def test_report_writes_the_page_or_the_json(tmp_path: Path) -> None:
    """By the file's name; for its owner only, since it quotes what was captured."""
    for name, begins in (("page.html", "<!doctype html>"), ("page.json", "{")):
        file = tmp_path / name
        done = cli(FakeStates(), "report", "--date", DATE, "--output", str(file), of=bucket())
        assert done.exit_code == 0, done.output
        assert file.read_text().startswith(begins)
        assert file.stat().st_mode & 0o077 == 0
    done = cli(FakeStates(), "report", "--date", DATE, "--output", str(tmp_path / "none" / "x"), of=bucket())
    assert "cannot be written" in str(done.exception)


def test_report_opens_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept in the stack's folder, or where --output says."""
    opened: list[str] = []
    monkeypatch.setattr("typer.launch", opened.append)
    monkeypatch.setenv("INFERLANE_DIR", str(tmp_path))
    cli(FakeStates(), "report", "--date", DATE, "--stack", "mature", "--open", of=bucket())
    cli(FakeStates(), "report", "--date", DATE, "--open", "--output", str(tmp_path / "a.html"), of=bucket())
    kept = tmp_path / "reports/mature-moderation-2026-12-01.html"
    assert opened == [kept.as_uri(), (tmp_path / "a.html").as_uri()]
    assert kept.read_text().startswith("<!doctype html>")


def test_a_day_without_a_report_is_told_with_those_there_are() -> None:
    """And how to make it."""
    found = machine(FakeStates(), bucket())
    with pytest.raises(UserError, match=r"newest are of: 2026-12-01, 2026-11-30, 2026-11-29. Make it with `inferlane"):
        reports.entry(found, "2026-10-01", None)
    with pytest.raises(UserError, match="none yet"):
        reports.entry(machine(FakeStates()), DATE, None)


def test_of_several_models_one_is_chosen() -> None:
    """By --model, or the command says which there are."""
    held = bucket()
    held.rows["nightly/reports/model=other/date=2026-12-01/report.json"] = b"[]"
    found = machine(FakeStates(), held)
    with pytest.raises(UserError, match="of other, moderation: choose one with --model"):
        reports.entry(found, DATE, None)
    assert reports.entry(found, DATE, "moderation") == Entry(DATE, "moderation")
    with pytest.raises(UserError, match="cannot be read"):
        reports.document(found, Entry(DATE, "other"))


def test_list_has_the_newest_first() -> None:
    """A line each; as many as asked for."""
    done = cli(FakeStates(), "list", "--limit", "2", of=bucket())
    assert [text.split()[0] for text in done.stdout.splitlines()] == ["2026-12-01", "2026-11-30"]
    assert "0.00% agreement" in done.stdout
    told = json.loads(cli(FakeStates(), "list", "--json", of=bucket()).stdout)
    assert [row["date"] for row in told["reports"]] == ["2026-12-01", "2026-11-30", "2026-11-29"]
    assert cli(FakeStates(), "list").stdout == "no report yet: inferlane nightly run --stack local\n"

"""The two Lambdas: their settings, their wiring, what they raise, and what they write beside the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from functions.aws.recheck_errors import told
from functions.aws.recheck_telemetry import EmfRecheck
from functions.aws.topic import Topic
from functions.batch_ports import BusyError
from functions.handlers import prepare, report
from functions.nightly_bootstrap import PrepareParts, ReportParts, prepare_parts, report_parts, scope_of
from functions.nightly_ports import RecheckError
from functions.nightly_settings import NightlySettings, nightly_environment, read_nightly
from functions.settings import SettingsError
from tests.unit.handlers.fakes import FakeLog
from tests.unit.nightly.night import DATE, Night, line

BATCH = {
    "kind": "batch",
    "model_name": "heavy-0123456789",
    "instance_type": "ml.c5.xlarge",
    "max_bytes": 10**8,
    "usd_per_instance_hour": 0.204,
}


def settings(folder: Path, lanes: dict[str, object], **more: Any) -> NightlySettings:
    """As the Pulumi program writes them and the function reads them."""
    topology = {"schema": "inferlane/topology/v1", "region": "us-east-1", "models": {"heavy": {"lanes": lanes}}}
    (folder / "topology.json").write_text(json.dumps(topology))
    written = nightly_environment(
        "prepare",
        stack="mature",
        data_bucket="data",
        light_model="light",
        heavy_model="heavy",
        time_zone="Asia/Shanghai",
        **more,
    )
    return read_nightly({**written, "AWS_REGION": "us-east-1", "LAMBDA_TASK_ROOT": str(folder)})


def test_settings_come_through(tmp_path: Path) -> None:
    """What was written is read, with its defaults."""
    found = settings(tmp_path, {}, passing="clean", examples=0)
    assert (found.passing, found.examples, found.topic) == ("clean", 0, None)
    assert (settings(tmp_path, {}).passing, settings(tmp_path, {}).examples) == ("ok", 10)


@pytest.mark.parametrize("number", ["-1", "101", "ten", "1.5"])
def test_a_number_of_examples_that_is_none_is_refused(number: str) -> None:
    """Naming the variable."""
    environment = nightly_environment(
        "report", stack="s", data_bucket="d", light_model="l", heavy_model="h", time_zone="UTC"
    )
    with pytest.raises(SettingsError, match="INFERLANE_EXAMPLES"):
        read_nightly({**environment, "AWS_REGION": "us-east-1", "INFERLANE_EXAMPLES": number})


def test_both_functions_are_wired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From settings and a topology alone, without a call to any service."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    found = settings(tmp_path, {"batch": BATCH}, topic="arn:aws:sns:us-east-1:123456789012:on-call")
    scope = scope_of(found)
    assert (scope.lane.model_name, scope.folders.model) == ("heavy-0123456789", "light")
    assert isinstance(prepare_parts(found), PrepareParts)
    assert isinstance(report_parts(found), ReportParts)


@pytest.mark.parametrize("lanes", [{}, {"batch": {"kind": "batch", "max_bytes": 1}}])
def test_a_model_that_cannot_be_run_in_batch_is_told(tmp_path: Path, lanes: dict[str, object]) -> None:
    """No lane, or one without its model."""
    with pytest.raises(SettingsError, match="no batch lane of model 'heavy' that can be started"):
        scope_of(settings(tmp_path, lanes))


def test_the_handlers_do_a_night() -> None:
    """Event in, state out, and again."""
    night = Night()
    night.capture([line(n, "fine") for n in range(3)])
    first = PrepareParts(cast(Any, _Step(night.prepare)), night.log)
    state = prepare.respond({"date": DATE}, first)
    night.transforms.create(night.transforms.specs[str(state["job_name"])])
    night.clock.advance(120)
    night.transforms.pass_time()
    answer = report.respond(state, ReportParts(cast(Any, _Step(night.report)), night.log))
    assert answer["outcome"] == "reported"
    assert prepare.respond("no event", first)["outcome"] == "unchanged"


class _Step:
    """A step of a night, as the handlers call it."""

    def __init__(self, act: Any) -> None:
        self._act = act

    def prepare(self, asked: Any) -> Any:
        return self._act(**asked)

    def report(self, asked: Any) -> Any:
        return self._act(asked)


def test_an_error_is_told_without_what_was_captured() -> None:
    """Ours goes through, a service's says to run it again, any other points to the log: its way there, no value."""
    log = FakeLog()
    with pytest.raises(RecheckError, match="as it is"), told("prepare", log):
        raise RecheckError("as it is")
    with pytest.raises(RecheckError, match="run it again: BusyError: slow down"), told("prepare", log):
        raise BusyError("slow down")
    with pytest.raises(RecheckError, match="the log of function prepare says where") as failed, told("prepare", log):
        raise ValueError("somebody's words")
    assert failed.value.__cause__ is None
    ((level, message, extra),) = log.lines
    assert (level, message) == ("error", "unhandled error")
    assert "somebody" not in str(extra)
    assert str(extra["trace"]).startswith("ValueError at test_steps.py")


def test_figures_are_one_line_of_emf(capsys: pytest.CaptureFixture[str]) -> None:
    """By stack and model, stamped with the job's end."""
    EmfRecheck("mature", "Inferlane").rechecked("light", 1_000.5, {"RecheckAgreement": 0.9})
    written = json.loads(capsys.readouterr().out)
    assert written["RecheckAgreement"] == 0.9
    assert written["_aws"]["Timestamp"] == 1_000_500
    (directive,) = written["_aws"]["CloudWatchMetrics"]
    assert directive["Dimensions"] == [["stack", "model"]]
    assert directive["Metrics"] == [{"Name": "RecheckAgreement", "Unit": "None"}]


def test_a_note_has_a_subject_that_sns_takes() -> None:
    """Printable ASCII, fewer than 100 characters."""
    sent: list[dict[str, str]] = []

    class Sns:
        def publish(self, **message: str) -> None:
            sent.append(message)

    Topic(cast(Any, Sns()), "arn").announce("模型 " + "x" * 200, "text 模型")
    assert sent[0]["Subject"].isascii()
    assert len(sent[0]["Subject"]) == 99
    assert (sent[0]["TopicArn"], sent[0]["Message"]) == ("arn", "text 模型")

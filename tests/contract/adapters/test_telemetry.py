"""What a receipt becomes: one line that is a log record and CloudWatch's embedded metrics at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from functions.aws.telemetry import EmfTelemetry
from functions.core.outcome import Kind
from functions.core.snapshot import Breaker, Snapshot
from functions.core.topology import Topology
from tests.unit.core.builders import IDLE, MODEL, NOW, PATH, SERVERLESS, lane, points, snapshot, topology
from tests.unit.handlers.events import event
from tests.unit.handlers.fakes import failing
from tests.unit.handlers.test_route import front


def written(capsys: pytest.CaptureFixture[str], *calls: dict[str, object]) -> list[dict[str, object]]:
    seen = snapshot(dedicated=lane({"model_latency_p50_ms": points(120.0)}), serverless=lane())
    made = front(failing(Kind.THROTTLED), seen=seen)
    for call in calls:
        made.call(call)
    telemetry = EmfTelemetry("test", "Inferlane")
    capsys.readouterr()
    for receipt in made.telemetry.receipts:
        telemetry.record(receipt)
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def recorded(
    capsys: pytest.CaptureFixture[str], seen: Snapshot, *, on: Topology | None = None, waits_s: Sequence[float] = (0.0,)
) -> list[dict[str, object]]:
    """The lines of one instance's requests, `waits_s` apart."""
    made, telemetry = front(seen=seen, on=on), EmfTelemetry("test", "Inferlane")
    capsys.readouterr()
    for wait_s in waits_s:
        made.clock.advance(wait_s)
        made.call(event())
        telemetry.record(made.telemetry.receipts[-1])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_receipt_is_one_line_with_its_metrics(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any log level; a request's metrics with three small dimension sets, the router's own with one each."""
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "ERROR")
    first, again = written(capsys, event(), event())
    assert (first["message"], first["stack"]) == ("receipt", "test")
    receipt = first["receipt"]
    assert isinstance(receipt, dict)
    assert receipt["lane"] == "serverless"
    directives = first["_aws"]["CloudWatchMetrics"]  # type: ignore[index]
    assert {directive["Namespace"] for directive in directives} == {"Inferlane"}
    assert [directive["Dimensions"] for directive in directives] == [
        [["stack", "model"], ["stack", "model", "lane"], ["stack", "model", "rule"]],
        [["stack"]],
        [["stack", "model"]],
    ]
    assert (first["model"], first["lane"], first["rule"]) == (MODEL, "serverless", "default")
    expected = {"Requests": 1, "Failures": 0, "Fallbacks": 1, "Hedges": 0, "ClaimsRefused": 0, "ColdStart": 1}
    assert {name: first[name] for name in expected} == expected
    assert first["Demand"] == pytest.approx(0.12)
    assert again["ColdStart"] == 0


def test_it_is_the_embedded_metric_format_to_the_letter(capsys: pytest.CaptureFixture[str]) -> None:
    """Every named metric is a top-level number, every dimension a top-level text; the time is in milliseconds."""
    (line,) = written(capsys, event())
    directives = line["_aws"]["CloudWatchMetrics"]  # type: ignore[index]
    assert line["_aws"]["Timestamp"] == pytest.approx(NOW * 1000, abs=2_000)  # type: ignore[index]
    metrics = [metric for directive in directives for metric in directive["Metrics"]]
    assert all(isinstance(line[metric["Name"]], int | float) for metric in metrics)
    assert len({metric["Name"] for metric in metrics}) == len(metrics)
    dimensions = [name for directive in directives for names in directive["Dimensions"] for name in names]
    assert all(isinstance(line[name], str) for name in dimensions)
    assert {metric["Unit"] for metric in metrics} <= {"Count", "Milliseconds", "Seconds"}


@pytest.mark.parametrize(
    ("breaker", "expected"), [("closed", 0), ("open", 1), ("half_open", 1)], ids=["closed", "open", "half-open"]
)
def test_a_lane_that_is_not_closed_counts(capsys: pytest.CaptureFixture[str], breaker: Breaker, expected: int) -> None:
    """One for each decision that met it so, zero for the others: each lane by itself, whichever served."""
    (line,) = recorded(capsys, snapshot(dedicated=lane(breaker=breaker), serverless=lane()))
    assert (line["BreakerOpenDedicated"], line["BreakerOpenServerless"]) == (expected, 0)
    directive = line["_aws"]["CloudWatchMetrics"][-1]  # type: ignore[index]
    assert directive["Dimensions"] == [["stack", "model"]]
    assert [metric["Name"] for metric in directive["Metrics"]] == ["BreakerOpenDedicated", "BreakerOpenServerless"]
    assert line["receipt"]["breakers"] == {"dedicated": breaker, "serverless": "closed"}  # type: ignore[index]


def test_only_lanes_that_exist_have_a_breaker(capsys: pytest.CaptureFixture[str]) -> None:
    """A model without a dedicated lane writes nothing of one."""
    (line,) = recorded(capsys, IDLE, on=topology(serverless=SERVERLESS))
    assert "BreakerOpenDedicated" not in str(line)
    assert line["BreakerOpenServerless"] == 0


def test_the_age_of_what_was_seen_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Seconds between the reading of the metrics and the decision that used it, for the whole stack."""
    (line,) = recorded(capsys, snapshot(taken_at=NOW - 12.5, dedicated=lane(), serverless=lane()))
    assert line["SnapshotAge"] == 12.5
    directive = line["_aws"]["CloudWatchMetrics"][1]  # type: ignore[index]
    assert directive["Dimensions"] == [["stack"]]
    assert directive["Metrics"] == [{"Name": "SnapshotAge", "Unit": "Seconds"}]


def test_never_having_seen_anything_grows_old(capsys: pytest.CaptureFixture[str]) -> None:
    """Without any snapshot the age counts from the instance's first request; a clock set back makes it no younger."""
    lines = recorded(capsys, Snapshot(None), waits_s=(0.0, 400.0, -900.0))
    assert [line["SnapshotAge"] for line in lines] == [0.0, pytest.approx(400.05), 0.0]


def test_the_receipt_in_the_line_is_the_receipt(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever parts of it lines share: each holds its own receipt and decision, to the last field."""
    made, telemetry = front(), EmfTelemetry("test", "Inferlane")
    paths = (PATH, "/nowhere", PATH, "/v1/models/invented/invocations")
    for path in paths * 2:
        made.call(event(path, headers={"x-inferlane-priority": "low"}))
    receipts = made.telemetry.receipts
    receipts += [
        replace(each, decision=replace(each.decision, rule=f"r{i}")) for i in range(1100) for each in receipts[:1]
    ]
    capsys.readouterr()
    for receipt in receipts:
        telemetry.record(receipt)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["receipt"] for line in lines] == [json.loads(json.dumps(each.to_json())) for each in receipts]
    assert [line["rule"] for line in lines] == [each.decision.rule for each in receipts]


def test_claims_beyond_the_tier_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """One metric for all kinds of claims; which they were is in the receipt."""
    (line,) = written(capsys, event(headers={"x-inferlane-priority": "high"}))
    assert line["ClaimsRefused"] == 1
    assert line["receipt"]["decision"]["claims_refused"] == ["priority"]  # type: ignore[index]


def test_a_new_job_is_counted_once_and_by_stack(capsys: pytest.CaptureFixture[str]) -> None:
    """The audit sums it over the stack; a request that found its job again counts nothing."""
    made = front()
    made.call(event())
    (receipt,) = made.telemetry.receipts
    telemetry = EmfTelemetry("test", "Inferlane")
    capsys.readouterr()
    telemetry.record(replace(receipt, job="j", recorded=True))
    telemetry.record(replace(receipt, job="j"))
    new, again = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert new["JobsAccepted"] == 1
    assert new["_aws"]["CloudWatchMetrics"][-1] == {
        "Namespace": "Inferlane",
        "Dimensions": [["stack"], ["stack", "model"]],
        "Metrics": [{"Name": "JobsAccepted", "Unit": "Count"}],
    }
    assert "JobsAccepted" not in str(again)
    assert again["receipt"]["job"] == "j"


def test_a_job_that_is_promoted_at_once_is_counted_as_promoted(capsys: pytest.CaptureFixture[str]) -> None:
    """As the collector counts those that it promotes, by stack and by model."""
    made = front()
    made.call(event())
    capsys.readouterr()
    EmfTelemetry("test", "Inferlane").record(replace(made.telemetry.receipts[0], recorded=True, promoted=True))
    line = json.loads(capsys.readouterr().out)
    assert (line["JobsAccepted"], line["JobsPromoted"]) == (1, 1)
    directive = line["_aws"]["CloudWatchMetrics"][-1]
    assert directive["Dimensions"] == [["stack"], ["stack", "model"]]
    assert [metric["Name"] for metric in directive["Metrics"]] == ["JobsAccepted", "JobsPromoted"]


@pytest.mark.parametrize(("captured", "failures"), [(True, 0), (False, 1), (None, None)])
def test_a_capture_that_failed_is_counted(
    capsys: pytest.CaptureFixture[str], captured: bool | None, failures: int | None
) -> None:
    """One or zero where the request was to be captured, nothing where it was not."""
    made = front()
    made.call(event())
    capsys.readouterr()
    EmfTelemetry("test", "Inferlane").record(replace(made.telemetry.receipts[0], captured=captured))
    line = json.loads(capsys.readouterr().out)
    assert line.get("CaptureFailures") == failures
    assert ("CaptureFailures" in str(line["_aws"])) is (captured is not None)


def test_a_refused_request_has_no_lane_and_no_path_made_up_by_a_caller(capsys: pytest.CaptureFixture[str]) -> None:
    """Dimension values stay few whatever is asked for."""
    (line,) = written(capsys, event("/v1/models/invented/invocations"))
    assert (line["model"], line["lane"]) == ("none", "none")
    assert "BreakerOpen" not in str(line)
    assert "Demand" not in line
    assert "Demand" not in str(line["_aws"])


def test_what_a_caller_writes_cannot_break_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A path with line ends and other scripts is still one line of JSON."""
    (line,) = written(capsys, event("/v1/models/a\nb\u2028\u00e9/invocations"))
    assert line["receipt"]["path"] == "/v1/models/a\nb\u2028\u00e9/invocations"  # type: ignore[index]

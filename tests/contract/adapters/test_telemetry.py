"""What a receipt becomes: one line that is a log record and CloudWatch's embedded metrics at once."""

from __future__ import annotations

import json

import pytest

from functions.aws.telemetry import EmfTelemetry
from functions.core.outcome import Kind
from tests.unit.core.builders import MODEL, NOW, lane, points, snapshot
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


def test_a_receipt_is_one_line_with_its_metrics(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any log level; metrics with three small dimension sets and no other."""
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "ERROR")
    first, again = written(capsys, event(), event())
    assert (first["message"], first["stack"]) == ("receipt", "test")
    receipt = first["receipt"]
    assert isinstance(receipt, dict)
    assert receipt["lane"] == "serverless"
    (directive,) = first["_aws"]["CloudWatchMetrics"]  # type: ignore[index]
    assert directive["Namespace"] == "Inferlane"
    assert directive["Dimensions"] == [["stack", "model"], ["stack", "model", "lane"], ["stack", "model", "rule"]]
    assert (first["model"], first["lane"], first["rule"]) == (MODEL, "serverless", "default")
    expected = {"Requests": 1, "Failures": 0, "Fallbacks": 1, "Hedges": 0, "ClaimsRefused": 0, "ColdStart": 1}
    assert {name: first[name] for name in expected} == expected
    assert first["Demand"] == pytest.approx(0.12)
    assert again["ColdStart"] == 0


def test_it_is_the_embedded_metric_format_to_the_letter(capsys: pytest.CaptureFixture[str]) -> None:
    """Every named metric is a top-level number, every dimension a top-level text; the time is in milliseconds."""
    (line,) = written(capsys, event())
    (directive,) = line["_aws"]["CloudWatchMetrics"]  # type: ignore[index]
    assert line["_aws"]["Timestamp"] == pytest.approx(NOW * 1000, abs=2_000)  # type: ignore[index]
    assert all(isinstance(line[metric["Name"]], int | float) for metric in directive["Metrics"])
    assert all(isinstance(line[name], str) for names in directive["Dimensions"] for name in names)
    assert {metric["Unit"] for metric in directive["Metrics"]} <= {"Count", "Milliseconds", "Seconds"}


def test_claims_beyond_the_tier_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """One metric for all kinds of claims; which they were is in the receipt."""
    (line,) = written(capsys, event(headers={"x-inferlane-priority": "high"}))
    assert line["ClaimsRefused"] == 1
    assert line["receipt"]["decision"]["claims_refused"] == ["priority"]  # type: ignore[index]


def test_a_refused_request_has_no_lane_and_no_path_made_up_by_a_caller(capsys: pytest.CaptureFixture[str]) -> None:
    """Dimension values stay few whatever is asked for."""
    (line,) = written(capsys, event("/v1/models/invented/invocations"))
    assert (line["model"], line["lane"]) == ("none", "none")
    assert "Demand" not in line
    assert "Demand" not in str(line["_aws"])


def test_what_a_caller_writes_cannot_break_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A path with line ends and other scripts is still one line of JSON."""
    (line,) = written(capsys, event("/v1/models/a\nb\u2028\u00e9/invocations"))
    assert line["receipt"]["path"] == "/v1/models/a\nb\u2028\u00e9/invocations"  # type: ignore[index]

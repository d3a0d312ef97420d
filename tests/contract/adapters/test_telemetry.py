"""What Powertools writes for a receipt: one log line, one EMF line."""

from __future__ import annotations

import json
import logging
import warnings

import pytest

from functions.aws.telemetry import PowertoolsTelemetry
from functions.core.outcome import Kind
from tests.unit.core.builders import MODEL, lane, points, snapshot
from tests.unit.handlers.events import event
from tests.unit.handlers.fakes import failing
from tests.unit.handlers.test_route import front


@pytest.fixture(autouse=True)
def _fresh_logger() -> None:
    """Powertools binds a logger to the standard output of its first use; each test has its own."""
    logging.Logger.manager.loggerDict.pop("receipt", None)


def written(capsys: pytest.CaptureFixture[str], *calls: dict[str, object]) -> list[dict[str, object]]:
    seen = snapshot(dedicated=lane({"model_latency_p50_ms": points(120.0)}), serverless=lane())
    made = front(failing(Kind.THROTTLED), seen=seen)
    for call in calls:
        made.call(call)
    telemetry = PowertoolsTelemetry("test", "Inferlane")
    capsys.readouterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for receipt in made.telemetry.receipts:
            telemetry.record(receipt)
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_receipt_is_one_log_line_and_one_metric_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any log level; metrics with three small dimension sets and no service dimension."""
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "ERROR")
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "route")
    first, metrics, _, again = written(capsys, event(), event())
    assert (first["message"], first["stack"]) == ("receipt", "test")
    receipt = first["receipt"]
    assert isinstance(receipt, dict)
    assert receipt["lane"] == "serverless"
    directive = metrics["_aws"]["CloudWatchMetrics"][0]  # type: ignore[index]
    assert directive["Namespace"] == "Inferlane"
    assert directive["Dimensions"] == [["model"], ["model", "lane"], ["model", "rule"]]
    assert "service" not in metrics
    assert (metrics["model"], metrics["lane"], metrics["rule"]) == (MODEL, "serverless", "default")
    expected = {"Requests": 1.0, "Failures": 0.0, "Fallbacks": 1.0, "ColdStart": 1.0, "Demand": 0.12}
    assert {name: metrics[name][0] for name in expected} == pytest.approx(expected)  # type: ignore[index]
    assert again["ColdStart"] == [0.0]


def test_a_refused_request_has_no_lane_and_no_path_made_up_by_a_caller(capsys: pytest.CaptureFixture[str]) -> None:
    """Dimension values stay few whatever is asked for."""
    _, metrics = written(capsys, event("/v1/models/invented/invocations"))
    assert (metrics["model"], metrics["lane"]) == ("none", "none")
    assert "Demand" not in metrics

"""Counts out to CloudWatch as lines, and the front door's count back from it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from moto import mock_aws

from functions.aws.acceptances import MetricAcceptances
from functions.aws.batch_telemetry import EmfCounts
from functions.batch_ports import Count, UnavailableError
from functions.settings import JOBS_ACCEPTED, METRICS_NAMESPACE
from tests.contract.adapters.batch_tables import client_of, hasty_client_of
from tests.contract.adapters.stub import Reply, Stub
from tests.contract.adapters.test_snapshot_store import _credentials

__all__ = ["_credentials"]


def test_counts_are_one_line_of_embedded_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    """By stack, and by stack and model where there is one; no line for nothing."""
    counts = EmfCounts("test", METRICS_NAMESPACE, "settle", lambda: 1_700_000_000.25)
    counts.count("m", {Count.JOBS_DONE: 3, Count.RUN_UNACCOUNTED: 0})
    counts.count(None, {Count.JOBS_OPEN: 2.0})
    counts.count("m", {})
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert first["_aws"] == {
        "Timestamp": 1_700_000_000_250,
        "CloudWatchMetrics": [
            {
                "Namespace": "Inferlane",
                "Dimensions": [["stack"], ["stack", "model"]],
                "Metrics": [{"Name": "JobsDone", "Unit": "Count"}, {"Name": "RunUnaccounted", "Unit": "Count"}],
            }
        ],
    }
    assert (first["stack"], first["model"], first["service"]) == ("test", "m", "settle")
    assert (first["JobsDone"], first["RunUnaccounted"]) == (3, 0)
    assert second["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["stack"]]
    assert "model" not in second


def test_acceptances_are_summed_over_whole_hours() -> None:
    """This stack's, between begin and end; without any point it is unknown, which is not none."""
    end = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    begin = end - timedelta(hours=3)
    with mock_aws():
        client: Any = client_of("cloudwatch")
        made = MetricAcceptances(client, "test", METRICS_NAMESPACE)
        assert made.accepted(begin.timestamp(), end.timestamp()) is None
        for stack, hours, value in (("test", 0.5, 3), ("test", 2.5, 4), ("test", 3.5, 50), ("other", 0.5, 100)):
            client.put_metric_data(
                Namespace=METRICS_NAMESPACE,
                MetricData=[
                    {
                        "MetricName": JOBS_ACCEPTED,
                        "Dimensions": [{"Name": "stack", "Value": stack}],
                        "Timestamp": begin + timedelta(hours=hours),
                        "Value": value,
                    }
                ],
            )
        assert made.accepted(begin.timestamp(), end.timestamp()) == 7


def test_a_metric_that_cannot_be_read_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit is made again."""
    with Stub(Reply(500, b"{}")) as stub:
        monkeypatch.setenv("AWS_ENDPOINT_URL", stub.url)
        made = MetricAcceptances(hasty_client_of("cloudwatch"), "test", METRICS_NAMESPACE)
        with pytest.raises(UnavailableError):
            made.accepted(0, 3600)

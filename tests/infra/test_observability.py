"""Alarms on what callers see: what is counted, where the line is, who is told, and which policy they take back."""

from __future__ import annotations

import json

import pytest

from functions.aws.telemetry import EmfTelemetry
from functions.core.snapshot import STALE_S
from functions.settings import METRICS_NAMESPACE
from infra import metrics
from infra.alarms import BAD_PERIODS, PERIOD_S
from tests.infra.capture import Program, arn
from tests.infra.conftest import TOPIC, named, of_type, statements
from tests.unit.core.builders import MODEL, lane, points, snapshot
from tests.unit.handlers.events import event
from tests.unit.handlers.test_route import front

ERRORS = "moderation-request-errors"
P99 = "moderation-request-p99"
BREAKER = "moderation-dedicated-breaker"
STALE = "stale-snapshot"


def test_errors_are_a_share_of_requests(programs: dict[str, Program]) -> None:
    """Failed of all requests for a model, in three minutes of five, as soon as twenty a minute make it a share."""
    alarm = named(programs["growth"], ERRORS)
    *counts, share = alarm["metricQueries"]

    assert {query["id"]: query["metric"] for query in counts} == {
        name.lower(): {
            "namespace": "Inferlane",
            "metricName": name,
            "dimensions": {"stack": "growth", "model": "moderation"},
            "stat": "Sum",
            "period": 60,
        }
        for name in ("Requests", "Failures")
    }
    assert share["expression"] == "IF(requests >= 20, 100 * failures / requests, 0)"
    assert (alarm["name"], alarm["threshold"]) == ("inferlane-growth-moderation-request-errors", 2)
    assert (alarm["evaluationPeriods"], alarm["datapointsToAlarm"], alarm["treatMissingData"]) == (
        *(5, 3, "notBreaching"),
    )


def test_the_slow_end_has_a_line(programs: dict[str, Program]) -> None:
    """P99 of whole requests, at the stack file's limit; too few samples for a percentile change nothing."""
    alarm = named(programs["growth"], P99)

    assert (alarm["namespace"], alarm["metricName"], alarm["dimensions"]) == (
        *("Inferlane", "Latency", {"stack": "growth", "model": "moderation"}),
    )
    assert (alarm["extendedStatistic"], alarm["threshold"]) == ("p99", 2000)
    assert alarm["evaluateLowSampleCountPercentiles"] == "ignore"


@pytest.mark.parametrize("lane_name", ["dedicated", "serverless"])
def test_a_lane_that_stays_shut_is_heard_of(programs: dict[str, Program], lane_name: str) -> None:
    """Each lane's breaker, not closed at half of a minute's decisions, in three minutes of five."""
    alarm = named(programs["growth"], f"moderation-{lane_name}-breaker")

    assert alarm["name"] == f"inferlane-growth-moderation-{lane_name}-breaker"
    assert (alarm["namespace"], alarm["dimensions"]) == ("Inferlane", {"stack": "growth", "model": "moderation"})
    assert alarm["metricName"] == f"BreakerOpen{lane_name.title()}"
    assert (alarm["statistic"], alarm["comparisonOperator"], alarm["threshold"]) == (
        *("Average", "GreaterThanOrEqualToThreshold", 0.5),
    )
    assert (alarm["evaluationPeriods"], alarm["datapointsToAlarm"], alarm["treatMissingData"]) == (
        *(5, 3, "notBreaching"),
    )


def test_only_lanes_that_exist_have_a_breaker(programs: dict[str, Program]) -> None:
    """A serverless-only stack has no alarm on a dedicated lane."""
    names = {alarm["name"] for alarm in of_type(programs["prototype"], "MetricAlarm")}

    assert "moderation-serverless-breaker" in names
    assert "moderation-dedicated-breaker" not in names


def test_a_snapshot_that_is_not_renewed_is_heard_of_before_it_is_unknown(programs: dict[str, Program]) -> None:
    """The oldest that a decision of the stack used: half of the age at which the router stops to believe it."""
    alarm = named(programs["growth"], STALE)

    assert (alarm["namespace"], alarm["metricName"], alarm["dimensions"]) == (
        *("Inferlane", "SnapshotAge", {"stack": "growth"}),
    )
    assert (alarm["statistic"], alarm["threshold"]) == ("Maximum", STALE_S / 2)
    assert alarm["threshold"] + BAD_PERIODS * PERIOD_S < STALE_S
    assert (alarm["evaluationPeriods"], alarm["datapointsToAlarm"]) == (5, 3)


@pytest.mark.parametrize("name", [ERRORS, P99, BREAKER, STALE])
def test_who_is_told(programs: dict[str, Program], name: str) -> None:
    """The stack file's topic hears of trouble and of its end; without a topic nobody does."""
    topic = named(programs["growth-topic"], name)

    assert topic["alarmActions"] == topic["okActions"] == [TOPIC]
    assert named(programs["growth"], name)["alarmActions"] == []


def test_a_policy_that_sets_off_the_errors_is_taken_back(programs: dict[str, Program]) -> None:
    """AppConfig watches the error alarm while a rollout lasts, through a role that may look at that alarm only."""
    program = programs["growth"]
    alarm = arn("cloudwatch", "alarm:inferlane-growth-moderation-request-errors")
    role = arn("iam", "role/inferlane-growth-policy-rollback", region="")

    assert named(program, "policy-environment")["monitors"] == [{"alarmArn": alarm, "alarmRoleArn": role}]
    assert '"Service": "appconfig.amazonaws.com"' in named(program, "policy-rollback-role")["assumeRolePolicy"]
    assert statements(program, "policy-rollback-grants") == [
        {"Action": ["cloudwatch:DescribeAlarms"], "Resource": [alarm]}
    ]


def test_a_rollout_at_once_has_nothing_to_watch(programs: dict[str, Program]) -> None:
    """Where a policy is taken up at once and not watched, there is neither monitor nor role."""
    program = programs["local"]

    assert "monitors" not in named(program, "policy-environment")
    assert "policy-rollback-role" not in [role["name"] for role in of_type(program, "Role")]


def test_the_names_are_the_routers(capsys: pytest.CaptureFixture[str]) -> None:
    """What alarms and scaling ask for is what the router's telemetry writes: namespace, metrics, dimensions."""
    made = front(seen=snapshot(dedicated=lane({"model_latency_p50_ms": points(120.0)}), serverless=lane()))
    made.call(event())
    EmfTelemetry("test", METRICS_NAMESPACE).record(made.telemetry.receipts[0])
    (written,) = (json.loads(line) for line in capsys.readouterr().out.splitlines() if "CloudWatchMetrics" in line)
    directives = written["_aws"]["CloudWatchMetrics"]

    of_model, of_stack = metrics.of_model("test", MODEL), metrics.of_stack("test")
    wanted = {
        **dict.fromkeys((metrics.REQUESTS, metrics.FAILURES, metrics.LATENCY_MS, metrics.DEMAND_S), of_model),
        **dict.fromkeys((metrics.breaker_open("dedicated"), metrics.breaker_open("serverless")), of_model),
        metrics.SNAPSHOT_AGE_S: of_stack,
    }
    for name, dimensions in wanted.items():
        (directive,) = (each for each in directives if name in {metric["Name"] for metric in each["Metrics"]})
        assert directive["Namespace"] == metrics.NAMESPACE
        assert sorted(dimensions) in [sorted(names) for names in directive["Dimensions"]]
        assert {key: written[key] for key in dimensions} == dimensions

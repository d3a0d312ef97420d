"""Alarms on work that nobody waits for: every way in which it could be lost or late is heard of."""

from __future__ import annotations

import pytest

from functions import batch_settings, settings
from functions.batch_ports import Count
from tests.infra.capture import Program, arn
from tests.infra.conftest import TOPIC, named, of_type

STACK = {"stack": "mature"}


def watched(program: Program, alarm: str) -> tuple[str, str, dict[str, str], str]:
    """Namespace, metric, dimensions and statistic of an alarm."""
    found = named(program, alarm)
    return found["namespace"], found["metricName"], found["dimensions"], found["statistic"]


def patience(program: Program, alarm: str) -> tuple[float, int, int, int]:
    """Line, period, periods and bad periods of an alarm."""
    found = named(program, alarm)
    return found["threshold"], found["period"], found["evaluationPeriods"], found["datapointsToAlarm"]


def test_every_dead_letter_is_heard_of(programs: dict[str, Program]) -> None:
    """Each dead-letter queue of the stack has an alarm that one message sets off at once."""
    program = programs["mature-told"]
    dead = {queue["inputs"]["name"] for queue in of_type(program, "Queue") if queue["inputs"]["name"].endswith("-dead")}
    alarms = {
        alarm["inputs"]["dimensions"]["QueueName"]: alarm["name"]
        for alarm in of_type(program, "MetricAlarm")
        if alarm["inputs"].get("metricName") == "ApproximateNumberOfMessagesVisible"
    }

    assert alarms.keys() == dead
    assert len(dead) == 4
    for alarm in alarms.values():
        assert patience(program, alarm) == (0, 60, 1, 1)
        assert named(program, alarm)["comparisonOperator"] == "GreaterThanThreshold"


@pytest.mark.parametrize("name", ["work", "promote"])
def test_what_lies_untouched_is_heard_of(programs: dict[str, Program], name: str) -> None:
    """A message that is older than half an hour, in three minutes of five."""
    program = programs["mature"]

    assert watched(program, f"{name}-age") == (
        *("AWS/SQS", "ApproximateAgeOfOldestMessage", {"QueueName": f"inferlane-mature-{name}"}, "Maximum"),
    )
    assert patience(program, f"{name}-age") == (1800, 60, 5, 3)


@pytest.mark.parametrize(
    ("alarm", "metric", "period_s"),
    [
        ("jobs-overdue", batch_settings.JOBS_OVERDUE, 6 * 3600 + 600),
        ("jobs-unaccounted", batch_settings.JOBS_UNACCOUNTED, 6 * 3600 + 600),
        ("run-unaccounted", batch_settings.RUN_UNACCOUNTED, 60),
    ],
)
def test_one_job_missing_is_heard_of(programs: dict[str, Program], alarm: str, metric: str, period_s: int) -> None:
    """Anything but nothing, by the stack's own count, sets it off at once."""
    program = programs["mature"]

    assert watched(program, alarm) == ("Inferlane", metric, STACK, "Maximum")
    assert patience(program, alarm) == (0, period_s, 1, 1)


def test_the_counts_are_the_functions_own() -> None:
    """What alarms ask for is what the batch lane counts, under the same names."""
    overdue, put_off = batch_settings.JOBS_OVERDUE, batch_settings.STEPS_PUT_OFF
    asked = (overdue, batch_settings.JOBS_UNACCOUNTED, batch_settings.RUN_UNACCOUNTED, put_off)

    assert asked == (Count.JOBS_OVERDUE, Count.JOBS_UNACCOUNTED, Count.RUN_UNACCOUNTED, Count.STEPS_PUT_OFF)


def test_a_collector_that_fails_is_heard_of(programs: dict[str, Program]) -> None:
    """In three minutes of five; a single failure has its next turn."""
    program = programs["mature"]

    assert watched(program, "collect-errors") == (
        *("AWS/Lambda", "Errors", {"FunctionName": "inferlane-mature-collect"}, "Sum"),
    )
    assert patience(program, "collect-errors") == (0, 60, 5, 3)


def test_a_collector_that_gets_nowhere_is_heard_of(programs: dict[str, Program]) -> None:
    """What it puts off for twelve minutes of fifteen does not pass by itself."""
    program = programs["mature"]

    assert watched(program, "steps-put-off") == ("Inferlane", batch_settings.STEPS_PUT_OFF, STACK, "Sum")
    assert patience(program, "steps-put-off") == (0, 60, 15, 12)


def test_an_audit_that_cannot_count_is_heard_of(programs: dict[str, Program]) -> None:
    """At once: its next turn is hours away, and silence would be taken for a good count."""
    program = programs["mature"]

    assert watched(program, "audit-errors") == (
        *("AWS/Lambda", "Errors", {"FunctionName": "inferlane-mature-audit"}, "Sum"),
    )
    assert patience(program, "audit-errors") == (0, 60, 1, 1)


@pytest.mark.parametrize(("what", "metric"), [("failed", "ExecutionsFailed"), ("timed-out", "ExecutionsTimedOut")])
def test_a_night_without_its_recheck_is_heard_of(programs: dict[str, Program], what: str, metric: str) -> None:
    """One execution that fails, or does not end."""
    machine = arn("states", "stateMachine:inferlane-mature-nightly")

    assert watched(programs["mature"], f"nightly-{what}") == ("AWS/States", metric, {"StateMachineArn": machine}, "Sum")
    assert patience(programs["mature"], f"nightly-{what}") == (0, 60, 1, 1)


def test_captures_that_do_not_arrive_are_heard_of(programs: dict[str, Program]) -> None:
    """Neither those that the router could not hand over, nor those that wait on their way."""
    program = programs["mature"]

    assert watched(program, "capture-failures") == ("Inferlane", settings.CAPTURE_FAILURES, STACK, "Sum")
    assert watched(program, "capture-age") == (
        *("AWS/Firehose", "DeliveryToS3.DataFreshness", {"DeliveryStreamName": "inferlane-mature-capture"}, "Maximum"),
    )
    assert patience(program, "capture-age")[0] == 300 + 900


def test_only_what_is_there_is_watched(programs: dict[str, Program]) -> None:
    """A stack without capture and nightly has no alarm on them."""
    names = {alarm["name"] for alarm in of_type(programs["mature-plain"], "MetricAlarm")}

    assert "jobs-overdue" in names
    assert not [name for name in names if name.startswith(("nightly-", "capture-"))]


def test_the_stack_files_topic_is_told(programs: dict[str, Program]) -> None:
    """Of every alarm but those that only roll an update back."""
    alarms = [alarm["inputs"] for alarm in of_type(programs["mature-told"], "MetricAlarm")]
    silent = [alarm["name"] for alarm in alarms if alarm.get("alarmActions") != [TOPIC]]

    assert silent == ["inferlane-mature-moderation-dedicated-errors"]

"""The embedded metric format, as CloudWatch Logs reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from workbench.stack.bridge import Bridge, merged, metric_data

LINE = {
    "_aws": {
        "Timestamp": 1_800_000_000_000,
        "CloudWatchMetrics": [
            {
                "Namespace": "Inferlane",
                "Dimensions": [["model", "lane"], ["model"]],
                "Metrics": [{"Name": "Latency", "Unit": "Milliseconds"}, {"Name": "Requests", "Unit": "Count"}],
            }
        ],
    },
    "model": "moderation",
    "lane": "dedicated",
    "Latency": [12.5, 14.0],
    "Requests": 1,
}
META: dict[str, Any] = LINE["_aws"]  # type: ignore[assignment]


def test_one_entry_per_metric_and_dimension_set() -> None:
    """Two metrics under two dimension sets are four entries, with all values, the unit and the line's own time."""
    entries = list(metric_data(json.dumps(LINE)))
    assert len(entries) == 4
    namespace, first = entries[0]
    assert namespace == "Inferlane"
    assert first["MetricName"] == "Latency"
    assert first["Values"] == [12.5, 14.0]
    assert first["Unit"] == "Milliseconds"
    assert first["Dimensions"] == [{"Name": "model", "Value": "moderation"}, {"Name": "lane", "Value": "dedicated"}]
    assert first["Timestamp"].timestamp() == 1_800_000_000


@pytest.mark.parametrize(
    "line",
    [
        "START RequestId: 1",
        "{not json",
        '{"message": "no metrics"}',
        '{"_aws": {"Timestamp": "yesterday", "CloudWatchMetrics": []}}',
        '{"_aws": 3}',
        "",
    ],
)
def test_other_lines_are_not_metrics(line: str) -> None:
    """A line that is not EMF gives nothing and raises nothing."""
    assert list(metric_data(line)) == []


@pytest.mark.parametrize("change", [{"Latency": "fast"}, {"Latency": [1, "x"]}, {"Latency": True}, {"Latency": None}])
def test_a_value_that_is_no_number_drops_that_metric_alone(change: dict[str, Any]) -> None:
    """Only the metric with the bad value is missing; its neighbour stays."""
    names = {entry["MetricName"] for _, entry in metric_data(json.dumps(LINE | change))}
    assert names == {"Requests"}


def test_a_missing_dimension_drops_its_set_alone() -> None:
    """A dimension set that names an absent member is skipped; the other set stays."""
    line = {name: value for name, value in LINE.items() if name != "lane"}
    assert {len(entry["Dimensions"]) for _, entry in metric_data(json.dumps(line))} == {1}


class FakeLogs:
    """Log events of one group, and the two paginators that the bridge uses."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.groups = ["/aws/lambda/route"]

    def get_paginator(self, operation: str) -> FakePaginator:
        return FakePaginator(self, operation)


class FakePaginator:
    def __init__(self, logs: FakeLogs, operation: str) -> None:
        self._logs, self._operation = logs, operation

    def paginate(self, **arguments: Any) -> Iterator[dict[str, Any]]:
        if self._operation == "describe_log_groups":
            yield {"logGroups": [{"logGroupName": name} for name in self._logs.groups]}
            return
        for event in self._logs.events:
            if event["timestamp"] >= arguments["startTime"]:
                yield {"events": [event]}


class FakeCloudWatch:
    def __init__(self) -> None:
        self.put: list[dict[str, Any]] = []

    def put_metric_data(self, *, Namespace: str, MetricData: list[dict[str, Any]]) -> None:  # noqa: N803 - boto3's names
        assert Namespace == "Inferlane"
        assert len(MetricData) <= 1000
        self.put.extend(MetricData)


def event(at_ms: int, request: str) -> dict[str, Any]:
    return {"logStreamName": "s", "timestamp": at_ms, "message": json.dumps(LINE | {"request_id": request})}


def test_each_line_counts_once_over_overlapping_polls() -> None:
    """Lines seen by two polls are put once; lines that appear late within the overlap are not lost."""
    logs, cloudwatch = FakeLogs(), FakeCloudWatch()
    bridge = Bridge(logs, cloudwatch, now_ms=1_000_000)
    logs.events = [event(1_000_500, "a")]
    assert bridge.poll(1_001_000) == 4
    logs.events.append(event(1_000_400, "late"))
    logs.events.append(event(1_001_500, "b"))
    assert bridge.poll(1_002_000) == 8
    assert bridge.poll(1_003_000) == 0
    assert sum(sum(datum["Counts"]) for datum in cloudwatch.put) == 3 * (2 + 1 + 2 + 1)
    assert len(cloudwatch.put) == 8  # the two lines of one poll and one second together


def test_values_of_one_second_are_one_datum() -> None:
    """Each value with its count; another second, another dimension or the limit of values begins a new one."""
    lines = [LINE | {"Latency": [n % 200 + 0.5], "_aws": {**META, "Timestamp": 5_000 + n}} for n in range(400)]
    lines.append(LINE | {"_aws": {**META, "Timestamp": 6_000}})
    entries = [entry for line in lines for _, entry in metric_data(json.dumps(line))]
    first, rest, later = [datum for datum in merged(entries) if len(datum["Dimensions"]) == 1][:3]
    assert (len(first["Values"]), len(rest["Values"])) == (150, 50)
    assert set(first["Counts"]) == set(rest["Counts"]) == {2.0}
    assert {*first["Values"], *rest["Values"]} == {n + 0.5 for n in range(200)}
    assert (first["MetricName"], first["Timestamp"].timestamp()) == ("Latency", 5.0)
    assert (later["MetricName"], later["Values"], later["Counts"]) == ("Requests", [1.0], [400.0])


def test_a_new_group_is_found_before_its_lines_are_too_old() -> None:
    """Groups are asked for every three seconds, lines up to five seconds back."""
    logs, cloudwatch = FakeLogs(), FakeCloudWatch()
    bridge = Bridge(logs, cloudwatch, now_ms=0)
    logs.groups = []
    for second in range(4):
        assert bridge.poll(second * 1000) == 0
    logs.groups, logs.events = ["/aws/lambda/route"], [event(3_100, "a")]
    assert sum(bridge.poll(second * 1000) for second in range(4, 8)) == 4


def test_what_was_seen_is_forgotten_after_the_overlap() -> None:
    """Memory stays flat: old events leave the set of seen ones."""
    logs, cloudwatch = FakeLogs(), FakeCloudWatch()
    bridge = Bridge(logs, cloudwatch, now_ms=0)
    for second in range(200):
        logs.events = [event(second * 1000, f"r{second}")]
        bridge.poll(second * 1000)
    assert len(bridge._seen) < 30

"""Turn the embedded metric format (EMF) in Lambda logs into CloudWatch metrics, as CloudWatch Logs itself does on AWS.

The emulated cloud stores log lines but does not read them. This process polls the `/aws/lambda/` log groups, takes each
JSON line with an `_aws.CloudWatchMetrics` block, and puts its metrics, a batch a poll: the values of one metric in one
second as one datum, since the emulated CloudWatch looks at every datum it holds at every put. Rules of the format:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html

Run as `python -m workbench.stack.bridge`; the endpoint comes from AWS_ENDPOINT_URL.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar

import boto3
from botocore.exceptions import BotoCoreError, ClientError

LOG_GROUPS = "/aws/lambda/"
METRICS_PER_CALL = 1000
"""PutMetricData takes at most 1,000 metrics a call."""
VALUES_PER_DATUM = 150
"""Distinct values; PutMetricData's limit too."""
GROUPS_EVERY_MS = 3_000
"""How often to look for new log groups: less than the overlap, so that none of their lines is missed."""
OVERLAP_MS = 5_000
"""How far each poll looks back: lines of one instant can become visible in two polls."""

T = TypeVar("T")
log = logging.getLogger("bridge")


def metric_data(line: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The metrics of one log line as (namespace, PutMetricData entry); nothing for a line that is not EMF.

    A directive yields one entry per metric and dimension set. A metric whose value is missing or not a number, and a
    dimension without a member, drop that metric alone, as CloudWatch does.
    """
    start = line.find("{")
    if start < 0 or '"_aws"' not in line:
        return
    try:
        document = json.loads(line[start:])
        directives = document["_aws"]["CloudWatchMetrics"]
        timestamp = datetime.fromtimestamp(document["_aws"]["Timestamp"] / 1000, UTC)
    except (json.JSONDecodeError, KeyError, TypeError, ValueError):
        return
    for directive in directives:
        for names in directive.get("Dimensions") or [[]]:
            dimensions = [{"Name": name, "Value": str(document[name])} for name in names if name in document]
            if len(dimensions) < len(names):
                continue
            for metric in directive.get("Metrics", []):
                values = _numbers(document.get(metric["Name"]))
                if values:
                    yield (
                        directive["Namespace"],
                        {
                            "MetricName": metric["Name"],
                            "Dimensions": dimensions,
                            "Timestamp": timestamp,
                            "Values": values,
                            "Unit": metric.get("Unit", "None"),
                            "StorageResolution": metric.get("StorageResolution", 60),
                        },
                    )


def _numbers(value: object) -> list[float]:
    candidates = value if isinstance(value, list) else [value]
    numbers = [float(v) for v in candidates if isinstance(v, int | float) and not isinstance(v, bool)]
    return numbers if len(numbers) == len(candidates) else []


def merged(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same values in fewer entries: those of one metric, its dimensions and one second together, with counts."""
    together: dict[tuple[object, ...], tuple[dict[str, Any], Counter[float]]] = {}
    for entry in entries:
        second = entry["Timestamp"].replace(microsecond=0)
        dimensions = tuple((each["Name"], each["Value"]) for each in entry["Dimensions"])
        key = (entry["MetricName"], dimensions, second, entry["Unit"], entry["StorageResolution"])
        _, counts = together.setdefault(key, ({**entry, "Timestamp": second}, Counter()))
        counts.update(entry["Values"])
    return [
        {**entry, "Values": [value for value, _ in part], "Counts": [float(count) for _, count in part]}
        for entry, counts in together.values()
        for part in batched(list(counts.items()), VALUES_PER_DATUM)
    ]


def batched(items: list[T], size: int) -> Iterator[list[T]]:
    """The items in lists of `size`, the last one perhaps shorter."""
    return (items[start : start + size] for start in range(0, len(items), size))


class Bridge:
    """Reads what is new in the log groups and puts its metrics; remembers which events it has seen."""

    def __init__(self, logs: Any, cloudwatch: Any, *, now_ms: int) -> None:
        self._logs, self._cloudwatch = logs, cloudwatch
        self._since_ms = now_ms
        self._groups: list[str] = []
        self._groups_at_ms = now_ms - GROUPS_EVERY_MS
        self._seen: set[tuple[str, str, int, str]] = set()
        self._order: deque[tuple[str, str, int, str]] = deque()

    def poll(self, now_ms: int) -> int:
        """One round. Returns the number of metrics that the lines had."""
        batches: dict[str, list[dict[str, Any]]] = {}
        self._look_for_groups(now_ms)
        for line in self._new_lines():
            for namespace, entry in metric_data(line):
                batches.setdefault(namespace, []).append(entry)
        for namespace, entries in batches.items():
            for part in batched(merged(entries), METRICS_PER_CALL):
                self._cloudwatch.put_metric_data(Namespace=namespace, MetricData=part)
        self._since_ms = max(self._since_ms, now_ms - OVERLAP_MS)
        self._forget()
        return sum(map(len, batches.values()))

    def _look_for_groups(self, now_ms: int) -> None:
        if now_ms - self._groups_at_ms >= GROUPS_EVERY_MS:
            found = self._pages("describe_log_groups", "logGroups", logGroupNamePrefix=LOG_GROUPS)
            self._groups, self._groups_at_ms = [group["logGroupName"] for group in found], now_ms

    def _new_lines(self) -> Iterator[str]:
        for name in self._groups:
            for event in self._pages("filter_log_events", "events", logGroupName=name, startTime=self._since_ms):
                # Equal lines of one stream and millisecond are one event seen twice: an EMF line of ours holds
                # durations to the last bit, so two requests do not write the same line.
                key = (name, event["logStreamName"], event["timestamp"], event["message"])
                if key not in self._seen:
                    self._seen.add(key)
                    self._order.append(key)
                    yield event["message"]

    def _pages(self, operation: str, member: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        for page in self._logs.get_paginator(operation).paginate(**arguments):
            yield from page[member]

    def _forget(self) -> None:
        while self._order and self._order[0][2] < self._since_ms - OVERLAP_MS:
            self._seen.discard(self._order.popleft())


def main() -> None:
    """Poll until SIGTERM or SIGINT; a cloud that does not answer is waited for."""
    parser = argparse.ArgumentParser(prog="python -m workbench.stack.bridge", description=__doc__)
    parser.add_argument("--every", type=float, default=1.0, metavar="S", help="seconds between polls")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.set())
    bridge = Bridge(boto3.client("logs"), boto3.client("cloudwatch"), now_ms=int(time.time() * 1000))
    failing = ""
    while not stop.wait(options.every):
        try:
            bridge.poll(int(time.time() * 1000))
            failing = ""
        except (BotoCoreError, ClientError) as error:
            if (cause := type(error).__name__) != failing:  # once a cause, not once a second
                log.warning("no metrics while the cloud does not answer: %s", error)
                failing = cause


if __name__ == "__main__":
    main()

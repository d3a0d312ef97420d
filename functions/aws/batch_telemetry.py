"""Counts into CloudWatch: a line of embedded metric format for each time that something is counted.

Dimensions are {stack}, which alarms watch, and {stack, model} where there is a model. Neither a tenant nor a run is
ever one: each combination is a metric to pay for.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping


class EmfCounts:
    """A `BatchTelemetry` on standard output, which Lambda takes to CloudWatch Logs, a line an event."""

    def __init__(self, stack: str, namespace: str, service: str, now: Callable[[], float]) -> None:
        """`namespace` is CloudWatch's; `service` the function that counts."""
        self._stack = stack
        self._namespace = namespace
        self._service = service
        self._now = now

    def count(self, model: str | None, counts: Mapping[str, float]) -> None:
        """Write the line (see `batch_ports.BatchTelemetry`)."""
        if not counts:
            return
        metrics = [{"Name": str(name), "Unit": "Count"} for name in counts]
        dimensions = [["stack"]] if model is None else [["stack"], ["stack", "model"]]
        directive = {"Namespace": self._namespace, "Dimensions": dimensions, "Metrics": metrics}
        line: dict[str, object] = {
            "level": "INFO",
            "message": "counts",
            "service": self._service,
            "stack": self._stack,
            **({} if model is None else {"model": model}),
            **{str(name): value for name, value in counts.items()},
            "_aws": {"Timestamp": int(self._now() * 1000), "CloudWatchMetrics": [directive]},
        }
        sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")
        sys.stdout.flush()

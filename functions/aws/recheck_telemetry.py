"""A recheck's figures into CloudWatch: one line of embedded metric format, stamped with the end of its transform job.

CloudWatch takes points of up to two weeks ago; an older one (a report made anew of an old job) is dropped there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping


class EmfRecheck:
    """A `RecheckTelemetry` on standard output, which Lambda takes to CloudWatch Logs, a line an event."""

    def __init__(self, stack: str, namespace: str) -> None:
        """`namespace` is CloudWatch's."""
        self._stack = stack
        self._namespace = namespace

    def rechecked(self, model: str, at: float, figures: Mapping[str, float]) -> None:
        """Write the line (see `nightly_ports.RecheckTelemetry`)."""
        metrics = [{"Name": str(name), "Unit": "None"} for name in figures]
        directive = {"Namespace": self._namespace, "Dimensions": [["stack", "model"]], "Metrics": metrics}
        line: dict[str, object] = {
            "level": "INFO",
            "message": "rechecked",
            "service": "report",
            "stack": self._stack,
            "model": model,
            **{str(name): value for name, value in figures.items()},
            "_aws": {"Timestamp": int(at * 1000), "CloudWatchMetrics": [directive]},
        }
        sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")
        sys.stdout.flush()

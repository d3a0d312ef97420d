"""Receipts into CloudWatch: one line of JSON a request, which is the receipt for people and its metrics for CloudWatch.

The embedded metric format (EMF) lets a log event carry more members than its metrics; CloudWatch reads the metrics out
of it, and the event stays. One line instead of two is half of the log events to pay for, and written directly it takes
a fifth of the time that Powertools' logger and metrics need (they serve all other logging): this is the only log line
of a request, on its way to the caller.

Dimension sets are few, since each combination is a paid metric: {model}, {model, lane}, {model, rule}, each with the
stack, or two stacks would scale on each other's load. Tenant, path and request id are in the receipt, never a
dimension. `Demand` is what autoscaling follows: seconds of dedicated work that this arrival asks for, whichever lane
served it, since a lane's own concurrency hides what was spilled.
"""

from __future__ import annotations

import json
import sys
from typing import Final

from functions.core.receipt import Receipt

_NONE: Final = "none"
"""Dimension value of a request that no lane served, or that names no model."""
_DIMENSIONS: Final = [["stack", "model"], ["stack", "model", "lane"], ["stack", "model", "rule"]]
_UNITS: Final = {
    "Requests": "Count",
    "Failures": "Count",
    "Fallbacks": "Count",
    "Hedges": "Count",
    "ClaimsRefused": "Count",
    "Latency": "Milliseconds",
    "DecideTime": "Milliseconds",
    "ColdStart": "Count",
}
_METRICS: Final = [{"Name": name, "Unit": unit} for name, unit in _UNITS.items()]
_WITH_DEMAND: Final = [*_METRICS, {"Name": "Demand", "Unit": "Seconds"}]
_ENCODE: Final = json.JSONEncoder(separators=(",", ":")).encode


class EmfTelemetry:
    """Writes to standard output, which Lambda takes to CloudWatch Logs, a line an event."""

    def __init__(self, stack: str, namespace: str) -> None:
        """`namespace` is CloudWatch's. Receipts are records, so they are written at any log level of the function."""
        self._stack = stack
        self._plain = [{"Namespace": namespace, "Dimensions": _DIMENSIONS, "Metrics": _METRICS}]
        self._with_demand = [{"Namespace": namespace, "Dimensions": _DIMENSIONS, "Metrics": _WITH_DEMAND}]
        self._cold = 1

    def record(self, receipt: Receipt) -> None:
        """Write the line (see `ports.Telemetry`)."""
        decision = receipt.decision
        # A model that a caller made up must not become a dimension: only known ones have predictions.
        line: dict[str, object] = {
            "level": "INFO",
            "message": "receipt",
            "service": "receipt",
            "stack": self._stack,
            "model": decision.model if decision.predicted and decision.model else _NONE,
            "lane": receipt.lane or _NONE,
            "rule": decision.rule,
            "Requests": 1,
            "Failures": int(receipt.status >= 500),
            "Fallbacks": receipt.fallbacks,
            "Hedges": receipt.hedges,
            "ClaimsRefused": len(decision.claims_refused),
            "Latency": receipt.latency_s * 1000,
            "DecideTime": receipt.decide_s * 1000,
            "ColdStart": self._cold,
            "receipt": receipt.to_json(),
        }
        directives = self._plain
        if receipt.demand_s is not None:
            line["Demand"], directives = receipt.demand_s, self._with_demand
        line["_aws"] = {"Timestamp": int((receipt.at + receipt.latency_s) * 1000), "CloudWatchMetrics": directives}
        self._cold = 0
        sys.stdout.write(_ENCODE(line) + "\n")
        sys.stdout.flush()

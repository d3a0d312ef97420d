"""Receipts into CloudWatch: one line of JSON a request, which is the receipt for people and its metrics for CloudWatch.

The embedded metric format (EMF) lets a log event carry more members than its metrics; CloudWatch reads the metrics out
of it, and the event stays. One line instead of two is half of the log events to pay for, and written directly it takes
a fifth of the time that Powertools' logger and metrics need (they serve all other logging): this is the only log line
of a request, on its way to the caller. What many lines have in common, the directives and the decision that requests of
one shape share, is written out as JSON once.

Dimension sets are few, since each combination is a paid metric: {model}, {model, lane}, {model, rule}, each with the
stack, or two stacks would scale on each other's load. Tenant, path and request id are in the receipt, never a
dimension. `Demand` is what autoscaling follows: seconds of dedicated work that this arrival asks for, whichever lane
served it, since a lane's own concurrency hides what was spilled. What the router itself knows has directives of its
own, since neither rule nor serving lane says anything of it:

* `SnapshotAge` by {stack}: how old the metrics were that this request was decided by. Where an instance never had any,
  the time since its first request: an absence that lasts must look old, not look like no data.
* `BreakerOpenDedicated`, `BreakerOpenServerless` by {stack, model}: 1 where the lane's breaker was not closed when this
  request was decided, else 0. So the average of a minute is the share of decisions that could not lean on the lane,
  which an alarm can hold a line to, and which one instance with a broken network among many does not raise. Half-open
  counts: where calls are rare, every one of them is the probe. The lane is in the name because a line can give a
  dimension one value only, and `lane` is the one that served.
* `JobsAccepted` by {stack} and {stack, model}: 1 for a request that became a new job, which the audit holds against
  the records; one that found its job again by its idempotency key counts no second time.
* `JobsPromoted` by the same: of these, 1 for one that was too urgent for batch. The collector counts its own.
* `CaptureFailures` by the same: of a request that was to be captured, whether it was not.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import cache
from typing import Final

from functions.core.decision import Decision
from functions.core.receipt import Receipt
from functions.settings import CAPTURE_FAILURES, JOBS_ACCEPTED, JOBS_PROMOTED

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
_DEMAND: Final = "Demand"
_AGE: Final = "SnapshotAge"
_ENCODE: Final = json.JSONEncoder(separators=(",", ":")).encode
_RARE: Final = (_DEMAND, JOBS_ACCEPTED, JOBS_PROMOTED, CAPTURE_FAILURES)
"""Metrics that only some lines have."""
_MOST: Final = 1024
"""Decisions whose text is kept; there are as many as callers, sizes and wishes that rules tell apart."""


class EmfTelemetry:
    """Writes to standard output, which Lambda takes to CloudWatch Logs, a line an event."""

    def __init__(self, stack: str, namespace: str) -> None:
        """`namespace` is CloudWatch's. Receipts are records, so they are written at any log level of the function."""
        self._stack = stack
        self._namespace = namespace
        self._directives: dict[tuple[str, ...], str] = {}
        self._decisions: dict[int, tuple[Decision, str]] = {}
        self._cold = 1
        self._began: float | None = None

    def record(self, receipt: Receipt) -> None:
        """Write the line (see `ports.Telemetry`)."""
        decision = receipt.decision
        # A model that a caller made up must not become a dimension: only known ones have predictions.
        model = decision.model if decision.predicted and decision.model else _NONE
        breakers = {} if model == _NONE else {breaker_metric(name): state for name, state in receipt.breakers.items()}
        line: dict[str, object] = {
            "level": "INFO",
            "message": "receipt",
            "service": "receipt",
            "stack": self._stack,
            "model": model,
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
            _AGE: self._age_s(receipt),
            **{metric: int(state != "closed") for metric, state in breakers.items()},
        }
        if receipt.demand_s is not None:
            line[_DEMAND] = receipt.demand_s
        if receipt.recorded:
            line[JOBS_ACCEPTED] = 1
        if receipt.promoted:
            line[JOBS_PROMOTED] = 1
        if receipt.captured is not None:
            line[CAPTURE_FAILURES] = int(not receipt.captured)
        self._cold = 0
        line["receipt"] = receipt.about()
        # The text ends with the receipt's brace and the line's, before which the parts that are text already belong.
        head = _ENCODE(line)[:-2]
        timestamp = int((receipt.at + receipt.latency_s) * 1000)
        rare = tuple(name for name in _RARE if name in line)
        directives = self._directives_for(tuple(breakers), rare)
        aws = f'{{"Timestamp":{timestamp},"CloudWatchMetrics":{directives}}}'
        sys.stdout.write(f'{head},"decision":{self._decision(decision)}}},"_aws":{aws}}}\n')
        sys.stdout.flush()

    def _age_s(self, receipt: Receipt) -> float:
        if self._began is None:
            self._began = receipt.at
        return receipt.snapshot_age_s if receipt.snapshot_age_s is not None else max(0.0, receipt.at - self._began)

    def _decision(self, decision: Decision) -> str:
        """The decision as JSON text. Kept with the decision, so that its id stays its own."""
        known = self._decisions.get(id(decision))
        if known is not None:
            return known[1]
        if len(self._decisions) >= _MOST:
            self._decisions.clear()
        text = _ENCODE(decision.to_json())
        self._decisions[id(decision)] = decision, text
        return text

    def _directives_for(self, breakers: tuple[str, ...], rare: tuple[str, ...]) -> str:
        """What CloudWatch is to read out of the line, as JSON text: a few different lists, each made once."""
        key = breakers + rare
        if (known := self._directives.get(key)) is not None:
            return known
        units = {**_UNITS, _DEMAND: "Seconds"} if _DEMAND in rare else _UNITS
        made = [self._directive(_DIMENSIONS, units), self._directive([["stack"]], {_AGE: "Seconds"})]
        if breakers:
            made.append(self._directive([["stack", "model"]], dict.fromkeys(breakers, "Count")))
        if counted := [name for name in rare if name != _DEMAND]:
            made.append(self._directive([["stack"], ["stack", "model"]], dict.fromkeys(counted, "Count")))
        self._directives[key] = text = _ENCODE(made)
        return text

    def _directive(self, dimensions: list[list[str]], units: Mapping[str, str]) -> dict[str, object]:
        metrics = [{"Name": name, "Unit": unit} for name, unit in units.items()]
        return {"Namespace": self._namespace, "Dimensions": dimensions, "Metrics": metrics}


@cache
def breaker_metric(lane: str) -> str:
    """The metric of a lane's breaker; lanes are the design's four words."""
    return f"BreakerOpen{lane.title()}"

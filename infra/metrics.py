"""Our own metrics, as alarms and scaling name them: namespace, names, dimensions.

They are written by `functions/aws/telemetry.py` and by the batch lane's functions; what is sent there and what is asked
for here must be the same to the letter, or an alarm watches nothing.
"""

from __future__ import annotations

from functions import batch_settings, settings

NAMESPACE = settings.METRICS_NAMESPACE
REQUESTS = "Requests"
FAILURES = "Failures"
"""1 for a request that was answered with a 5xx, else 0."""
LATENCY_MS = "Latency"
DEMAND_S = "Demand"
"""Seconds of dedicated work that an arrival asks for, whichever lane serves it."""

SNAPSHOT_AGE_S = "SnapshotAge"
"""How old the metrics were that a request was decided by."""

JOBS_OVERDUE = batch_settings.JOBS_OVERDUE
JOBS_UNACCOUNTED = batch_settings.JOBS_UNACCOUNTED
RUN_UNACCOUNTED = batch_settings.RUN_UNACCOUNTED
STEPS_PUT_OFF = batch_settings.STEPS_PUT_OFF
CAPTURE_FAILURES = settings.CAPTURE_FAILURES


def breaker_open(lane: str) -> str:
    """1 for a request that was decided while the lane's breaker was not closed, else 0."""
    return f"BreakerOpen{lane.title()}"


def of_stack(stack: str) -> dict[str, str]:
    """The dimension of what a stack's models share."""
    return {"stack": stack}


def of_model(stack: str, model: str) -> dict[str, str]:
    """The dimensions under which everything about a stack's model is counted together."""
    return {"stack": stack, "model": model}

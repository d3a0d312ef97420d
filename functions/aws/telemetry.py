"""Receipts into CloudWatch: one log line with the receipt, one EMF line with its metrics.

Dimension sets are few, since each combination is a paid metric: {model}, {model, lane}, {model, rule}. Tenant, path
and request id are in the receipt, never a dimension. `Demand` is what autoscaling follows: seconds of dedicated work
that this arrival asks for, whichever lane served it, since a lane's own concurrency hides what was spilled.
"""

from __future__ import annotations

import warnings
from typing import Final

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from functions.core.receipt import Receipt

_NONE: Final = "none"
"""Dimension value of a request that no lane served, or that names no model."""


class PowertoolsTelemetry:
    """Writes through Powertools' Logger and EMF provider."""

    def __init__(self, stack: str, namespace: str) -> None:
        """`namespace` is CloudWatch's. Receipts are records, so they are written at any log level of the function."""
        self._logger = Logger(service="receipt", level="INFO")
        self._logger.append_keys(stack=stack)
        self._namespace = namespace
        self._cold = True

    def record(self, receipt: Receipt) -> None:
        """Write both lines (see `ports.Telemetry`)."""
        self._logger.info("receipt", receipt=receipt.to_json())
        metrics = AmazonCloudWatchEMFProvider(namespace=self._namespace)
        metrics.service = ""  # no fourth dimension
        model = receipt.decision.model if receipt.decision.predicted else None
        metrics.add_dimension("model", model or _NONE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Powertools warns of a dimension that recurs in a second set: it is meant
            metrics.add_dimensions(model=model or _NONE, lane=receipt.lane or _NONE)
            metrics.add_dimensions(model=model or _NONE, rule=receipt.decision.rule)
        metrics.add_metric("Requests", MetricUnit.Count, 1)
        metrics.add_metric("Failures", MetricUnit.Count, float(receipt.status >= 500))
        metrics.add_metric("Fallbacks", MetricUnit.Count, receipt.fallbacks)
        metrics.add_metric("Latency", MetricUnit.Milliseconds, receipt.latency_s * 1000)
        metrics.add_metric("DecideTime", MetricUnit.Milliseconds, receipt.decide_s * 1000)
        metrics.add_metric("ColdStart", MetricUnit.Count, float(self._cold))
        if receipt.demand_s is not None:
            metrics.add_metric("Demand", MetricUnit.Seconds, receipt.demand_s)
        metrics.flush_metrics()
        self._cold = False

"""How often, and under which dimensions, an endpoint's metrics are published: its MetricsConfig. Pure.

MetricPublishFrequencyInSeconds (10 to 300, 60 unless given) is the period of the utilization metrics; of the others
too with EnableEnhancedMetrics. High-resolution metrics have ten seconds in any case. Enhanced metrics are published
again by InstanceId: requests by ContainerId as well, GPUs by AcceleratorId. EnableDetailedObservability, which has
containers' own metrics scraped, is not emulated.

Source: developer guide, "monitoring-cloudwatch-enhanced-metrics"; botocore MetricsConfig.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from workbench.stack.sagemaker.api.wire import Document
from workbench.stack.sagemaker.clock import Clock
from workbench.stack.sagemaker.metrics import catalogue
from workbench.stack.sagemaker.metrics.bins import Scope
from workbench.stack.sagemaker.metrics.catalogue import HARDWARE, Metric

HIGH_RESOLUTION_S = 10
_GPU = (catalogue.GPU, catalogue.GPU_MEMORY)


@dataclass(frozen=True, slots=True)
class Frequency:
    """What a MetricsConfig says."""

    utilization_s: float | None = None
    enhanced: bool = False

    def period_s(self, metric: Metric, usual_s: float, clock: Clock) -> float:
        """Real seconds of a metric's bins; `usual_s` is AWS's minute, as it is set here."""
        if metric.high_resolution:
            return clock.real(min(HIGH_RESOLUTION_S, usual_s))
        own = metric.namespace == HARDWARE or self.enhanced
        return clock.real(self.utilization_s if own and self.utilization_s else usual_s)

    def scopes(self, metric: Metric, scope: Scope, instance: str | None) -> Iterator[Scope]:
        """The dimensions a variant's metric is published under."""
        yield scope
        if not self.enhanced or instance is None:
            return
        by_instance = (*scope, ("InstanceId", instance))
        if metric in _GPU:
            yield (*by_instance, ("AcceleratorId", "0"))
        elif metric.namespace == HARDWARE:
            yield by_instance
        else:
            yield (*by_instance, ("ContainerId", container_id(instance)))


def frequency(config: Document) -> Frequency:
    """From an endpoint configuration."""
    document = config.get("MetricsConfig") or {}
    given = document.get("MetricPublishFrequencyInSeconds")
    return Frequency(float(given) if given else None, bool(document.get("EnableEnhancedMetrics")))


def container_id(instance: str) -> str:
    """The id of an instance's only container."""
    return hashlib.sha256(instance.encode()).hexdigest()[:12]

"""Endpoints as Application Auto Scaling sees them: variants with an instance count or a provisioned concurrency.

Without inference components a real-time variant cannot go below one instance, an asynchronous one can be at none
(developer guide, "async-inference-autoscale"). Provisioned concurrency goes from 1 to the variant's MaxConcurrency.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from workbench.stack.sagemaker.api.wire import invalid
from workbench.stack.sagemaker.control.endpoints import Endpoints
from workbench.stack.sagemaker.control.lifecycle import Lifecycle
from workbench.stack.sagemaker.records import Endpoint
from workbench.stack.sagemaker.scaling.resources import CONCURRENCY, INSTANCES, Dimension, Reading


@dataclass(frozen=True, slots=True)
class Variants:
    """Implements `scaling.resources.Resources`."""

    endpoints: Endpoints
    lifecycle: Lifecycle

    def read(self, endpoint: str, variant: str, dimension: Dimension) -> Reading:
        """See `Resources`."""
        found = self.endpoints.get(endpoint)
        if variant not in {p.variant.name for p in found.plan.variants}:
            raise invalid(f"Variant {variant} of endpoint {endpoint} not found.")
        steady = found.status == "InService"
        if dimension == INSTANCES:
            if variant not in found.desired:
                raise invalid(
                    f"Variant {variant} of endpoint {endpoint} is serverless: it has no {dimension} to scale."
                )
            least = 0 if _is_asynchronous(found) else 1
            return Reading(found.desired[variant], steady, least, failure=found.failure_reason)
        size = found.sizes.get(variant)
        if size is None or not size.provisioned:
            raise invalid(f"Variant {variant} of endpoint {endpoint} has no provisioned concurrency to scale.")
        return Reading(size.provisioned, steady, 1, size.max_concurrency, found.failure_reason)

    def change(self, endpoint: str, variant: str, dimension: Dimension, count: int) -> None:
        """See `Resources`."""
        now = time.time()
        if dimension == CONCURRENCY:
            self.lifecycle.change(self.endpoints.begin_provision(endpoint, variant, count, now))
        else:
            self.lifecycle.change(self.endpoints.begin_scale(endpoint, variant, count, now))


def _is_asynchronous(endpoint: Endpoint) -> bool:
    return "AsyncInferenceConfig" in endpoint.plan.config.document

"""Counts, weights and sizes of an endpoint's variants: a plan's own, and UpdateEndpointWeightsAndCapacities'. Pure.

A request names the variants it changes and of each only what it changes. A dedicated variant has a weight and an
instance count, at least 1 unless the endpoint is asynchronous (inference components are not emulated); a serverless one
has a weight, MaxConcurrency and ProvisionedConcurrency, which cannot exceed the former.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.stack.sagemaker.api.wire import invalid
from workbench.stack.sagemaker.control.rules import check_concurrency
from workbench.stack.sagemaker.records import Capacity, Endpoint, Plan, PlannedVariant, Serverless


def of(plan: Plan) -> Capacity:
    """What a plan starts with."""
    sizes = {p.variant.name: p.variant.serverless for p in plan.variants}
    return Capacity(
        counts={p.variant.name: p.count for p in plan.variants if p.variant.serverless is None},
        weights={p.variant.name: p.weight for p in plan.variants},
        sizes={name: size for name, size in sizes.items() if size is not None},
    )


def applied(plan: Plan, wanted: Capacity) -> Plan:
    """The plan, started with these counts, weights and sizes."""
    return replace(plan, variants=tuple(_sized(planned, wanted) for planned in plan.variants))


def _sized(planned: PlannedVariant, wanted: Capacity) -> PlannedVariant:
    variant, name = planned.variant, planned.variant.name
    return PlannedVariant(
        replace(variant, serverless=wanted.sizes.get(name, variant.serverless)),
        planned.container,
        wanted.counts.get(name, planned.count),
        wanted.weights.get(name, planned.weight),
    )


def changed(endpoint: Endpoint, changes: Sequence[Mapping[str, Any]]) -> Capacity:
    """What is wanted after the changes. Raises `AwsError`."""
    names = [c["VariantName"] for c in changes]
    if repeated := sorted({n for n in names if names.count(n) > 1}):
        raise invalid(f"Each variant can be changed once in a request; repeated: {', '.join(repeated)}.")
    counts, weights, sizes = dict(endpoint.desired), dict(endpoint.weights), dict(endpoint.sizes)
    for change in changes:
        name = change["VariantName"]
        if name not in weights:
            raise invalid(f"Variant {name} of endpoint {endpoint.name} not found.")
        if (weight := change.get("DesiredWeight")) is not None:
            weights[name] = float(weight)
        if (count := change.get("DesiredInstanceCount")) is not None:
            counts[name] = _count(endpoint, name, count)
        if size := change.get("ServerlessUpdateConfig"):
            sizes[name] = _size(endpoint, name, size)
    return Capacity(counts, weights, sizes)


def _count(endpoint: Endpoint, variant: str, count: int) -> int:
    if variant not in endpoint.desired:
        raise invalid(f"DesiredInstanceCount cannot be given for the serverless variant {variant}.")
    if count < 1 and "AsyncInferenceConfig" not in endpoint.plan.config.document:
        raise invalid(f"DesiredInstanceCount must be at least 1 for variant {variant}, without inference components.")
    return count


def _size(endpoint: Endpoint, variant: str, change: Mapping[str, int]) -> Serverless:
    now = endpoint.sizes.get(variant)
    if now is None:
        raise invalid(f"ServerlessUpdateConfig cannot be given for variant {variant}, which is not serverless.")
    most = change.get("MaxConcurrency") or now.max_concurrency
    provisioned = change.get("ProvisionedConcurrency") or now.provisioned
    check_concurrency(most, provisioned)
    return Serverless(now.memory_mb, most, provisioned)

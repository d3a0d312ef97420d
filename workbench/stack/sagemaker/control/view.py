"""How DescribeEndpoint and ListEndpoints show an endpoint. Pure.

An endpoint shows its variants when it has some that serve. While a configuration starts or takes over, that one is in
PendingDeploymentSummary with the stage it is at. A Current value is what is there now, a Desired one what was asked
for: they differ while an endpoint is Updating. CurrentWeight is a variant's weight times its fleet's share of the
traffic while an update shifts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from workbench.stack.sagemaker.api.wire import Document
from workbench.stack.sagemaker.records import Endpoint, PlannedVariant, Serverless, Stage

SERVING = ("InService", "Updating", "SystemUpdating", "RollingBack", "UpdateRollbackFailed")


class Running(NamedTuple):
    """Instances that are up, by variant."""

    old: Mapping[str, int]
    """Of the deployment that serves."""
    new: Mapping[str, int] = {}
    """Of the one that is to take its place."""


def described(endpoint: Endpoint, running: Running) -> Document:
    """DescribeEndpoint's answer."""
    seen: dict[str, object] = {
        **listed(endpoint),
        "EndpointConfigName": endpoint.plan.config.name,
    }
    if endpoint.status in SERVING:
        seen["ProductionVariants"] = [_serving(endpoint, v, running.old) for v in endpoint.plan.variants]
    if endpoint.failure_reason:
        seen["FailureReason"] = endpoint.failure_reason
    if endpoint.deployment_config:
        seen["LastDeploymentConfig"] = endpoint.deployment_config
    if pending := _pending(endpoint, running):
        seen["PendingDeploymentSummary"] = pending
    for member in ("MetricsConfig", "AsyncInferenceConfig"):
        if given := endpoint.plan.config.document.get(member):
            seen[member] = given
    return seen


def listed(endpoint: Endpoint) -> Document:
    """A row of ListEndpoints."""
    return {
        "EndpointName": endpoint.name,
        "EndpointArn": endpoint.arn,
        "CreationTime": endpoint.created,
        "LastModifiedTime": endpoint.modified,
        "EndpointStatus": endpoint.status,
    }


def _serving(endpoint: Endpoint, planned: PlannedVariant, running: Mapping[str, int]) -> Document:
    name, progress = planned.variant.name, endpoint.progress
    now = endpoint.previous or endpoint.capacity
    staying = 1.0 - progress.share if progress else 1.0
    summary: dict[str, object] = {
        **_common(endpoint, planned),
        "CurrentWeight": now.weights[name] * staying,
        "DesiredWeight": endpoint.weights[name],
        "CurrentInstanceCount": 0 if planned.variant.serverless else running.get(name, 0),
    }
    if planned.variant.serverless is None:
        summary["DesiredInstanceCount"] = endpoint.desired[name]
    else:
        summary["CurrentServerlessConfig"] = _size(now.sizes[name])
        if endpoint.status != "InService":
            summary["DesiredServerlessConfig"] = _size(endpoint.sizes[name])
    if progress and progress.old:
        summary["VariantStatus"] = _status(progress.old, progress.since)
    return summary


def _pending(endpoint: Endpoint, running: Running) -> Document | None:
    plan, progress = endpoint.pending, endpoint.progress
    if endpoint.status == "Creating":
        plan, running = endpoint.plan, Running({}, running.old)
    if plan is None or progress is None:
        return None
    variants = [_joining(endpoint, v, progress.share, running.new) for v in plan.variants]
    if progress.new:
        status = _status(progress.new, progress.since)
        variants = [{**v, "VariantStatus": status} for v in variants]
    return {
        "EndpointConfigName": plan.config.name,
        "StartTime": endpoint.modified,
        "ProductionVariants": variants,
    }


def _joining(endpoint: Endpoint, planned: PlannedVariant, share: float, running: Mapping[str, int]) -> Document:
    variant = planned.variant
    summary: dict[str, object] = {
        **_common(endpoint, planned),
        "CurrentWeight": planned.weight * share,
        "DesiredWeight": planned.weight,
    }
    if variant.serverless:
        size = _size(variant.serverless)
        return summary | {"CurrentServerlessConfig": size, "DesiredServerlessConfig": size}
    return summary | {
        "CurrentInstanceCount": running.get(variant.name, 0),
        "DesiredInstanceCount": planned.count,
        "InstanceType": variant.instance_type,
    }


def _common(endpoint: Endpoint, planned: PlannedVariant) -> dict[str, object]:
    image = planned.container.image
    common: dict[str, object] = {
        "VariantName": planned.variant.name,
        # Images are not pulled, so there is no digest to resolve one to.
        "DeployedImages": [{"SpecifiedImage": image, "ResolvedImage": image, "ResolutionTime": endpoint.created}],
    }
    if planned.variant.routing:
        common["RoutingConfig"] = {"RoutingStrategy": planned.variant.routing}
    return common


def _size(size: Serverless) -> Document:
    shown = {"MemorySizeInMB": size.memory_mb, "MaxConcurrency": size.max_concurrency}
    return shown | ({"ProvisionedConcurrency": size.provisioned} if size.provisioned else {})


def _status(stage: Stage, since: float) -> list[Document]:
    return [{"Status": stage, "StartTime": since}]

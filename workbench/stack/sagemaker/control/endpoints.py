"""The life of endpoints, as a state machine without I/O: what may begin when, and what an ending leaves behind.

    (new)     create -> Creating   --ok--> InService   --failed--> Failed (only delete is left)
    InService update -> Updating   --ok--> InService on the new configuration
                                   --failed--> InService on the OLD one, with FailureReason
    InService scale  -> Updating   --ok, failed--> InService
    InService, Failed delete -> Deleting -> (gone)

`begin` methods check and change state and return the endpoint with what is to be done; whoever runs processes does it
and reports with a `finish` method. FailureReason stays until the next update begins, as on AWS.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from workbench.stack.sagemaker.api import listing
from workbench.stack.sagemaker.api.wire import Document, invalid
from workbench.stack.sagemaker.control.catalog import Catalog
from workbench.stack.sagemaker.records import Endpoint, Plan, PlannedVariant

REASON_LENGTH = 1024


class Endpoints:
    """Every endpoint by name."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._endpoints: dict[str, Endpoint] = {}

    def all(self) -> list[Endpoint]:
        """In order of creation."""
        return list(self._endpoints.values())

    def find(self, name: str) -> Endpoint | None:
        """The endpoint of that name, in any case."""
        return self._endpoints.get(name.lower())

    def get(self, name: str) -> Endpoint:
        """The endpoint of that name, or AWS's refusal."""
        found = self.find(name)
        if found is None:
            raise invalid(f'Could not find endpoint "{self._catalog.arn("endpoint", name)}".')
        return found

    # What begins

    def begin_create(self, request: Document, now: float) -> Endpoint:
        """CreateEndpoint: Creating; `plan` is to be started."""
        name = request["EndpointName"]
        arn = self._catalog.arn("endpoint", name)
        if self.find(name) is not None:
            raise invalid(f'Cannot create already existing endpoint "{arn}".')
        plan = self._catalog.plan(name, request["EndpointConfigName"], lambda _, initial: initial)
        endpoint = Endpoint(name, arn, plan, now, now, deployment_config=request.get("DeploymentConfig"))
        endpoint.desired = _counts(plan)
        self._endpoints[name.lower()] = endpoint
        self._catalog.tags.start(arn, request)
        return endpoint

    def begin_update(self, request: Document, scaled: Collection[str], now: float) -> Endpoint:
        """UpdateEndpoint: Updating; `pending` is to be started. `scaled` names the variants with a scalable target."""
        endpoint = self._settled(request["EndpointName"])
        excluded = {p["VariantPropertyType"] for p in request.get("ExcludeRetainedVariantProperties") or ()}
        retain = bool(request.get("RetainAllVariantProperties")) and "DesiredInstanceCount" not in excluded
        plan = self._catalog.plan(
            endpoint.name,
            request["EndpointConfigName"],
            lambda variant, initial: endpoint.desired.get(variant, initial) if retain else initial,
        )
        _check_conversion(endpoint, plan)
        _check_scaled(endpoint, plan, scaled)
        endpoint.pending = plan
        endpoint.status = "Updating"
        endpoint.failure_reason = None
        endpoint.modified = now
        if not request.get("RetainDeploymentConfig"):
            endpoint.deployment_config = request.get("DeploymentConfig")
        return endpoint

    def begin_scale(self, name: str, variant: str, count: int, now: float) -> Endpoint:
        """A new instance count of one dedicated variant: Updating; `desired` is to be reached."""
        endpoint = self._settled(name)
        endpoint.desired[variant] = count
        endpoint.status = "Updating"
        endpoint.modified = now
        return endpoint

    def begin_delete(self, request: Document, now: float) -> Endpoint:
        """DeleteEndpoint: Deleting; everything it runs is to be stopped."""
        endpoint = self.get(request["EndpointName"])
        if endpoint.status not in ("InService", "Failed"):
            raise invalid(f'Cannot update in-progress endpoint "{endpoint.arn}".')
        endpoint.status = "Deleting"
        endpoint.modified = now
        return endpoint

    def _settled(self, name: str) -> Endpoint:
        endpoint = self.get(name)
        if endpoint.status == "Failed":
            raise invalid(f'Cannot update endpoint "{endpoint.arn}" in state Failed; delete it and create it again.')
        if endpoint.status != "InService":
            raise invalid(f'Cannot update in-progress endpoint "{endpoint.arn}".')
        return endpoint

    # How it ends

    def finish_create(self, endpoint: Endpoint, failure: str | None, now: float) -> None:
        """The first deployment runs, or failed."""
        endpoint.status = "InService" if failure is None else "Failed"
        _settle(endpoint, failure, now)

    def finish_update(self, endpoint: Endpoint, failure: str | None, now: float) -> None:
        """The new deployment serves, or failed and the old one still does."""
        if failure is None and endpoint.pending is not None:
            endpoint.plan = endpoint.pending
            endpoint.desired = _counts(endpoint.plan)
        endpoint.pending = None
        endpoint.status = "InService"
        _settle(endpoint, failure, now)

    def finish_delete(self, endpoint: Endpoint) -> None:
        """Everything has stopped."""
        self._endpoints.pop(endpoint.name.lower(), None)
        self._catalog.tags.drop(endpoint.arn)

    # What is seen

    def describe(self, name: str, running: Mapping[str, int]) -> Document:
        """DescribeEndpoint; `running` counts each variant's instances that are up."""
        endpoint = self.get(name)
        seen: dict[str, object] = {
            "EndpointName": endpoint.name,
            "EndpointArn": endpoint.arn,
            "EndpointConfigName": endpoint.plan.config.name,
            "EndpointStatus": endpoint.status,
            "CreationTime": endpoint.created,
            "LastModifiedTime": endpoint.modified,
        }
        if endpoint.status in ("InService", "Updating"):
            seen["ProductionVariants"] = [_summary(endpoint, v, running) for v in endpoint.plan.variants]
        if endpoint.failure_reason:
            seen["FailureReason"] = endpoint.failure_reason
        if endpoint.deployment_config:
            seen["LastDeploymentConfig"] = endpoint.deployment_config
        if endpoint.pending is not None:
            seen["PendingDeploymentSummary"] = {
                "EndpointConfigName": endpoint.pending.config.name,
                "StartTime": endpoint.modified,
            }
        if metrics := endpoint.plan.config.document.get("MetricsConfig"):
            seen["MetricsConfig"] = metrics
        return seen

    def list(self, request: Document) -> Document:
        """ListEndpoints."""
        found, token = listing.select(
            self.all(),
            request,
            name=lambda e: e.name,
            created=lambda e: e.created,
            modified=lambda e: e.modified,
            status=lambda e: e.status,
        )
        rows = [
            {
                "EndpointName": e.name,
                "EndpointArn": e.arn,
                "CreationTime": e.created,
                "LastModifiedTime": e.modified,
                "EndpointStatus": e.status,
            }
            for e in found
        ]
        return {"Endpoints": rows, **({"NextToken": token} if token else {})}


def _settle(endpoint: Endpoint, failure: str | None, now: float) -> None:
    endpoint.failure_reason = failure[:REASON_LENGTH] if failure else None
    endpoint.modified = now


def _counts(plan: Plan) -> dict[str, int]:
    return {p.variant.name: p.count for p in plan.variants if p.variant.serverless is None}


def _check_conversion(endpoint: Endpoint, plan: Plan) -> None:
    # Developer guide, "serverless endpoints": a serverless endpoint can become instance-based, never the reverse.
    dedicated = any(p.variant.serverless is None for p in endpoint.plan.variants)
    if dedicated and any(p.variant.serverless is not None for p in plan.variants):
        raise invalid(f'Cannot convert the instance-based endpoint "{endpoint.arn}" to serverless.')


def _check_scaled(endpoint: Endpoint, plan: Plan, scaled: Collection[str]) -> None:
    before = {p.variant.name: p.variant.instance_type for p in endpoint.plan.variants}
    after = {p.variant.name: p.variant.instance_type for p in plan.variants}
    if stuck := sorted(v for v in scaled if after.get(v) != before.get(v)):
        raise invalid(
            f'The variant(s) "{stuck}" must be deregistered as scalable targets with AWS Auto Scaling before they can '
            "be removed or have their instance type modified."
        )


def _summary(endpoint: Endpoint, planned: PlannedVariant, running: Mapping[str, int]) -> Document:
    variant, image = planned.variant, planned.container.image
    summary: dict[str, object] = {
        "VariantName": variant.name,
        "DeployedImages": [{"SpecifiedImage": image, "ResolvedImage": image, "ResolutionTime": endpoint.created}],
        "CurrentWeight": variant.weight,
        "DesiredWeight": variant.weight,
        "CurrentInstanceCount": running.get(variant.name, 0),
    }
    size = variant.serverless
    if size is None:
        summary["DesiredInstanceCount"] = endpoint.desired[variant.name]
    else:
        summary["CurrentInstanceCount"] = 0
        summary["CurrentServerlessConfig"] = {
            "MemorySizeInMB": size.memory_mb,
            "MaxConcurrency": size.max_concurrency,
        }
    return summary

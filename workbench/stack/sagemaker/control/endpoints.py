"""The life of endpoints, as a state machine without I/O: what may begin when, and what an ending leaves behind.

    (new)       create -> Creating   --ok--> InService       --failed--> Failed (only delete is left)
    InService   update -> Updating   --ok--> InService on the new configuration
                                     --failed before traffic moved--> InService on the OLD one, with FailureReason
                                     --failed later--> RollingBack --> InService on the OLD one, with FailureReason
                                                       --cannot go back (rolling)--> UpdateRollbackFailed: serves both
    InService   change -> Updating   --ok--> InService
                                     --failed--> RollingBack --> InService with what was before, and FailureReason
    InService, Failed, UpdateRollbackFailed   delete -> Deleting -> (gone)
    (of an earlier run)   SystemUpdating --everything runs again--> InService   --failed--> Failed

`change` is UpdateEndpointWeightsAndCapacities, or Application Auto Scaling. UpdateRollbackFailed can be updated again.
`begin` methods check and change state and return the endpoint with what is to be done; whoever runs processes does it
and reports with the other methods. FailureReason stays until the next update begins, as on AWS.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from workbench.stack.sagemaker.api import listing
from workbench.stack.sagemaker.api.wire import Document, invalid
from workbench.stack.sagemaker.control import capacity, quotas, rollout, view
from workbench.stack.sagemaker.control.catalog import Catalog
from workbench.stack.sagemaker.control.quotas import Quotas
from workbench.stack.sagemaker.control.rollout import Outcome, Rollout
from workbench.stack.sagemaker.control.view import Running
from workbench.stack.sagemaker.records import Capacity, Endpoint, Plan, Progress, Stage, Status

REASON_LENGTH = 1024


class Endpoints:
    """Every endpoint by name."""

    def __init__(self, catalog: Catalog, quotas_: Quotas | None = None) -> None:
        self._catalog = catalog
        self.quotas = quotas_ or Quotas()
        self._endpoints: dict[str, Endpoint] = {}
        self.on_status: Callable[[Endpoint], None] = lambda _: None
        """Told of each new status, once everything else of the endpoint fits it."""

    def all(self) -> list[Endpoint]:
        """In order of creation."""
        return list(self._endpoints.values())

    def put(self, endpoint: Endpoint) -> None:
        """An endpoint of an earlier run."""
        self._endpoints[endpoint.name.lower()] = endpoint

    def find(self, name: str) -> Endpoint | None:
        """The endpoint of that name, in any case."""
        return self._endpoints.get(name.lower())

    def get(self, name: str) -> Endpoint:
        """The endpoint of that name, or AWS's refusal."""
        found = self.find(name)
        if found is None:
            raise invalid(f'Could not find endpoint "{self._catalog.arn("endpoint", name)}".')
        return found

    def use(self) -> dict[str, int]:
        """What all endpoints have reserved, by quota."""
        return quotas.usage(self.all())

    # What begins

    def begin_create(self, request: Document, now: float) -> Endpoint:
        """CreateEndpoint: Creating; `plan` is to be started."""
        name = request["EndpointName"]
        arn = self._catalog.arn("endpoint", name)
        if self.find(name) is not None:
            raise invalid(f'Cannot create already existing endpoint "{arn}".')
        plan = self._catalog.plan(name, request["EndpointConfigName"], now)
        rollout.parse(request.get("DeploymentConfig"), plan, plan)
        quotas.check_create(self.quotas, plan, self.use())
        endpoint = Endpoint(name, arn, plan, now, now, deployment_config=request.get("DeploymentConfig"))
        endpoint.capacity = capacity.of(plan)
        endpoint.progress = Progress(None, "Creating", now)
        self._endpoints[name.lower()] = endpoint
        self._catalog.tags.start(arn, request)
        self.on_status(endpoint)
        return endpoint

    def begin_update(self, request: Document, scaled: Collection[str], now: float) -> tuple[Endpoint, Rollout]:
        """UpdateEndpoint: Updating; `pending` is to take over. `scaled` names the variants with a scalable target."""
        endpoint = self._at_rest(request["EndpointName"], "InService", "UpdateRollbackFailed")
        plan = self._catalog.plan(endpoint.name, request["EndpointConfigName"], now)
        plan = _retaining(plan, endpoint, request)
        _check_conversion(endpoint, plan)
        _check_scaled(endpoint, plan, scaled)
        deployment_config = request.get("DeploymentConfig")
        if request.get("RetainDeploymentConfig"):
            deployment_config = deployment_config or endpoint.deployment_config
        course = rollout.parse(deployment_config, endpoint.plan, plan)
        quotas.check_update(self.quotas, endpoint, plan, self.use())
        endpoint.pending = plan
        endpoint.progress = Progress(None, "Creating", now)
        endpoint.deployment_config = deployment_config
        self._begin(endpoint, now)
        return endpoint, course

    def begin_change(self, request: Document, now: float) -> Endpoint:
        """UpdateEndpointWeightsAndCapacities: Updating; what `capacity` says is to be reached."""
        endpoint = self._at_rest(request["EndpointName"], "InService")
        return self._change(endpoint, capacity.changed(endpoint, request["DesiredWeightsAndCapacities"]), now)

    def begin_scale(self, name: str, variant: str, count: int, now: float) -> Endpoint:
        """A new instance count of one dedicated variant: Updating; `desired` is to be reached."""
        endpoint = self._at_rest(name, "InService")
        counts = {**endpoint.desired, variant: count}
        return self._change(endpoint, replace(endpoint.capacity, counts=counts), now)

    def begin_provision(self, name: str, variant: str, concurrency: int, now: float) -> Endpoint:
        """A new ProvisionedConcurrency of one serverless variant: Updating; `sizes` is to be reached."""
        endpoint = self._at_rest(name, "InService")
        size = replace(endpoint.sizes[variant], provisioned=concurrency)
        return self._change(endpoint, replace(endpoint.capacity, sizes={**endpoint.sizes, variant: size}), now)

    def begin_delete(self, request: Document, now: float) -> Endpoint:
        """DeleteEndpoint: Deleting; everything it runs is to be stopped."""
        endpoint = self.get(request["EndpointName"])
        if endpoint.status not in ("InService", "Failed", "UpdateRollbackFailed"):
            raise invalid(f'Cannot update in-progress endpoint "{endpoint.arn}".')
        endpoint.status = "Deleting"
        endpoint.modified = now
        self.on_status(endpoint)
        return endpoint

    def _change(self, endpoint: Endpoint, wanted: Capacity, now: float) -> Endpoint:
        quotas.check_capacity(self.quotas, endpoint, wanted, self.use())
        endpoint.previous = endpoint.capacity
        endpoint.capacity = wanted
        endpoint.progress = Progress("Updating", None, now)
        self._begin(endpoint, now)
        return endpoint

    def _at_rest(self, name: str, *allowed: str) -> Endpoint:
        endpoint = self.get(name)
        if endpoint.status in allowed:
            return endpoint
        if endpoint.status == "Failed":
            raise invalid(f'Cannot update endpoint "{endpoint.arn}" in state Failed; delete it and create it again.')
        if endpoint.status == "UpdateRollbackFailed":
            raise invalid(f'Cannot change endpoint "{endpoint.arn}" in state UpdateRollbackFailed; update it first.')
        raise invalid(f'Cannot update in-progress endpoint "{endpoint.arn}".')

    # How it goes and ends

    def advance(self, endpoint: Endpoint, old: Stage | None, new: Stage | None, share: float, now: float) -> None:
        """A deployment has come to its next stage."""
        endpoint.progress = Progress(old, new, now, share)

    def begin_rollback(self, endpoint: Endpoint, failure: str, now: float) -> None:
        """What was begun has failed and is being undone: RollingBack."""
        endpoint.status = "RollingBack"
        endpoint.failure_reason = failure[:REASON_LENGTH]
        endpoint.modified = now
        self.on_status(endpoint)

    def finish_create(self, endpoint: Endpoint, failure: str | None, now: float) -> None:
        """The first deployment runs, or failed."""
        self._settle(endpoint, "InService" if failure is None else "Failed", failure, now)

    def finish_restart(self, endpoint: Endpoint, failure: str | None, now: float) -> None:
        """What an earlier run served is served again, or cannot be. Why a cut-off update was undone stays told."""
        self._settle(endpoint, "InService" if failure is None else "Failed", failure or endpoint.failure_reason, now)

    def finish_update(self, endpoint: Endpoint, outcome: Outcome, now: float) -> None:
        """The new deployment serves, or failed and the old one still does, or both do."""
        if outcome.failure is None and endpoint.pending is not None:
            endpoint.plan = endpoint.pending
            endpoint.capacity = capacity.of(endpoint.plan)
        share = endpoint.progress.share if endpoint.progress else 0.0
        mixed = Progress(None, None, now, share) if outcome.mixed else None
        status: Status = "UpdateRollbackFailed" if outcome.mixed else "InService"
        self._settle(endpoint, status, outcome.failure, now, mixed)

    def finish_change(self, endpoint: Endpoint, failure: str | None, now: float) -> None:
        """The new counts, weights and sizes hold, or failed and the previous ones do."""
        if failure is not None and endpoint.previous is not None:
            endpoint.capacity = endpoint.previous
        self._settle(endpoint, "InService", failure, now)

    def finish_delete(self, endpoint: Endpoint) -> None:
        """Everything has stopped."""
        self._endpoints.pop(endpoint.name.lower(), None)
        self._catalog.tags.drop(endpoint.arn)

    def _begin(self, endpoint: Endpoint, now: float) -> None:
        endpoint.status = "Updating"
        endpoint.failure_reason = None
        endpoint.modified = now
        self.on_status(endpoint)

    def _settle(
        self, endpoint: Endpoint, status: Status, failure: str | None, now: float, mixed: Progress | None = None
    ) -> None:
        endpoint.status = status
        endpoint.failure_reason = failure[:REASON_LENGTH] if failure else None
        endpoint.pending = endpoint.previous = None
        endpoint.progress = mixed
        endpoint.modified = now
        self.on_status(endpoint)

    # What is seen

    def describe(self, name: str, running: Running) -> Document:
        """DescribeEndpoint; `running` says what of each variant is up."""
        return view.described(self.get(name), running)

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
        return {"Endpoints": [view.listed(e) for e in found], **({"NextToken": token} if token else {})}


def _retaining(plan: Plan, endpoint: Endpoint, request: Document) -> Plan:
    """The plan with the endpoint's own counts and weights where the caller retains them."""
    if not request.get("RetainAllVariantProperties"):
        return plan
    excluded = {p["VariantPropertyType"] for p in request.get("ExcludeRetainedVariantProperties") or ()}
    counts: Mapping[str, int] = {} if "DesiredInstanceCount" in excluded else endpoint.desired
    weights: Mapping[str, float] = {} if "DesiredWeight" in excluded else endpoint.weights
    variants = tuple(
        replace(p, count=counts.get(p.variant.name, p.count), weight=weights.get(p.variant.name, p.weight))
        for p in plan.variants
    )
    return replace(plan, variants=variants)


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

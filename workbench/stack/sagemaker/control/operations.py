"""The control planes' operations by name: each request goes to the records that answer it, and work is set in motion.

A table of operations, so that another one is a row here and a method where its state lives.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from workbench.stack.sagemaker.api.wire import Call, Document, invalid
from workbench.stack.sagemaker.control.catalog import Catalog
from workbench.stack.sagemaker.control.endpoints import Endpoints
from workbench.stack.sagemaker.control.lifecycle import Lifecycle
from workbench.stack.sagemaker.records import Endpoint
from workbench.stack.sagemaker.scaling.schedules import Schedules
from workbench.stack.sagemaker.scaling.targets import Scaling, Target

Operation = Callable[[Document], Document]


def desired_instances(endpoints: Endpoints) -> Callable[[str, str], int | None]:
    """Looks up the desired instances of (endpoint, variant) for Application Auto Scaling."""

    def look_up(name: str, variant: str) -> int | None:
        endpoint = endpoints.get(name)
        if variant not in {p.variant.name for p in endpoint.plan.variants}:
            raise invalid(f"Variant {variant} of endpoint {name} not found.")
        return endpoint.desired.get(variant)

    return look_up


class Control:
    """Serves control-plane calls."""

    def __init__(self, catalog: Catalog, endpoints: Endpoints, scaling: Scaling, lifecycle: Lifecycle) -> None:
        self._endpoints = endpoints
        self._scaling = scaling
        self._lifecycle = lifecycle
        schedules = Schedules(scaling)
        self._operations: dict[str, dict[str, Operation]] = {
            "sagemaker": {
                "CreateModel": lambda r: catalog.create_model(r, time.time()),
                "DescribeModel": catalog.describe_model,
                "ListModels": catalog.list_models,
                "DeleteModel": catalog.delete_model,
                "CreateEndpointConfig": lambda r: catalog.create_endpoint_config(r, time.time()),
                "DescribeEndpointConfig": catalog.describe_endpoint_config,
                "ListEndpointConfigs": catalog.list_endpoint_configs,
                "DeleteEndpointConfig": catalog.delete_endpoint_config,
                "CreateEndpoint": self._create_endpoint,
                "DescribeEndpoint": self._describe_endpoint,
                "ListEndpoints": endpoints.list,
                "UpdateEndpoint": self._update_endpoint,
                "UpdateEndpointWeightsAndCapacities": self._change_endpoint,
                "DeleteEndpoint": self._delete_endpoint,
                "AddTags": catalog.tags.add,
                "ListTags": catalog.tags.list,
                "DeleteTags": catalog.tags.delete,
            },
            "application-autoscaling": {
                "RegisterScalableTarget": self._register_target,
                "DescribeScalableTargets": scaling.describe_targets,
                "DeregisterScalableTarget": scaling.deregister,
                "PutScalingPolicy": lambda r: scaling.put_policy(r, time.time()),
                "DescribeScalingPolicies": scaling.describe_policies,
                "DeleteScalingPolicy": scaling.delete_policy,
                "PutScheduledAction": lambda r: schedules.put(r, time.time()),
                "DescribeScheduledActions": schedules.describe,
                "DeleteScheduledAction": schedules.delete,
                "ListTagsForResource": scaling.list_tags,
                "TagResource": scaling.tag,
                "UntagResource": scaling.untag,
            },
        }

    @property
    def known(self) -> dict[str, frozenset[str]]:
        """Operations served, by service."""
        return {service: frozenset(operations) for service, operations in self._operations.items()}

    def answer(self, call: Call) -> Document:
        """Serve one call. Raises `AwsError`."""
        return self._operations[call.service][call.operation](call.document)

    def settled(self, endpoint: Endpoint) -> None:
        """An endpoint has come to rest: bring its variants within the bounds of their scalable targets."""
        for target in self._scaling.of(endpoint.name):
            self._apply(endpoint, target)

    def _create_endpoint(self, request: Document) -> Document:
        endpoint = self._endpoints.begin_create(request, time.time())
        self._lifecycle.create(endpoint)
        return {"EndpointArn": endpoint.arn}

    def _describe_endpoint(self, request: Document) -> Document:
        name = self._endpoints.get(request["EndpointName"]).name
        return self._endpoints.describe(name, self._lifecycle.running(name))

    def _update_endpoint(self, request: Document) -> Document:
        scaled = {t.variant for t in self._scaling.of(request["EndpointName"])}
        endpoint, rollout = self._endpoints.begin_update(request, scaled, time.time())
        self._lifecycle.update(endpoint, rollout)
        return {"EndpointArn": endpoint.arn}

    def _change_endpoint(self, request: Document) -> Document:
        endpoint = self._endpoints.begin_change(request, time.time())
        self._lifecycle.change(endpoint)
        return {"EndpointArn": endpoint.arn}

    def _delete_endpoint(self, request: Document) -> Document:
        endpoint = self._endpoints.begin_delete(request, time.time())
        self._scaling.forget(endpoint.name)
        self._lifecycle.delete(endpoint)
        return {}

    def _register_target(self, request: Document) -> Document:
        answer, target = self._scaling.register(request, time.time())
        endpoint = self._endpoints.get(target.endpoint)
        if endpoint.status == "InService":
            self._apply(endpoint, target)
        return answer

    def _apply(self, endpoint: Endpoint, target: Target) -> None:
        current = endpoint.desired.get(target.variant)
        if current is None or endpoint.status != "InService" or target.bounded(current) == current:
            return
        self._endpoints.begin_scale(endpoint.name, target.variant, target.bounded(current), time.time())
        self._lifecycle.change(endpoint)

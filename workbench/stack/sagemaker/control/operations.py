"""The control planes' operations by name: each request goes to the records that answer it, and work is set in motion.

A table of operations, so that another one is a row here and a method where its state lives.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping

from workbench.stack.sagemaker.api.wire import Call, Document
from workbench.stack.sagemaker.control.catalog import Catalog
from workbench.stack.sagemaker.control.endpoints import Endpoints
from workbench.stack.sagemaker.control.lifecycle import Lifecycle
from workbench.stack.sagemaker.records import Endpoint
from workbench.stack.sagemaker.scaling.service import AutoScaling

Operation = Callable[[Document], Document | Awaitable[Document]]


class Control:
    """Serves control-plane calls."""

    def __init__(
        self,
        catalog: Catalog,
        endpoints: Endpoints,
        scaling: AutoScaling,
        lifecycle: Lifecycle,
        transforms: Mapping[str, Operation] | None = None,
    ) -> None:
        self._endpoints = endpoints
        self._scaling = scaling
        self._lifecycle = lifecycle
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
                **(transforms or {}),
            },
            "application-autoscaling": {**scaling.operations},
        }

    @property
    def known(self) -> dict[str, frozenset[str]]:
        """Operations served, by service."""
        return {service: frozenset(operations) for service, operations in self._operations.items()}

    async def answer(self, call: Call) -> Document:
        """Serve one call. Raises `AwsError`."""
        answer = self._operations[call.service][call.operation](call.document)
        return await answer if isinstance(answer, Awaitable) else answer

    def settled(self, endpoint: Endpoint) -> None:
        """An endpoint has come to rest: bring its variants within the bounds of their scalable targets."""
        self._scaling.settled(endpoint.name)

    def _create_endpoint(self, request: Document) -> Document:
        endpoint = self._endpoints.begin_create(request, time.time())
        self._lifecycle.create(endpoint)
        return {"EndpointArn": endpoint.arn}

    def _describe_endpoint(self, request: Document) -> Document:
        name = self._endpoints.get(request["EndpointName"]).name
        return self._endpoints.describe(name, self._lifecycle.running(name))

    def _update_endpoint(self, request: Document) -> Document:
        scaled = self._scaling.scaled(request["EndpointName"])
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

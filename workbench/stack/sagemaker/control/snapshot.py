"""Models, configurations, endpoints and tags as documents and back: what outlives the process. Pure.

A process that ends takes every instance and container with it. So an endpoint that served is SystemUpdating afterwards
(AWS's word for its own work on an endpoint, which changes nothing that a customer has chosen) until everything runs
again with the counts, weights and sizes it had. One that was Creating is created anew. An update or a change that was
cut off is undone, as one that fails is: the endpoint keeps what it had before, and FailureReason says so. What was
being deleted is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from workbench.stack.sagemaker.api.wire import Document
from workbench.stack.sagemaker.control.catalog import Catalog
from workbench.stack.sagemaker.control.endpoints import Endpoints
from workbench.stack.sagemaker.journal import Row
from workbench.stack.sagemaker.records import (
    Capacity,
    Container,
    Endpoint,
    EndpointConfig,
    Model,
    Plan,
    PlannedVariant,
    Progress,
    Serverless,
    parse_config,
    parse_container,
)

CUT_OFF = "The emulator was restarted during the update; what was in force before it is again."


def save(catalog: Catalog, endpoints: Endpoints) -> Iterator[Row]:
    """Everything the two keep."""
    for model in catalog.models():
        yield Row("model", model.name, {"created": model.created, "document": model.document})
    for config in catalog.configs():
        yield Row("endpoint-config", config.name, _saved_config(config))
    leaving = {endpoint.arn for endpoint in endpoints.all() if endpoint.status == "Deleting"}
    for endpoint in endpoints.all():
        if endpoint.arn not in leaving:
            yield Row("endpoint", endpoint.name, _saved_endpoint(endpoint))
    for arn, tags in catalog.tags.all().items():
        if arn not in leaving:
            yield Row("tags", arn, dict(tags))


def load(row: Row, catalog: Catalog, endpoints: Endpoints, now: float) -> bool:
    """Put back what a row of `save` holds; False for a row of something else."""
    document = row.document
    match row.kind:
        case "model":
            catalog.put_model(_loaded_model(row.name, document, catalog))
        case "endpoint-config":
            catalog.put_config(_loaded_config(document, catalog))
        case "endpoint":
            endpoints.put(_loaded_endpoint(row.name, document, catalog, now))
        case "tags":
            catalog.tags.put(row.name, document)
        case _:
            return False
    return True


def _loaded_model(name: str, document: Mapping[str, Any], catalog: Catalog) -> Model:
    request = document["document"]
    container = parse_container(request.get("PrimaryContainer") or request["Containers"][0])
    return Model(name, catalog.arn("model", name), document["created"], request, container)


def _saved_config(config: EndpointConfig) -> Document:
    return {"created": config.created, "document": config.document}


def _loaded_config(document: Mapping[str, Any], catalog: Catalog) -> EndpointConfig:
    request = document["document"]
    return parse_config(request, catalog.arn("endpoint-config", request["EndpointConfigName"]), document["created"])


def _saved_endpoint(endpoint: Endpoint) -> Document:
    return {
        "created": endpoint.created,
        "modified": endpoint.modified,
        "status": endpoint.status,
        "failure_reason": endpoint.failure_reason,
        "deployment_config": endpoint.deployment_config,
        # The configuration and the models themselves: both can be deleted while the endpoint lives.
        "config": _saved_config(endpoint.plan.config),
        "variants": [
            {"container": asdict(p.container), "count": p.count, "weight": p.weight} for p in endpoint.plan.variants
        ],
        # Of a change that is going on, what was before it.
        "capacity": asdict(endpoint.previous or endpoint.capacity),
    }


def _loaded_endpoint(name: str, document: Mapping[str, Any], catalog: Catalog, now: float) -> Endpoint:
    config = _loaded_config(document["config"], catalog)
    planned = zip(config.variants, document["variants"], strict=True)
    variants = tuple(
        PlannedVariant(v, Container(**row["container"]), row["count"], row["weight"]) for v, row in planned
    )
    endpoint = Endpoint(
        name,
        catalog.arn("endpoint", name),
        Plan(name, config, variants),
        document["created"],
        document["modified"],
        document["status"],
        document["failure_reason"],
        document["deployment_config"],
    )
    kept = document["capacity"]
    sizes = {variant: Serverless(**size) for variant, size in kept["sizes"].items()}
    endpoint.capacity = Capacity(kept["counts"], kept["weights"], sizes)
    _restarted(endpoint, now)
    return endpoint


def _restarted(endpoint: Endpoint, now: float) -> None:
    if endpoint.status == "Failed":
        return
    if endpoint.status == "Creating":
        endpoint.progress = Progress(None, "Creating", now)
        return
    if endpoint.status in ("Updating", "RollingBack"):
        endpoint.failure_reason = endpoint.failure_reason or CUT_OFF
    endpoint.status = "SystemUpdating"
    endpoint.modified = now

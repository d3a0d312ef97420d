"""Models, endpoint configurations and tags: create, describe, list, delete. Pure; `now` is an argument.

Names are unique whatever their case, and ARNs spell them in lower case, as AWS does. A configuration or model that an
endpoint uses can be deleted: the endpoint lives on, because it keeps its own resolved `Plan`. A name is free again once
what had it is gone; who refers to a configuration gets the one that has the name now.

AWS reads eventually: CreateEndpointConfig and CreateEndpoint may not see what was made a moment ago and then refuse it,
while Describe calls see it. `lag_s` is how long that lasts, 0 (never) unless asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from workbench.stack.sagemaker.api import listing
from workbench.stack.sagemaker.api.wire import Document, invalid
from workbench.stack.sagemaker.control import rules
from workbench.stack.sagemaker.records import (
    EndpointConfig,
    Model,
    Plan,
    PlannedVariant,
    parse_config,
    parse_container,
)

MAX_TAGS = 50
Record = TypeVar("Record", Model, EndpointConfig)


class Catalog:
    """What has been created and not deleted."""

    def __init__(self, region: str, account: str, lag_s: float = 0.0) -> None:
        self._lag_s = lag_s
        self._prefix = f"arn:aws:sagemaker:{region}:{account}"
        self._models: dict[str, Model] = {}
        self._configs: dict[str, EndpointConfig] = {}
        self.tags = Tags()

    def arn(self, kind: str, name: str) -> str:
        """ARN of a `model`, `endpoint-config` or `endpoint`."""
        return f"{self._prefix}:{kind}/{name.lower()}"

    # What outlives the process

    def models(self) -> list[Model]:
        """In order of creation."""
        return list(self._models.values())

    def configs(self) -> list[EndpointConfig]:
        """In order of creation."""
        return list(self._configs.values())

    def put_model(self, model: Model) -> None:
        """A model of an earlier run."""
        self._models[model.name.lower()] = model

    def put_config(self, config: EndpointConfig) -> None:
        """A configuration of an earlier run."""
        self._configs[config.name.lower()] = config

    # Models

    def create_model(self, request: Document, now: float) -> Document:
        """CreateModel."""
        name = request["ModelName"]
        arn = self.arn("model", name)
        if name.lower() in self._models:
            raise invalid(f'Cannot create already existing model "{arn}".')
        rules.check_model(request)
        container = parse_container(request.get("PrimaryContainer") or request["Containers"][0])
        self._models[name.lower()] = Model(name, arn, now, request, container)
        self.tags.start(arn, request)
        return {"ModelArn": arn}

    def describe_model(self, request: Document) -> Document:
        """DescribeModel."""
        model = self.model(request["ModelName"])
        echoed = _echo(model.document, "PrimaryContainer", "Containers", "ExecutionRoleArn", "VpcConfig")
        isolation = bool(model.document.get("EnableNetworkIsolation", False))
        head = {"ModelName": model.name, "ModelArn": model.arn, "CreationTime": model.created}
        if "PrimaryContainer" in echoed:
            echoed = {**echoed, "PrimaryContainer": {"Mode": "SingleModel", **echoed["PrimaryContainer"]}}
        return {**head, **echoed, "EnableNetworkIsolation": isolation}

    def list_models(self, request: Document) -> Document:
        """ListModels."""
        found, token = listing.select(
            list(self._models.values()), request, name=lambda m: m.name, created=lambda m: m.created
        )
        rows = [{"ModelName": m.name, "ModelArn": m.arn, "CreationTime": m.created} for m in found]
        return {"Models": rows, **_next(token)}

    def delete_model(self, request: Document) -> Document:
        """DeleteModel."""
        model = self.model(request["ModelName"])
        del self._models[model.name.lower()]
        self.tags.drop(model.arn)
        return {}

    def model(self, name: str) -> Model:
        """The model of that name, or AWS's refusal."""
        found = self._models.get(name.lower())
        if found is None:
            raise invalid(f'Could not find model "{self.arn("model", name)}".')
        return found

    # Endpoint configurations

    def create_endpoint_config(self, request: Document, now: float) -> Document:
        """CreateEndpointConfig."""
        name = request["EndpointConfigName"]
        arn = self.arn("endpoint-config", name)
        if name.lower() in self._configs:
            raise invalid(f'Cannot create already existing endpoint configuration "{arn}".')
        rules.check_endpoint_config(request)
        config = parse_config(request, arn, now)
        for variant in config.variants:
            model = self._seen(self.model, variant.model_name, now)
            rules.check_variant_model(variant, model.document)
        self._configs[name.lower()] = config
        self.tags.start(arn, request)
        return {"EndpointConfigArn": arn}

    def describe_endpoint_config(self, request: Document) -> Document:
        """DescribeEndpointConfig."""
        config = self.config(request["EndpointConfigName"])
        variants = [{"InitialVariantWeight": 1.0, **v} for v in config.document["ProductionVariants"]]
        echoed = _echo(
            config.document,
            "DataCaptureConfig",
            "KmsKeyId",
            "ExecutionRoleArn",
            "VpcConfig",
            "MetricsConfig",
            "AsyncInferenceConfig",
        )
        return {
            "EndpointConfigName": config.name,
            "EndpointConfigArn": config.arn,
            "ProductionVariants": variants,
            "CreationTime": config.created,
            "EnableNetworkIsolation": bool(config.document.get("EnableNetworkIsolation", False)),
            **echoed,
        }

    def list_endpoint_configs(self, request: Document) -> Document:
        """ListEndpointConfigs."""
        found, token = listing.select(
            list(self._configs.values()), request, name=lambda c: c.name, created=lambda c: c.created
        )
        rows = [{"EndpointConfigName": c.name, "EndpointConfigArn": c.arn, "CreationTime": c.created} for c in found]
        return {"EndpointConfigs": rows, **_next(token)}

    def delete_endpoint_config(self, request: Document) -> Document:
        """DeleteEndpointConfig."""
        config = self.config(request["EndpointConfigName"])
        del self._configs[config.name.lower()]
        self.tags.drop(config.arn)
        return {}

    def config(self, name: str) -> EndpointConfig:
        """The configuration of that name, or AWS's refusal."""
        found = self._configs.get(name.lower())
        if found is None:
            raise invalid(f'Could not find endpoint configuration "{self.arn("endpoint-config", name)}".')
        return found

    def plan(self, endpoint: str, config_name: str, now: float) -> Plan:
        """Resolve a configuration for an endpoint."""
        config = self._seen(self.config, config_name, now)
        planned = tuple(
            PlannedVariant(v, self.model(v.model_name).container, v.instance_count, v.weight) for v in config.variants
        )
        return Plan(endpoint, config, planned)

    def _seen(self, get: Callable[[str], Record], name: str, now: float) -> Record:
        """What `get` finds, if it was made long enough ago to be seen by whoever refers to it."""
        found = get(name)
        if now - found.created < self._lag_s:
            kind = "endpoint configuration" if isinstance(found, EndpointConfig) else "model"
            raise invalid(f'Could not find {kind} "{found.arn}".')
        return found


class Tags:
    """Tags by ARN; only ARNs of what exists have an entry."""

    def __init__(self) -> None:
        self._by_arn: dict[str, dict[str, str]] = {}

    def start(self, arn: str, request: Document) -> None:
        """Take a new resource's tags from its create request; `check_tags` has passed them."""
        self._by_arn[arn] = _pairs(request.get("Tags") or ())

    def all(self) -> dict[str, dict[str, str]]:
        """Tags by ARN."""
        return dict(self._by_arn)

    def put(self, arn: str, tags: dict[str, str]) -> None:
        """The tags of a resource of an earlier run."""
        self._by_arn[arn] = dict(tags)

    def drop(self, arn: str) -> None:
        """Forget a deleted resource."""
        self._by_arn.pop(arn, None)

    def add(self, request: Document) -> Document:
        """AddTags: answers with all tags."""
        tags = self._of(request["ResourceArn"])
        rules.check_tags(request["Tags"])
        merged = tags | _pairs(request["Tags"])
        if len(merged) > MAX_TAGS:
            raise invalid(f"A resource can have {MAX_TAGS} tags; this would make {len(merged)}.")
        tags.update(merged)
        return {"Tags": _rows(tags)}

    def of(self, arn: str) -> dict[str, str]:
        """A resource's tags; none when there is no such resource."""
        return dict(self._by_arn.get(arn, {}))

    def list(self, request: Document) -> Document:
        """ListTags."""
        rows, token = listing.page(
            _rows(self._of(request["ResourceArn"])),
            key=lambda row: [row["Key"]],
            size=int(request.get("MaxResults", 50)),
            token=request.get("NextToken"),
        )
        return {"Tags": rows, **_next(token)}

    def delete(self, request: Document) -> Document:
        """DeleteTags; keys that are not there are ignored."""
        tags = self._of(request["ResourceArn"])
        for key in request["TagKeys"]:
            tags.pop(key, None)
        return {}

    def _of(self, arn: str) -> dict[str, str]:
        found = self._by_arn.get(arn)
        if found is None:
            raise invalid(f'Could not find resource "{arn}".')
        return found


def _pairs(rows: Iterable[Document]) -> dict[str, str]:
    return {row["Key"]: row["Value"] for row in rows}


def _rows(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": k, "Value": v} for k, v in tags.items()]


def _echo(document: Document, *names: str) -> Document:
    return {name: document[name] for name in names if document.get(name) is not None}


def _next(token: str | None) -> Document:
    return {"NextToken": token} if token else {}

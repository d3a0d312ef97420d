"""The serverless lane: an endpoint that costs nothing while nobody calls.

One worker a container, as the developer guide recommends for serverless: concurrency is the number of containers. An
update moves the endpoint to a new, hash-named configuration in place; deployment guardrails are for real-time
endpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import naming
from infra.components.model_package import ModelPackage
from infra.components.served_model import ServedModel, ServedModelArgs
from infra.config import ServerlessConfig
from infra.images import Image


@dataclass(frozen=True)
class ServerlessLaneArgs:
    """A model's package and the size of the containers that run it."""

    stack: str
    model: str
    config: ServerlessConfig
    package: ModelPackage
    image: Image
    log_retention_days: int
    tags: Mapping[str, str]


class ServerlessLane(pulumi.ComponentResource):
    """A serverless endpoint."""

    endpoint: aws.sagemaker.Endpoint

    def __init__(self, name: str, args: ServerlessLaneArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:ServerlessLane", name, None, opts)
        here = pulumi.ResourceOptions(parent=self)
        endpoint_name = naming.endpoint_name(args.stack, args.model, "serverless")
        served = ServedModel(
            name,
            ServedModelArgs(
                endpoint=endpoint_name,
                package=args.package,
                image=args.image,
                workers=1,
                max_queue_ms=0,  # a container is given one request at a time: the platform throttles the rest
                log_retention_days=args.log_retention_days,
                tags=args.tags,
            ),
            opts=here,
        )
        variant: aws.sagemaker.EndpointConfigurationProductionVariantArgsDict = {
            "variant_name": naming.VARIANT,
            "serverless_config": {
                "memory_size_in_mb": args.config.memory_mb,
                "max_concurrency": args.config.max_concurrency,
            },
        }
        configuration = aws.sagemaker.EndpointConfiguration(
            f"{name}-config",
            name=served.model_name.apply(lambda model: naming.hashed_name(endpoint_name, {**variant, "model": model})),
            production_variants=[{**variant, "model_name": served.model_name}],
            tags=args.tags,
            opts=here,
        )
        self.endpoint = aws.sagemaker.Endpoint(
            f"{name}-endpoint",
            name=endpoint_name,
            endpoint_config_name=configuration.name,
            tags=args.tags,
            opts=here,
        )
        self.register_outputs({"endpoint": self.endpoint.name})

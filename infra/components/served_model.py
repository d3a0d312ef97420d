"""What every SageMaker lane has below its endpoint: a container for the model's package, its logs, and the right to
both.

The SageMaker Model's name carries a hash of all it is made of (image, artifact, environment, role), since a Model
cannot be changed in place. The endpoint's log group is created here: SageMaker would create it without a retention.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import iam, naming
from infra.components.model_package import ModelPackage
from infra.images import Image


@dataclass(frozen=True)
class ServedModelArgs:
    """A package, the image that runs it, and how many requests a container works on at a time."""

    endpoint: str
    package: ModelPackage
    image: Image
    workers: int
    max_queue_ms: int
    """0: no bound of its own."""
    log_retention_days: int
    tags: Mapping[str, str]


class ServedModel(pulumi.ComponentResource):
    """A SageMaker Model and the log group of the endpoint that will run it."""

    model_name: pulumi.Output[str]

    def __init__(self, name: str, args: ServedModelArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:ServedModel", name, None, opts)
        here = pulumi.ResourceOptions(parent=self)
        logs = aws.cloudwatch.LogGroup(
            f"{name}-logs",
            name=f"/aws/sagemaker/Endpoints/{args.endpoint}",
            retention_in_days=args.log_retention_days,
            tags=args.tags,
            opts=here,
        )
        grants = aws.iam.RolePolicy(
            f"{name}-grants",
            name=args.endpoint,
            role=args.package.role.name,
            policy=iam.policy([iam.writes_logs(logs.arn), pulls(args.image)]),
            opts=here,
        )
        variables = environment(args.workers, args.max_queue_ms)
        content = pulumi.Output.all(data_url=args.package.data_url, role=args.package.role.arn).apply(
            lambda made: {**made, "image": args.image.uri, "environment": variables}
        )
        model = aws.sagemaker.Model(
            f"{name}-model",
            name=content.apply(lambda made: naming.hashed_name(args.endpoint, made)),
            execution_role_arn=args.package.role.arn,
            primary_container={
                "image": args.image.uri,
                "model_data_url": args.package.data_url,
                "environment": variables,
            },
            tags=args.tags,
            # SageMaker reads artifact and image with the role while it creates the endpoint.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[grants, args.package.grants]),
        )
        self.model_name = model.name
        self.register_outputs({"model_name": self.model_name})


def environment(workers: int, max_queue_ms: int) -> dict[str, str]:
    """The inference toolkit's variables (aws/sagemaker-inference-toolkit, parameters.py), and our server's own."""
    return {
        "SAGEMAKER_PROGRAM": "inference.py",
        "SAGEMAKER_SUBMIT_DIRECTORY": "/opt/ml/model/code",
        "SAGEMAKER_MODEL_SERVER_WORKERS": str(workers),
        "SAGEMAKER_CONTAINER_LOG_LEVEL": "20",
        "INFERLANE_MAX_QUEUE_MS": str(max_queue_ms),
    }


def pulls(image: Image) -> iam.Allow:
    """May pull an image from its repository, and no other."""
    return iam.Allow(
        ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
        [image.repository_arn],
    )

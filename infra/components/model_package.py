"""A model as SageMaker takes it: the artifact in S3 and the role its containers run as.

The artifact's key carries the hash of its bytes, so a new build is a new object and a running endpoint never sees one
change under it. The role reads every artifact of this model, not only the newest: while an update is rolled out, the
old fleet may still scale out. What belongs to one lane (its logs, its image) is granted there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pulumi
import pulumi_aws as aws

from infra import iam, naming
from infra.components.storage import Storage

METRIC_NAMESPACES = ("/aws/sagemaker/Endpoints", "AWS/SageMaker")
"""Where a container's role publishes utilization and invocation metrics."""


@dataclass(frozen=True)
class ModelPackageArgs:
    """A model's artifact and where it goes."""

    stack: str
    model: str
    region: str
    artifact: Path
    storage: Storage
    tags: Mapping[str, str]


class ModelPackage(pulumi.ComponentResource):
    """A model's artifact and execution role."""

    data_url: pulumi.Output[str]
    """`s3://…/model.tar.gz`"""
    role: aws.iam.Role
    grants: aws.iam.RolePolicy

    def __init__(self, name: str, args: ModelPackageArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:ModelPackage", name, None, opts)
        here = pulumi.ResourceOptions(parent=self)
        artifact = aws.s3.BucketObjectv2(
            f"{name}-artifact",
            bucket=args.storage.bucket.bucket,
            key=f"models/{args.model}/{naming.file_hash(args.artifact)}/model.tar.gz",
            source=pulumi.FileAsset(str(args.artifact)),
            content_type="application/gzip",
            tags=args.tags,
            # The bucket's encryption must stand before the first object does.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[args.storage]),
        )
        self.data_url = pulumi.Output.concat("s3://", artifact.bucket, "/", artifact.key)
        self.role = aws.iam.Role(
            f"{name}-role",
            name=naming.stack_name(args.stack, f"{args.model}-model"),
            description=f"Containers of model {args.model}",
            assume_role_policy=iam.trust("sagemaker.amazonaws.com"),
            tags=args.tags,
            opts=here,
        )
        self.grants = aws.iam.RolePolicy(
            f"{name}-grants",
            name="model",
            role=self.role.name,
            policy=iam.policy(grants(args.storage, args.model, args.region, METRIC_NAMESPACES)),
            opts=here,
        )
        self.register_outputs({"data_url": self.data_url, "role": self.role.arn})


def grants(storage: Storage, model: str, region: str, namespaces: Sequence[str]) -> list[iam.Allow]:
    """What the role of any container of a model needs: its artifacts, its metrics, a registry token."""
    return [
        iam.Allow(["s3:GetObject"], [pulumi.Output.concat(storage.bucket.arn, f"/models/{model}/*")]),
        iam.decrypts_through(storage.key.arn, "s3", region),
        # PutMetricData has no resource-level permissions: the namespace is the scope.
        iam.Allow(
            ["cloudwatch:PutMetricData"], [iam.ANY], {"StringEquals": {"cloudwatch:namespace": list(namespaces)}}
        ),
        # GetAuthorizationToken has no resource-level permissions; pulling is granted per repository, in the lane.
        iam.Allow(["ecr:GetAuthorizationToken"], [iam.ANY]),
    ]

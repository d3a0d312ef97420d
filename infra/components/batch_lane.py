"""The batch lane of a model: the SageMaker Model that its transform jobs run, and the role they run as.

A transform job takes its role from the Model it runs, so this Model is the lane's own even where an endpoint has one of
the same package: the containers of an endpoint need not be able to read what others have waiting. The role reads the
inputs of runs and writes their outputs, wherever batch or the nightly recheck puts them; of data sets it reads and
writes what the stack file names. Jobs are created by functions (`batch_functions`), not here.

SageMaker writes all transform jobs' logs to one group of the account, so that group is not ours to make or to give a
retention; what a container writes there names places and sizes, never a payload.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import iam, naming
from infra.batch_config import BatchConfig
from infra.components.data_bucket import DataBucket
from infra.components.model_package import ModelPackage, grants
from infra.components.served_model import environment, pulls
from infra.components.storage import Storage
from infra.images import Image

LOG_GROUP = "/aws/sagemaker/TransformJobs"
METRIC_NAMESPACES = ("/aws/sagemaker/TransformJobs",)
INPUTS = ("batch/*/in/",)
OUTPUTS = ("batch/*/out/",)
NIGHTLY_INPUTS = ("nightly/runs/",)
NIGHTLY_OUTPUTS = ("nightly/runs/*/out/",)
"""Where runs lie in the data bucket (`functions/core/run.py`, `functions/core/recheck_day.py`)."""


@dataclass(frozen=True)
class BatchLaneArgs:
    """A model's package, the instances its jobs run on, and the data they may touch."""

    stack: str
    region: str
    model: str
    concurrent: int
    """Calls that a container is given at a time."""
    batch: BatchConfig
    rechecks: bool
    """Whether the nightly recheck is this model's work."""
    package: ModelPackage
    image: Image
    storage: Storage
    data: DataBucket
    tags: Mapping[str, str]


class BatchLane(pulumi.ComponentResource):
    """A SageMaker Model for transform jobs."""

    model: aws.sagemaker.Model

    def __init__(self, name: str, args: BatchLaneArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:BatchLane", name, None, opts)
        here = pulumi.ResourceOptions(parent=self)
        lane_name = naming.batch_name(args.stack, args.model)
        role = aws.iam.Role(
            f"{name}-role",
            name=lane_name,
            description=f"Transform jobs of model {args.model}",
            assume_role_policy=iam.trust("sagemaker.amazonaws.com"),
            tags=args.tags,
            opts=here,
        )
        granted = aws.iam.RolePolicy(
            f"{name}-grants", name="batch", role=role.name, policy=iam.policy(_statements(args)), opts=here
        )
        # A transform job asks for no more at a time than there are workers: no queue to bound.
        variables = environment(args.concurrent, 0)
        content = pulumi.Output.all(data_url=args.package.data_url, role=role.arn).apply(
            lambda made: {**made, "image": args.image.uri, "environment": variables}
        )
        self.model = aws.sagemaker.Model(
            f"{name}-model",
            name=content.apply(lambda made: naming.hashed_name(lane_name, made)),
            execution_role_arn=role.arn,
            primary_container={
                "image": args.image.uri,
                "model_data_url": args.package.data_url,
                "environment": variables,
            },
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[granted]),
        )
        self.register_outputs({"model": self.model.name})


def _statements(args: BatchLaneArgs) -> list[iam.Allow]:
    inputs, outputs = (INPUTS + NIGHTLY_INPUTS, OUTPUTS + NIGHTLY_OUTPUTS) if args.rechecks else (INPUTS, OUTPUTS)
    return [
        *grants(args.storage, args.model, args.region, METRIC_NAMESPACES),
        pulls(args.image),
        iam.Allow(["logs:CreateLogGroup"], [iam.ours("logs", args.region, f"log-group:{LOG_GROUP}")]),
        iam.Allow(
            ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
            [iam.ours("logs", args.region, f"log-group:{LOG_GROUP}:log-stream:{naming.transform_jobs(args.stack)}*")],
        ),
        args.data.lists("batch/", *(["nightly/runs/"] if args.rechecks else [])),
        *args.data.reads(*inputs),
        *args.data.writes(*outputs),
        *_datasets(args.batch, args.region),
    ]


def _datasets(batch: BatchConfig, region: str) -> list[iam.Allow]:
    """Other people's buckets. Whose data set a job may name, the `jobs` function decides: the role is a model's."""
    statements: list[iam.Allow] = []
    for prefix in batch.datasets:
        bucket, _, path = prefix.removeprefix("s3://").replace("{tenant}", "*").partition("/")
        arn = f"arn:{iam.partition(region)}:s3:::{bucket}"
        statements += [
            iam.Allow(["s3:ListBucket"], [arn], {"StringLike": {"s3:prefix": f"{path}*"}}),
            iam.Allow(["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"], [f"{arn}/{path}*"]),
        ]
    if batch.dataset_keys:
        through = {"StringEquals": {"kms:ViaService": f"s3.{region}.amazonaws.com"}}
        statements.append(iam.Allow(["kms:Decrypt", "kms:GenerateDataKey"], batch.dataset_keys, through))
    return statements

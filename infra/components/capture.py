"""Capture: the lines that the router hands over, as objects in the data bucket, by model, day and hour.

One delivery stream for all models; Firehose reads each line's model and puts it in that model's folder. Days and hours
are those of the policy's time zone, so that a night's recheck finds a day in one place. What Firehose could not place
goes to a folder of its own, and why, to a log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import iam, naming
from infra.batch_config import CaptureConfig
from infra.components.data_bucket import DataBucket

PREFIX = "capture/"
ERRORS = "capture-errors/"
HOURLY = "date=!{timestamp:yyyy-MM-dd}/hour=!{timestamp:HH}/"
BUFFER_MB = 64
"""The least with dynamic partitioning (developer guide, Firehose, dynamic-partitioning)."""


@dataclass(frozen=True)
class CaptureArgs:
    """Where captures go, and how long they are gathered."""

    stack: str
    region: str
    config: CaptureConfig
    timezone: str
    data: DataBucket
    key_arn: pulumi.Input[str]
    log_retention_days: int
    tags: Mapping[str, str]


class Capture(pulumi.ComponentResource):
    """The delivery stream."""

    stream: aws.kinesis.FirehoseDeliveryStream

    def __init__(self, name: str, args: CaptureArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:Capture", name, None, opts)
        here = pulumi.ResourceOptions(parent=self)
        stream_name = naming.stack_name(args.stack, "capture")
        logs = aws.cloudwatch.LogGroup(
            f"{name}-logs",
            name=f"/aws/kinesisfirehose/{stream_name}",
            retention_in_days=args.log_retention_days,
            tags=args.tags,
            opts=here,
        )
        errors = aws.cloudwatch.LogStream(f"{name}-errors", name="S3Delivery", log_group_name=logs.name, opts=here)
        role = aws.iam.Role(
            f"{name}-role",
            name=stream_name,
            description=f"Firehose stream {stream_name}",
            assume_role_policy=iam.trust_for(
                "firehose.amazonaws.com", iam.ours("firehose", args.region, f"deliverystream/{stream_name}")
            ),
            tags=args.tags,
            opts=here,
        )
        grants = aws.iam.RolePolicy(
            f"{name}-grants",
            name="delivery",
            role=role.name,
            policy=iam.policy(
                [
                    *args.data.writes(PREFIX, ERRORS),
                    iam.Allow(["logs:PutLogEvents"], [pulumi.Output.concat(logs.arn, ":log-stream:", errors.name)]),
                ]
            ),
            opts=here,
        )
        self.stream = aws.kinesis.FirehoseDeliveryStream(
            f"{name}-stream",
            name=stream_name,
            destination="extended_s3",
            server_side_encryption={"enabled": True, "key_type": "CUSTOMER_MANAGED_CMK", "key_arn": args.key_arn},
            extended_s3_configuration={
                "role_arn": role.arn,
                "bucket_arn": args.data.bucket.arn,
                "prefix": f"{PREFIX}model=!{{partitionKeyFromQuery:model}}/{HOURLY}",
                "error_output_prefix": f"{ERRORS}!{{firehose:error-output-type}}/{HOURLY}",
                "custom_time_zone": args.timezone,
                "buffering_size": BUFFER_MB,
                "buffering_interval": args.config.interval_s,
                "compression_format": "GZIP",
                "kms_key_arn": args.key_arn,
                "dynamic_partitioning_configuration": {"enabled": True},
                "processing_configuration": {"enabled": True, "processors": [_by_model()]},
                "cloudwatch_logging_options": {
                    "enabled": True,
                    "log_group_name": logs.name,
                    "log_stream_name": errors.name,
                },
            },
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[grants]),
        )
        self.register_outputs({"stream": self.stream.name})

    @property
    def puts(self) -> iam.Allow:
        """What a role needs to hand over lines."""
        return iam.Allow(["firehose:PutRecord"], [self.stream.arn])


def _by_model() -> aws.kinesis.FirehoseDeliveryStreamExtendedS3ConfigurationProcessingConfigurationProcessorArgsDict:
    return {
        "type": "MetadataExtraction",
        "parameters": [
            {"parameter_name": "JsonParsingEngine", "parameter_value": "JQ-1.6"},
            {"parameter_name": "MetadataExtractionQuery", "parameter_value": "{model:.model}"},
        ],
    }

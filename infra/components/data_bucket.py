"""The bucket of what passes through: payloads that wait, transform jobs' files, results, captures, reports.

Apart from the artifacts' bucket, because nothing here is meant to stay. It keeps no versions, so what is deleted or has
expired is gone; and each prefix has its days. Who may read or write which prefix is granted beside each reader and
writer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import iam, naming
from infra.components.storage import Storage, close

MULTIPART_DAYS = 2
"""Transform jobs leave unfinished uploads behind (developer guide, batch-transform); no job lasts two days."""


@dataclass(frozen=True)
class DataBucketArgs:
    """Whose bucket it is, and how long each prefix is kept."""

    stack: str
    region: str
    storage: Storage
    days: Mapping[str, int]
    """By prefix."""
    protect: bool
    tags: Mapping[str, str]


class DataBucket(pulumi.ComponentResource):
    """A bucket whose objects expire."""

    bucket: aws.s3.Bucket

    def __init__(self, name: str, args: DataBucketArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:DataBucket", name, None, opts)
        here = pulumi.ResourceOptions(parent=self)
        self.region, self.key_arn = args.region, args.storage.key.arn
        self.bucket = aws.s3.Bucket(
            naming.stack_name(args.stack, "data"),
            force_destroy=not args.protect,
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self, protect=args.protect),
        )
        close(name, self.bucket, self.key_arn, here)
        aws.s3.BucketLifecycleConfiguration(
            f"{name}-expiry",
            bucket=self.bucket.id,
            rules=[
                {
                    "id": prefix.strip("/").replace("/", "-"),
                    "status": "Enabled",
                    "filter": {"prefix": prefix},
                    "expiration": {"days": days},
                    "abort_incomplete_multipart_upload": {"days_after_initiation": MULTIPART_DAYS},
                }
                for prefix, days in sorted(args.days.items())
            ],
            opts=here,
        )
        self.register_outputs({"bucket": self.bucket.bucket})

    def reads(self, *prefixes: str) -> list[iam.Allow]:
        """May read objects below these prefixes."""
        return [
            iam.Allow(["s3:GetObject"], self._objects(prefixes)),
            iam.decrypts_through(self.key_arn, "s3", self.region),
        ]

    def lists(self, *prefixes: str) -> iam.Allow:
        """May list what lies below these prefixes; without it, what is absent looks forbidden."""
        return iam.Allow(
            ["s3:ListBucket"], [self.bucket.arn], {"StringLike": {"s3:prefix": [f"{prefix}*" for prefix in prefixes]}}
        )

    def writes(self, *prefixes: str) -> list[iam.Allow]:
        """May write objects below these prefixes."""
        return [
            iam.Allow(["s3:PutObject", "s3:AbortMultipartUpload"], self._objects(prefixes)),
            iam.encrypts_through(self.key_arn, "s3", self.region),
        ]

    def _objects(self, prefixes: tuple[str, ...]) -> list[pulumi.Output[str]]:
        return [pulumi.Output.concat(self.bucket.arn, f"/{prefix}*") for prefix in prefixes]

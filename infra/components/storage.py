"""Where the stack keeps its data: one KMS key and one bucket for artifacts.

The bucket is versioned, encrypted with the stack's key, closed to the public, owned by the account alone, and refuses
plain HTTP. Key and bucket are protected unless the stack says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import iam, naming


@dataclass(frozen=True)
class StorageArgs:
    """What the stack's storage needs to know."""

    stack: str
    protect: bool
    tags: Mapping[str, str]


class Storage(pulumi.ComponentResource):
    """The stack's key and its artifacts bucket."""

    key: aws.kms.Key
    bucket: aws.s3.Bucket

    def __init__(self, name: str, args: StorageArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:Storage", name, None, opts)
        here = pulumi.ResourceOptions(parent=self)
        kept = pulumi.ResourceOptions(parent=self, protect=args.protect)
        self.key = aws.kms.Key(
            f"{name}-key",
            description=f"All data of inferlane stack {args.stack}",
            enable_key_rotation=True,
            deletion_window_in_days=30 if args.protect else 7,
            tags=args.tags,
            opts=kept,
        )
        aws.kms.Alias(
            f"{name}-key-alias",
            name=f"alias/{naming.PROJECT}-{args.stack}",
            target_key_id=self.key.key_id,
            opts=here,
        )
        self.bucket = aws.s3.Bucket(
            naming.stack_name(args.stack, "artifacts"),
            force_destroy=not args.protect,
            tags=args.tags,
            opts=kept,
        )
        close(name, self.bucket, self.key.arn, here)
        aws.s3.BucketVersioning(
            f"{name}-versioning", bucket=self.bucket.id, versioning_configuration={"status": "Enabled"}, opts=here
        )
        self.register_outputs({"bucket": self.bucket.bucket, "key": self.key.arn})


def close(name: str, bucket: aws.s3.Bucket, key_arn: pulumi.Input[str], opts: pulumi.ResourceOptions) -> None:
    """What every bucket of a stack has: one owner, nothing public, the stack's key, TLS only."""
    aws.s3.BucketOwnershipControls(
        f"{name}-ownership", bucket=bucket.id, rule={"object_ownership": "BucketOwnerEnforced"}, opts=opts
    )
    blocked = aws.s3.BucketPublicAccessBlock(
        f"{name}-public-access",
        bucket=bucket.id,
        block_public_acls=True,
        block_public_policy=True,
        ignore_public_acls=True,
        restrict_public_buckets=True,
        opts=opts,
    )
    aws.s3.BucketServerSideEncryptionConfiguration(
        f"{name}-encryption",
        bucket=bucket.id,
        rules=[
            {
                "apply_server_side_encryption_by_default": {"sse_algorithm": "aws:kms", "kms_master_key_id": key_arn},
                # One data key a bucket and period instead of one KMS call an object.
                "bucket_key_enabled": True,
            }
        ],
        opts=opts,
    )
    aws.s3.BucketPolicy(
        f"{name}-tls-only",
        bucket=bucket.id,
        policy=iam.tls_only("s3", bucket.arn, pulumi.Output.concat(bucket.arn, "/*")),
        # S3 answers OperationAborted to two settings of one bucket at once.
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[blocked])),
    )

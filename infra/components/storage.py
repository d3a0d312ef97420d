"""Where the stack keeps its data: one KMS key and one bucket for artifacts.

The bucket is versioned, encrypted with the stack's key, closed to the public, owned by the account alone, and refuses
plain HTTP. Key and bucket are protected unless the stack says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import naming


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
        self._close(name, here)
        self.register_outputs({"bucket": self.bucket.bucket, "key": self.key.arn})

    def _close(self, name: str, opts: pulumi.ResourceOptions) -> None:
        bucket = self.bucket.id
        aws.s3.BucketOwnershipControls(
            f"{name}-ownership", bucket=bucket, rule={"object_ownership": "BucketOwnerEnforced"}, opts=opts
        )
        blocked = aws.s3.BucketPublicAccessBlock(
            f"{name}-public-access",
            bucket=bucket,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=opts,
        )
        aws.s3.BucketVersioning(
            f"{name}-versioning", bucket=bucket, versioning_configuration={"status": "Enabled"}, opts=opts
        )
        aws.s3.BucketServerSideEncryptionConfiguration(
            f"{name}-encryption",
            bucket=bucket,
            rules=[
                {
                    "apply_server_side_encryption_by_default": {
                        "sse_algorithm": "aws:kms",
                        "kms_master_key_id": self.key.arn,
                    },
                    # One data key a bucket and period instead of one KMS call an object.
                    "bucket_key_enabled": True,
                }
            ],
            opts=opts,
        )
        aws.s3.BucketPolicy(
            f"{name}-tls-only",
            bucket=bucket,
            policy=_tls_only(self.bucket.arn),
            # S3 answers OperationAborted to two settings of one bucket at once.
            opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[blocked])),
        )


def _tls_only(bucket_arn: pulumi.Output[str]) -> pulumi.Output[str]:
    return pulumi.Output.json_dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Sid": "TlsOnly",
                    "Effect": "Deny",
                    "Principal": "*",
                    "Action": "s3:*",
                    "Resource": [bucket_arn, pulumi.Output.concat(bucket_arn, "/*")],
                    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
                }
            ],
        },
        sort_keys=True,
    )

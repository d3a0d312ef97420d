"""The table through which the router's instances share what they know: the snapshot, its lease, failure marks.

What is in it is worth seconds: it is read from CloudWatch again when it is gone. So it is encrypted with the stack's
key like everything else, but neither kept by recovery nor protected, and items that nobody refreshes expire.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import iam, naming


@dataclass(frozen=True)
class SnapshotTableArgs:
    """Whose table it is, and the key it is encrypted with."""

    stack: str
    region: str
    key_arn: pulumi.Input[str]
    tags: Mapping[str, str]


class SnapshotTable(pulumi.ComponentResource):
    """A DynamoDB table of a few items, paid by the request."""

    table: aws.dynamodb.Table
    grants: tuple[iam.Allow, ...]
    """What a role needs to read it, take the lease, refresh the snapshot and leave a mark."""

    def __init__(self, name: str, args: SnapshotTableArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:SnapshotTable", name, None, opts)
        self.table = aws.dynamodb.Table(
            f"{name}-table",
            name=naming.stack_name(args.stack, "snapshot"),
            billing_mode="PAY_PER_REQUEST",
            hash_key="pk",
            attributes=[{"name": "pk", "type": "S"}],
            ttl={"attribute_name": "ttl", "enabled": True},
            server_side_encryption={"enabled": True, "kms_key_arn": args.key_arn},
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.grants = (
            iam.Allow(["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"], [self.table.arn]),
            # DynamoDB decrypts the table's key in the caller's name, for reads and writes alike.
            iam.decrypts_through(args.key_arn, "dynamodb", args.region),
        )
        self.register_outputs({"table": self.table.name})

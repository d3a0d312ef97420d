"""The tables of the batch lane: what was accepted and how it ended, and the runs that it is gathered into.

A job's record is found by its tenant first, so nobody reads another's; its listing goes by the time it was accepted.
Records of ended jobs and settled runs expire; open ones never do. Both tables can be restored to any second, and
neither can be deleted while the stack protects its data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import iam, naming

EXPIRES = "expires_at"
BY_TIME = "by_time"
OPEN = "open"
"""Attributes and indexes as `functions/aws` names them."""


@dataclass(frozen=True)
class JobStoreArgs:
    """Whose tables they are, and the key they are encrypted with."""

    stack: str
    region: str
    key_arn: pulumi.Input[str]
    protect: bool
    tags: Mapping[str, str]


class JobStore(pulumi.ComponentResource):
    """The jobs table and the runs table, paid by the request."""

    jobs: aws.dynamodb.Table
    runs: aws.dynamodb.Table
    decrypts: iam.Allow
    """What whoever reads or writes either of them needs besides."""

    def __init__(self, name: str, args: JobStoreArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:JobStore", name, None, opts)
        here = pulumi.ResourceOptions(parent=self, protect=args.protect)
        self.jobs = aws.dynamodb.Table(
            f"{name}-jobs",
            name=naming.stack_name(args.stack, "jobs"),
            billing_mode="PAY_PER_REQUEST",
            hash_key="tenant",
            range_key="id",
            attributes=_attributes(tenant="S", id="S", accepted_at="N"),
            # Keys only: a listing reads the records it shows, and a record's three writes are one here.
            global_secondary_indexes=[_index(BY_TIME, "KEYS_ONLY", "tenant", "accepted_at")],
            ttl={"attribute_name": EXPIRES, "enabled": True},
            server_side_encryption={"enabled": True, "kms_key_arn": args.key_arn},
            point_in_time_recovery={"enabled": True},
            deletion_protection_enabled=args.protect,
            tags=args.tags,
            opts=here,
        )
        self.runs = aws.dynamodb.Table(
            f"{name}-runs",
            name=naming.stack_name(args.stack, "runs"),
            billing_mode="PAY_PER_REQUEST",
            hash_key="name",
            attributes=_attributes(name="S", open="S"),
            global_secondary_indexes=[_index(OPEN, "KEYS_ONLY", "open", "name")],
            ttl={"attribute_name": EXPIRES, "enabled": True},
            server_side_encryption={"enabled": True, "kms_key_arn": args.key_arn},
            point_in_time_recovery={"enabled": True},
            deletion_protection_enabled=args.protect,
            tags=args.tags,
            opts=here,
        )
        self.decrypts = iam.decrypts_through(args.key_arn, "dynamodb", args.region)
        self.register_outputs({"jobs": self.jobs.name, "runs": self.runs.name})

    def may(self, table: aws.dynamodb.Table, *actions: str, index: str | None = None) -> iam.Allow:
        """A statement that allows these actions of DynamoDB on one table, or on one index of it."""
        resource = table.arn if index is None else pulumi.Output.concat(table.arn, f"/index/{index}")
        return iam.Allow([f"dynamodb:{action}" for action in actions], [resource])


def _attributes(**types: str) -> list[aws.dynamodb.TableAttributeArgsDict]:
    return [{"name": name, "type": type_} for name, type_ in types.items()]


def _index(name: str, projection: str, hash_key: str, range_key: str) -> aws.dynamodb.TableGlobalSecondaryIndexArgsDict:
    return {
        "name": name,
        "projection_type": projection,
        "key_schemas": [
            {"attribute_name": hash_key, "key_type": "HASH"},
            {"attribute_name": range_key, "key_type": "RANGE"},
        ],
    }

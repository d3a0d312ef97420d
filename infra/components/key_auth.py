"""API keys: the table that holds their hashes and the function that looks a caller's key up.

Only hashes are stored, encrypted with the stack's key and kept by point-in-time recovery. The function may read single
items of that table and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from functions.settings import authorizer_environment
from infra import iam, naming, package
from infra.components.lambda_function import LambdaFunction, LambdaFunctionArgs

MEMORY_MB = 256
TIMEOUT_S = 10
"""As long as an HTTP API waits for its authorizer. One read of one item takes milliseconds; the rest is for a cold
start in a crowd of others, which must not be answered 500."""


@dataclass(frozen=True)
class KeyAuthArgs:
    """Whose key table this is, and how it is kept."""

    stack: str
    region: str
    key_arn: pulumi.Input[str]
    log_level: str
    log_retention_days: int
    protect: bool
    tags: Mapping[str, str]


class KeyAuth(pulumi.ComponentResource):
    """The keys table and the `authorize` function."""

    table: aws.dynamodb.Table
    authorize: LambdaFunction

    def __init__(self, name: str, args: KeyAuthArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:KeyAuth", name, None, opts)
        self.table = aws.dynamodb.Table(
            f"{name}-keys",
            name=naming.stack_name(args.stack, "keys"),
            billing_mode="PAY_PER_REQUEST",
            hash_key="key_hash",
            attributes=[{"name": "key_hash", "type": "S"}],
            server_side_encryption={"enabled": True, "kms_key_arn": args.key_arn},
            point_in_time_recovery={"enabled": True},
            deletion_protection_enabled=args.protect,
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self, protect=args.protect),
        )
        self.authorize = LambdaFunction(
            "authorize",
            LambdaFunctionArgs(
                function_name=naming.stack_name(args.stack, "authorize"),
                handler="functions.handlers.authorize.handler",
                description="Looks up the API key of a request",
                code=package.archive(),
                environment=_environment(self.table.name, args.log_level),
                memory_mb=MEMORY_MB,
                timeout_s=TIMEOUT_S,
                statements=[
                    iam.Allow(["dynamodb:GetItem"], [self.table.arn]),
                    iam.decrypts_through(args.key_arn, "dynamodb", args.region),
                ],
                log_retention_days=args.log_retention_days,
                tags=args.tags,
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({"table": self.table.name})


def _environment(table: pulumi.Output[str], log_level: str) -> pulumi.Output[dict[str, str]]:
    return table.apply(lambda name: authorizer_environment(keys_table=name, log_level=log_level))

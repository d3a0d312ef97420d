"""One of our Lambda functions: the code, its role, its log group, and the alias callers use.

Every update publishes a version and moves the alias `live` to it; callers name the alias, so a request in flight ends
on the version it began on. The log group is made here, with a retention; the role may write to that group and do what
its statements say, nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import iam, package

ALIAS = "live"


@dataclass(frozen=True)
class LambdaFunctionArgs:
    """What a function runs, with what, and what it may do."""

    function_name: str
    handler: str
    """The import path of the handler in the package."""
    description: str
    code: pulumi.Input[pulumi.Archive]
    environment: pulumi.Input[Mapping[str, str]] | None
    memory_mb: int
    timeout_s: int
    statements: Sequence[iam.Allow]
    log_retention_days: int
    tags: Mapping[str, str]
    disk_mb: int | None = None
    """Of `/tmp`; None: the 512 MB that every function has."""


class LambdaFunction(pulumi.ComponentResource):
    """A function behind its alias."""

    function: aws.lambda_.Function
    alias: aws.lambda_.Alias

    def __init__(self, name: str, args: LambdaFunctionArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:LambdaFunction", name, None, opts)
        here = pulumi.ResourceOptions(parent=self)
        self._label = name
        logs = aws.cloudwatch.LogGroup(
            f"{name}-logs",
            name=f"/aws/lambda/{args.function_name}",
            retention_in_days=args.log_retention_days,
            tags=args.tags,
            opts=here,
        )
        role = aws.iam.Role(
            f"{name}-role",
            name=args.function_name,
            description=f"Lambda function {args.function_name}",
            assume_role_policy=iam.trust("lambda.amazonaws.com"),
            tags=args.tags,
            opts=here,
        )
        self._grants = aws.iam.RolePolicy(
            f"{name}-grants",
            name="function",
            role=role.name,
            policy=iam.policy([iam.writes_logs(logs.arn), *args.statements]),
            opts=here,
        )
        self.function = aws.lambda_.Function(
            f"{name}-function",
            name=args.function_name,
            description=args.description,
            role=role.arn,
            runtime=package.RUNTIME,
            architectures=[package.ARCHITECTURE],
            handler=args.handler,
            code=args.code,
            memory_size=args.memory_mb,
            timeout=args.timeout_s,
            environment=None if args.environment is None else {"variables": args.environment},
            ephemeral_storage=None if args.disk_mb is None else {"size": args.disk_mb},
            publish=True,
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[self._grants, logs]),
        )
        self.alias = aws.lambda_.Alias(
            f"{name}-live",
            name=ALIAS,
            function_name=self.function.name,
            function_version=self.function.version,
            opts=here,
        )
        self.register_outputs({"function": self.function.name})

    def may_be_called(
        self,
        name: str,
        source_arn: pulumi.Input[str] | None,
        principal: str = "apigateway.amazonaws.com",
    ) -> aws.lambda_.Permission:
        """Let a service call the alias, from one source where it names its source. `name` is the statement's."""
        return aws.lambda_.Permission(
            name,
            statement_id=name,
            action="lambda:InvokeFunction",
            function=self.function.name,
            qualifier=self.alias.name,
            principal=principal,
            source_arn=source_arn,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def asynchronously(self, *, tries: int, age_s: int, on_failure: pulumi.Input[str] | None = None) -> None:
        """How a call that nobody waits for is tried again, until it is too old; then it goes to a queue, or nowhere."""
        aws.lambda_.FunctionEventInvokeConfig(
            f"{self._label}-async",
            function_name=self.function.name,
            qualifier=self.alias.name,
            maximum_retry_attempts=tries,
            maximum_event_age_in_seconds=age_s,
            destination_config=None if on_failure is None else {"on_failure": {"destination": on_failure}},
            # Lambda looks whether the role may send there.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[self._grants]),
        )

    def reads(self, queue: aws.sqs.Queue, batch: int, concurrency: int, tags: Mapping[str, str]) -> None:
        """Call the alias with a queue's messages; those that it names as failed come again, the others do not."""
        aws.lambda_.EventSourceMapping(
            f"{self._label}-messages",
            event_source_arn=queue.arn,
            function_name=self.alias.arn,
            batch_size=batch,
            function_response_types=["ReportBatchItemFailures"],
            scaling_config={"maximum_concurrency": concurrency},
            tags=tags,
            # Lambda looks whether the role may receive.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[self._grants]),
        )

"""The router: the `route` function and the door in front of it.

The function may invoke exactly the stack's endpoints, read metrics and its policy, share its snapshot, and accept what
can wait. Which endpoints there are it learns from the topology in its package, which exists only once the endpoints do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from functions.settings import router_environment
from infra import iam, naming, package
from infra.components.capture import Capture
from infra.components.deferral import Deferral
from infra.components.front_door import FrontDoor, FrontDoorArgs
from infra.components.key_auth import KeyAuth, KeyAuthArgs
from infra.components.lambda_function import LambdaFunction, LambdaFunctionArgs
from infra.components.policy_store import PolicyStore
from infra.components.snapshot_table import SnapshotTable
from infra.config import StackConfig


@dataclass(frozen=True)
class RouterArgs:
    """What the router knows, may call, and runs on."""

    config: StackConfig
    topology: pulumi.Input[str]
    """The topology document, as text."""
    endpoints: Sequence[aws.sagemaker.Endpoint]
    policy: PolicyStore
    snapshots: SnapshotTable
    key_arn: pulumi.Input[str]
    tags: Mapping[str, str]
    deferral: Deferral | None = None
    capture: Capture | None = None
    jobs: LambdaFunction | None = None
    """Who answers for jobs; all three: None where nothing waits."""


class Router(pulumi.ComponentResource):
    """The `route` function behind its HTTP API."""

    url: pulumi.Output[str]
    route: LambdaFunction
    key_auth: KeyAuth | None
    function_names: dict[str, pulumi.Output[str]]

    def __init__(self, name: str, args: RouterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:Router", name, None, opts)
        config = args.config
        self.key_auth = self._key_auth(args) if config.auth == "api_key" else None
        self.route = LambdaFunction(
            "route",
            LambdaFunctionArgs(
                function_name=naming.stack_name(config.stack, "route"),
                handler="functions.handlers.route.handler",
                description="Decides for each request which lane serves it, and falls back when one fails",
                code=pulumi.Output.from_input(args.topology).apply(package.archive),
                environment=_environment(args),
                memory_mb=config.router.memory_mb,
                timeout_s=config.router.timeout_s,
                statements=_statements(args),
                log_retention_days=config.log_retention_days,
                tags=args.tags,
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        door = FrontDoor(
            "front-door",
            FrontDoorArgs(
                stack=config.stack,
                route=self.route,
                jobs=args.jobs,
                guard=self.key_auth or config.jwt,
                throttle=config.throttle,
                alarms=config.alarms,
                log_retention_days=config.log_retention_days,
                tags=args.tags,
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.url = door.url
        self.function_names = {"route": self.route.function.name}
        if self.key_auth:
            self.function_names["authorize"] = self.key_auth.authorize.function.name
        self.register_outputs({"url": self.url})

    def _key_auth(self, args: RouterArgs) -> KeyAuth:
        config = args.config
        return KeyAuth(
            "key-auth",
            KeyAuthArgs(
                stack=config.stack,
                region=config.region,
                key_arn=args.key_arn,
                log_level=config.router.log_level,
                log_retention_days=config.log_retention_days,
                protect=config.protect,
                tags=args.tags,
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )


def _statements(args: RouterArgs) -> list[iam.Allow]:
    return [
        *([iam.Allow(["sagemaker:InvokeEndpoint"], arns)] if (arns := [lane.arn for lane in args.endpoints]) else []),
        # GetMetricData has no resource-level permissions, nor a namespace condition.
        iam.Allow(["cloudwatch:GetMetricData"], [iam.ANY]),
        args.policy.reads,
        *args.snapshots.grants,
        *(args.deferral.grants if args.deferral else []),
        *([args.capture.puts] if args.capture else []),
    ]


def _environment(args: RouterArgs) -> pulumi.Output[dict[str, str]]:
    router = args.config.router
    policy, deferral, capture = args.policy, args.deferral, args.capture
    return pulumi.Output.all(
        policy.application_id,
        policy.environment_id,
        policy.profile_id,
        args.snapshots.table.name,
        deferral and deferral.store.jobs.name,
        deferral and deferral.work.queue.url,
        deferral and deferral.promotions.queue.url,
        deferral and deferral.data.bucket.bucket,
        capture and capture.stream.name,
    ).apply(
        lambda names: router_environment(
            stack=args.config.stack,
            policy_application=names[0],
            policy_environment=names[1],
            policy_profile=names[2],
            snapshot_table=names[3],
            jobs_table=names[4],
            work_queue=names[5],
            promote_queue=names[6],
            data_bucket=names[7],
            capture_stream=names[8],
            metric_period_s=router.metric_period_s,
            snapshot_ttl_s=router.snapshot_ttl_s,
            policy_ttl_s=router.policy_ttl_s,
            log_level=router.log_level,
        )
    )

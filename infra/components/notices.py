"""Notices: who asked to be told that jobs have ended is told, by a topic or a signed call.

The functions that end jobs put ids and states on a queue; `notify` takes them from there, so that a slow receiver slows
no job, and one that is down is tried again. A notice that nobody took in all its tries lies in the dead-letter queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from functions.batch_settings import Webhook, notify_environment
from infra import iam, naming, package
from infra.batch_config import NotifyConfig
from infra.components.lambda_function import LambdaFunction, LambdaFunctionArgs
from infra.components.work_queue import WorkQueue, WorkQueueArgs

MEMORY_MB = 256
TIMEOUT_S = 90
"""Ten calls of 5 s, one after the other, with room."""
BATCH = 10
CONCURRENCY = 5
RECEIVES = 20
"""With the time a notice stays hidden between two tries: half an hour."""


@dataclass(frozen=True)
class NoticesArgs:
    """Who is told, and with what."""

    stack: str
    region: str
    config: NotifyConfig
    key_arn: pulumi.Input[str]
    log_level: str
    log_retention_days: int
    tags: Mapping[str, str]


class Notices(pulumi.ComponentResource):
    """The notices queue and the `notify` function."""

    queue: WorkQueue
    notify: LambdaFunction

    def __init__(self, name: str, args: NoticesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:Notices", name, None, opts)
        here = pulumi.ResourceOptions(parent=self)
        self.queue = WorkQueue(
            name,
            WorkQueueArgs(args.stack, args.region, "notices", TIMEOUT_S, RECEIVES, args.key_arn, args.tags),
            opts=here,
        )
        self.notify = LambdaFunction(
            "notify",
            LambdaFunctionArgs(
                function_name=naming.stack_name(args.stack, "notify"),
                handler="functions.handlers.notify.handler",
                description="Tells those who asked that jobs have ended",
                code=package.archive(),
                environment=notify_environment(
                    stack=args.stack,
                    topic=args.config.topic,
                    webhooks={
                        tenant: Webhook(hook.url, hook.secret_parameter)
                        for tenant, hook in sorted(args.config.webhooks.items())
                    },
                    log_level=args.log_level,
                ),
                memory_mb=MEMORY_MB,
                timeout_s=TIMEOUT_S,
                statements=[*self.queue.receives, *_statements(args)],
                log_retention_days=args.log_retention_days,
                tags=args.tags,
            ),
            opts=here,
        )
        self.notify.reads(self.queue.queue, BATCH, CONCURRENCY, args.tags)
        self.register_outputs({"notify": self.notify.function.name})


def _statements(args: NoticesArgs) -> list[iam.Allow]:
    statements = [] if args.config.topic is None else [iam.Allow(["sns:Publish"], [args.config.topic])]
    secrets = sorted({hook.secret_parameter for hook in args.config.webhooks.values()})
    if secrets:
        # A parameter's name begins with a slash, and its ARN has that one only.
        parameters = [iam.ours("ssm", args.region, f"parameter{secret}") for secret in secrets]
        statements += [
            iam.Allow(["ssm:GetParameter"], parameters),
            # For secrets under the stack's key; AWS's own key for parameters needs no grant.
            iam.decrypts_through(args.key_arn, "ssm", args.region),
        ]
    return statements

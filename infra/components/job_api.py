"""The `jobs` function: what a caller may ask about its jobs, and whole data sets as one job.

It reads records, and changes two things only: it cancels what has not begun, and accepts a data set, as the router
accepts a request. Whose a job is, the policy says from the caller's identity, as in the router.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from functions.batch_settings import jobs_environment
from infra import iam, naming, package
from infra.components.data_bucket import DataBucket
from infra.components.job_store import BY_TIME, JobStore
from infra.components.lambda_function import LambdaFunction, LambdaFunctionArgs
from infra.components.policy_store import PolicyStore
from infra.components.work_queue import WorkQueue
from infra.config import StackConfig

MEMORY_MB = 512
TIMEOUT_S = 29
"""An HTTP API ends every call at 30 s."""


@dataclass(frozen=True)
class JobApiArgs:
    """What the function reads, and where it accepts."""

    config: StackConfig
    topology: pulumi.Input[str]
    """The topology document, as text."""
    policy: PolicyStore
    store: JobStore
    work: WorkQueue
    data: DataBucket
    tags: Mapping[str, str]


class JobApi(pulumi.ComponentResource):
    """The `jobs` function."""

    jobs: LambdaFunction

    def __init__(self, name: str, args: JobApiArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:JobApi", name, None, opts)
        self.jobs = LambdaFunction(
            "jobs",
            LambdaFunctionArgs(
                function_name=naming.stack_name(args.config.stack, "jobs"),
                handler="functions.handlers.jobs.handler",
                description="Tells callers how their jobs fare, cancels them, and takes data sets",
                code=pulumi.Output.from_input(args.topology).apply(package.archive),
                environment=_environment(args),
                memory_mb=MEMORY_MB,
                timeout_s=TIMEOUT_S,
                statements=_statements(args),
                log_retention_days=args.config.log_retention_days,
                tags=args.tags,
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({"jobs": self.jobs.function.name})


def _statements(args: JobApiArgs) -> list[iam.Allow]:
    store = args.store
    return [
        args.policy.reads,
        store.may(store.jobs, "GetItem", "BatchGetItem", "PutItem", "UpdateItem"),
        store.may(store.jobs, "Query", index=BY_TIME),
        store.may(store.runs, "GetItem"),
        store.decrypts,
        # A link to a result works as long as whoever signed it may read the result.
        *args.data.reads("batch/results/"),
        args.data.lists("batch/results/"),
        *args.work.sends,
    ]


def _environment(args: JobApiArgs) -> pulumi.Output[dict[str, str]]:
    config, policy, store = args.config, args.policy, args.store
    return pulumi.Output.all(
        policy.application_id,
        policy.environment_id,
        policy.profile_id,
        store.jobs.name,
        store.runs.name,
        args.work.queue.url,
        args.data.bucket.bucket,
    ).apply(
        lambda made: jobs_environment(
            stack=config.stack,
            policy_application=made[0],
            policy_environment=made[1],
            policy_profile=made[2],
            jobs_table=made[3],
            runs_table=made[4],
            work_queue=made[5],
            data_bucket=made[6],
            datasets=config.batch.datasets,
            retention_days=config.batch.job_days,
            policy_ttl_s=config.router.policy_ttl_s,
            log_level=config.router.log_level,
        )
    )

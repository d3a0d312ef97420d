"""The four functions that move jobs, and what sets each off.

`collect` drains the queue into runs, every minute. `settle` tells jobs how their run ended, when SageMaker says that a
transform job has. `promote` answers through the lanes that callers wait on what batch could not in time, as its queue
fills. `audit` counts, every few hours, whether anything is overdue or missing. They agree by the records alone: each
may be killed, run twice or come late (docs/decisions/0014-batch-lane.md).

What was set off and failed is not lost either: `collect` has its next turn soon, `audit` is tried again; an event that
`settle` could not handle in all its tries goes to a queue that an alarm watches, and the next `collect` settles that
run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pulumi
import pulumi_aws as aws

from functions.batch_settings import Channel, batch_environment
from infra import iam, naming, package
from infra.components.data_bucket import DataBucket
from infra.components.job_store import OPEN, JobStore
from infra.components.lambda_function import LambdaFunction, LambdaFunctionArgs
from infra.components.schedules import Schedules, Turn
from infra.components.work_queue import WorkQueue, WorkQueueArgs, dead_queue, sends_to
from infra.config import StackConfig

Name = Literal["collect", "settle", "promote", "audit"]

MEMORY_MB = 1024
"""A run's index and outputs are worked on a file at a time; with 1024 MB comes more than half a core."""
SETTLE_TIMEOUT_S = 900
"""All that a function may have: 20,000 results take a minute or two, and what is cut off is taken up again."""
PROMOTE_TIMEOUT_S = 150
"""Two attempts of 60 s, as long as SageMaker gives any, with what is around them."""
PROMOTE_BATCH = 5
PROMOTE_RECEIVES = 16
"""Six of them soon after each other (`functions/core/deferral.py`). The function sends anew what came often in vain, so
that an outage of the lanes makes no dead letters; a crash does, or a table that is away for half an hour."""
COLLECT_RECEIVES = 10
AUDIT_TIMEOUT_S = 900
AUDIT_TRIES = 2
AUDIT_AGE_S = 3600
"""Hours until the next one: so one that failed is made again, for an hour. Two at once do no harm."""
EVENT_TRIES = 2
EVENT_AGE_S = 6 * 3600
"""How long an event of SageMaker's is worth handling: Lambda's own limit. `collect` finds the run earlier."""
TRANSFORM_ENDS = ("Completed", "Failed", "Stopped")


@dataclass(frozen=True)
class BatchFunctionsArgs:
    """What the functions work on, and with what."""

    config: StackConfig
    topology: pulumi.Input[str]
    """The topology document, as text."""
    endpoints: Sequence[aws.sagemaker.Endpoint]
    """What promotion may invoke."""
    models: Sequence[aws.sagemaker.Model]
    """What transform jobs may run."""
    store: JobStore
    data: DataBucket
    notices: WorkQueue | None
    schedules: Schedules
    key_arn: pulumi.Input[str]
    tags: Mapping[str, str]


class BatchFunctions(pulumi.ComponentResource):
    """`collect`, `settle`, `promote` and `audit`."""

    functions: Mapping[Name, LambdaFunction]
    work: WorkQueue
    promotions: WorkQueue
    unsettled: aws.sqs.Queue
    """Events that `settle` could not handle."""

    def __init__(self, name: str, args: BatchFunctionsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:BatchFunctions", name, None, opts)
        self._args = args
        config = args.config
        self.work = self._queue("work", config.batch.collect_timeout_s, COLLECT_RECEIVES)
        self.promotions = self._queue("promote", PROMOTE_TIMEOUT_S, PROMOTE_RECEIVES)
        here = pulumi.ResourceOptions(parent=self)
        self.unsettled = dead_queue("settle", config.stack, "settle", args.key_arn, args.tags, here)
        self.functions = {
            "collect": self._function(
                "collect",
                "Gathers jobs that wait into transform jobs, and takes out what cannot wait so long",
                config.batch.collect_timeout_s,
                [
                    *self._runs(),
                    args.store.may(args.store.runs, "DeleteItem"),  # the lease, given back
                    *self._ends(),
                    *args.data.writes("batch/"),
                    *self.work.receives,
                    *self.promotions.sends,
                ],
            ),
            "settle": self._function(
                "settle",
                "Tells each job of an ended transform job how it ended",
                SETTLE_TIMEOUT_S,
                [
                    *self._runs(),
                    *self._ends(),
                    *args.data.writes("batch/"),
                    *self.promotions.sends,
                    *sends_to(self.unsettled, args.key_arn, config.region),
                ],
            ),
            "promote": self._function(
                "promote",
                "Answers by another lane what batch could not in time",
                PROMOTE_TIMEOUT_S,
                [
                    *self._invokes(),
                    *self._ends(),
                    *args.data.writes("batch/results/"),
                    *self.promotions.receives,
                    *self.promotions.sends,
                ],
            ),
            "audit": self._function(
                "audit", "Counts the jobs that are open, overdue or missing", AUDIT_TIMEOUT_S, self._audits()
            ),
        }
        self._by_the_clock()
        self._by_event()
        self._by_message()
        self.register_outputs({})

    def _queue(self, queue: str, hidden_s: int, receives: int) -> WorkQueue:
        config = self._args.config
        return WorkQueue(
            queue,
            WorkQueueArgs(config.stack, config.region, queue, hidden_s, receives, self._args.key_arn, self._args.tags),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _function(
        self, name: Name, description: str, timeout_s: int, statements: Sequence[iam.Allow]
    ) -> LambdaFunction:
        config = self._args.config
        return LambdaFunction(
            name,
            LambdaFunctionArgs(
                function_name=naming.stack_name(config.stack, name),
                handler=f"functions.handlers.{name}.handler",
                description=description,
                code=pulumi.Output.from_input(self._args.topology).apply(package.archive),
                environment=self._environment(name),
                memory_mb=MEMORY_MB,
                timeout_s=timeout_s,
                statements=statements,
                log_retention_days=config.log_retention_days,
                tags=self._args.tags,
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _environment(self, name: Name) -> pulumi.Output[dict[str, str]]:
        args, config = self._args, self._args.config
        notices = args.notices.queue.url if args.notices else pulumi.Output.from_input(None)
        return pulumi.Output.all(
            args.store.jobs.name,
            args.store.runs.name,
            self.work.queue.url,
            self.promotions.queue.url,
            args.data.bucket.bucket,
            notices,
            args.data.key_arn,
        ).apply(
            lambda made: batch_environment(
                name,
                stack=config.stack,
                jobs_table=made[0],
                runs_table=made[1],
                work_queue=made[2],
                promote_queue=made[3],
                data_bucket=made[4],
                data_key=made[6],
                notices_queue=made[5],
                channels=channels(config),
                retention_days=config.batch.job_days,
                log_level=config.router.log_level,
            )
        )

    def _runs(self) -> list[iam.Allow]:
        """To gather runs, begin their transform jobs, and see how they fare."""
        args, region = self._args, self._args.config.region
        jobs = iam.ours("sagemaker", region, f"transform-job/{naming.transform_jobs(args.config.stack)}*")
        return [
            iam.Allow(["sagemaker:CreateTransformJob"], [jobs, *(model.arn for model in args.models)]),
            iam.Allow(["sagemaker:AddTags", "sagemaker:DescribeTransformJob"], [jobs]),
            args.store.may(args.store.runs, "GetItem", "BatchGetItem", "PutItem", "UpdateItem"),
            args.store.may(args.store.runs, "Query", index=OPEN),
        ]

    def _ends(self) -> list[iam.Allow]:
        """To claim and end jobs, read what waits and what came out, and say so."""
        args = self._args
        return [
            args.store.may(args.store.jobs, "BatchGetItem", "UpdateItem"),
            args.store.decrypts,
            args.data.lists("batch/"),
            *args.data.reads("batch/"),
            *(args.notices.sends if args.notices else []),
        ]

    def _invokes(self) -> list[iam.Allow]:
        arns = [endpoint.arn for endpoint in self._args.endpoints]
        return [iam.Allow(["sagemaker:InvokeEndpoint"], arns)] if arns else []

    def _audits(self) -> list[iam.Allow]:
        args = self._args
        return [
            args.store.may(args.store.jobs, "Scan"),
            args.store.may(args.store.runs, "GetItem"),
            args.store.decrypts,
            # GetMetricData has no resource-level permissions, nor a namespace condition.
            iam.Allow(["cloudwatch:GetMetricData"], [iam.ANY]),
        ]

    def _by_the_clock(self) -> None:
        hours = self._args.config.batch.audit_hours
        seldom = "rate(1 hour)" if hours == 1 else f"rate({hours} hours)"
        turns: tuple[tuple[Name, str, str, int, int], ...] = (
            # Scheduler knows no shorter rate; the plan counts with it (`functions/core`). The next turn comes soon
            # enough; a second one of the same minute would only meet the first one's lease.
            ("collect", "rate(1 minute)", "Gathers jobs that wait", 0, 60),
            ("audit", seldom, "Counts jobs", AUDIT_TRIES, AUDIT_AGE_S),
        )
        for name, expression, description, tries, age_s in turns:
            function = self.functions[name]
            arn, action = function.alias.arn, "lambda:InvokeFunction"
            self._args.schedules.add(name, Turn(description, expression, arn, action, tries, age_s))
            function.asynchronously(tries=tries, age_s=age_s)

    def _by_event(self) -> None:
        settle, here = self.functions["settle"], pulumi.ResourceOptions(parent=self)
        prefix = naming.transform_jobs(self._args.config.stack)
        rule = aws.cloudwatch.EventRule(
            "settle-rule",
            name=naming.stack_name(self._args.config.stack, "transform-jobs"),
            description="A transform job of this stack has ended",
            event_pattern=json.dumps(
                {
                    "source": ["aws.sagemaker"],
                    "detail-type": ["SageMaker Transform Job State Change"],
                    "detail": {
                        "TransformJobName": [{"prefix": prefix}],
                        "TransformJobStatus": list(TRANSFORM_ENDS),
                    },
                },
                sort_keys=True,
            ),
            tags=self._args.tags,
            opts=here,
        )
        settle.may_be_called("settle-rule-calls-settle", rule.arn, "events.amazonaws.com")
        aws.cloudwatch.EventTarget(
            "settle-target",
            rule=rule.name,
            target_id="settle",
            arn=settle.alias.arn,
            retry_policy={"maximum_retry_attempts": EVENT_TRIES, "maximum_event_age_in_seconds": EVENT_AGE_S},
            opts=here,
        )
        settle.asynchronously(tries=EVENT_TRIES, age_s=EVENT_AGE_S, on_failure=self.unsettled.arn)

    def _by_message(self) -> None:
        self.functions["promote"].reads(
            self.promotions.queue, PROMOTE_BATCH, self._args.config.batch.promote_concurrency, self._args.tags
        )


def channels(config: StackConfig) -> list[Channel]:
    """How those are told who asked to be told of ended jobs."""
    notify = config.batch.notify
    asked: list[tuple[Channel, bool]] = [
        ("topic", bool(notify and notify.topic)),
        ("webhook", bool(notify and notify.webhooks)),
    ]
    return [channel for channel, wanted in asked if wanted]

"""The nightly recheck: `prepare` and `report`, the state machine between them, and the clock that starts it.

The state machine (`infra/nightly_states.py`) may call the two functions and run transform jobs of the heavy model whose
names are the nightly's. `prepare` reads captures and writes what the job will read; `report` reads what it wrote, and
writes the report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pulumi
import pulumi_aws as aws

from functions.nightly_settings import nightly_environment
from infra import iam, naming, nightly_states, package
from infra.batch_config import NightlyConfig
from infra.components.capture import PREFIX as CAPTURES
from infra.components.data_bucket import DataBucket
from infra.components.lambda_function import LambdaFunction, LambdaFunctionArgs
from infra.components.schedules import Schedules, Turn
from infra.config import StackConfig

RUNS = "nightly/runs/"
REPORTS = "nightly/reports/"
BUCKET_TAG = "inferlane:bucket"
"""How `inferlane nightly` finds the reports of a stack that it has no outputs of."""
TIMEOUT_S = 900
PREPARE_MEMORY_MB = 1024
PREPARE_DISK_MB = 2048
"""A day's captures lie there once, unpacked."""
REPORT_MEMORY_MB = 512
GIVE_UP_S = 6 * 3600
"""A night that could not be started by then is started by hand, if at all."""


@dataclass(frozen=True)
class NightlyRecheckArgs:
    """Which model rechecks which, when, and with what."""

    config: StackConfig
    nightly: NightlyConfig
    topology: pulumi.Input[str]
    """The topology document, as text."""
    heavy: aws.sagemaker.Model
    timezone: str
    data: DataBucket
    schedules: Schedules
    tags: Mapping[str, str]


class NightlyRecheck(pulumi.ComponentResource):
    """The state machine, its functions and its schedule."""

    machine: aws.sfn.StateMachine
    prepare: LambdaFunction
    report: LambdaFunction

    def __init__(self, name: str, args: NightlyRecheckArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:NightlyRecheck", name, None, opts)
        self._args = args
        topic = args.config.alarms.topic
        self.prepare = self._function(
            "prepare",
            "Gathers a day's captured requests for the heavy model",
            PREPARE_MEMORY_MB,
            [
                args.data.lists(CAPTURES, "nightly/"),
                *args.data.reads(CAPTURES, "nightly/"),
                *args.data.writes(RUNS),
                self._describes(),
            ],
            PREPARE_DISK_MB,
        )
        self.report = self._function(
            "report",
            "Compares the heavy model's verdicts with those of the day, and writes the report",
            REPORT_MEMORY_MB,
            [
                args.data.lists("nightly/"),
                *args.data.reads("nightly/"),
                *args.data.writes(REPORTS),
                self._describes(),
                *([iam.Allow(["sns:Publish"], [topic])] if topic else []),
            ],
        )
        role, grants = self._role(name)
        self.machine = aws.sfn.StateMachine(
            f"{name}-machine",
            name=naming.stack_name(args.config.stack, "nightly"),
            type="STANDARD",
            role_arn=role.arn,
            definition=pulumi.Output.all(self.prepare.alias.arn, self.report.alias.arn).apply(
                lambda arns: nightly_states.definition(arns[0], arns[1], args.nightly.pause_s)
            ),
            tags=args.data.bucket.bucket.apply(lambda bucket: {**args.tags, BUCKET_TAG: bucket}),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[grants]),
        )
        hour, minute = args.nightly.at.split(":")
        args.schedules.add(
            name,
            Turn(
                description=f"Rechecks yesterday's {args.nightly.rechecks} by {args.nightly.model}",
                expression=f"cron({int(minute)} {int(hour)} * * ? *)",
                target_arn=self.machine.arn,
                action="states:StartExecution",
                retries=10,
                give_up_s=GIVE_UP_S,
                timezone=args.timezone,
                input="{}",
            ),
        )
        self.register_outputs({"machine": self.machine.arn})

    def _function(
        self,
        name: Literal["prepare", "report"],
        description: str,
        memory_mb: int,
        statements: Sequence[iam.Allow],
        disk_mb: int | None = None,
    ) -> LambdaFunction:
        args, config = self._args, self._args.config
        return LambdaFunction(
            name,
            LambdaFunctionArgs(
                function_name=naming.stack_name(config.stack, name),
                handler=f"functions.handlers.{name}.handler",
                description=description,
                code=pulumi.Output.from_input(args.topology).apply(package.archive),
                environment=args.data.bucket.bucket.apply(
                    lambda bucket: nightly_environment(
                        name,
                        stack=config.stack,
                        data_bucket=bucket,
                        light_model=args.nightly.rechecks,
                        heavy_model=args.nightly.model,
                        time_zone=args.timezone,
                        topic=config.alarms.topic,
                        log_level=config.router.log_level,
                    )
                ),
                memory_mb=memory_mb,
                timeout_s=TIMEOUT_S,
                statements=statements,
                log_retention_days=config.log_retention_days,
                tags=args.tags,
                disk_mb=disk_mb,
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _jobs(self) -> str:
        config = self._args.config
        return iam.ours("sagemaker", config.region, f"transform-job/{naming.transform_jobs(config.stack)}nightly-*")

    def _describes(self) -> iam.Allow:
        return iam.Allow(["sagemaker:DescribeTransformJob"], [self._jobs()])

    def _role(self, name: str) -> tuple[aws.iam.Role, aws.iam.RolePolicy]:
        args, here = self._args, pulumi.ResourceOptions(parent=self)
        machine = naming.stack_name(args.config.stack, "nightly")
        role = aws.iam.Role(
            f"{name}-role",
            name=machine,
            description=f"State machine {machine}",
            assume_role_policy=iam.trust_for(
                "states.amazonaws.com", iam.ours("states", args.config.region, f"stateMachine:{machine}")
            ),
            tags=args.tags,
            opts=here,
        )
        grants = aws.iam.RolePolicy(
            f"{name}-grants",
            name="states",
            role=role.name,
            policy=iam.policy(
                [
                    iam.Allow(["lambda:InvokeFunction"], [self.prepare.alias.arn, self.report.alias.arn]),
                    iam.Allow(["sagemaker:CreateTransformJob"], [self._jobs(), args.heavy.arn]),
                    iam.Allow(["sagemaker:AddTags"], [self._jobs()]),
                    self._describes(),
                ]
            ),
            opts=here,
        )
        return role, grants

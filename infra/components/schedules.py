"""What runs by the clock: a group of EventBridge schedules, each with a role that can start its one target.

A role can be assumed for schedules of this group only. A target that fails is not tried again by the schedule where the
next turn does the same work anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import iam, naming


@dataclass(frozen=True)
class SchedulesArgs:
    """Whose schedules these are."""

    stack: str
    tags: Mapping[str, str]


@dataclass(frozen=True)
class Turn:
    """When something is started, what, and with what right."""

    description: str
    expression: str
    """`rate(1 minute)`, `cron(0 1 * * ? *)`."""
    target_arn: pulumi.Input[str]
    action: str
    """What starting it is called in IAM: `lambda:InvokeFunction`."""
    retries: int
    give_up_s: int
    """How long after its time a turn is still worth starting; Scheduler takes 60 to 86,400."""
    timezone: str | None = None
    input: str | None = None


class Schedules(pulumi.ComponentResource):
    """A schedule group."""

    def __init__(self, name: str, args: SchedulesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:Schedules", name, None, opts)
        self._args = args
        self._group = aws.scheduler.ScheduleGroup(
            f"{name}-group",
            name=f"{naming.PROJECT}-{args.stack}",
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({"group": self._group.name})

    def add(self, name: str, turn: Turn) -> aws.scheduler.Schedule:
        """A schedule of this name, `inferlane-{stack}-{name}`."""
        here = pulumi.ResourceOptions(parent=self)
        role = aws.iam.Role(
            f"{name}-schedule-role",
            name=naming.stack_name(self._args.stack, f"{name}-schedule"),
            description=f"EventBridge Scheduler starts {name}",
            assume_role_policy=iam.trust_for("scheduler.amazonaws.com", self._group.arn),
            tags=self._args.tags,
            opts=here,
        )
        grants = aws.iam.RolePolicy(
            f"{name}-schedule-grants",
            name="target",
            role=role.name,
            policy=iam.policy([iam.Allow([turn.action], [turn.target_arn])]),
            opts=here,
        )
        return aws.scheduler.Schedule(
            f"{name}-schedule",
            name=naming.stack_name(self._args.stack, name),
            group_name=self._group.name,
            description=turn.description,
            schedule_expression=turn.expression,
            schedule_expression_timezone=turn.timezone,
            flexible_time_window={"mode": "OFF"},
            target={
                "arn": turn.target_arn,
                "role_arn": role.arn,
                "input": turn.input,
                "retry_policy": {
                    "maximum_retry_attempts": turn.retries,
                    "maximum_event_age_in_seconds": turn.give_up_s,
                },
            },
            opts=pulumi.ResourceOptions(parent=self, depends_on=[grants]),
        )

"""Alarms on work that nobody waits for, and so nobody would miss: each is a way in which a job could be lost or late.

A message in a dead-letter queue; work that lies untouched; a collector that fails, or puts off what it does; a job that
is overdue, a job or a record that is missing by our own count; an audit that cannot count; a night without its recheck;
captures that do not arrive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import metrics
from infra.alarms import Alarm, Bell, Metric
from infra.batch_config import CaptureConfig
from infra.components.lambda_function import LambdaFunction
from infra.components.work_queue import WorkQueue
from infra.config import AlarmsConfig

AUDIT_SLACK_S = 600
"""Beyond the time between two audits, so that none falls between two looks: a missing count would end the alarm."""
OLD_WORK_S = 1800
"""`collect` empties the queue every minute, and drops what was never accepted after ten."""
PUT_OFF_PERIODS = 15
PUT_OFF_BAD_PERIODS = 12
"""A quota in use or a busy minute puts steps off as it should, and ends; a permission that is missing does not."""
OLD_CAPTURE_S = 900
"""Beyond the time that Firehose gathers lines anyway."""


@dataclass(frozen=True)
class BatchAlarmsArgs:
    """What is watched, and whom the alarms tell."""

    stack: str
    work: WorkQueue
    promotions: WorkQueue
    dead: Mapping[str, aws.sqs.Queue]
    """Every dead-letter queue, by the name of what could not be done."""
    collect: LambdaFunction
    audit: LambdaFunction
    audit_s: int
    """How often the audit counts."""
    config: AlarmsConfig
    tags: Mapping[str, str]
    machine: aws.sfn.StateMachine | None = None
    capture: CaptureConfig | None = None
    stream: aws.kinesis.FirehoseDeliveryStream | None = None


class BatchAlarms(pulumi.ComponentResource):
    """The alarms of the batch lane, the nightly recheck and capture."""

    def __init__(self, name: str, args: BatchAlarmsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:BatchAlarms", name, None, opts)
        bell = Bell(args.stack, args.config, args.tags, self)
        for alarm in (*_queues(args), *_counts(args), *_nightly(args), *_capture(args)):
            bell.hang(alarm)
        self.register_outputs({})


def _queues(args: BatchAlarmsArgs) -> list[Alarm]:
    dead = [
        Alarm(
            name=f"{what}-dead-letters",
            says=f"There is something in a dead-letter queue: what was to be done for {what} was tried and left",
            measured=_queue(queue, "ApproximateNumberOfMessagesVisible"),
            line=0,
            periods=1,
            bad_periods=1,
        )
        for what, queue in sorted(args.dead.items())
    ]
    old = [
        Alarm(
            name=f"{what}-age",
            says=f"Something has been in the queue of {what} for more than {OLD_WORK_S} s",
            measured=_queue(queue.queue, "ApproximateAgeOfOldestMessage"),
            line=OLD_WORK_S,
        )
        for what, queue in (("work", args.work), ("promote", args.promotions))
    ]
    return dead + old


def _queue(queue: aws.sqs.Queue, metric: str) -> Metric:
    return Metric("AWS/SQS", metric, {"QueueName": queue.name}, "Maximum")


def _counts(args: BatchAlarmsArgs) -> list[Alarm]:
    of_stack = metrics.of_stack(args.stack)
    audit_s = args.audit_s + AUDIT_SLACK_S
    return [
        Alarm(
            name="collect-errors",
            says="The collector fails: jobs stay in the queue",
            measured=_errors(args.collect),
            line=0,
        ),
        Alarm(
            name="steps-put-off",
            says="The collector puts off from minute to minute what a service refuses or fails",
            measured=Metric(metrics.NAMESPACE, metrics.STEPS_PUT_OFF, of_stack, "Sum"),
            line=0,
            periods=PUT_OFF_PERIODS,
            bad_periods=PUT_OFF_BAD_PERIODS,
        ),
        Alarm(
            name="audit-errors",
            says="The audit fails: nobody counts whether jobs are overdue or missing",
            measured=_errors(args.audit),
            line=0,
            periods=1,
            bad_periods=1,
        ),
        Alarm(
            name="jobs-overdue",
            says="Accepted jobs are open long after they were due",
            measured=Metric(metrics.NAMESPACE, metrics.JOBS_OVERDUE, of_stack, "Maximum"),
            period_s=audit_s,
            line=0,
            periods=1,
            bad_periods=1,
        ),
        Alarm(
            name="jobs-unaccounted",
            says="Jobs were accepted of which there is no record",
            measured=Metric(metrics.NAMESPACE, metrics.JOBS_UNACCOUNTED, of_stack, "Maximum"),
            period_s=audit_s,
            line=0,
            periods=1,
            bad_periods=1,
        ),
        Alarm(
            name="run-unaccounted",
            says="A run was settled, and nothing became of some of its records",
            measured=Metric(metrics.NAMESPACE, metrics.RUN_UNACCOUNTED, of_stack, "Maximum"),
            line=0,
            periods=1,
            bad_periods=1,
        ),
    ]


def _errors(function: LambdaFunction) -> Metric:
    return Metric("AWS/Lambda", "Errors", {"FunctionName": function.function.name}, "Sum")


def _nightly(args: BatchAlarmsArgs) -> list[Alarm]:
    if args.machine is None:
        return []
    return [
        Alarm(
            name=f"nightly-{what}",
            says=f"A nightly recheck has {said}",
            measured=Metric("AWS/States", metric, {"StateMachineArn": args.machine.arn}, "Sum"),
            line=0,
            periods=1,
            bad_periods=1,
        )
        for what, said, metric in (
            ("failed", "failed", "ExecutionsFailed"),
            ("timed-out", "not come to an end", "ExecutionsTimedOut"),
        )
    ]


def _capture(args: BatchAlarmsArgs) -> list[Alarm]:
    if args.capture is None or args.stream is None:
        return []
    limit_s = args.capture.interval_s + OLD_CAPTURE_S
    return [
        Alarm(
            name="capture-failures",
            says="The router cannot hand over what it was to capture",
            measured=Metric(metrics.NAMESPACE, metrics.CAPTURE_FAILURES, metrics.of_stack(args.stack), "Sum"),
            line=0,
        ),
        Alarm(
            name="capture-age",
            says=f"Captured lines have waited for more than {limit_s} s on their way to the bucket",
            measured=Metric(
                "AWS/Firehose", "DeliveryToS3.DataFreshness", {"DeliveryStreamName": args.stream.name}, "Maximum"
            ),
            line=limit_s,
        ),
    ]

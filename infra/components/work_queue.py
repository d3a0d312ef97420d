"""A queue of work and the queue of what nobody could do: encrypted, TLS only, and watched.

A message that was received too often goes to the dead-letter queue, which keeps it as long as SQS can and takes
messages from this queue only. One message there is an alarm (`infra/components/batch_alarms.py`): nothing goes missing
quietly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import iam, naming
from infra.batch_config import QUEUE_DAYS

RETENTION_S = QUEUE_DAYS * 86_400
MAX_MESSAGE_BYTES = 262_144
"""More than the largest body a message carries (`functions/core`), as base64 and with all around it."""
KEY_REUSE_S = 3600
"""How long SQS uses one data key: one call of KMS an hour and producer instead of one every five minutes."""
COMPACT = (",", ":")
"""The provider compares a redrive policy with what SQS keeps of it, as compact text: blanks would differ for ever."""


@dataclass(frozen=True)
class WorkQueueArgs:
    """A queue's name, its pace, and the key it is encrypted with."""

    stack: str
    region: str
    queue: str
    """`inferlane-{stack}-{queue}`."""
    hidden_s: int
    """How long a received message stays hidden: longer than its receiver works on it."""
    receives: int
    """So many in vain, and the message is dead."""
    key_arn: pulumi.Input[str]
    tags: Mapping[str, str]


class WorkQueue(pulumi.ComponentResource):
    """A queue and its dead-letter queue."""

    queue: aws.sqs.Queue
    dead: aws.sqs.Queue

    def __init__(self, name: str, args: WorkQueueArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("inferlane:infra:WorkQueue", name, None, opts)
        here = pulumi.ResourceOptions(parent=self)
        self.region, self.key_arn = args.region, args.key_arn
        self.dead = dead_queue(name, args.stack, args.queue, args.key_arn, args.tags, here)
        self.queue = aws.sqs.Queue(
            name,
            name=naming.stack_name(args.stack, args.queue),
            kms_master_key_id=args.key_arn,
            kms_data_key_reuse_period_seconds=KEY_REUSE_S,
            max_message_size=MAX_MESSAGE_BYTES,
            message_retention_seconds=RETENTION_S,
            visibility_timeout_seconds=args.hidden_s,
            redrive_policy=pulumi.Output.json_dumps(
                {"deadLetterTargetArn": self.dead.arn, "maxReceiveCount": args.receives},
                sort_keys=True,
                separators=COMPACT,
            ),
            tags=args.tags,
            opts=here,
        )
        aws.sqs.QueuePolicy(
            f"{name}-tls-only", queue_url=self.queue.url, policy=iam.tls_only("sqs", self.queue.arn), opts=here
        )
        aws.sqs.RedriveAllowPolicy(
            f"{name}-dead-source",
            queue_url=self.dead.url,
            redrive_allow_policy=pulumi.Output.json_dumps(
                {"redrivePermission": "byQueue", "sourceQueueArns": [self.queue.arn]},
                sort_keys=True,
                separators=COMPACT,
            ),
            opts=here,
        )
        self.register_outputs({"queue": self.queue.url, "dead": self.dead.url})

    @property
    def sends(self) -> list[iam.Allow]:
        """What a role needs to send."""
        return sends_to(self.queue, self.key_arn, self.region)

    @property
    def receives(self) -> list[iam.Allow]:
        """What a role needs to receive, to be done with a message, and to hide it for longer or less."""
        return [
            iam.Allow(
                ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"],
                [self.queue.arn],
            ),
            iam.decrypts_through(self.key_arn, "sqs", self.region),
        ]


def dead_queue(
    name: str,
    stack: str,
    queue: str,
    key_arn: pulumi.Input[str],
    tags: Mapping[str, str],
    opts: pulumi.ResourceOptions,
) -> aws.sqs.Queue:
    """A queue that nothing reads but people: `inferlane-{stack}-{queue}-dead`."""
    dead = aws.sqs.Queue(
        f"{name}-dead",
        name=naming.stack_name(stack, f"{queue}-dead"),
        kms_master_key_id=key_arn,
        kms_data_key_reuse_period_seconds=KEY_REUSE_S,
        max_message_size=MAX_MESSAGE_BYTES,
        message_retention_seconds=RETENTION_S,
        tags=tags,
        opts=opts,
    )
    aws.sqs.QueuePolicy(f"{name}-dead-tls-only", queue_url=dead.url, policy=iam.tls_only("sqs", dead.arn), opts=opts)
    return dead


def sends_to(queue: aws.sqs.Queue, key_arn: pulumi.Input[str], region: str) -> list[iam.Allow]:
    """What a role needs to send to a queue."""
    return [iam.Allow(["sqs:SendMessage"], [queue.arn]), iam.encrypts_through(key_arn, "sqs", region)]

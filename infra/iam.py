"""IAM documents as values: who may assume a role, what a role may do.

Statements are built beside the resource they speak of; this module only gives them their JSON form. `*` as a resource
is written out where it is used, with the reason AWS offers no scope.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi

Conditions = Mapping[str, Mapping[str, "str | Sequence[str]"]]

ANY = "*"
"""For actions without resource-level permissions only; every use names the reason."""


@dataclass(frozen=True, slots=True)
class Allow:
    """One `Allow` statement."""

    actions: Sequence[str]
    resources: Sequence[pulumi.Input[str]]
    conditions: Conditions = field(default_factory=dict)


def policy(statements: Sequence[Allow]) -> pulumi.Output[str]:
    """The policy document of a role, as JSON; what several statements say alike is said once."""
    said: pulumi.Output[list[dict[str, object]]] = pulumi.Output.from_input([_statement(each) for each in statements])
    return said.apply(_document)


def _document(statements: list[dict[str, object]]) -> str:
    once = [each for index, each in enumerate(statements) if each not in statements[:index]]
    return json.dumps({"Version": "2012-10-17", "Statement": once}, sort_keys=True)


def trust(service: str) -> str:
    """The trust policy of a role that an AWS service assumes (`lambda.amazonaws.com`)."""
    return (
        '{"Statement": [{"Action": "sts:AssumeRole", "Effect": "Allow", '
        f'"Principal": {{"Service": "{service}"}}}}], "Version": "2012-10-17"}}'
    )


def trust_for(service: str, source_arn: pulumi.Input[str]) -> pulumi.Output[str]:
    """The same, for a service that acts for many: only on behalf of this source, which is ours."""
    return pulumi.Output.json_dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"Service": service},
                    "Action": "sts:AssumeRole",
                    "Condition": {"ArnLike": {"aws:SourceArn": source_arn}},
                }
            ],
        },
        sort_keys=True,
    )


def tls_only(service: str, *resources: pulumi.Input[str]) -> pulumi.Output[str]:
    """The policy of a resource that refuses plain HTTP (`s3`, `sqs`), whoever asks."""
    return pulumi.Output.json_dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Sid": "TlsOnly",
                    "Effect": "Deny",
                    "Principal": "*",
                    "Action": f"{service}:*",
                    "Resource": list(resources),
                    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
                }
            ],
        },
        sort_keys=True,
    )


def ours(service: str, region: str, resource: str) -> str:
    """The ARN of what has no resource of its own in the program, such as a transform job: by name, in this account.

    A role is granted nothing in other accounts by its own policy, so the account may stand open.
    """
    return f"arn:{partition(region)}:{service}:{region}:*:{resource}"


def partition(region: str) -> str:
    """Which of AWS's partitions a region belongs to: the second part of every ARN there."""
    return "aws-cn" if region.startswith("cn-") else "aws-us-gov" if region.startswith("us-gov-") else "aws"


def writes_logs(group_arn: pulumi.Input[str]) -> Allow:
    """May write to the streams of one log group, which exists already: it may not create groups."""
    return Allow(["logs:CreateLogStream", "logs:PutLogEvents"], [pulumi.Output.concat(group_arn, ":*")])


def decrypts_through(key_arn: pulumi.Input[str], service: str, region: str) -> Allow:
    """May decrypt with the stack's key, and only on behalf of one AWS service (`s3`, `dynamodb`)."""
    return Allow(["kms:Decrypt"], [key_arn], {"StringEquals": {"kms:ViaService": f"{service}.{region}.amazonaws.com"}})


def encrypts_through(key_arn: pulumi.Input[str], service: str, region: str) -> Allow:
    """May also encrypt with it: what writes to a bucket or sends to a queue."""
    return Allow(
        ["kms:Decrypt", "kms:GenerateDataKey"],
        [key_arn],
        {"StringEquals": {"kms:ViaService": f"{service}.{region}.amazonaws.com"}},
    )


def _statement(statement: Allow) -> dict[str, object]:
    document: dict[str, object] = {
        "Effect": "Allow",
        "Action": list(statement.actions),
        "Resource": list(statement.resources),
    }
    if statement.conditions:
        document["Condition"] = {operator: dict(tests) for operator, tests in statement.conditions.items()}
    return document

"""IAM documents as values: who may assume a role, what a role may do.

Statements are built beside the resource they speak of; this module only gives them their JSON form. `*` as a resource
is written out where it is used, with the reason AWS offers no scope.
"""

from __future__ import annotations

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
    """The policy document of a role, as JSON."""
    return pulumi.Output.json_dumps(
        {"Version": "2012-10-17", "Statement": [_statement(statement) for statement in statements]}, sort_keys=True
    )


def trust(service: str) -> str:
    """The trust policy of a role that an AWS service assumes (`lambda.amazonaws.com`)."""
    return (
        '{"Statement": [{"Action": "sts:AssumeRole", "Effect": "Allow", '
        f'"Principal": {{"Service": "{service}"}}}}], "Version": "2012-10-17"}}'
    )


def writes_logs(group_arn: pulumi.Input[str]) -> Allow:
    """May write to the streams of one log group, which exists already: it may not create groups."""
    return Allow(["logs:CreateLogStream", "logs:PutLogEvents"], [pulumi.Output.concat(group_arn, ":*")])


def decrypts_through(key_arn: pulumi.Input[str], service: str, region: str) -> Allow:
    """May decrypt with the stack's key, and only on behalf of one AWS service (`s3`, `dynamodb`)."""
    return Allow(["kms:Decrypt"], [key_arn], {"StringEquals": {"kms:ViaService": f"{service}.{region}.amazonaws.com"}})


def _statement(statement: Allow) -> dict[str, object]:
    document: dict[str, object] = {
        "Effect": "Allow",
        "Action": list(statement.actions),
        "Resource": list(statement.resources),
    }
    if statement.conditions:
        document["Condition"] = {operator: dict(tests) for operator, tests in statement.conditions.items()}
    return document

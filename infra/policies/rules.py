"""What must hold for any stack, as plain functions over its resources: each returns what is wrong, one line a resource.

The rules look at all resources at once, because most of them are about pairs (a bucket and its settings, a function and
its alias). They judge what is there, not which of our components made it, so a later component falls under them too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

REQUIRED_TAGS = ("project", "stack", "component")
MAX_INSTANCES = 20
"""A scaling target above this is a typo or a decision; either way it is made here, in the open."""
UNSCOPED = {
    "cloudwatch:GetMetricData": "has no resource-level permissions",
    "cloudwatch:PutMetricData": "has no resource-level permissions; must be bound to namespaces",
    "ecr:GetAuthorizationToken": "has no resource-level permissions",
}
"""Actions that may be granted on `*`, with the reason AWS offers no scope."""
TAGGABLE = frozenset(
    {
        "aws:apigatewayv2/api:Api",
        "aws:apigatewayv2/stage:Stage",
        "aws:appautoscaling/target:Target",
        "aws:appconfig/application:Application",
        "aws:appconfig/configurationProfile:ConfigurationProfile",
        "aws:appconfig/deployment:Deployment",
        "aws:appconfig/deploymentStrategy:DeploymentStrategy",
        "aws:appconfig/environment:Environment",
        "aws:cloudwatch/logGroup:LogGroup",
        "aws:cloudwatch/metricAlarm:MetricAlarm",
        "aws:dynamodb/table:Table",
        "aws:iam/role:Role",
        "aws:kms/key:Key",
        "aws:lambda/function:Function",
        "aws:s3/bucket:Bucket",
        "aws:s3/bucketObjectv2:BucketObjectv2",
        "aws:sagemaker/endpoint:Endpoint",
        "aws:sagemaker/endpointConfiguration:EndpointConfiguration",
        "aws:sagemaker/model:Model",
    }
)
"""The types of this program that carry tags; a test compares the list with pulumi-aws's own constructors."""
PUBLIC_ACCESS_BLOCK = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource as a rule sees it: its type token, logical name and properties (camelCase)."""

    type: str
    name: str
    properties: Mapping[str, object]

    def text(self, key: str) -> str:
        """A property as text, empty when absent."""
        value = self.properties.get(key)
        return value if isinstance(value, str) else ""


Rule = Callable[[Sequence[Resource]], list[str]]


def buckets_are_closed(resources: Sequence[Resource]) -> list[str]:
    """Every bucket blocks all four kinds of public access."""
    blocked = {
        block.text("bucket")
        for block in _of(resources, "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock")
        if all(block.properties.get(switch) is True for switch in PUBLIC_ACCESS_BLOCK)
    }
    return [
        f"{bucket.name}: the bucket is open to the public: add a BucketPublicAccessBlock with all four switches on"
        for bucket in _of(resources, "aws:s3/bucket:Bucket")
        if bucket.text("bucket") not in blocked
    ]


def buckets_refuse_plain_http(resources: Sequence[Resource]) -> list[str]:
    """Every bucket's policy denies requests without TLS."""
    tls_only = {
        policy.text("bucket")
        for policy in _of(resources, "aws:s3/bucketPolicy:BucketPolicy")
        if any(_denies_plain_http(statement) for statement in _statements(policy.text("policy")))
    }
    return [
        f"{bucket.name}: the bucket answers plain HTTP: add a BucketPolicy that denies aws:SecureTransport false"
        for bucket in _of(resources, "aws:s3/bucket:Bucket")
        if bucket.text("bucket") not in tls_only
    ]


def data_is_encrypted_with_our_key(resources: Sequence[Resource]) -> list[str]:
    """Every bucket and table is encrypted with a KMS key of the stack."""
    encrypted = {
        settings.text("bucket")
        for settings in _of(
            resources, "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
        )
        if _find(settings.properties, "kmsMasterKeyId")
    }
    found = [
        f"{bucket.name}: the bucket is not encrypted with a KMS key: set kms_master_key_id"
        for bucket in _of(resources, "aws:s3/bucket:Bucket")
        if bucket.text("bucket") not in encrypted
    ]
    return found + [
        f"{table.name}: the table is not encrypted with a KMS key: set server_side_encryption.kms_key_arn"
        for table in _of(resources, "aws:dynamodb/table:Table")
        if not _find(table.properties, "kmsKeyArn")
    ]


def logs_end(resources: Sequence[Resource]) -> list[str]:
    """Every log group has a retention."""
    return [
        f"{group.name}: the log group keeps its logs for ever: set retention_in_days"
        for group in _of(resources, "aws:cloudwatch/logGroup:LogGroup")
        if not group.properties.get("retentionInDays")
    ]


def functions_are_called_by_version(resources: Sequence[Resource]) -> list[str]:
    """Every function publishes its versions and has an alias that callers can name."""
    aliased = {alias.text("functionName") for alias in _of(resources, "aws:lambda/alias:Alias")}
    found = []
    for function in _of(resources, "aws:lambda/function:Function"):
        if function.properties.get("publish") is not True:
            found.append(f"{function.name}: the function publishes no version: set publish")
        if function.text("name") not in aliased:
            found.append(f"{function.name}: the function has no alias: an update would break requests in flight")
    return found


def grants_are_scoped(resources: Sequence[Resource]) -> list[str]:
    """No role may do everything, nor anything on everything where AWS offers a scope."""
    found = []
    for policy in _of(resources, "aws:iam/rolePolicy:RolePolicy"):
        for statement in _statements(policy.text("policy")):
            if statement.get("Effect") != "Allow":
                continue
            actions = _list(statement.get("Action"))
            wild = [action for action in actions if action.endswith("*")]
            if wild or "NotAction" in statement:
                found.append(f"{policy.name}: allows {', '.join(wild) or 'NotAction'}: name each action")
            if "*" in _list(statement.get("Resource")):
                found += [
                    f"{policy.name}: allows {action} on every resource: name the resources"
                    for action in actions
                    if action not in UNSCOPED
                ]
                if "cloudwatch:PutMetricData" in actions and not _find(statement, "cloudwatch:namespace"):
                    found.append(
                        f"{policy.name}: allows cloudwatch:PutMetricData in every namespace: add the condition"
                    )
    return found


def everything_is_tagged(resources: Sequence[Resource]) -> list[str]:
    """Whatever can carry tags says which project, stack and component it belongs to."""
    found = []
    for resource in resources:
        if resource.type not in TAGGABLE:
            continue
        tags = resource.properties.get("tags")
        missing = [tag for tag in REQUIRED_TAGS if not isinstance(tags, Mapping) or not tags.get(tag)]
        if missing:
            found.append(f"{resource.name}: {resource.type} lacks the tags {', '.join(missing)}")
    return found


def fleets_are_bounded(resources: Sequence[Resource]) -> list[str]:
    """No scaling target lets a fleet grow without limit."""
    found = []
    for target in _of(resources, "aws:appautoscaling/target:Target"):
        most = target.properties.get("maxCapacity")
        if not isinstance(most, int | float) or most > MAX_INSTANCES:
            found.append(f"{target.name}: max_capacity {most} is above {MAX_INSTANCES}")
    return found


RULES: Mapping[str, Rule] = {
    "buckets-are-closed": buckets_are_closed,
    "buckets-refuse-plain-http": buckets_refuse_plain_http,
    "data-is-encrypted-with-our-key": data_is_encrypted_with_our_key,
    "everything-is-tagged": everything_is_tagged,
    "fleets-are-bounded": fleets_are_bounded,
    "functions-are-called-by-version": functions_are_called_by_version,
    "grants-are-scoped": grants_are_scoped,
    "logs-end": logs_end,
}


def _of(resources: Sequence[Resource], type_: str) -> Iterator[Resource]:
    return (resource for resource in resources if resource.type == type_)


def _statements(document: str) -> list[Mapping[str, object]]:
    """The statements of a policy document; none when it is not known yet (a preview)."""
    try:
        found = json.loads(document).get("Statement", [])
    except (ValueError, AttributeError):
        return []
    return [found] if isinstance(found, dict) else list(found)


def _denies_plain_http(statement: Mapping[str, object]) -> bool:
    return (
        statement.get("Effect") == "Deny"
        and statement.get("Principal") in ("*", {"AWS": "*"})
        and _list(statement.get("Action")) == ["s3:*"]
        and _find(statement.get("Condition"), "aws:SecureTransport") in ("false", False)
    )


def _list(value: object) -> list[str]:
    """A policy document writes one item or a list of them."""
    return [str(item) for item in _items(value)] if value is not None else []


def _items(value: object) -> Sequence[object]:
    """The members of a list, in any of its forms (the engine's are proxies), else the value alone."""
    return value if isinstance(value, Sequence) and not isinstance(value, str) else [value]


def _find(value: object, key: str) -> object:
    """The first value of `key` anywhere inside, else None."""
    if isinstance(value, Mapping):
        if key in value:
            return value[key]
        value = list(value.values())
    if isinstance(value, str | int | float | None):
        return None
    return next((found for item in _items(value) if (found := _find(item, key)) is not None), None)

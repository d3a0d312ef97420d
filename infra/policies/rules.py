"""What must hold for any stack, as plain functions over its resources: each returns what is wrong, one line a resource.

The rules look at all resources at once, because most of them are about pairs (a bucket and its settings, a function and
its alias). They judge what is there, not which of our components made it, so a later component falls under them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from infra.policies.documents import denies_plain_http, document, find, listed, statements

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
        "aws:cloudwatch/eventRule:EventRule",
        "aws:cloudwatch/logGroup:LogGroup",
        "aws:cloudwatch/metricAlarm:MetricAlarm",
        "aws:dynamodb/table:Table",
        "aws:iam/role:Role",
        "aws:kinesis/firehoseDeliveryStream:FirehoseDeliveryStream",
        "aws:kms/key:Key",
        "aws:lambda/eventSourceMapping:EventSourceMapping",
        "aws:lambda/function:Function",
        "aws:s3/bucket:Bucket",
        "aws:s3/bucketObjectv2:BucketObjectv2",
        "aws:sagemaker/endpoint:Endpoint",
        "aws:sagemaker/endpointConfiguration:EndpointConfiguration",
        "aws:sagemaker/model:Model",
        "aws:scheduler/scheduleGroup:ScheduleGroup",
        "aws:sfn/stateMachine:StateMachine",
        "aws:sqs/queue:Queue",
    }
)
"""The types of this program that carry tags; a test compares the list with pulumi-aws's own constructors."""
REBUILT = {"snapshot": "what instances tell each other is worth seconds, and is read anew"}
"""Tables, by the end of their names, that need no recovery, with the reason."""
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
        if any(denies_plain_http(statement, "s3") for statement in statements(policy.text("policy")))
    }
    return [
        f"{bucket.name}: the bucket answers plain HTTP: add a BucketPolicy that denies aws:SecureTransport false"
        for bucket in _of(resources, "aws:s3/bucket:Bucket")
        if bucket.text("bucket") not in tls_only
    ]


def data_is_encrypted_with_our_key(resources: Sequence[Resource]) -> list[str]:
    """Every bucket, table, queue and delivery stream is encrypted with a KMS key of the stack."""
    encrypted = {
        settings.text("bucket")
        for settings in _of(
            resources, "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
        )
        if find(settings.properties, "kmsMasterKeyId")
    }
    found = [
        f"{bucket.name}: the bucket is not encrypted with a KMS key: set kms_master_key_id"
        for bucket in _of(resources, "aws:s3/bucket:Bucket")
        if bucket.text("bucket") not in encrypted
    ]
    for type_, what, setting, name in (
        ("aws:dynamodb/table:Table", "table", "kmsKeyArn", "server_side_encryption.kms_key_arn"),
        ("aws:sqs/queue:Queue", "queue", "kmsMasterKeyId", "kms_master_key_id"),
        ("aws:kinesis/firehoseDeliveryStream:FirehoseDeliveryStream", "stream", "keyArn", "server_side_encryption"),
    ):
        found += [
            f"{resource.name}: the {what} is not encrypted with a KMS key: set {name}"
            for resource in _of(resources, type_)
            if not find(resource.properties, setting)
        ]
    return found


def tables_can_be_restored(resources: Sequence[Resource]) -> list[str]:
    """Every table that holds what cannot be read anew has point-in-time recovery."""
    return [
        f"{table.name}: the table cannot be restored: enable point_in_time_recovery"
        for table in _of(resources, "aws:dynamodb/table:Table")
        if table.text("name").rsplit("-", 1)[-1] not in REBUILT
        and find(table.properties.get("pointInTimeRecovery"), "enabled") is not True
    ]


def queues_refuse_plain_http(resources: Sequence[Resource]) -> list[str]:
    """Every queue's policy denies requests without TLS."""
    tls_only = {
        policy.text("queueUrl")
        for policy in _of(resources, "aws:sqs/queuePolicy:QueuePolicy")
        if any(denies_plain_http(statement, "sqs") for statement in statements(policy.text("policy")))
    }
    return [
        f"{queue.name}: the queue answers plain HTTP: add a QueuePolicy that denies aws:SecureTransport false"
        for queue in _of(resources, "aws:sqs/queue:Queue")
        if queue.text("url") not in tls_only
    ]


def failures_are_kept(resources: Sequence[Resource]) -> list[str]:
    """What a queue's reader or an event's function could not do ends in a queue, and does not vanish."""
    kept = {
        str(find(config.properties, "destination"))
        for config in _of(resources, "aws:lambda/functionEventInvokeConfig:FunctionEventInvokeConfig")
    }
    queues = list(_of(resources, "aws:sqs/queue:Queue"))
    dead = {str(document(queue.text("redrivePolicy")).get("deadLetterTargetArn")) for queue in queues}
    found = [
        f"{queue.name}: what nobody could do is tried for ever: set a redrive_policy"
        for queue in queues
        if not queue.text("redrivePolicy") and queue.text("arn") not in dead | kept
    ]
    with_destination = {
        config.text("functionName")
        for config in _of(resources, "aws:lambda/functionEventInvokeConfig:FunctionEventInvokeConfig")
        if find(config.properties, "onFailure")
    }
    return found + [
        f"{target.name}: an event that the function could not handle is lost: give the function an on_failure "
        "destination"
        for target in _of(resources, "aws:cloudwatch/eventTarget:EventTarget")
        if ":function:" in target.text("arn") and target.text("arn").split(":")[6] not in with_destination
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
        for statement in statements(policy.text("policy")):
            if statement.get("Effect") != "Allow":
                continue
            actions = listed(statement.get("Action"))
            wild = [action for action in actions if action.endswith("*")]
            if wild or "NotAction" in statement:
                found.append(f"{policy.name}: allows {', '.join(wild) or 'NotAction'}: name each action")
            if "*" in listed(statement.get("Resource")):
                found += [
                    f"{policy.name}: allows {action} on every resource: name the resources"
                    for action in actions
                    if action not in UNSCOPED
                ]
                if "cloudwatch:PutMetricData" in actions and not find(statement, "cloudwatch:namespace"):
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
    "failures-are-kept": failures_are_kept,
    "fleets-are-bounded": fleets_are_bounded,
    "functions-are-called-by-version": functions_are_called_by_version,
    "grants-are-scoped": grants_are_scoped,
    "logs-end": logs_end,
    "queues-refuse-plain-http": queues_refuse_plain_http,
    "tables-can-be-restored": tables_can_be_restored,
}


def _of(resources: Sequence[Resource], type_: str) -> Iterator[Resource]:
    return (resource for resource in resources if resource.type == type_)

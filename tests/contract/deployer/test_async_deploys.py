"""Rows of what happens while nobody waits: made, made again, changed in place, replaced, removed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.deployer.conftest import Project, project_of

SAMPLE = Path(__file__).parent / "sample_async"
IN_PLACE = {
    "dead", "work", "told", "topic", "subscription", "mapping", "fails-to", "rule", "target", "group", "schedule",
    "machine", "data-lifecycle", "stream", "table", "depth", "any",
}  # fmt: skip
"""What `variant` changes."""


@pytest.fixture
def project(ministack: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Project]:
    """The asynchronous sample."""
    yield from project_of(SAMPLE, ministack, tmp_path, request.node.name)


def test_up_again_change_and_destroy(project: Project) -> None:
    """Everything stands, stands again without a call, changes in place without being made anew, and goes."""
    first = project.run("up")
    made = first.result["counts"]
    assert set(made) == {"create"}
    outputs = first.result["outputs"]
    assert project.run("up").result["counts"] == {"same": made["create"]}
    before = seen(project, outputs)

    changed = project.run("up", variant="two")

    assert set(changed.actions().items()) == {(name, "update") for name in IN_PLACE}
    after = seen(project, outputs)
    assert before == expected("one")
    assert after == expected("two")
    assert project.run("up", variant="two").result["counts"] == {"same": made["create"]}
    assert project.run("destroy").result["counts"] == {"delete": made["create"]}
    assert left_of(project) == []


def test_indexes_and_replacement(project: Project) -> None:
    """A global index comes and goes without the table; a mapping that reads another queue is another mapping."""
    outputs = project.run("up").result["outputs"]
    dynamodb = project.client("dynamodb")
    key = {"tenant": {"S": "a"}, "id": {"S": "1"}}
    dynamodb.put_item(TableName=outputs["table"], Item={**key, "state": {"S": "open"}})

    assert project.run("up", index="true", source="other").actions() == {"table": "update", "mapping": "delete"}

    found = dynamodb.query(
        TableName=outputs["table"],
        IndexName="by_state",
        KeyConditionExpression="#s = :s",
        ExpressionAttributeNames={"#s": "state"},
        ExpressionAttributeValues={":s": {"S": "open"}},
    )
    assert found["Count"] == 1
    mappings = project.client("lambda").list_event_source_mappings(FunctionName=f"async-{project.stack}")
    sources = [mapping["EventSourceArn"] for mapping in mappings["EventSourceMappings"]]
    assert [arn.rpartition("-")[2] for arn in sources] == ["other"]
    assert project.run("up", source="other").actions() == {"table": "update"}
    assert [each["IndexName"] for each in indexes(project, outputs)] == ["by_time"]
    assert dynamodb.get_item(TableName=outputs["table"], Key=key)["Item"]["state"] == {"S": "open"}


def indexes(project: Project, outputs: dict[str, Any]) -> list[dict[str, Any]]:
    """The table's global indexes."""
    found: list[dict[str, Any]] = project.client("dynamodb").describe_table(TableName=outputs["table"])["Table"][
        "GlobalSecondaryIndexes"
    ]
    return found


def expected(variant: str) -> dict[str, Any]:
    """What `seen` finds of a variant."""
    first = variant == "one"
    return {
        "queue": ("10", "5") if first else ("20", "0"),
        "receives": 2 if first else 3,
        "queue tags": {"variant": variant},
        "raw": "true" if first else "false",
        "topic": variant,
        "mapping": (5, 2) if first else (10, 3),
        "retries": 1 if first else 2,
        "rule": (variant, variant),
        "target": 3 if first else 4,
        "schedule": ("cron(0 1 * * ? *)" if first else "cron(0 2 * * ? *)", "Europe/Madrid", {"variant": variant}),
        "machine": variant,
        "stream": 60 if first else 120,
        "partitioned": True,
        "lifecycle": 15 if first else 16,
        "alarm": variant,
        "index": ["by_time"],
    }


def seen(project: Project, outputs: dict[str, Any]) -> dict[str, Any]:
    """What the services say of the things that change."""
    name = f"async-{project.stack}"
    sqs, functions, events = project.client("sqs"), project.client("lambda"), project.client("events")
    queue = sqs.get_queue_attributes(QueueUrl=outputs["work"], AttributeNames=["All"])["Attributes"]
    sns = project.client("sns")
    (subscription,) = sns.list_subscriptions_by_topic(TopicArn=outputs["topic"])["Subscriptions"]
    mapping = functions.list_event_source_mappings(FunctionName=name)["EventSourceMappings"][0]
    rule = events.describe_rule(Name=name)
    schedule = project.client("scheduler").get_schedule(Name=name, GroupName=name)
    machine = project.client("stepfunctions").describe_state_machine(stateMachineArn=outputs["machine"])
    stream = project.client("firehose").describe_delivery_stream(DeliveryStreamName=outputs["stream"])
    destination = stream["DeliveryStreamDescription"]["Destinations"][0]["ExtendedS3DestinationDescription"]
    lifecycle = project.client("s3").get_bucket_lifecycle_configuration(Bucket=outputs["bucket"])
    alarms = project.client("cloudwatch").describe_alarms(AlarmNames=[f"{name}-any"], AlarmTypes=["CompositeAlarm"])
    return {
        "queue": (queue["VisibilityTimeout"], queue["ReceiveMessageWaitTimeSeconds"]),
        "receives": json.loads(queue["RedrivePolicy"])["maxReceiveCount"],
        "queue tags": sqs.list_queue_tags(QueueUrl=outputs["work"])["Tags"],
        "raw": sns.get_subscription_attributes(SubscriptionArn=subscription["SubscriptionArn"])["Attributes"][
            "RawMessageDelivery"
        ],
        "topic": sns.get_topic_attributes(TopicArn=outputs["topic"])["Attributes"]["DisplayName"],
        "mapping": (mapping["BatchSize"], mapping["ScalingConfig"]["MaximumConcurrency"]),
        "retries": functions.get_function_event_invoke_config(FunctionName=name, Qualifier="live")[
            "MaximumRetryAttempts"
        ],
        "rule": (
            rule["Description"],
            json.loads(rule["EventPattern"])["detail"]["TransformJobName"][0]["prefix"],
        ),
        "target": events.list_targets_by_rule(Rule=name)["Targets"][0]["RetryPolicy"]["MaximumRetryAttempts"],
        "schedule": (
            schedule["ScheduleExpression"],
            schedule["ScheduleExpressionTimezone"],
            json.loads(schedule["Target"]["Input"]),
        ),
        "machine": json.loads(machine["definition"])["States"]["End"]["Result"],
        "stream": destination["BufferingHints"]["IntervalInSeconds"],
        "partitioned": destination["DynamicPartitioningConfiguration"]["Enabled"],
        "lifecycle": lifecycle["Rules"][0]["Expiration"]["Days"],
        "alarm": alarms["CompositeAlarms"][0]["AlarmDescription"],
        "index": [each["IndexName"] for each in indexes(project, outputs)],
    }


def left_of(project: Project) -> list[str]:
    """What list calls still show of the stack."""
    name = f"async-{project.stack}"
    lists: list[tuple[str, str, str]] = [
        ("sqs", "list_queues", "QueueUrls"),
        ("sns", "list_topics", "Topics"),
        ("lambda", "list_functions", "Functions"),
        ("lambda", "list_event_source_mappings", "EventSourceMappings"),
        ("events", "list_rules", "Rules"),
        ("scheduler", "list_schedules", "Schedules"),
        ("scheduler", "list_schedule_groups", "ScheduleGroups"),
        ("stepfunctions", "list_state_machines", "stateMachines"),
        ("firehose", "list_delivery_streams", "DeliveryStreamNames"),
        ("dynamodb", "list_tables", "TableNames"),
        ("logs", "describe_log_groups", "logGroups"),
        ("s3", "list_buckets", "Buckets"),
    ]
    return [
        f"{service}: {item}"
        for service, operation, member in lists
        for item in getattr(project.client(service), operation)().get(member, [])
        if name in json.dumps(item, default=str)
    ]

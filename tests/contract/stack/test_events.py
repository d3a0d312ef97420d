"""What reaches a Lambda function by itself on the offline stack: events, schedules, messages."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.contract.stack.conftest import ROLE, Functions, eventually
from workbench.stack.cloud import Cloud
from workbench.stack.sagemaker.transform.events import DETAIL_TYPE, SOURCE, as_service

PARTLY = """import json
def handler(event, context):
    print(json.dumps({"told": sorted(record["body"] for record in event["Records"])}))
    bad = [record["messageId"] for record in event["Records"] if record["body"].startswith("bad")]
    return {"batchItemFailures": [{"itemIdentifier": each} for each in bad]}
"""

FAILS = """import json
def handler(event, context):
    print(json.dumps({"told": event}))
    raise ValueError("no")
"""


def queue(cloud: Cloud, name: str, **attributes: str) -> tuple[str, str]:
    """A queue's URL and ARN."""
    sqs = cloud.client("sqs")
    url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return url, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]


def test_a_job_event_by_its_name(cloud: Cloud, functions: Functions) -> None:
    """A rule on the beginning of a job's name calls its function, by alias, for those jobs only."""
    functions.make("settles")
    lambdas, events = cloud.client("lambda"), cloud.client("events")
    version = lambdas.publish_version(FunctionName="settles")["Version"]
    alias = lambdas.create_alias(FunctionName="settles", Name="live", FunctionVersion=version)["AliasArn"]
    pattern = {"source": [SOURCE], "detail-type": [DETAIL_TYPE], "detail": {"TransformJobName": [{"prefix": "ours-"}]}}
    events.put_rule(Name="settle", EventPattern=json.dumps(pattern))
    events.put_targets(Rule="settle", Targets=[{"Id": "1", "Arn": alias}])

    service: Any = as_service(cloud.client("events"))
    for name in ("other-1", "ours-1"):
        event = {"Source": SOURCE, "DetailType": DETAIL_TYPE, "Detail": json.dumps({"TransformJobName": name})}
        assert service.put_events(Entries=[event])["FailedEntryCount"] == 0

    told = eventually(lambda: functions.told("settles"))
    assert [each["detail"]["TransformJobName"] for each in told] == ["ours-1"]


def test_a_failed_event_is_tried_again_and_kept(cloud: Cloud, functions: Functions) -> None:
    """A function that fails is tried as often as its alias has it, then the event is in the alias's destination."""
    kept, kept_arn = queue(cloud, "kept")
    functions.make("fails", FAILS)
    lambdas, events = cloud.client("lambda"), cloud.client("events")
    version = lambdas.publish_version(FunctionName="fails")["Version"]
    alias = lambdas.create_alias(FunctionName="fails", Name="live", FunctionVersion=version)["AliasArn"]
    lambdas.put_function_event_invoke_config(
        FunctionName="fails",
        Qualifier="live",
        MaximumRetryAttempts=1,
        DestinationConfig={"OnFailure": {"Destination": kept_arn}},
    )
    events.put_rule(Name="fails", EventPattern=json.dumps({"source": ["ours"]}))
    events.put_targets(Rule="fails", Targets=[{"Id": "1", "Arn": alias}])
    events.put_events(Entries=[{"Source": "ours", "DetailType": "any", "Detail": '{"job": "1"}'}])

    sqs = cloud.client("sqs")
    (message,) = eventually(lambda: sqs.receive_message(QueueUrl=kept, WaitTimeSeconds=1).get("Messages"))
    failed = json.loads(message["Body"])
    assert failed["requestPayload"]["detail"] == {"job": "1"}
    assert failed["requestContext"]["condition"] == "RetriesExhausted"
    eventually(lambda: len(functions.told("fails")) == 2)


def test_messages_by_tens_and_their_failures(cloud: Cloud, functions: Functions) -> None:
    """A batch's failed messages alone come back, and go to the dead letters after as many receipts as are allowed."""
    dead, dead_arn = queue(cloud, "dead")
    redrive = json.dumps({"deadLetterTargetArn": dead_arn, "maxReceiveCount": 2})
    work, work_arn = queue(cloud, "work", VisibilityTimeout="1", RedrivePolicy=redrive)
    functions.make("partly", PARTLY)
    cloud.client("lambda").create_event_source_mapping(
        EventSourceArn=work_arn,
        FunctionName="partly",
        BatchSize=10,
        FunctionResponseTypes=["ReportBatchItemFailures"],
        ScalingConfig={"MaximumConcurrency": 2},
    )
    sqs = cloud.client("sqs")
    entries = [{"Id": body, "MessageBody": body} for body in ("a", "bad-1", "b")]
    assert len(sqs.send_message_batch(QueueUrl=work, Entries=entries)["Successful"]) == 3

    (message,) = eventually(lambda: sqs.receive_message(QueueUrl=dead, WaitTimeSeconds=1).get("Messages"))
    assert message["Body"] == "bad-1"
    told = [body for batch in functions.told("partly") for body in batch]
    assert sorted(told) == ["a", "b", "bad-1", "bad-1"]
    counts = sqs.get_queue_attributes(QueueUrl=work, AttributeNames=["All"])["Attributes"]
    assert (counts["ApproximateNumberOfMessages"], counts["ApproximateNumberOfMessagesNotVisible"]) == ("0", "0")


def test_a_schedule_calls_its_function(cloud: Cloud, functions: Functions) -> None:
    """Scheduler calls a function with its input; MiniStack looks every ten seconds."""
    arn = functions.make("ticks")
    at = (datetime.now(UTC) + timedelta(seconds=1)).strftime("at(%Y-%m-%dT%H:%M:%S)")
    cloud.client("scheduler").create_schedule(
        Name="tick",
        ScheduleExpression=at,
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": arn, "RoleArn": ROLE, "Input": '{"date": "2026-12-01"}'},
    )
    assert eventually(lambda: functions.told("ticks"), 30) == [{"date": "2026-12-01"}]

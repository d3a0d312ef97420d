"""Faults of services on a whole stack: SDKs meet AWS's errors, functions die in the middle of their work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.contract.stack.conftest import Functions, eventually
from workbench.stack.cloud import CREDENTIALS, REGION, Cloud
from workbench.stack.faults import Faults

WRITES = """import boto3, json
def handler(event, context):
    print("called")
    table = boto3.client("dynamodb")
    for number in range(event["writes"]):
        table.put_item(TableName="kept", Item={"id": {"S": str(number)}})
    return {"done": True}
"""


@pytest.fixture
def faults(cloud: Cloud) -> Iterator[Faults]:
    """The stack's faults, which end with the test."""
    made = Faults(cloud)
    yield made
    made.clear()
    assert made.active() == []


def once(cloud: Cloud, service: str) -> Any:
    """A client that tries once."""
    config = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
    session: Any = boto3.Session(region_name=REGION)
    return session.client(service, endpoint_url=cloud.endpoint_url, config=config, **CREDENTIALS)


def code(call: Any, **parameters: Any) -> str:
    """The code of the error that a call ends with."""
    with pytest.raises(ClientError) as refused:
        call(**parameters)
    return str(refused.value.response["Error"]["Code"])


def test_throttling(cloud: Cloud, faults: Faults) -> None:
    """S3, DynamoDB and SQS throttle in their own words; what is not meant goes through, and all does afterwards."""
    s3, dynamodb, sqs = (once(cloud, service) for service in ("s3", "dynamodb", "sqs"))
    s3.create_bucket(Bucket="faulty")
    queue = sqs.create_queue(QueueName="faulty")["QueueUrl"]
    s3_fault = faults.on_service("s3", "throttle", resource="faulty/batch/*")
    faults.on_service("dynamodb", "throttle", operations=["ListTables"])
    faults.on_service("sqs", "throttle", resource="faulty", times=1)

    assert code(s3.put_object, Bucket="faulty", Key="batch/1", Body=b"x") == "SlowDown"
    s3.put_object(Bucket="faulty", Key="other", Body=b"x")
    assert code(dynamodb.list_tables) == "ThrottlingException"
    assert code(sqs.send_message, QueueUrl=queue, MessageBody="x") == "RequestThrottled"
    sqs.send_message(QueueUrl=queue, MessageBody="x")

    assert {fault["met"] for fault in faults.active()} == {1}
    assert faults.clear(str(s3_fault["id"])) == 1
    s3.put_object(Bucket="faulty", Key="batch/1", Body=b"x")


def test_a_lost_answer(cloud: Cloud, faults: Faults) -> None:
    """A message whose answer is lost was sent all the same: an SDK that tries again sends it twice."""
    sqs = cloud.client("sqs")
    queue = sqs.create_queue(QueueName="lost")["QueueUrl"]
    faults.on_service("sqs", "lost", operations=["SendMessage"], times=1)
    sqs.send_message(QueueUrl=queue, MessageBody="once")
    counts = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]
    assert counts["ApproximateNumberOfMessages"] == "2"


def test_a_function_dies_half_way(cloud: Cloud, functions: Functions, faults: Faults) -> None:
    """A function that is killed at its third write has made two, or three where the third was carried out."""
    dynamodb = cloud.client("dynamodb")
    dynamodb.create_table(
        TableName="kept",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    )
    functions.make("writes", WRITES)

    def written(when: Any) -> set[str]:
        faults.kill_function("writes", "dynamodb:PutItem", call=3, when=when)
        answer = cloud.client("lambda").invoke(FunctionName="writes", Payload=json.dumps({"writes": 5}))
        assert "FunctionError" in answer, answer["Payload"].read()
        faults.clear()
        items = dynamodb.scan(TableName="kept")["Items"]
        for item in items:
            dynamodb.delete_item(TableName="kept", Key=item)
        return {item["id"]["S"] for item in items}

    assert written("before") == {"0", "1"}
    assert written("after") == {"0", "1", "2"}
    answer = cloud.client("lambda").invoke(FunctionName="writes", Payload=json.dumps({"writes": 5}))
    assert json.loads(answer["Payload"].read()) == {"done": True}


def test_messages_of_a_killed_function_come_back(cloud: Cloud, functions: Functions, faults: Faults) -> None:
    """A queue gives its messages out again when the function that had them was killed."""
    sqs = cloud.client("sqs")
    queue = sqs.create_queue(QueueName="retold", Attributes={"VisibilityTimeout": "1"})["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    functions.make("retells", WRITES.replace('event["writes"]', "1"))
    faults.kill_function("retells", "dynamodb:PutItem", when="after")
    cloud.client("lambda").create_event_source_mapping(EventSourceArn=arn, FunctionName="retells", BatchSize=10)
    sqs.send_message(QueueUrl=queue, MessageBody="x")

    eventually(lambda: functions.printed("retells").count("called") == 2)
    eventually(
        lambda: (
            sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"][
                "ApproximateNumberOfMessagesNotVisible"
            ]
            == "0"
        )
    )

"""IAM of the offline stack, where MiniStack's own names of actions would differ from AWS's."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from workbench.stack.cloud import REGION, Cloud


def test_batches_need_the_single_calls_permission(cloud: Cloud) -> None:
    """Whoever may send a message may send ten in one call; deleting them is another permission."""
    iam, sqs = cloud.client("iam"), cloud.client("sqs")
    queue = sqs.create_queue(QueueName="permitted")["QueueUrl"]
    trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    sends = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*"}
    iam.create_role(RoleName="sends", AssumeRolePolicyDocument=_policy(trust))
    iam.put_role_policy(RoleName="sends", PolicyName="sends", PolicyDocument=_policy(sends))
    arn = iam.get_role(RoleName="sends")["Role"]["Arn"]
    given = cloud.client("sts").assume_role(RoleArn=arn, RoleSessionName="test")["Credentials"]
    session: Any = boto3.Session(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"], REGION)
    sender = session.client("sqs", endpoint_url=cloud.endpoint_url)

    sent = sender.send_message_batch(QueueUrl=queue, Entries=[{"Id": "1", "MessageBody": "x"}])
    assert len(sent["Successful"]) == 1
    (message,) = sqs.receive_message(QueueUrl=queue)["Messages"]
    entries = [{"Id": "1", "ReceiptHandle": message["ReceiptHandle"]}]
    with pytest.raises(ClientError, match="AccessDenied"):
        sender.delete_message_batch(QueueUrl=queue, Entries=entries)


def _policy(statement: object) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})

"""EventBridge of the offline stack takes our SageMaker's events, and still refuses anybody else's under that name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import urllib3

from tests.contract.sagemaker.emulator import CREDENTIALS, HTTP, eventually, free_port
from tests.unit.stack.sagemaker.transform.test_jobs import add
from workbench.stack.sagemaker.transform.events import as_service, entry
from workbench.stack.sagemaker.transform.jobs import Jobs


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[str]:
    """The offline stack's front door, without an emulator behind it."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    own = {"IOT_MTLS_ENABLED": "0", "SFTP_ENABLED": "0", "TMPDIR": str(tmp_path)}
    arguments = ["-m", "workbench.stack.gateway", "--port", str(port), "--sagemaker", "http://127.0.0.1:9"]
    with (tmp_path / "gateway.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, *arguments], env=os.environ | CREDENTIALS | own, stderr=log)

    def answers() -> bool:
        try:
            return HTTP.request("GET", f"{url}/_localstack/health").status == 200
        except urllib3.exceptions.HTTPError:
            return False

    eventually(answers, 30)
    yield url
    process.terminate()
    process.wait(timeout=20)


@pytest.mark.fidelity(
    "batch transform",
    "Sources aws.* are refused of customers; a service's own events reach rules and their targets",
    source="EventBridge user guide; API reference: PutEvents",
)
def test_events_reach_a_rule(gateway: str) -> None:
    """A rule on the job's state gets the service's event; the same event of anybody else is refused."""
    session = boto3.Session("test", "test", region_name="us-east-1")
    events: Any = session.client("events", endpoint_url=gateway)
    sqs: Any = session.client("sqs", endpoint_url=gateway)
    queue = sqs.create_queue(QueueName="told")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    pattern = {"source": ["aws.sagemaker"], "detail": {"TransformJobStatus": ["InProgress"]}}
    events.put_rule(Name="jobs", EventPattern=json.dumps(pattern))
    events.put_targets(Rule="jobs", Targets=[{"Id": "1", "Arn": arn}])
    event = entry(add(Jobs(), "job"), {"team": "ml"})
    refused = events.put_events(Entries=[event])
    assert refused["Entries"][0]["ErrorCode"] == "NotAuthorizedForSourceException"
    service = as_service(session.client("events", endpoint_url=gateway))
    assert service.put_events(Entries=[event])["FailedEntryCount"] == 0
    messages = eventually(lambda: sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=1).get("Messages"))
    told = json.loads(messages[0]["Body"])
    assert (told["source"], told["detail-type"]) == ("aws.sagemaker", "SageMaker Transform Job State Change")
    assert (told["detail"]["TransformJobName"], told["detail"]["Tags"]) == ("job", {"team": "ml"})

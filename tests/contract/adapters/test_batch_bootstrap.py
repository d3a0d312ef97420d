"""The batch lane's wiring: from the environment that the program writes to a job's end, over moto; and the log."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from functions.aws.job_store import DynamoJobs
from functions.aws.objects import S3Objects
from functions.aws.run_store import DynamoRuns
from functions.aws.work_messages import write
from functions.aws.work_queue import SqsQueue
from functions.batch_bootstrap import audit_parts, collect_parts, notify_parts, promote_parts, settle_parts
from functions.batch_settings import Webhook, batch_environment, notify_environment, read_batch, read_notify
from functions.core.job import PROMOTED, Job, JobKey, JobState, Work, fingerprint
from functions.core.run import index_prefix, output_prefix
from functions.handlers import audit, collect, notify, promote, settle
from functions.notify import read_notice
from tests.contract.adapters.batch_tables import JOBS, RUNS, client_of, tables
from tests.contract.adapters.stub import Reply, Stub
from tests.contract.adapters.test_snapshot_store import _credentials
from tests.unit.batch.world import LANE
from tests.unit.core.builders import MODEL, SERVERLESS, topology_document
from tests.unit.handlers.fakes import FakeContext

__all__ = ["_credentials"]
BUCKET = "inferlane-test-data"
KEY = JobKey("the-tenant", "0" * 32)
BODY = b'{"text": "a payload that nobody may read"}'
ANSWER = b'{"label": "an answer that nobody may read"}'
CONTEXT = FakeContext(remaining_ms=300_000)


@dataclass
class Cloud:
    """What a stack has, and the environment of its functions."""

    environment: dict[str, str]
    jobs: DynamoJobs
    runs: DynamoRuns
    objects: S3Objects
    work: SqsQueue
    promotions: SqsQueue
    sqs: Any
    notices: str

    def accept(self) -> Work:
        """Message first, record second."""
        now = round(time.time(), 3)
        work = Work(KEY, MODEL, "application/json", None, now, now + 3600, ("serverless",), BODY)
        self.work.send([work])
        print_of = fingerprint(MODEL, "application/json", None, BODY)
        assert self.jobs.add(Job(KEY, MODEL, print_of, now, now + 3600)) is None
        return work

    def job(self) -> Job:
        return self.jobs.find([KEY])[KEY]


@pytest.fixture(autouse=True)
def _new_process() -> None:
    """A logger writes to where the standard output was when it was made, so each test makes its own."""
    for function in ("collect", "settle", "promote", "audit", "notify"):
        logging.root.manager.loggerDict.pop(function, None)


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    lanes = topology_document(serverless=SERVERLESS, batch={**LANE, "target_records": 1})
    (tmp_path / "topology.json").write_text(json.dumps(lanes))
    with mock_aws(), tables() as dynamodb:
        sqs, s3 = client_of("sqs"), client_of("s3")
        urls = {name: sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("work", "promote", "notices")}
        s3.create_bucket(Bucket=BUCKET)
        written = batch_environment(
            "collect",
            stack="test",
            jobs_table=JOBS,
            runs_table=RUNS,
            work_queue=urls["work"],
            promote_queue=urls["promote"],
            data_bucket=BUCKET,
            notices_queue=urls["notices"],
            channels=["topic"],
        )
        keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
        objects = S3Objects(s3, BUCKET)
        yield Cloud(
            written | keys | {"LAMBDA_TASK_ROOT": str(tmp_path), "AWS_REGION": "us-east-1"},
            DynamoJobs(dynamodb, JOBS, 60),
            DynamoRuns(dynamodb, RUNS, 60),
            objects,
            SqsQueue(sqs, urls["work"], objects),
            SqsQueue(sqs, urls["promote"], objects),
            sqs,
            urls["notices"],
        )


def told(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The lines since the last look, none of which may hold what is the caller's."""
    out, err = capsys.readouterr()
    for secret in ("nobody may read", "the-tenant"):
        assert secret not in out + err
    return [json.loads(line) for line in out.splitlines()]


def test_a_job_goes_all_the_way(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    """Collected into a transform job, settled from its output, told of; each call of a function says something."""
    settings = read_batch(cloud.environment)
    cloud.accept()
    collect.respond(CONTEXT, collect_parts(settings))
    assert any(line["message"] == "collect" for line in told(capsys))
    (run,) = cloud.runs.open()
    assert cloud.job().run == run.name
    assert list(cloud.work.receive(10)) == []
    created = client_of("sagemaker").describe_transform_job(TransformJobName=run.name)
    assert created["TransformInput"]["DataSource"]["S3DataSource"]["S3Uri"].startswith(
        f"s3://{BUCKET}/batch/{run.name}"
    )
    (index,) = [cloud.objects.get(key) for key in cloud.objects.sizes(index_prefix(run.name))]
    assert index is not None
    file = json.loads(index)["file"]
    cloud.objects.put(f"{output_prefix(run.name)}{file}.out", ANSWER + b"\n")
    settle.respond({"detail": {"TransformJobName": run.name}}, CONTEXT, settle_parts(settings))
    lines = told(capsys)
    assert [line["settled"] for line in lines if line["message"] == "settle"] == [True]
    assert any("_aws" in line and line.get("RunUnaccounted") == 0 for line in lines)
    end = cloud.job().end
    assert end is not None
    assert (end.state, end.lane) == (JobState.DONE, "batch")
    assert end.result is not None
    assert end.result.body == ANSWER
    (message,) = cloud.sqs.receive_message(QueueUrl=cloud.notices)["Messages"]
    notice = read_notice(message["Body"])
    assert notice is not None
    assert notice.jobs == ((KEY.id, "done"),)
    audit.respond(audit_parts(settings))
    assert any(line["message"] == "audit" and line["census"]["done"] == 1 for line in told(capsys))


def test_a_promoted_job_is_answered_by_a_lane(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    """As the event source mapping hands the message over, through the runtime's own address."""
    work = cloud.accept()
    cloud.jobs.claim([KEY], PROMOTED, None)
    with Stub(Reply(200, ANSWER, {"content-type": "application/json"})) as stub:
        settings = read_batch(cloud.environment | {"AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": stub.url})
        message = {"messageId": "m", "body": write(work), "attributes": {"ApproximateReceiveCount": "1"}}
        found = promote.respond({"Records": [message]}, CONTEXT, promote_parts(settings))
        assert stub.received[0].body == BODY
    assert found == {"batchItemFailures": []}
    end = cloud.job().end
    assert end is not None
    assert (end.state, end.lane) == (JobState.DONE, "serverless")
    assert any(line["message"] == "promote" and line["job"] == KEY.id for line in told(capsys))


def test_notices_reach_the_topic(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    """Through SNS; the webhook of a tenant without one is nobody's."""
    sns = client_of("sns")
    topic = sns.create_topic(Name="ended")["TopicArn"]
    queue = cloud.sqs.create_queue(QueueName="subscriber")["QueueUrl"]
    arn = cloud.sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    written = notify_environment(stack="test", topic=topic, webhooks={"other": Webhook("https://x.example", "/x")})
    parts = notify_parts(read_notify(cloud.environment | written))
    bodies = [
        {"to": to, "tenant": "the-tenant", "jobs": [{"id": "x", "status": "done"}]} for to in ("topic", "webhook")
    ]
    records = [{"messageId": f"m{i}", "body": json.dumps(body)} for i, body in enumerate(bodies)]
    assert notify.respond({"Records": records}, parts) == {"batchItemFailures": []}
    (message,) = cloud.sqs.receive_message(QueueUrl=queue)["Messages"]
    assert json.loads(json.loads(message["Body"])["Message"])["jobs"] == [{"id": "x", "status": "done"}]
    assert [line["told"] for line in told(capsys) if line["message"] == "notify"] == [True, True]


def test_a_service_that_is_gone_ends_no_turn_without_a_word(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    """The collector puts its steps off; the message stays where it is."""
    cloud.accept()
    cloud.sqs.delete_queue(QueueUrl=cloud.environment["INFERLANE_WORK_QUEUE"])
    collect.respond(CONTEXT, collect_parts(read_batch(cloud.environment)))
    lines = told(capsys)
    assert any(line["message"] == "step put off" and line["step"] == "receive" for line in lines)
    assert any(line.get("StepsPutOff") == 1 for line in lines)

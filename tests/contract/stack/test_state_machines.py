"""A state machine of the offline stack calls our SageMaker: create, wait, look, choose; errors have AWS's names."""

from __future__ import annotations

import io
import json
import tarfile
from typing import Any

import pytest
import urllib3

from tests.contract.stack.conftest import ROLE, Functions, eventually
from workbench.stack.cloud import Cloud

BUCKET = "nightly"
MODEL = """
def model_fn(model_dir):
    return None

def input_fn(body, content_type):
    return body if isinstance(body, str) else body.decode()

def predict_fn(data, model):
    if "bad" in data:
        raise ValueError("bad")
    return data.upper()

def output_fn(prediction, accept):
    return prediction, accept
"""
SDK = "arn:aws:states:::aws-sdk:sagemaker"
TASKS: dict[str, Any] = {
    "StartAt": "Create",
    "States": {
        "Create": {
            "Type": "Task",
            "Resource": f"{SDK}:createTransformJob",
            "Parameters": {
                "TransformJobName.$": "$.job",
                "ModelName": "upper",
                "BatchStrategy": "MultiRecord",
                "TransformInput": {
                    "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri.$": "$.input"}},
                    "ContentType": "text/plain",
                    "SplitType": "Line",
                },
                "TransformOutput": {
                    "S3OutputPath": f"s3://{BUCKET}/out/",
                    "Accept": "text/plain",
                    "AssembleWith": "Line",
                },
                "TransformResources": {"InstanceType": "ml.m5.large", "InstanceCount": 1},
            },
            "Retry": [
                {
                    "ErrorEquals": ["SageMaker.ResourceLimitExceededException"],
                    "IntervalSeconds": 1,
                    "MaxAttempts": 1,
                    "BackoffRate": 1.0,
                }
            ],
            "Catch": [
                # A name that is taken is the job of an earlier try.
                {"ErrorEquals": ["SageMaker.ResourceInUseException"], "ResultPath": "$.error", "Next": "Wait"},
                {"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "Report"},
            ],
            "ResultPath": "$.created",
            "Next": "Wait",
        },
        "Wait": {"Type": "Wait", "Seconds": 1, "Next": "Look"},
        "Look": {
            "Type": "Task",
            "Resource": f"{SDK}:describeTransformJob",
            "Parameters": {"TransformJobName.$": "$.job"},
            "ResultPath": "$.seen",
            "Next": "Over?",
        },
        "Over?": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.seen.TransformJobStatus", "StringEquals": "InProgress", "Next": "Wait"},
            ],
            "Default": "Report",
        },
        "Report": {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke",
            "Parameters": {"FunctionName": "reports", "Payload.$": "$"},
            "OutputPath": "$.Payload",
            "Retry": [{"ErrorEquals": ["States.TaskFailed"], "IntervalSeconds": 1, "MaxAttempts": 2}],
            "End": True,
        },
    },
}
REPORTS = """import json
def handler(event, context):
    print(json.dumps({"told": event}))
    return {name: event[name] for name in ("error", "seen") if name in event}
"""


@pytest.fixture(scope="module")
def machine(cloud: Cloud, functions: Functions) -> str:
    """The state machine's ARN, with a model and a reporting function that it calls."""
    s3, sagemaker = cloud.client("s3"), cloud.client("sagemaker")
    s3.create_bucket(Bucket=BUCKET)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        entry = tarfile.TarInfo("code/inference.py")
        entry.size = len(MODEL.encode())
        tar.addfile(entry, io.BytesIO(MODEL.encode()))
    s3.put_object(Bucket=BUCKET, Key="model.tar.gz", Body=packed.getvalue())
    s3.put_object(Bucket=BUCKET, Key="good/day.txt", Body=b"one\ntwo\n")
    s3.put_object(Bucket=BUCKET, Key="bad/day.txt", Body=b"bad\n")
    container = {
        "Image": "000000000000.dkr.ecr.us-east-1.amazonaws.com/any:1",
        "ModelDataUrl": f"s3://{BUCKET}/model.tar.gz",
    }
    sagemaker.create_model(ModelName="upper", PrimaryContainer=container, ExecutionRoleArn=ROLE)
    functions.make("reports", REPORTS)
    made = cloud.client("stepfunctions").create_state_machine(
        name="nightly", definition=json.dumps(TASKS), roleArn=ROLE
    )
    return str(made["stateMachineArn"])


def run(cloud: Cloud, machine: str, job: str, prefix: str) -> dict[str, Any]:
    """The output of an execution that must succeed."""
    states = cloud.client("stepfunctions")
    given = json.dumps({"job": job, "input": f"s3://{BUCKET}/{prefix}/"})
    execution = states.start_execution(stateMachineArn=machine, input=given)["executionArn"]

    def over() -> Any:
        seen = states.describe_execution(executionArn=execution)
        return None if seen["status"] == "RUNNING" else seen

    seen = eventually(over, 30)
    assert seen["status"] == "SUCCEEDED", seen
    output: dict[str, Any] = json.loads(seen["output"])
    return output


def test_a_job_from_beginning_to_end(cloud: Cloud, machine: str) -> None:
    """The machine makes a job, waits for it, sees it Completed, and its output lies on S3; again, the job is taken."""
    output = run(cloud, machine, "day-1", "good")
    assert output["seen"]["TransformJobStatus"] == "Completed", output
    assert output["seen"]["TransformEndTime"].endswith("Z")
    body = cloud.client("s3").get_object(Bucket=BUCKET, Key="out/day.txt.out")["Body"].read()
    assert body.split() == [b"ONE", b"TWO"]

    again = run(cloud, machine, "day-1", "good")
    assert again["error"]["Error"] == "SageMaker.ResourceInUseException"
    assert again["seen"]["TransformJobStatus"] == "Completed"


def test_errors_by_their_names(cloud: Cloud, machine: str) -> None:
    """Errors of SageMaker's model have their own names with `Exception`, all others are SageMakerException."""
    assert run(cloud, machine, "day-2", "nothing")["error"]["Error"] == "SageMaker.SageMakerException"

    failed = run(cloud, machine, "day-3", "bad")["seen"]
    assert failed["TransformJobStatus"] == "Failed"
    assert failed["FailureReason"].startswith("AlgorithmError")


def test_a_quota_is_tried_again(cloud: Cloud, machine: str) -> None:
    """No room for the job is an error that the machine's retry takes up, and catches when it stays."""
    http, url = urllib3.PoolManager(), f"{cloud.endpoint_url}/_inferlane/quotas"
    quota = "ml.m5.large for transform job usage"
    assert http.request("PUT", url, json={quota: 0}).status == 200
    try:
        output = run(cloud, machine, "day-4", "good")
    finally:
        http.request("PUT", url, json={quota: None})
    assert output["error"]["Error"] == "SageMaker.ResourceLimitExceededException"
    assert quota in output["error"]["Cause"]

"""InvokeEndpointAsync over MiniStack's S3, SNS and SQS: requests in, objects and notices out, queues that wait."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.contract.sagemaker.emulator import BUCKET, VARIANT, Aws, Emulator, eventually

SCALE = 60.0
FAILURES = f"s3://{BUCKET}/failures"
CLIENT_ERROR = "See the SageMaker Endpoint logs in your account for more information."


@pytest.fixture(scope="module")
def told(aws: Aws) -> Any:
    """An SQS queue that is subscribed to two SNS topics: its URL and the topics' ARNs."""
    session = boto3.Session("test", "test", region_name="us-east-1")
    sns: Any = session.client("sns", endpoint_url=aws.url)
    sqs: Any = session.client("sqs", endpoint_url=aws.url)
    url = sqs.create_queue(QueueName="told-async")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    topics = [sns.create_topic(Name=name)["TopicArn"] for name in ("good", "bad")]
    for topic in topics:
        sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)

    def notice() -> Any:
        """The next notice."""
        messages = eventually(lambda: sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1).get("Messages"))
        sqs.delete_message(QueueUrl=url, ReceiptHandle=messages[0]["ReceiptHandle"])
        return json.loads(json.loads(messages[0]["Body"])["Message"])

    return topics, notice


@pytest.fixture(scope="module")
def emulator(aws: Aws, told: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """An emulator whose time flies, with the asynchronous endpoint `async`: one instance, two requests at a time."""
    options = ("--time-scale", str(SCALE), "--metric-lag", "1", "--ping-interval", "10")
    emulator = Emulator.start(tmp_path_factory.mktemp("async") / "state", aws.url, *options)
    emulator.model("model", SAGEMAKER_MODEL_SERVER_WORKERS="4")
    (good, bad), _ = told
    output: Any = {
        "S3OutputPath": f"s3://{BUCKET}/answers/",
        "S3FailurePath": FAILURES,
        "NotificationConfig": {
            "SuccessTopic": good,
            "ErrorTopic": bad,
            "IncludeInferenceResponseIn": ["SUCCESS_NOTIFICATION_TOPIC"],
        },
    }
    variant: Any = {
        "VariantName": VARIANT,
        "ModelName": "model",
        "InstanceType": "ml.g5.xlarge",
        "InitialInstanceCount": 1,
    }
    emulator.sagemaker.create_endpoint_config(
        EndpointConfigName="async",
        ProductionVariants=[variant],
        AsyncInferenceConfig={
            "OutputConfig": output,
            "ClientConfig": {"MaxConcurrentInvocationsPerInstance": 2},
        },
    )
    emulator.endpoint("async", "async")
    assert emulator.settled("async")["EndpointStatus"] == "InService"
    yield emulator
    emulator.stop()


def ask(emulator: Emulator, body: object = None, **more: Any) -> Any:
    """InvokeEndpointAsync with JSON."""
    given: Any = {} if body is None else {"Body": json.dumps(body).encode()}
    return emulator.runtime.invoke_endpoint_async(EndpointName="async", ContentType="application/json", **given, **more)


def found(aws: Aws, uri: str) -> bytes:
    """The object, once it is there."""
    bucket, key = uri.removeprefix("s3://").split("/", 1)

    def look() -> Any:
        try:
            return aws.s3.get_object(Bucket=bucket, Key=key)
        except aws.s3.exceptions.NoSuchKey:
            return None

    return bytes(eventually(look)["Body"].read())


@pytest.mark.fidelity(
    "asynchronous inference",
    "202 at once with the places of the answer and of a failure; input comes from S3, the answer goes to "
    "S3OutputPath/<id>.out",
    source="botocore InvokeEndpointAsync; developer guide: async-inference-invoke-endpoint",
)
def test_from_s3_to_s3(emulator: Emulator, aws: Aws, told: Any) -> None:
    """The input object reaches the model with its types; its answer is an object, and a notice includes it."""
    aws.s3.put_object(Bucket=BUCKET, Key="asked/1.json", Body=b'{"n": 1}')
    place = f"s3://{BUCKET}/asked/1.json"
    response = ask(emulator, InputLocation=place, InferenceId="mine", Accept="text/x-mine", CustomAttributes="trace-7")
    assert response["ResponseMetadata"]["HTTPStatusCode"] == 202
    assert response["InferenceId"] == "mine"
    assert response["OutputLocation"].startswith(f"s3://{BUCKET}/answers/")
    assert response["OutputLocation"].endswith(".out")
    assert response["FailureLocation"].startswith(f"{FAILURES}/")
    answer = json.loads(found(aws, response["OutputLocation"]))
    assert answer["input"] == {"n": 1}
    seen = {k: v for k, v in answer["headers"].items() if k.startswith("x-amzn") or k in ("content-type", "accept")}
    assert seen == {
        "content-type": "application/json",
        "accept": "text/x-mine",
        "x-amzn-sagemaker-custom-attributes": "trace-7",
        "x-amzn-sagemaker-inference-id": "mine",
    }
    notice = told[1]()
    assert (notice["invocationStatus"], notice["inferenceId"]) == ("Completed", "mine")
    assert notice["requestParameters"] == {
        "accept": "text/x-mine",
        "contentType": "application/json",
        "endpointName": "async",
        "inputLocation": place,
    }
    assert notice["responseParameters"] == {"contentType": "text/x-mine", "outputLocation": response["OutputLocation"]}
    assert json.loads(base64.b64decode(notice["responseBody"]["content"])) == answer


@pytest.mark.fidelity(
    "asynchronous inference",
    "Body is an alternative to InputLocation, up to 128,000 bytes; exactly one of them; Filename and "
    "S3OutputPathExtension name the answer",
    source="botocore InvokeEndpointAsync",
)
def test_inline(emulator: Emulator, aws: Aws, told: Any) -> None:
    """A small body may come with the call; a larger one, none, or both are refused."""
    response = ask(emulator, {"n": 2}, Filename="two.json", S3OutputPathExtension="a/b")
    assert response["OutputLocation"] == f"s3://{BUCKET}/answers/a/b/two.json"
    assert json.loads(found(aws, response["OutputLocation"]))["input"] == {"n": 2}
    assert told[1]()["inferenceId"] == response["InferenceId"]
    refused: list[Any] = [{"Body": b" " * 128_001}, {}, {"Body": b"{}", "InputLocation": f"s3://{BUCKET}/asked/1.json"}]
    for bad in refused:
        with pytest.raises(ClientError) as caught:
            emulator.runtime.invoke_endpoint_async(EndpointName="async", **bad)
        assert caught.value.response["Error"]["Code"] == "ValidationError"


@pytest.mark.fidelity(
    "asynchronous inference",
    "A failed request has no answer: what the container said is under S3FailurePath, and the error topic is told",
    source="botocore AsyncInferenceOutputConfig; developer guide: async-inference-check-predictions",
)
@pytest.mark.parametrize(
    ("asked", "reason", "content"),
    [
        (
            {"body": {"fail": "server"}},
            f"ClientError: Received server error (500) from model. {CLIENT_ERROR}",
            b"the model broke",
        ),
        ({"body": {"fail": "client"}}, f"ClientError: Received client error (415) from model. {CLIENT_ERROR}", b"only"),
        ({"body": {"parts": 2}}, "ClientError: The response from container primary did not specify the required", b"C"),
        (
            {"body": {"sleep_s": 5}, "InvocationTimeoutSeconds": 1},
            "ClientError: Received server error (0)",
            b"Your inv",
        ),
        (
            {"InputLocation": f"s3://{BUCKET}/asked/none"},
            "ClientError: s3://models/asked/none cannot be read",
            b"Client",
        ),
    ],
    ids=["server", "client", "no length", "too long", "no input"],
)
def test_failures(emulator: Emulator, aws: Aws, told: Any, asked: dict[str, Any], reason: str, content: bytes) -> None:
    """Each way to fail is told, and its object says what happened."""
    response = ask(emulator, **asked)
    assert found(aws, response["FailureLocation"]).startswith(content)
    notice = told[1]()
    assert (notice["invocationStatus"], notice["inferenceId"]) == ("Failed", response["InferenceId"])
    assert notice["failureReason"].startswith(reason)
    assert "responseParameters" not in notice


@pytest.mark.fidelity(
    "asynchronous inference",
    "An asynchronous endpoint takes asynchronous invocations only, any other none",
    source="developer guide: async-inference",
)
def test_only_async(emulator: Emulator) -> None:
    """The other operations are refused."""
    for call in (emulator.runtime.invoke_endpoint, emulator.runtime.invoke_endpoint_with_response_stream):
        with pytest.raises(ClientError, match="ValidationError"):
            call(EndpointName="async", Body=b"{}")


def test_an_instance_has_its_share(emulator: Emulator, aws: Aws, told: Any) -> None:
    """MaxConcurrentInvocationsPerInstance requests are in flight at a time, although the model has more workers."""
    began = time.monotonic()
    answers = [ask(emulator, {"sleep_s": 0.4, "n": n}) for n in range(4)]
    assert time.monotonic() - began < 0.4
    eventually(lambda: emulator.shown("async")["in_flight"] == 2)
    for n, answer in enumerate(answers):
        assert json.loads(found(aws, answer["OutputLocation"]))["input"]["n"] == n
    assert time.monotonic() - began > 0.8
    assert {told[1]()["inferenceId"] for _ in answers} == {a["InferenceId"] for a in answers}


@pytest.mark.fidelity(
    "asynchronous inference",
    "An asynchronous endpoint can be scaled to no instance: requests wait, or expire after RequestTTLSeconds; "
    "HasBacklogWithoutCapacity is 1",
    source="developer guide: async-inference-autoscale, async-inference-monitor; botocore RequestTTLSeconds",
)
def test_no_instance(emulator: Emulator, aws: Aws, told: Any) -> None:
    """Without an instance a patient request waits until there is one, an impatient one expires and is told."""

    def scale(count: int) -> None:
        emulator.sagemaker.update_endpoint_weights_and_capacities(
            EndpointName="async", DesiredWeightsAndCapacities=[{"VariantName": VARIANT, "DesiredInstanceCount": count}]
        )
        emulator.settled("async")

    scale(0)
    assert emulator.shown("async")["replicas"] == []
    patient, impatient = ask(emulator, {"n": 3}), ask(emulator, {"n": 4}, RequestTTLSeconds=60)
    notice = told[1]()
    assert (notice["invocationStatus"], notice["inferenceId"]) == ("Failed", impatient["InferenceId"])
    assert notice["failureReason"] == "ClientError: The request has waited longer than 60 seconds."
    scale(1)
    assert json.loads(found(aws, patient["OutputLocation"]))["input"] == {"n": 3}
    assert told[1]()["inferenceId"] == patient["InferenceId"]
    names = {"ApproximateBacklogSize", "HasBacklogWithoutCapacity", "ExpiredRequests", "InvocationsProcesssed"}
    eventually(lambda: names <= {m["MetricName"] for m in metrics(aws)})
    assert "Invocations" not in {m["MetricName"] for m in metrics(aws)}


def metrics(aws: Aws) -> list[Any]:
    """Every metric of the endpoint that CloudWatch has."""
    wanted = {"Name": "EndpointName", "Value": "async"}
    pages = aws.cloudwatch.get_paginator("list_metrics").paginate(Namespace="AWS/SageMaker")
    return [m for page in pages for m in page["Metrics"] if wanted in m["Dimensions"]]


def test_what_describes_it(emulator: Emulator) -> None:
    """DescribeEndpoint and DescribeEndpointConfig show the AsyncInferenceConfig."""
    shown: Any = emulator.sagemaker.describe_endpoint(EndpointName="async")["AsyncInferenceConfig"]
    config: Any = emulator.sagemaker.describe_endpoint_config(EndpointConfigName="async")["AsyncInferenceConfig"]
    assert shown == config
    assert shown["ClientConfig"] == {"MaxConcurrentInvocationsPerInstance": 2}

"""Endpoints over time: updates in place, failed starts, deletion."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.contract.sagemaker.emulator import BUCKET, IMAGE, MODEL, ROLE, Aws, Emulator, archive, eventually


@contextmanager
def request_loop(emulator: Emulator, endpoint: str) -> Iterator[list[str]]:
    """Three threads of requests; the versions that answered are listed, and any error fails the test."""
    versions: list[str] = []
    errors: list[BaseException] = []
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            try:
                body = json.loads(emulator.invoke(endpoint, b'{"sleep_s": 0.01}')["Body"].read())
                versions.append(body["version"])
            except ClientError as error:
                errors.append(error)
                return

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield versions
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not errors


@pytest.mark.fidelity(
    "updates",
    "An update fails no request",
    source="developer guide: deployment-guardrails-blue-green-all-at-once",
)
@pytest.mark.parametrize(("name", "serverless"), [("blue-dedicated", None), ("blue-serverless", 4)])
def test_update_fails_no_request(emulator: Emulator, name: str, serverless: int | None) -> None:
    """During an update in place every request is answered, by the old version and then by the new."""
    for version in ("1", "2"):
        emulator.config(
            f"{name}-{version}", emulator.model(f"{name}-{version}", VERSION=version), serverless=serverless
        )
    emulator.endpoint(name, f"{name}-1")
    assert emulator.settled(name)["EndpointStatus"] == "InService"
    old = {r["pid"] for r in emulator.shown(name)["replicas"]}
    with request_loop(emulator, name) as versions:
        eventually(lambda: len(versions) > 20)
        emulator.sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=f"{name}-2")
        with pytest.raises(ClientError, match="Cannot update in-progress endpoint"):
            emulator.sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=f"{name}-1")
        seen = emulator.settled(name)
        emulator.sagemaker.delete_endpoint_config(EndpointConfigName=f"{name}-2")
        eventually(lambda: versions[-20:] == ["2"] * 20)
    assert seen["EndpointConfigName"] == f"{name}-2"
    assert set(versions) == {"1", "2"}
    eventually(lambda: not old & {p.pid for p in emulator.children()})
    emulator.sagemaker.delete_endpoint(EndpointName=name)
    emulator.sagemaker.get_waiter("endpoint_deleted").wait(EndpointName=name, WaiterConfig={"Delay": 1})


@pytest.mark.fidelity(
    "failed update",
    "A failed update leaves the endpoint InService on its old configuration, with FailureReason",
    source="hashicorp/terraform-provider-aws#39099, #46663",
)
def test_failed_update_keeps_the_old(emulator: Emulator) -> None:
    """A failed update leaves the endpoint InService on the old configuration, and says why."""
    emulator.config("broken-update", emulator.model("broken-update", VERSION="broken"), instances=1)
    emulator.sagemaker.update_endpoint(EndpointName="dedicated", EndpointConfigName="broken-update")
    seen = emulator.settled("dedicated")
    assert (seen["EndpointStatus"], seen["EndpointConfigName"]) == ("InService", "dedicated")
    assert "did not pass the ping health check" in seen["FailureReason"]
    assert "ImportError: no module named 'moon'" in seen["FailureReason"]
    assert json.loads(emulator.invoke("dedicated")["Body"].read())["version"] == "1"


FAILING = [
    ("no-artifact", f"s3://{BUCKET}/missing.tar.gz", "Failed to download model data from URL"),
    ("no-archive", f"s3://{BUCKET}/text.tar.gz", "not a gzip-compressed tar archive"),
    ("nested", f"s3://{BUCKET}/nested.tar.gz", "found model/code/inference.py: files must be at the archive's root"),
]


@pytest.mark.fidelity(
    "endpoint states",
    "A creation that fails is Failed with a FailureReason, and can be deleted",
    source="botocore: DescribeEndpointOutput.EndpointStatus, FailureReason; aws/sagemaker-python-sdk#1554",
)
def test_failed_creations_say_why(emulator: Emulator, aws: Aws) -> None:
    """What keeps a first deployment from starting is in FailureReason; the endpoint is Failed and can be deleted."""
    aws.s3.put_object(Bucket=BUCKET, Key="text.tar.gz", Body=b"no archive")
    aws.s3.put_object(Bucket=BUCKET, Key="nested.tar.gz", Body=archive({"model/code/inference.py": b""}))
    emulator.endpoint("slow", emulator.config("slow", emulator.model("slow", LOAD_S="60")))
    for name, url, _ in FAILING:
        emulator.endpoint(name, emulator.config(name, emulator.model(name, url)))
    expected = {name: reason for name, _, reason in FAILING} | {"slow": "No /ping succeeded within 6 s."}
    for name, reason in expected.items():
        seen = emulator.settled(name)
        assert seen["EndpointStatus"] == "Failed"
        assert reason in seen["FailureReason"]
        with pytest.raises(ClientError, match="not found"):
            emulator.invoke(name)
        emulator.sagemaker.delete_endpoint(EndpointName=name)


@pytest.mark.fidelity(
    "models",
    "ModelDataSource: objects under a prefix, uncompressed, are the model's files; without its code it does not start",
    source="botocore: S3ModelDataSource",
)
def test_uncompressed_model_data(emulator: Emulator, aws: Aws) -> None:
    """A model can be a prefix of objects."""
    for path, content in {"code/inference.py": MODEL.read_bytes(), "weights/part1": b"w"}.items():
        aws.s3.put_object(Bucket=BUCKET, Key=f"plain/{path}", Body=content)
    source: Any = {"S3Uri": f"s3://{BUCKET}/plain/", "S3DataType": "S3Prefix", "CompressionType": "None"}
    container: Any = {"Image": IMAGE, "ModelDataSource": {"S3DataSource": source}}
    emulator.sagemaker.create_model(ModelName="plain", PrimaryContainer=container, ExecutionRoleArn=ROLE)
    emulator.endpoint("plain", emulator.config("plain", "plain"))
    emulator.settled("plain")
    assert json.loads(emulator.invoke("plain")["Body"].read())["files"] == ["code", "weights"]
    emulator.sagemaker.delete_endpoint(EndpointName="plain")


@pytest.mark.fidelity(
    "models",
    "Model data is read at deployment: a changed object is served by the next one",
    source="developer guide: realtime-endpoints-deployment",
)
def test_a_new_object_is_a_new_model(emulator: Emulator, aws: Aws) -> None:
    """Another object under the same key is served by the next deployment."""
    first = b"def model_fn(d): return 1\ndef transform_fn(m, body, ct, accept): return 'first', 'text/plain'\n"
    aws.s3.put_object(Bucket=BUCKET, Key="changing.tar.gz", Body=archive({"code/inference.py": first}))
    emulator.config("changing", emulator.model("changing", f"s3://{BUCKET}/changing.tar.gz"))
    emulator.endpoint("changing", "changing")
    emulator.settled("changing")
    assert emulator.invoke("changing")["Body"].read() == b"first"
    second = archive({"code/inference.py": first.replace(b"first", b"second")})
    aws.s3.put_object(Bucket=BUCKET, Key="changing.tar.gz", Body=second)
    emulator.sagemaker.update_endpoint(EndpointName="changing", EndpointConfigName="changing")
    emulator.settled("changing")
    response = emulator.invoke("changing")
    assert (response["Body"].read(), response["ContentType"]) == (b"second", "text/plain")
    emulator.sagemaker.delete_endpoint(EndpointName="changing")

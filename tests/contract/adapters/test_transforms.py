"""The Transforms contract, against the fake and SageMaker through moto; and requests and errors, as they are sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from moto import mock_aws

from functions.aws.transforms import SageMakerTransforms
from functions.batch_ports import BusyError, Transforms, TransformSpec, TransformStatus, UnavailableError
from tests.contract.adapters.batch_tables import client_of, hasty_client_of
from tests.contract.adapters.stub import Reply, Stub, unused_url
from tests.contract.adapters.test_snapshot_store import _credentials
from tests.unit.batch.fakes import FakeObjects, FakeTransforms
from tests.unit.batch.weather import Weather
from tests.unit.handlers.fakes import FakeClock

__all__ = ["_credentials"]
NAME = "inferlane-test-0123456789abcdef"
KEY = "arn:aws:kms:us-east-1:123456789012:key/k"
SPEC = TransformSpec(
    name=NAME,
    model_name="inferlane-test-m-batch",
    input=f"s3://bucket/batch/{NAME}/in/",
    output=f"s3://bucket/batch/{NAME}/out/",
    content_type="application/jsonlines",
    accept="application/json",
    lines=True,
    strategy="MultiRecord",
    instance_type="ml.c5.xlarge",
    instance_count=1,
    max_payload_mb=6,
    max_concurrent=4,
)


def made(client: Any, key: str | None = None) -> SageMakerTransforms:
    return SageMakerTransforms(lambda: client, bucket="bucket", key=key, tags={"stack": "test"})


@pytest.fixture(params=["fake", "sagemaker"])
def transforms(request: pytest.FixtureRequest) -> Iterator[Transforms]:
    if request.param == "fake":
        weather = Weather()
        yield FakeTransforms(weather, FakeClock(0.0), FakeObjects(weather), lambda body: body)
        return
    with mock_aws():
        yield made(client_of("sagemaker"))


def test_a_job_that_was_created_fares_somehow(transforms: Transforms) -> None:
    """One that was not is None."""
    transforms.create(SPEC)
    found = transforms.describe(NAME)
    assert found is not None
    assert found.status in ("InProgress", "Completed")
    assert transforms.describe("inferlane-test-nothing") is None


# What is SageMaker's alone.


def over(url: str, monkeypatch: pytest.MonkeyPatch, key: str | None = None) -> SageMakerTransforms:
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    return made(hasty_client_of("sagemaker"), key)


def requested(spec: TransformSpec, monkeypatch: pytest.MonkeyPatch, key: str | None = None) -> dict[str, Any]:
    """What goes over the wire, which botocore has checked against the service's model."""
    with Stub(Reply(200, b'{"TransformJobArn":"arn"}')) as stub:
        over(stub.url, monkeypatch, key).create(spec)
        found: dict[str, Any] = json.loads(stub.received[0].body)
    return found


def test_lines_are_split_and_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole request; what is written into our bucket is encrypted with our key."""
    assert requested(SPEC, monkeypatch, KEY) == {
        "TransformJobName": NAME,
        "ModelName": "inferlane-test-m-batch",
        "MaxConcurrentTransforms": 4,
        "MaxPayloadInMB": 6,
        "ModelClientConfig": {"InvocationsTimeoutInSeconds": 3600, "InvocationsMaxRetries": 1},
        "BatchStrategy": "MultiRecord",
        "TransformInput": {
            "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": SPEC.input}},
            "ContentType": "application/jsonlines",
            "SplitType": "Line",
        },
        "TransformOutput": {
            "S3OutputPath": SPEC.output,
            "Accept": "application/json",
            "AssembleWith": "Line",
            "KmsKeyId": KEY,
        },
        "TransformResources": {"InstanceType": "ml.c5.xlarge", "InstanceCount": 1},
        "Tags": [{"Key": "stack", "Value": "test"}],
    }


def test_an_object_is_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither split nor joined, without a strategy, of no type if there is none; another's bucket has its own key."""
    spec = replace(SPEC, lines=False, content_type=None, accept=None, output="s3://bucket-of-another/out/")
    found = requested(spec, monkeypatch, KEY)
    assert "BatchStrategy" not in found
    assert (found["TransformInput"]["SplitType"], found["TransformOutput"]["AssembleWith"]) == ("None", "None")
    assert "ContentType" not in found["TransformInput"]
    assert found["TransformOutput"].keys() == {"S3OutputPath", "AssembleWith"}


def test_without_tags_none_are_sent() -> None:
    """Who sends some must be allowed to."""
    made_without = SageMakerTransforms(lambda: hasty_client_of("sagemaker"), bucket="bucket", key=None, tags={})
    assert "Tags" not in made_without.request(SPEC)


def test_a_client_is_made_once_and_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """To write a request down takes none."""
    asked: list[str] = []

    def client() -> Any:
        asked.append("sagemaker")
        return hasty_client_of("sagemaker")

    transforms = SageMakerTransforms(client, bucket="bucket", key=None, tags={})
    transforms.request(SPEC)
    assert asked == []
    with Stub(error("ResourceNotFound")) as stub:
        monkeypatch.setenv("AWS_ENDPOINT_URL", stub.url)
        assert transforms.describe(NAME) is None
        assert transforms.describe(NAME) is None
    assert asked == ["sagemaker"]


def error(code: str, message: str = "m", status: int = 400) -> Reply:
    return Reply(status, json.dumps({"__type": code, "message": message}).encode())


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("ResourceInUse", "Job name must be unique within an AWS account and region"),
        ("ValidationException", "a job with this name already exists (arn:aws:sagemaker:...)"),
    ],
)
def test_a_name_that_exists_is_as_good(monkeypatch: pytest.MonkeyPatch, code: str, message: str) -> None:
    """It was created by an earlier turn, which did not live to say so."""
    with Stub(error(code, message)) as stub:
        over(stub.url, monkeypatch).create(SPEC)
        assert len(stub.received) == 1


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("ResourceLimitExceeded", BusyError),
        ("ThrottlingException", BusyError),
        ("ValidationException", UnavailableError),
        ("AccessDeniedException", UnavailableError),
    ],
)
def test_at_the_quota_it_is_busy(monkeypatch: pytest.MonkeyPatch, code: str, kind: type[Exception]) -> None:
    """All else is unavailable, without an account's number."""
    with Stub(error(code, "of account 123456789012")) as stub, pytest.raises(kind, match="of account <account>"):
        over(stub.url, monkeypatch).create(SPEC)
    with pytest.raises(UnavailableError):
        over(unused_url(), monkeypatch).describe(NAME)


@pytest.mark.parametrize(
    ("code", "message"),
    [("ValidationException", "Could not find requested job with name: x"), ("ResourceNotFound", "no")],
)
def test_a_job_that_there_is_not_is_none(monkeypatch: pytest.MonkeyPatch, code: str, message: str) -> None:
    """In either of SageMaker's words; another error is one."""
    with Stub(error(code, message)) as stub:
        assert over(stub.url, monkeypatch).describe(NAME) is None
    with Stub(error("ValidationException", "name is too long")) as stub, pytest.raises(UnavailableError):
        over(stub.url, monkeypatch).describe(NAME)


def test_a_job_that_ended_says_when_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times as Unix seconds; the reason without an account's number."""
    document = {
        "TransformJobName": NAME,
        "TransformJobStatus": "Failed",
        "FailureReason": "ClientError: see arn:aws:logs:us-east-1:123456789012:x",
        "TransformStartTime": 1_700_000_000.5,
        "TransformEndTime": 1_700_000_060,
    }
    with Stub(Reply(200, json.dumps(document).encode())) as stub:
        found = over(stub.url, monkeypatch).describe(NAME)
    assert found == TransformStatus(
        "Failed", "ClientError: see arn:aws:logs:us-east-1:<account>:x", 1_700_000_000.5, 1_700_000_060.0
    )

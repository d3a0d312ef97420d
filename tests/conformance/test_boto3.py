"""boto3 with nothing but an endpoint: every waiter and every paginator over what the emulator serves.

What is served is asked of the emulator itself, and what boto3 has for it of boto3: one that is served and not tested
here fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import boto3
import botocore.session
import pytest
from botocore import xform_name
from botocore.exceptions import ClientError, WaiterError

from tests.contract.sagemaker.emulator import IMAGE, MODEL, ROLE, VARIANT, archive, eventually
from workbench.stack.cloud import CREDENTIALS, REGION, Cloud

OFTEN: Any = {"Delay": 0.2, "MaxAttempts": 100}
BUCKET = "boto3"
ENDPOINTS = ("page-0", "page-1", "page-2")
CAPACITY = {"ServiceNamespace": "sagemaker", "ScalableDimension": "sagemaker:variant:DesiredInstanceCount"}
COUNT = 3
"""How many of each thing there are."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A paginated operation: the member with the rows, what tells two apart, the parameters, how many there are."""

    rows: str
    key: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    count: int = COUNT
    page: int = 1


LISTINGS: Mapping[str, Mapping[str, Listing]] = {
    "sagemaker": {
        "list_models": Listing("Models", "ModelName", {"NameContains": "page-"}),
        "list_endpoint_configs": Listing("EndpointConfigs", "EndpointConfigName", {"NameContains": "page-"}),
        "list_endpoints": Listing("Endpoints", "EndpointName", {"NameContains": "page-"}),
        "list_transform_jobs": Listing("TransformJobSummaries", "TransformJobName", {"NameContains": "page-"}),
        # A page has 50 rows at least, and a resource 50 tags at most: there is never a second one.
        "list_tags": Listing(
            "Tags", "Key", {"ResourceArn": "arn:aws:sagemaker:us-east-1:000000000000:model/page-0"}, 50, 50
        ),
    },
    "application-autoscaling": {
        "describe_scalable_targets": Listing("ScalableTargets", "ResourceId", {"ServiceNamespace": "sagemaker"}),
        "describe_scaling_policies": Listing("ScalingPolicies", "PolicyName", {"ServiceNamespace": "sagemaker"}),
        "describe_scheduled_actions": Listing(
            "ScheduledActions", "ScheduledActionName", {"ServiceNamespace": "sagemaker"}
        ),
        "describe_scaling_activities": Listing("ScalingActivities", "ActivityId", {"ServiceNamespace": "sagemaker"}),
    },
}
WAITERS = {"endpoint_in_service", "endpoint_deleted", "transform_job_completed_or_stopped"}


@pytest.fixture(scope="module")
def client(host: Cloud) -> Callable[[str], Any]:
    """boto3's own clients."""
    session = boto3.Session(CREDENTIALS["aws_access_key_id"], CREDENTIALS["aws_secret_access_key"], region_name=REGION)
    return lambda service: session.client(service, endpoint_url=host.endpoint_url)  # type: ignore[call-overload]


@pytest.fixture(scope="module")
def model(client: Callable[[str], Any]) -> str:
    """The URL of the contract tests' model archive."""
    s3 = client("s3")
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="model.tar.gz", Body=archive({"code/inference.py": MODEL.read_bytes()}))
    return f"s3://{BUCKET}/model.tar.gz"


@pytest.fixture(scope="module")
def filled(client: Callable[[str], Any], model: str) -> None:
    """Three of everything that can be listed."""
    sagemaker, scaling = client("sagemaker"), client("application-autoscaling")
    client("s3").put_object(Bucket=BUCKET, Key="in/records", Body='{"a": 1}\n')
    for name in ENDPOINTS:
        tags = [{"Key": f"tag-{number}", "Value": name} for number in range(50)]
        _create_model(sagemaker, name, model, Tags=tags)
        _create_endpoint(sagemaker, name)
        _create_job(sagemaker, name, name, "in/")
    for number, name in enumerate(ENDPOINTS):
        sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=name, WaiterConfig=OFTEN)
        place = {"ResourceId": f"endpoint/{name}/variant/{VARIANT}", **CAPACITY}
        # A target that wants two instances where there is one makes an activity.
        scaling.register_scalable_target(**place, MinCapacity=2, MaxCapacity=2)
        tracking = {
            "TargetValue": 70.0,
            "PredefinedMetricSpecification": {
                "PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution"
            },
        }
        scaling.put_scaling_policy(
            **place,
            PolicyName=f"policy-{number}",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration=tracking,
        )
        scaling.put_scheduled_action(
            **place,
            ScheduledActionName=f"action-{number}",
            Schedule="cron(0 3 * * ? *)",
            ScalableTargetAction={"MinCapacity": 1, "MaxCapacity": 2},
        )

    def activities() -> int:
        return len(scaling.describe_scaling_activities(ServiceNamespace="sagemaker")["ScalingActivities"])

    eventually(lambda: activities() == COUNT)


def test_every_paginator_and_waiter_is_tested(client: Callable[[str], Any]) -> None:
    """What the emulator serves and boto3 pages through or waits for is in this file, and nothing else is."""
    now = datetime.now(UTC)
    place = {"ResourceId": f"endpoint/page-0/variant/{VARIANT}", **CAPACITY}
    sagemaker = _served(client("sagemaker").list_artifacts)
    scaling = _served(
        client("application-autoscaling").get_predictive_scaling_forecast,
        **{**place, "PolicyName": "policy-0", "StartTime": now, "EndTime": now},
    )
    for service, operations in {"sagemaker": sagemaker, "application-autoscaling": scaling}.items():
        paged = {xform_name(name) for name in operations if client(service).can_paginate(xform_name(name))}
        assert paged == set(LISTINGS[service])
    model = botocore.session.get_session().get_waiter_model("sagemaker")
    waited = {name for name in model.waiter_names if model.get_waiter(name).operation in sagemaker}
    assert {xform_name(name) for name in waited} == WAITERS
    assert client("application-autoscaling").waiter_names == []


@pytest.mark.fidelity(
    "listing",
    "Paginators give each row once, page by page, and take up where a token left them",
    source="botocore: paginators-1 of sagemaker and application-autoscaling",
)
@pytest.mark.parametrize(
    ("service", "operation"), [(service, operation) for service, rows in LISTINGS.items() for operation in rows]
)
@pytest.mark.usefixtures("filled")
def test_paginator(client: Callable[[str], Any], service: str, operation: str) -> None:
    """Pages hold what one call gives, each row once and in its order; so do two halves, the second from a token."""
    listing = LISTINGS[service][operation]
    paginator = client(service).get_paginator(operation)

    def rows(**config: int | str) -> tuple[list[str], int, str | None]:
        pages = paginator.paginate(**listing.parameters, PaginationConfig={"PageSize": listing.page, **config})
        found = [[row[listing.key] for row in page[listing.rows]] for page in pages]
        return [key for page in found for key in page], len(found), pages.resume_token

    whole = [row[listing.key] for row in getattr(client(service), operation)(**listing.parameters)[listing.rows]]
    assert len(set(whole)) == listing.count
    keys, pages, token = rows()
    assert (keys, pages, token) == (whole, listing.count // listing.page, None)
    first, _, token = rows(MaxItems=listing.count - 1)
    assert token is not None
    rest, _, _ = rows(StartingToken=token)
    assert first + rest == whole


@pytest.mark.fidelity(
    "waiters",
    "EndpointInService and EndpointDeleted end as botocore's waiters expect: success, failure, deletion",
    source="botocore: sagemaker waiters-2",
)
def test_endpoint_waiters(client: Callable[[str], Any], model: str) -> None:
    """Both endpoint waiters end with success where it is due, and with the state where an endpoint has failed."""
    sagemaker = client("sagemaker")
    in_service, deleted = sagemaker.get_waiter("endpoint_in_service"), sagemaker.get_waiter("endpoint_deleted")
    _create_model(sagemaker, "waited", model)
    _create_model(sagemaker, "hopeless", f"s3://{BUCKET}/missing.tar.gz")
    for name in ("waited", "hopeless"):
        _create_endpoint(sagemaker, name)
    in_service.wait(EndpointName="waited", WaiterConfig=OFTEN)
    sagemaker.delete_endpoint(EndpointName="waited")
    deleted.wait(EndpointName="waited", WaiterConfig=OFTEN)
    for waiter in (in_service, deleted):
        with pytest.raises(WaiterError, match="Failed"):
            waiter.wait(EndpointName="hopeless", WaiterConfig=OFTEN)
    with pytest.raises(WaiterError, match="ValidationException"):
        in_service.wait(EndpointName="never", WaiterConfig=OFTEN)


@pytest.mark.fidelity(
    "waiters",
    "TransformJobCompletedOrStopped ends as botocore's waiter expects: completed, stopped, failed, unknown",
    source="botocore: sagemaker waiters-2",
)
def test_transform_waiter(client: Callable[[str], Any], model: str) -> None:
    """The waiter returns for a job that is done or was stopped, and says Failed of one that has failed."""
    sagemaker, s3 = client("sagemaker"), client("s3")
    waiter = sagemaker.get_waiter("transform_job_completed_or_stopped")
    _create_model(sagemaker, "jobs", model)
    bodies = {"completed": '{"a": 1}\n', "stopped": '{"sleep_s": 30}\n', "failed": '{"fail": "client"}\n'}
    for name, body in bodies.items():
        s3.put_object(Bucket=BUCKET, Key=f"{name}/records", Body=body)
        _create_job(sagemaker, name, "jobs", f"{name}/")
    sagemaker.stop_transform_job(TransformJobName="stopped")
    for name, status in {"completed": "Completed", "stopped": "Stopped"}.items():
        waiter.wait(TransformJobName=name, WaiterConfig=OFTEN)
        assert sagemaker.describe_transform_job(TransformJobName=name)["TransformJobStatus"] == status
    with pytest.raises(WaiterError, match="Failed"):
        waiter.wait(TransformJobName="failed", WaiterConfig=OFTEN)
    with pytest.raises(WaiterError, match="ValidationException"):
        waiter.wait(TransformJobName="never", WaiterConfig=OFTEN)


def _served(refused: Callable[..., Any], **parameters: Any) -> set[str]:
    """The operations of a service, as its refusal of one that is not emulated names them."""
    with pytest.raises(ClientError, match="is not emulated") as caught:
        refused(**parameters)
    named = re.search(r"serves: (.*)", caught.value.response["Error"]["Message"])
    assert named is not None
    return set(named[1].split(", "))


def _create_model(sagemaker: Any, name: str, url: str, **more: Any) -> None:
    container = {"Image": IMAGE, "ModelDataUrl": url}
    sagemaker.create_model(ModelName=name, PrimaryContainer=container, ExecutionRoleArn=ROLE, **more)


def _create_endpoint(sagemaker: Any, name: str) -> None:
    """An endpoint with a configuration and a model of the same name, on one instance."""
    variant = {"VariantName": VARIANT, "ModelName": name, "InstanceType": "ml.m5.xlarge", "InitialInstanceCount": 1}
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)


def _create_job(sagemaker: Any, name: str, model: str, prefix: str) -> None:
    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/{prefix}"}}
    sagemaker.create_transform_job(
        TransformJobName=name,
        ModelName=model,
        TransformInput={"DataSource": source, "ContentType": "application/json", "SplitType": "Line"},
        TransformOutput={"S3OutputPath": f"s3://{BUCKET}/out/{name}", "AssembleWith": "Line"},
        TransformResources={"InstanceType": "ml.m5.xlarge", "InstanceCount": 1},
    )

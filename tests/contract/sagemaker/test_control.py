"""Models, endpoint configurations, endpoints and tags, as boto3 sees them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.contract.sagemaker.emulator import HTTP, ROLE, Emulator


@pytest.mark.fidelity(
    "waiters",
    "boto3's endpoint_in_service waiter ends when the endpoint is InService; DescribeEndpoint has what its output "
    "shape names",
    source="botocore: waiters-2 EndpointInService; DescribeEndpointOutput",
)
def test_waiter_and_description(emulator: Emulator) -> None:
    """boto3's waiter returns, and the description has what botocore's output shape names."""
    emulator.sagemaker.get_waiter("endpoint_in_service").wait(EndpointName="dedicated")
    seen = emulator.sagemaker.describe_endpoint(EndpointName="dedicated")
    assert seen["EndpointArn"] == "arn:aws:sagemaker:us-east-1:000000000000:endpoint/dedicated"
    assert seen["EndpointConfigName"] == "dedicated"
    assert seen["CreationTime"] <= seen["LastModifiedTime"]
    variant = seen["ProductionVariants"][0]
    assert (variant["CurrentInstanceCount"], variant["DesiredInstanceCount"], variant["CurrentWeight"]) == (2, 2, 1.0)


@pytest.mark.fidelity(
    "serverless",
    "A serverless variant is described by its size; its CurrentInstanceCount is 0",
    source="botocore: ProductionVariantSummary.CurrentServerlessConfig",
)
def test_serverless_description(emulator: Emulator) -> None:
    """A serverless endpoint shows its size and no instances."""
    variant = emulator.sagemaker.describe_endpoint(EndpointName="serverless")["ProductionVariants"][0]
    assert variant["CurrentServerlessConfig"] == {"MemorySizeInMB": 1024, "MaxConcurrency": 2}
    assert variant["CurrentInstanceCount"] == 0


@pytest.mark.fidelity(
    "listing",
    "Describe calls echo what was created; List calls come in pages that botocore's paginators read",
    source="botocore: paginators-1; DescribeModelOutput, DescribeEndpointConfigOutput",
)
def test_models_and_configs_come_back(emulator: Emulator) -> None:
    """Describe calls echo what was created; paginators see every page."""
    for number in range(12):
        emulator.model(f"page-{number}")
    model = emulator.sagemaker.describe_model(ModelName="page-0")
    assert model["PrimaryContainer"]["Mode"] == "SingleModel"
    assert model["ExecutionRoleArn"] == ROLE
    pages = list(emulator.sagemaker.get_paginator("list_models").paginate(NameContains="page-", SortBy="Name"))
    names = [m["ModelName"] for page in pages for m in page["Models"]]
    assert names == sorted((f"page-{n}" for n in range(12)), reverse=True)
    assert len(pages) == 2
    config = emulator.sagemaker.describe_endpoint_config(EndpointConfigName="dedicated")
    assert config["ProductionVariants"][0]["InstanceType"] == "ml.g5.xlarge"
    for name in names:
        emulator.sagemaker.delete_model(ModelName=name)
    assert emulator.sagemaker.list_models(NameContains="page-")["Models"] == []


@pytest.mark.fidelity(
    "tags",
    "Tags are added, listed and deleted by ARN",
    source="botocore: AddTags, ListTags, DeleteTags",
)
def test_tags(emulator: Emulator) -> None:
    """Tags are added, listed and removed by ARN."""
    arn = emulator.sagemaker.describe_endpoint(EndpointName="dedicated")["EndpointArn"]
    emulator.sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "team", "Value": "ml"}, {"Key": "a", "Value": "b"}])
    emulator.sagemaker.delete_tags(ResourceArn=arn, TagKeys=["a"])
    assert emulator.sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "team", "Value": "ml"}]


REFUSALS: list[tuple[str, dict[str, Any], str]] = [
    (
        "describe_model",
        {"ModelName": "none"},
        'Could not find model "arn:aws:sagemaker:us-east-1:000000000000:model/none".',
    ),
    ("describe_endpoint", {"EndpointName": "none"}, 'Could not find endpoint "arn:aws:sagemaker:us-east-1'),
    ("update_endpoint", {"EndpointName": "none", "EndpointConfigName": "dedicated"}, 'Could not find endpoint "'),
    ("create_endpoint", {"EndpointName": "new", "EndpointConfigName": "none"}, "Could not find endpoint configuration"),
    (
        "create_endpoint",
        {"EndpointName": "Dedicated", "EndpointConfigName": "dedicated"},
        'Cannot create already existing endpoint "arn:aws:sagemaker:us-east-1:000000000000:endpoint/dedicated".',
    ),
    (
        "create_model",
        {"ModelName": "model", "PrimaryContainer": {"Image": "registry/image"}},
        'Cannot create already existing model "',
    ),
    (
        "create_endpoint",
        {"EndpointName": "bad_name", "EndpointConfigName": "dedicated"},
        "1 validation error detected: Value 'bad_name' at 'endpointName' failed to satisfy constraint: Member must "
        "satisfy regular expression pattern: ",
    ),
    (
        "update_endpoint",
        {"EndpointName": "dedicated", "EndpointConfigName": "serverless"},
        "Cannot convert the instance-based endpoint",
    ),
]


@pytest.mark.fidelity(
    "control errors",
    "What cannot be served is a ValidationException that names the resource by its ARN",
    source="hashicorp/terraform-provider-aws#40048, #40080",
)
@pytest.mark.parametrize(("call", "parameters", "message"), REFUSALS)
def test_refusals(emulator: Emulator, call: str, parameters: dict[str, Any], message: str) -> None:
    """A request that cannot be served is a ValidationException with AWS's words."""
    with pytest.raises(ClientError) as caught:
        getattr(emulator.sagemaker, call)(**parameters)
    assert caught.value.response["Error"]["Code"] == "ValidationException"
    assert message in caught.value.response["Error"]["Message"]
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


@pytest.mark.fidelity(
    "control errors",
    "Errors are HTTP 400 with the code in __type and x-amzn-ErrorType, and a request id",
    source="AWS JSON 1.1 protocol; botocore parsers",
)
@pytest.mark.parametrize(
    ("target", "body", "code"),
    [
        ("SageMaker.DescribeModel", b'{"ModelName": 5}', "SerializationException"),
        ("SageMaker.DescribeModel", b"{", "SerializationException"),
        ("SageMaker.DescribeModel", b"{}", "ValidationException"),
        ("SageMaker.CreateTrainingJob", b"{}", "UnknownOperationException"),
        ("Nothing.Here", b"{}", "UnknownOperationException"),
    ],
)
def test_wire_form_of_errors(emulator: Emulator, target: str, body: bytes, code: str) -> None:
    """Errors are HTTP 400 with the code in `__type` and in the header, and a request id."""
    response = HTTP.request("POST", emulator.url, body=body, headers={"X-Amz-Target": target})
    assert response.status == 400
    assert json.loads(response.data)["__type"] == response.headers["x-amzn-ErrorType"] == code
    assert response.headers["x-amzn-RequestId"]

"""Models, configurations and endpoints without processes: rules, states, listings."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.stack.sagemaker.api.wire import AwsError
from workbench.stack.sagemaker.control.catalog import Catalog
from workbench.stack.sagemaker.control.endpoints import Endpoints
from workbench.stack.sagemaker.records import Endpoint

SERVERLESS = {"MemorySizeInMB": 2048, "MaxConcurrency": 5}


def variant(**changes: Any) -> dict[str, Any]:
    """A dedicated variant; None removes a member."""
    base = {"VariantName": "A", "ModelName": "m", "InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1}
    return {k: v for k, v in (base | changes).items() if v is not None}


def serverless(**changes: Any) -> dict[str, Any]:
    """A serverless variant."""
    size = SERVERLESS | changes.pop("size", {})
    return variant(InstanceType=None, InitialInstanceCount=None, ServerlessConfig=size, **changes)


def config(name: str, *variants: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A CreateEndpointConfig request."""
    return {"EndpointConfigName": name, "ProductionVariants": list(variants), **more}


@pytest.fixture
def catalog() -> Catalog:
    """With model `m` and configurations `one`, `two`, `big` (g5.2xlarge) and `serverless`."""
    catalog = Catalog("us-east-1", "000000000000")
    catalog.create_model({"ModelName": "m", "PrimaryContainer": {"Image": "i", "ModelDataUrl": "s3://b/m.tar.gz"}}, 1.0)
    catalog.create_endpoint_config(config("one", variant()), 1.0)
    catalog.create_endpoint_config(config("two", variant(InitialInstanceCount=2)), 2.0)
    catalog.create_endpoint_config(config("big", variant(InstanceType="ml.g5.2xlarge")), 3.0)
    catalog.create_endpoint_config(config("serverless", serverless()), 4.0)
    return catalog


@pytest.fixture
def endpoints(catalog: Catalog) -> Endpoints:
    """Without any endpoint."""
    return Endpoints(catalog)


def in_service(endpoints: Endpoints, name: str = "e", config_name: str = "one") -> Endpoint:
    """An endpoint that has been created and started."""
    endpoint = endpoints.begin_create({"EndpointName": name, "EndpointConfigName": config_name}, 10.0)
    endpoints.finish_create(endpoint, None, 11.0)
    return endpoint


BAD_CONFIGS: list[tuple[dict[str, Any], str]] = [
    (config("x", variant(), variant()), "Variant names must be unique; repeated: A."),
    (config("x", variant(InstanceType=None)), "InstanceType is required for production variant A"),
    (config("x", variant(InitialInstanceCount=None)), "InitialInstanceCount is required"),
    (config("x", variant(ModelName="none")), "Could not find model"),
    (config("x", serverless(), serverless(VariantName="B")), "one production variant only"),
    (config("x", serverless() | {"InstanceType": "ml.m5.large"}), "InstanceType cannot be given with ServerlessConfig"),
    (config("x", serverless(size={"MemorySizeInMB": 1500})), "MemorySizeInMB must be one of [1024, 2048"),
    (config("x", serverless(size={"ProvisionedConcurrency": 9})), "must be less than or equal to MaxConcurrency"),
    (config("x", serverless(size={"ProvisionedConcurrency": 2})), "ProvisionedConcurrency is not emulated"),
    (config("x", serverless(), VpcConfig={"Subnets": ["s"]}), "VpcConfig cannot be given with ServerlessConfig"),
    (config("x", variant(), AsyncInferenceConfig={"OutputConfig": {}}), "AsyncInferenceConfig is not emulated"),
    (config("x", variant(), MetricsConfig={"MetricPublishFrequencyInSeconds": 7}), "must be one of 10, 30, 60"),
    (config("ONE", variant()), "Cannot create already existing endpoint configuration"),
]


@pytest.mark.parametrize(("request_", "message"), BAD_CONFIGS)
def test_bad_configurations(catalog: Catalog, request_: dict[str, Any], message: str) -> None:
    """Rules between fields are enforced with the reason, and nothing is created."""
    with pytest.raises(AwsError) as caught:
        catalog.create_endpoint_config(request_, 5.0)
    assert message in str(caught.value)
    assert len(catalog.list_endpoint_configs({})["EndpointConfigs"]) == 4


@pytest.mark.parametrize(
    ("container", "message"),
    [
        ({}, "Specify exactly one of PrimaryContainer and Containers."),
        (
            {"Containers": [{"Image": "a"}, {"Image": "b"}]},
            "An inference pipeline (several Containers) is not emulated",
        ),
        ({"PrimaryContainer": {"ModelDataUrl": "s3://b/k"}}, "Image is required"),
        ({"PrimaryContainer": {"Image": "i", "Mode": "MultiModel"}}, "multi-model container"),
        (
            {"PrimaryContainer": {"Image": "i", "Environment": {str(n): "x" * 1000 for n in range(40)}}},
            "larger than 32 KB",
        ),
    ],
)
def test_bad_models(catalog: Catalog, container: dict[str, Any], message: str) -> None:
    """A model needs one container with an image, and its environment has a size limit."""
    with pytest.raises(AwsError) as caught:
        catalog.create_model({"ModelName": "x", **container}, 5.0)
    assert message in str(caught.value)


def test_create_then_fail(endpoints: Endpoints) -> None:
    """A first deployment that fails leaves Failed with its reason; only deletion is left then."""
    endpoint = endpoints.begin_create({"EndpointName": "e", "EndpointConfigName": "one"}, 10.0)
    assert "ProductionVariants" not in endpoints.describe("e", {})
    with pytest.raises(AwsError, match="Cannot update in-progress endpoint"):
        endpoints.begin_delete({"EndpointName": "e"}, 10.5)
    endpoints.finish_create(endpoint, "no artifact", 11.0)
    seen = endpoints.describe("e", {})
    assert (seen["EndpointStatus"], seen["FailureReason"]) == ("Failed", "no artifact")
    with pytest.raises(AwsError, match="in state Failed"):
        endpoints.begin_update({"EndpointName": "e", "EndpointConfigName": "two"}, (), 12.0)
    endpoints.begin_delete({"EndpointName": "e"}, 13.0)
    endpoints.finish_delete(endpoint)
    assert endpoints.all() == []


def test_update(endpoints: Endpoints) -> None:
    """While Updating the old configuration is shown; then the new one, with its counts and no reason."""
    endpoint = in_service(endpoints)
    endpoints.begin_update({"EndpointName": "E", "EndpointConfigName": "two"}, (), 12.0)
    seen = endpoints.describe("e", {"A": 1})
    assert (seen["EndpointStatus"], seen["EndpointConfigName"]) == ("Updating", "one")
    assert seen["PendingDeploymentSummary"]["EndpointConfigName"] == "two"
    with pytest.raises(AwsError, match="Cannot update in-progress endpoint"):
        endpoints.begin_update({"EndpointName": "e", "EndpointConfigName": "two"}, (), 12.5)
    endpoints.finish_update(endpoint, None, 13.0)
    seen = endpoints.describe("e", {"A": 2})
    assert (seen["EndpointStatus"], seen["EndpointConfigName"]) == ("InService", "two")
    assert seen["ProductionVariants"][0]["DesiredInstanceCount"] == 2
    assert "FailureReason" not in seen


def test_failed_update(endpoints: Endpoints) -> None:
    """A failed update is InService on the old configuration with FailureReason, until the next update begins."""
    endpoint = in_service(endpoints)
    endpoints.begin_update({"EndpointName": "e", "EndpointConfigName": "two"}, (), 12.0)
    endpoints.finish_update(endpoint, "x" * 2000, 13.0)
    seen = endpoints.describe("e", {"A": 1})
    assert (seen["EndpointStatus"], seen["EndpointConfigName"]) == ("InService", "one")
    assert len(seen["FailureReason"]) == 1024
    endpoints.begin_update({"EndpointName": "e", "EndpointConfigName": "two"}, (), 14.0)
    assert "FailureReason" not in endpoints.describe("e", {})


@pytest.mark.parametrize(
    ("more", "count"),
    [
        ({}, 2),
        ({"RetainAllVariantProperties": True}, 5),
        (
            {
                "RetainAllVariantProperties": True,
                "ExcludeRetainedVariantProperties": [{"VariantPropertyType": "DesiredInstanceCount"}],
            },
            2,
        ),
    ],
)
def test_retained_counts(endpoints: Endpoints, more: dict[str, Any], count: int) -> None:
    """A scaled count survives an update only when the caller retains it."""
    endpoint = in_service(endpoints)
    endpoints.begin_scale("e", "A", 5, 12.0)
    endpoints.finish_update(endpoint, None, 13.0)
    endpoints.begin_update({"EndpointName": "e", "EndpointConfigName": "two", **more}, (), 14.0)
    endpoints.finish_update(endpoint, None, 15.0)
    assert endpoint.desired == {"A": count}


def test_forbidden_updates(endpoints: Endpoints) -> None:
    """A scaled variant keeps its instance type; real-time never becomes serverless, the reverse may."""
    in_service(endpoints)
    with pytest.raises(AwsError, match="must be deregistered as scalable targets"):
        endpoints.begin_update({"EndpointName": "e", "EndpointConfigName": "big"}, ["A"], 12.0)
    with pytest.raises(AwsError, match="Cannot convert"):
        endpoints.begin_update({"EndpointName": "e", "EndpointConfigName": "serverless"}, (), 12.0)
    in_service(endpoints, "s", "serverless")
    assert endpoints.begin_update({"EndpointName": "s", "EndpointConfigName": "one"}, (), 12.0).status == "Updating"


def test_deleting_what_is_in_use(catalog: Catalog, endpoints: Endpoints) -> None:
    """An endpoint keeps its plan when its configuration and model are deleted."""
    in_service(endpoints)
    catalog.delete_endpoint_config({"EndpointConfigName": "one"})
    catalog.delete_model({"ModelName": "m"})
    seen = endpoints.describe("e", {"A": 1})
    assert seen["EndpointConfigName"] == "one"
    assert seen["ProductionVariants"][0]["DeployedImages"][0]["SpecifiedImage"] == "i"


def test_listing(catalog: Catalog) -> None:
    """Newest first; by name, by time and in pages on request; a stale token goes on where it was."""
    names = [c["EndpointConfigName"] for c in catalog.list_endpoint_configs({})["EndpointConfigs"]]
    assert names == ["serverless", "big", "two", "one"]
    query = {"SortBy": "Name", "SortOrder": "Ascending", "MaxResults": 2}
    first = catalog.list_endpoint_configs(query)
    assert [c["EndpointConfigName"] for c in first["EndpointConfigs"]] == ["big", "one"]
    catalog.delete_endpoint_config({"EndpointConfigName": "one"})
    second = catalog.list_endpoint_configs({**query, "NextToken": first["NextToken"]})
    assert [c["EndpointConfigName"] for c in second["EndpointConfigs"]] == ["serverless", "two"]
    assert "NextToken" not in second
    after = catalog.list_endpoint_configs({"CreationTimeAfter": 2.0, "CreationTimeBefore": "1970-01-01T00:00:04Z"})
    assert [c["EndpointConfigName"] for c in after["EndpointConfigs"]] == ["big"]
    with pytest.raises(AwsError, match="NextToken"):
        catalog.list_endpoint_configs({"NextToken": "rubbish"})


def test_tags(catalog: Catalog) -> None:
    """Tags belong to what exists: they end with it, and 50 is the most."""
    arn = catalog.model("m").arn
    assert arn == "arn:aws:sagemaker:us-east-1:000000000000:model/m"
    catalog.tags.add({"ResourceArn": arn, "Tags": [{"Key": str(n), "Value": "v"} for n in range(50)]})
    with pytest.raises(AwsError, match="50 tags"):
        catalog.tags.add({"ResourceArn": arn, "Tags": [{"Key": "one more", "Value": ""}]})
    catalog.delete_model({"ModelName": "m"})
    with pytest.raises(AwsError, match="Could not find resource"):
        catalog.tags.list({"ResourceArn": arn})

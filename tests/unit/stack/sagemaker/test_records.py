"""Models, configurations and tags without processes: rules, names, listings."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.stack.sagemaker.documents import config, serverless, variant
from workbench.stack.sagemaker.api.wire import AwsError
from workbench.stack.sagemaker.control.catalog import Catalog

PREFIX = {"S3Uri": "s3://b/k/", "S3DataType": "S3Prefix", "CompressionType": "None"}
BAD_CONFIGS: list[tuple[dict[str, Any], str]] = [
    (config("x", variant(), variant()), "Variant names must be unique; repeated: A."),
    (config("x", variant(InstanceType=None)), "InstanceType is required for production variant A"),
    (config("x", variant(InitialInstanceCount=None)), "InitialInstanceCount is required"),
    (config("x", variant(ModelName="none")), "Could not find model"),
    (config("x", serverless(), serverless(VariantName="B")), "one production variant only"),
    (config("x", serverless() | {"InstanceType": "ml.m5.large"}), "InstanceType cannot be given with ServerlessConfig"),
    (config("x", serverless(size={"MemorySizeInMB": 1500})), "MemorySizeInMB must be one of [1024, 2048"),
    (config("x", serverless(size={"ProvisionedConcurrency": 9})), "must be less than or equal to MaxConcurrency"),
    (config("x", serverless(EnableSSMAccess=True)), "EnableSSMAccess cannot be given with ServerlessConfig"),
    (config("x", serverless(), DataCaptureConfig={"EnableCapture": False}), "DataCaptureConfig cannot be given"),
    (config("x", serverless(ModelName="vpc")), "Model vpc has VpcConfig, which serverless inference does not support"),
    (config("x", serverless(ModelName="own")), "Model own has EnableNetworkIsolation, which serverless inference"),
    (config("x", serverless(ModelName="source")), "Model source has ModelDataSource, which serverless inference"),
    (
        config("x", variant(RoutingConfig={"RoutingStrategy": "PREFIX_AWARE"})),
        "RoutingStrategy PREFIX_AWARE is not emulated",
    ),
    (config("x", variant(), Tags=[{"Key": "aws:x", "Value": ""}]), "are reserved for system use; got aws:x"),
    (config("x", serverless(), VpcConfig={"Subnets": ["s"]}), "VpcConfig cannot be given with ServerlessConfig"),
    (
        config("x", serverless(), AsyncInferenceConfig={"OutputConfig": {}}),
        "AsyncInferenceConfig cannot be given with ServerlessConfig",
    ),
    (config("x", variant(), MetricsConfig={"MetricPublishFrequencyInSeconds": 7}), "must be one of 10, 30, 60"),
    (
        config("x", variant(ModelName=None), ExecutionRoleArn="arn:aws:iam::000000000000:role/r"),
        "(an endpoint for inference components) is not emulated",
    ),
    (config("ONE", variant()), "Cannot create already existing endpoint configuration"),
]


MODELS: dict[str, dict[str, Any]] = {
    "vpc": {"VpcConfig": {"Subnets": ["s"], "SecurityGroupIds": ["sg"]}},
    "own": {"EnableNetworkIsolation": True},
    "source": {
        "PrimaryContainer": {
            "Image": "r/i",
            "ModelDataSource": {
                "S3DataSource": {"S3Uri": "s3://b/k", "S3DataType": "S3Object", "CompressionType": "Gzip"}
            },
        }
    },
}


@pytest.mark.fidelity(
    "serverless",
    "One variant, memory in steps of 1 GB, ProvisionedConcurrency at most MaxConcurrency; no instance settings, VPC, "
    "network isolation, data capture or ModelDataSource",
    source="developer guide: serverless-endpoints; botocore ProductionVariantServerlessConfig, ContainerDefinition",
)
@pytest.mark.parametrize(("request_", "message"), BAD_CONFIGS)
def test_bad_configurations(catalog: Catalog, request_: dict[str, Any], message: str) -> None:
    """Rules between fields are enforced with the reason, and nothing is created."""
    for name, more in MODELS.items():
        catalog.create_model({"ModelName": name, "PrimaryContainer": {"Image": "r/i"}} | more, 1.0)
    with pytest.raises(AwsError) as caught:
        catalog.create_endpoint_config(request_, 5.0)
    assert message in str(caught.value)
    assert len(catalog.list_endpoint_configs({})["EndpointConfigs"]) == 4


@pytest.mark.fidelity(
    "serverless",
    "EnableSSMAccess false is no instance setting: a serverless variant may say it",
    source="hashicorp/terraform-provider-aws 5.100.0, which always sends it",
)
def test_a_switch_that_is_off(catalog: Catalog) -> None:
    """A serverless variant that says it wants no SSM access is accepted."""
    catalog.create_endpoint_config(config("off", serverless(EnableSSMAccess=False)), 5.0)
    assert catalog.describe_endpoint_config({"EndpointConfigName": "off"})["ProductionVariants"][0]["ServerlessConfig"]


@pytest.mark.parametrize(
    ("container", "message"),
    [
        ({}, "Specify exactly one of PrimaryContainer and Containers."),
        (
            {"Containers": [{"Image": "r/a"}, {"Image": "r/b"}]},
            "An inference pipeline (several Containers) is not emulated",
        ),
        ({"PrimaryContainer": {"ModelDataUrl": "s3://b/k"}}, "Image is required"),
        ({"PrimaryContainer": {"Image": "r/i", "Mode": "MultiModel"}}, "multi-model container"),
        (
            {"PrimaryContainer": {"Image": "r/i", "Environment": {str(n): "x" * 1000 for n in range(40)}}},
            "larger than 32 KB",
        ),
        (
            {"PrimaryContainer": {"Image": "r/i", "ModelDataSource": {"S3DataSource": PREFIX | {"S3Uri": "s3://b/k"}}}},
            "must end with a slash",
        ),
        (
            {
                "PrimaryContainer": {
                    "Image": "r/i",
                    "ModelDataSource": {"S3DataSource": PREFIX | {"CompressionType": "Gzip"}},
                }
            },
            "S3Prefix cannot be given with CompressionType Gzip",
        ),
        ({"PrimaryContainer": {"Image": "image"}}, "Invalid image URI image: expected registry/repository[:tag]"),
        ({"PrimaryContainer": {"Image": "r/i:t:t"}}, "Invalid image URI r/i:t:t"),
        ({"PrimaryContainer": {"Image": "https://r/i"}}, "Invalid image URI https://r/i"),
    ],
)
@pytest.mark.fidelity(
    "models",
    "An image is registry/repository[:tag] or registry/repository[@digest]; images are not pulled here",
    source="botocore: ContainerDefinition.Image",
)
def test_bad_models(catalog: Catalog, container: dict[str, Any], message: str) -> None:
    """A model needs one container with an image, and its environment has a size limit."""
    with pytest.raises(AwsError) as caught:
        catalog.create_model({"ModelName": "x", **container}, 5.0)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "image",
    [
        "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-inference:2.6.0-transformers4.51.3-cpu-py312",
        "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-scikit-learn:1.4-2-cpu-py3",
        f"0.dkr.ecr.us-east-1.amazonaws.com/team/model_server@sha256:{'0' * 64}",
        "localhost:5000/model",
    ],
)
def test_images(catalog: Catalog, image: str) -> None:
    """Names as ECR and other registries give them are taken."""
    catalog.create_model({"ModelName": "x", "PrimaryContainer": {"Image": image}}, 5.0)


@pytest.mark.fidelity(
    "eventual consistency",
    "CreateEndpointConfig and CreateEndpoint may not see a model or configuration made a moment ago, which Describe "
    "calls do see (a setting, off by default)",
    source="botocore: CreateEndpoint, CreateEndpointConfig (eventually consistent reads)",
)
def test_eventual_consistency() -> None:
    """Who refers to what was made less than the lag ago is refused as if it were not there."""
    catalog = Catalog("us-east-1", "000000000000", lag_s=5.0)
    catalog.create_model({"ModelName": "m", "PrimaryContainer": {"Image": "r/i"}}, 1.0)
    assert catalog.describe_model({"ModelName": "m"})["ModelName"] == "m"
    with pytest.raises(AwsError, match="Could not find model"):
        catalog.create_endpoint_config(config("c", variant()), 5.9)
    catalog.create_endpoint_config(config("c", variant()), 6.0)
    with pytest.raises(AwsError, match="Could not find endpoint configuration"):
        catalog.plan("e", "c", 10.9)
    assert catalog.plan("e", "c", 11.0).config.name == "c"


@pytest.mark.fidelity(
    "names",
    "Names are unique whatever their case and free again after deletion; a configuration or model in use can be "
    "deleted, and the endpoint keeps what it has",
    source="botocore: CreateEndpointInput.EndpointName, DeleteModel, DeleteEndpointConfig",
)
def test_names(catalog: Catalog) -> None:
    """A deleted name can be used again, and means the new thing then."""
    with pytest.raises(AwsError, match="Cannot create already existing model"):
        catalog.create_model({"ModelName": "M", "PrimaryContainer": {"Image": "r/i"}}, 5.0)
    plan = catalog.plan("e", "one", 5.0)
    catalog.delete_endpoint_config({"EndpointConfigName": "one"})
    catalog.delete_model({"ModelName": "m"})
    catalog.create_model({"ModelName": "m", "PrimaryContainer": {"Image": "r/new"}}, 6.0)
    catalog.create_endpoint_config(config("one", variant()), 6.0)
    assert plan.variants[0].container.image == "r/i"
    assert catalog.plan("e", "one", 7.0).variants[0].container.image == "r/new"


@pytest.mark.fidelity(
    "listing",
    "Newest first by default; CreationTimeAfter is inclusive, CreationTimeBefore is not; pages go on where they were",
    source="botocore: ListModels, ListEndpointConfigs, ListEndpoints",
)
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
    assert [c["EndpointConfigName"] for c in after["EndpointConfigs"]] == ["big", "two"]
    with pytest.raises(AwsError, match="NextToken"):
        catalog.list_endpoint_configs({"NextToken": "rubbish"})


@pytest.mark.fidelity(
    "tags", "A resource has 50 tags at most; aws: is reserved", source="botocore: TagList; AWS tagging guide"
)
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

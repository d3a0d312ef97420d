"""Rules between the fields of a request, which shapes cannot say. Pure: documents in, `ValidationException` out.

Sources: the SageMaker developer guide (serverless feature exclusions, memory steps), the API reference, and, for what
this emulator does not do, its own limits (`api/gaps.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from workbench.stack.sagemaker.api.gaps import Gap
from workbench.stack.sagemaker.api.wire import Document, invalid
from workbench.stack.sagemaker.records import Variant

MEMORY_STEPS_MB = (1024, 2048, 3072, 4096, 5120, 6144)
METRIC_PERIODS_S = (10, 30, 60, 120, 180, 240, 300)
ENVIRONMENT_BYTES = 32 * 1024
SERVERLESS_EXCLUDED = (
    "InstanceType", "InitialInstanceCount", "AcceleratorType", "VolumeSizeInGB", "InstancePools", "CoreDumpConfig",
    "EnableSSMAccess", "ManagedInstanceScaling", "InferenceAmiVersion", "CapacityReservationConfig",
)  # fmt: skip
"""Members of a variant that speak of instances."""
_IMAGE = re.compile(
    r"(?P<registry>[a-z0-9.-]+(:\d+)?)/(?P<repository>[a-z0-9]+([._/-]+[a-z0-9]+)*)"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}|@sha256:[0-9a-f]{64})?"
)
"""registry/repository[:tag] or registry/repository[@digest], as ContainerDefinition.Image has it; not pulled here."""


def check_model(document: Document) -> None:
    """CreateModel: one container whose artifact is a `.tar.gz` on S3."""
    check_tags(document.get("Tags") or ())
    primary, several = document.get("PrimaryContainer"), document.get("Containers")
    if bool(primary) == bool(several):
        raise invalid("Specify exactly one of PrimaryContainer and Containers.")
    if several and len(several) > 1:
        raise Gap.PIPELINE.refusal()
    containers = [primary] if primary else several
    for container in containers or ():
        check_container(container)


def check_container(document: Mapping[str, Any]) -> None:
    """One ContainerDefinition."""
    if not document.get("Image"):
        if document.get("ModelPackageName"):
            raise Gap.MODEL_PACKAGE.refusal()
        raise invalid("Image is required in the container definition.")
    if not _IMAGE.fullmatch(document["Image"]):
        raise invalid(
            f"Invalid image URI {document['Image']}: "
            "expected registry/repository[:tag] or registry/repository[@digest]."
        )
    if document.get("Mode") == "MultiModel" or document.get("AdditionalModelDataSources"):
        raise Gap.MULTI_MODEL.refusal()
    source = document.get("ModelDataSource", {}).get("S3DataSource")
    if source and document.get("ModelDataUrl"):
        raise invalid("Specify ModelDataUrl or ModelDataSource, not both.")
    if source:
        _check_source(source)
    environment = document.get("Environment") or {}
    if sum(len(k.encode()) + len(v.encode()) for k, v in environment.items()) > ENVIRONMENT_BYTES:
        raise invalid("The container's environment is larger than 32 KB.")


def _check_source(source: Mapping[str, Any]) -> None:
    if source["S3DataType"] == "S3Prefix":
        if source["CompressionType"] == "Gzip":
            raise invalid("S3DataType S3Prefix cannot be given with CompressionType Gzip.")
        if not source["S3Uri"].endswith("/"):
            raise invalid(f"S3Uri {source['S3Uri']} must end with a slash (/) when S3DataType is S3Prefix.")
    for member, gap in (("HubAccessConfig", Gap.HUB_ACCESS), ("ManifestS3Uri", Gap.DATA_MANIFEST)):
        if source.get(member):
            raise gap.refusal()


def check_endpoint_config(document: Document) -> None:
    """CreateEndpointConfig: every variant is wholly dedicated or wholly serverless, and a serverless one is alone."""
    check_tags(document.get("Tags") or ())
    variants = document["ProductionVariants"]
    names = [v["VariantName"] for v in variants]
    if repeated := {n for n in names if names.count(n) > 1}:
        raise invalid(f"Variant names must be unique; repeated: {', '.join(sorted(repeated))}.")
    for member in (Gap.EXPLAINER, Gap.SHADOW_VARIANTS):
        if document.get(member.what):
            raise member.refusal()
    if (document.get("DataCaptureConfig") or {}).get("EnableCapture"):
        raise Gap.DATA_CAPTURE.refusal()
    for variant in variants:
        if variant.get("ServerlessConfig"):
            _check_serverless(variant, document)
        else:
            _check_dedicated(variant, document)
        routing = (variant.get("RoutingConfig") or {}).get("RoutingStrategy")
        if routing in ("PREFIX_AWARE", "KV_AWARE"):
            raise Gap[routing].refusal()
    period = (document.get("MetricsConfig") or {}).get("MetricPublishFrequencyInSeconds")
    if period is not None and period not in METRIC_PERIODS_S:
        steps = ", ".join(map(str, METRIC_PERIODS_S))
        raise invalid(f"MetricPublishFrequencyInSeconds must be one of {steps}; got {period}.")


def _check_dedicated(variant: Mapping[str, Any], document: Document) -> None:
    name = variant["VariantName"]
    if not variant.get("ModelName") and document.get("ExecutionRoleArn"):
        raise Gap.COMPONENTS.refusal()
    for member in (Gap.INSTANCE_POOLS, Gap.MANAGED_SCALING, Gap.CAPACITY_RESERVATION):
        if variant.get(member.what):
            raise member.refusal()
    for needed in ("ModelName", "InstanceType", "InitialInstanceCount"):
        if variant.get(needed) is None:
            raise invalid(f"{needed} is required for production variant {name}, which has no ServerlessConfig.")


def _check_serverless(variant: Mapping[str, Any], document: Document) -> None:
    name, size = variant["VariantName"], variant["ServerlessConfig"]
    if len(document["ProductionVariants"]) > 1:
        raise invalid("An endpoint configuration with ServerlessConfig can have one production variant only.")
    for member in SERVERLESS_EXCLUDED:
        # False is no wish: the AWS provider always sends EnableSSMAccess.
        if variant.get(member) not in (None, False):
            raise invalid(f"{member} cannot be given with ServerlessConfig (production variant {name}).")
    if document.get("VpcConfig"):
        raise invalid("VpcConfig cannot be given with ServerlessConfig.")
    for member in ("DataCaptureConfig", "AsyncInferenceConfig"):
        if document.get(member):
            raise invalid(f"{member} cannot be given with ServerlessConfig.")
    if not variant.get("ModelName"):
        raise invalid(f"ModelName is required for production variant {name}.")
    if size["MemorySizeInMB"] not in MEMORY_STEPS_MB:
        steps = ", ".join(map(str, MEMORY_STEPS_MB))
        raise invalid(f"MemorySizeInMB must be one of [{steps}]; got {size['MemorySizeInMB']}.")
    check_concurrency(size["MaxConcurrency"], size.get("ProvisionedConcurrency") or 0)


def check_concurrency(most: int, provisioned: int) -> None:
    """MaxConcurrency and ProvisionedConcurrency of a serverless variant."""
    if provisioned > most:
        raise invalid("ProvisionedConcurrency must be less than or equal to MaxConcurrency.")


def check_variant_model(variant: Variant, model: Document) -> None:
    """What a variant cannot do with its model: a serverless one has no VPC, isolation or uncompressed data."""
    if variant.serverless is None:
        return
    container = model.get("PrimaryContainer") or model["Containers"][0]
    excluded = {
        "VpcConfig": model.get("VpcConfig"),
        "EnableNetworkIsolation": model.get("EnableNetworkIsolation"),
        "ModelDataSource": container.get("ModelDataSource"),
        "ImageConfig with RepositoryAccessMode Vpc": (container.get("ImageConfig") or {}).get("RepositoryAccessMode")
        == "Vpc",
    }
    for member, given in excluded.items():
        if given:
            raise invalid(f"Model {variant.model_name} has {member}, which serverless inference does not support.")


def check_tags(tags: Iterable[Mapping[str, str]]) -> None:
    """Tags of a request: `aws:` is AWS's own prefix."""
    for tag in tags:
        if tag["Key"].lower().startswith("aws:"):
            raise invalid(f"Tag keys starting with 'aws:' are reserved for system use; got {tag['Key']}.")

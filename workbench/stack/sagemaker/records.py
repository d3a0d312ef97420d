"""What the control plane keeps: models, endpoint configurations, endpoints. Values parsed once from checked documents.

A record holds its typed fields, which the emulator acts on, and the request document, which describe calls echo.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.stack.sagemaker.api.wire import Document

Status = Literal[
    "Creating",
    "InService",
    "Updating",
    "SystemUpdating",
    "RollingBack",
    "UpdateRollbackFailed",
    "Deleting",
    "Failed",
]
Stage = Literal["Creating", "Updating", "Deleting", "ActivatingTraffic", "Baking"]
"""A ProductionVariantStatus: what is being done to a fleet now."""
DataKind = Literal["archive", "object", "prefix"]
"""Model data: a `.tar.gz`, one uncompressed object, or all objects under a prefix."""
SERVERLESS_DISK_GB = 5


@dataclass(frozen=True, slots=True)
class Container:
    """What a model process is started from."""

    image: str
    model_data_url: str | None
    environment: Mapping[str, str]
    data_kind: DataKind = "archive"


@dataclass(frozen=True, slots=True)
class Model:
    """A model: name, and how its container is started."""

    name: str
    arn: str
    created: float
    document: Document
    container: Container


@dataclass(frozen=True, slots=True)
class Serverless:
    """A serverless variant's size."""

    memory_mb: int
    max_concurrency: int
    provisioned: int = 0
    """ProvisionedConcurrency: containers that are kept warm."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One production variant: dedicated (an instance type and a count) or serverless."""

    name: str
    model_name: str
    weight: float
    instance_type: str | None
    instance_count: int
    serverless: Serverless | None
    startup_timeout_s: float | None
    download_timeout_s: float | None
    volume_gb: int
    routing: str | None
    """RoutingConfig.RoutingStrategy, where given."""

    @property
    def disk_gb(self) -> int:
        """Room for the extracted model: the volume, or a serverless container's disk, whatever its memory."""
        return self.volume_gb if self.serverless is None else SERVERLESS_DISK_GB


@dataclass(frozen=True, slots=True)
class Asynchronous:
    """An AsyncInferenceConfig: where answers and failures go, who is told, how much an instance is given."""

    output_path: str | None = None
    failure_path: str | None = None
    kms_key: str | None = None
    success_topic: str | None = None
    error_topic: str | None = None
    included_in: frozenset[str] = frozenset()
    """Topics whose notices hold the answer itself."""
    concurrency: int | None = None
    """MaxConcurrentInvocationsPerInstance."""


@dataclass(frozen=True, slots=True)
class EndpointConfig:
    """An immutable endpoint configuration."""

    name: str
    arn: str
    created: float
    document: Document
    variants: tuple[Variant, ...]
    metric_period_s: int | None
    """MetricsConfig.MetricPublishFrequencyInSeconds: period of the utilization metrics, where given."""
    asynchronous: Asynchronous | None = None
    """Of an endpoint that takes asynchronous invocations, and no others."""


@dataclass(frozen=True, slots=True)
class PlannedVariant:
    """A variant with its model resolved, its instance count and its weight decided: all that is needed to start it."""

    variant: Variant
    container: Container
    count: int
    weight: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What an endpoint shall run. It stays valid when the configuration or the model is deleted, as on AWS."""

    endpoint: str
    config: EndpointConfig
    variants: tuple[PlannedVariant, ...]


@dataclass(frozen=True, slots=True)
class Capacity:
    """What of an endpoint's variants can change without another configuration, by variant name."""

    counts: Mapping[str, int]
    """Instances of the dedicated variants."""
    weights: Mapping[str, float]
    sizes: Mapping[str, Serverless]
    """Of the serverless variants."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where an update stands: what is being done to the old and to the new fleet, and since when."""

    old: Stage | None
    new: Stage | None
    since: float
    share: float = 0.0
    """Of the traffic, to the new fleet."""


@dataclass(slots=True)
class Endpoint:
    """An endpoint and where it is in its life. `plan` is what runs (or, while Creating, what shall)."""

    name: str
    arn: str
    plan: Plan
    created: float
    modified: float
    status: Status = "Creating"
    failure_reason: str | None = None
    deployment_config: Document | None = None
    pending: Plan | None = None
    """While Updating to another configuration."""
    progress: Progress | None = None
    """While a deployment starts or takes over."""
    desired: dict[str, int] = field(default_factory=dict)
    """Instances wanted of each dedicated variant: the configuration's count, then what scaling made of it."""
    weights: dict[str, float] = field(default_factory=dict)
    """Weight wanted of each variant."""
    sizes: dict[str, Serverless] = field(default_factory=dict)
    """Size wanted of each serverless variant."""
    previous: Capacity | None = None
    """While counts, weights or sizes change: what they were."""

    @property
    def capacity(self) -> Capacity:
        """What is wanted of its variants."""
        return Capacity(dict(self.desired), dict(self.weights), dict(self.sizes))

    @capacity.setter
    def capacity(self, wanted: Capacity) -> None:
        self.desired, self.weights, self.sizes = dict(wanted.counts), dict(wanted.weights), dict(wanted.sizes)


def parse_container(document: Mapping[str, Any]) -> Container:
    """From a ContainerDefinition that `rules.check_model` has passed."""
    source = document.get("ModelDataSource", {}).get("S3DataSource", {})
    return Container(
        image=document.get("Image", ""),
        model_data_url=document.get("ModelDataUrl") or source.get("S3Uri"),
        environment=dict(document.get("Environment") or {}),
        data_kind=_data_kind(source),
    )


def _data_kind(source: Mapping[str, Any]) -> DataKind:
    if source.get("CompressionType") != "None":
        return "archive"
    return "prefix" if source["S3DataType"] == "S3Prefix" else "object"


def parse_serverless(document: Mapping[str, Any]) -> Serverless:
    """From a ProductionVariantServerlessConfig."""
    return Serverless(
        document["MemorySizeInMB"], document["MaxConcurrency"], document.get("ProvisionedConcurrency") or 0
    )


def parse_variant(document: Mapping[str, Any]) -> Variant:
    """From a ProductionVariant that `rules.check_endpoint_config` has passed."""
    serverless = document.get("ServerlessConfig")
    return Variant(
        name=document["VariantName"],
        model_name=document["ModelName"],
        weight=float(document.get("InitialVariantWeight", 1.0)),
        instance_type=document.get("InstanceType"),
        instance_count=int(document.get("InitialInstanceCount", 0)),
        serverless=parse_serverless(serverless) if serverless else None,
        startup_timeout_s=document.get("ContainerStartupHealthCheckTimeoutInSeconds"),
        download_timeout_s=document.get("ModelDataDownloadTimeoutInSeconds"),
        # 30 GB is what EBS-backed hosting instances get by default.
        volume_gb=int(document.get("VolumeSizeInGB", 30)),
        routing=(document.get("RoutingConfig") or {}).get("RoutingStrategy"),
    )


def parse_config(document: Mapping[str, Any], arn: str, now: float) -> EndpointConfig:
    """From a CreateEndpointConfig request that `rules.check_endpoint_config` has passed."""
    return EndpointConfig(
        name=document["EndpointConfigName"],
        arn=arn,
        created=now,
        document=document,
        variants=tuple(parse_variant(v) for v in document["ProductionVariants"]),
        metric_period_s=(document.get("MetricsConfig") or {}).get("MetricPublishFrequencyInSeconds"),
        asynchronous=parse_asynchronous(document.get("AsyncInferenceConfig")),
    )


def parse_asynchronous(document: Mapping[str, Any] | None) -> Asynchronous | None:
    """From an AsyncInferenceConfig."""
    if document is None:
        return None
    output = document["OutputConfig"]
    notices = output.get("NotificationConfig") or {}
    return Asynchronous(
        output_path=output.get("S3OutputPath"),
        failure_path=output.get("S3FailurePath"),
        kms_key=output.get("KmsKeyId"),
        success_topic=notices.get("SuccessTopic"),
        error_topic=notices.get("ErrorTopic"),
        included_in=frozenset(notices.get("IncludeInferenceResponseIn") or ()),
        concurrency=(document.get("ClientConfig") or {}).get("MaxConcurrentInvocationsPerInstance"),
    )

"""What of the operations that are served is not emulated. One table: the refusals' texts, and docs/fidelity.md's.

A request that asks for a `Gap` is refused and says "not emulated", so that nobody takes it for AWS's answer.
`WITHOUT_EFFECT` is accepted and described as it was given, and changes nothing: there is no network, no key, no role
and no image here for it to act on. `CONTAINERS` says what else a model meets that it would not on AWS.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from workbench.stack.sagemaker.api.wire import AwsError, invalid


class Gap(Enum):
    """(operation, what is refused)."""

    PIPELINE = ("CreateModel", "An inference pipeline (several Containers)")
    MODEL_PACKAGE = ("CreateModel", "A model package (ModelPackageName)")
    MULTI_MODEL = ("CreateModel", "A multi-model container or an additional data source")
    HUB_ACCESS = ("CreateModel", "HubAccessConfig of a ModelDataSource")
    DATA_MANIFEST = ("CreateModel", "ManifestS3Uri of a ModelDataSource")
    EXPLAINER = ("CreateEndpointConfig", "ExplainerConfig")
    SHADOW_VARIANTS = ("CreateEndpointConfig", "ShadowProductionVariants")
    DATA_CAPTURE = ("CreateEndpointConfig", "DataCaptureConfig with EnableCapture")
    PREFIX_AWARE = ("CreateEndpointConfig", "RoutingStrategy PREFIX_AWARE")
    KV_AWARE = ("CreateEndpointConfig", "RoutingStrategy KV_AWARE")
    COMPONENTS = (
        "CreateEndpointConfig", "A production variant without a model (an endpoint for inference components)"
    )  # fmt: skip
    INSTANCE_POOLS = ("CreateEndpointConfig", "InstancePools")
    MANAGED_SCALING = ("CreateEndpointConfig", "ManagedInstanceScaling")
    CAPACITY_RESERVATION = ("CreateEndpointConfig", "CapacityReservationConfig")
    BATCH_CAPTURE = ("CreateTransformJob", "DataCaptureConfig")

    @property
    def operation(self) -> str:
        """Whose request it is."""
        return self.value[0]

    @property
    def what(self) -> str:
        """What is refused."""
        return self.value[1]

    def refusal(self) -> AwsError:
        """The refusal."""
        return invalid(f"{self.what} is not emulated")


WITHOUT_EFFECT: Mapping[str, tuple[str, ...]] = {
    "CreateModelInput": ("InferenceExecutionConfig", "ExecutionRoleArn", "VpcConfig", "EnableNetworkIsolation"),
    "ContainerDefinition": (
        "Image",
        "ContainerHostname",
        "ImageConfig",
        "InferenceSpecificationName",
        "MultiModelConfig",
        "ContainerMetricsConfig",
    ),
    "CreateEndpointConfigInput": ("KmsKeyId", "ExecutionRoleArn", "VpcConfig", "EnableNetworkIsolation"),
    "ProductionVariant": (
        "AcceleratorType",
        "CoreDumpConfig",
        "EnableSSMAccess",
        "InferenceAmiVersion",
        "VariantInstanceProvisionTimeoutInSeconds",
    ),
    "MetricsConfig": ("EnableDetailedObservability",),
    "TransformResources": ("VolumeKmsKeyId", "TransformAmiVersion"),
    "CreateTransformJobRequest": ("ExperimentConfig",),
}
"""Shape -> its members."""

CONTAINERS = (
    "Images are not pulled: the archive's code runs in this environment's Python, on this machine's processor",
    "`code/requirements.txt` is not installed: what the code imports has to be installed here",
    "A JSON or CSV body that is not UTF-8 reaches input_fn as bytes; the toolkit fails before it",
    "An exception of model code whose `status` is 400 to 499 is answered with that status",
    "Processes share the host's network, files and memory; a variant's instance type bounds none of them",
    "Logs are files in the state folder, not log groups",
)

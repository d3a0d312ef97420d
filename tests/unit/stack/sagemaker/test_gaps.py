"""What is not emulated: each gap is refused by its name, and what has no effect is something that botocore knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from botocore.loaders import Loader
from botocore.model import ServiceModel, StructureShape

from tests.unit.stack.sagemaker.documents import config, variant
from tests.unit.stack.sagemaker.transform.test_request import request as job
from workbench.stack.sagemaker.api.gaps import WITHOUT_EFFECT, Gap
from workbench.stack.sagemaker.api.wire import AwsError
from workbench.stack.sagemaker.control import rules
from workbench.stack.sagemaker.transform import request as requests

IMAGE = {"Image": "registry/image:1"}
SOURCE = {"S3DataType": "S3Object", "S3Uri": "s3://b/m.tar.gz", "CompressionType": "Gzip"}


def model(**container: Any) -> dict[str, Any]:
    """A CreateModel request."""
    return {"ModelName": "m", "PrimaryContainer": IMAGE | container}


def source(**more: Any) -> dict[str, Any]:
    """A CreateModel request with a ModelDataSource."""
    return model(ModelDataSource={"S3DataSource": SOURCE | more})


ASKING: Mapping[Gap, dict[str, Any]] = {
    Gap.PIPELINE: {"ModelName": "m", "Containers": [IMAGE, IMAGE]},
    Gap.MODEL_PACKAGE: {"ModelName": "m", "PrimaryContainer": {"ModelPackageName": "p"}},
    Gap.MULTI_MODEL: model(Mode="MultiModel"),
    Gap.HUB_ACCESS: source(HubAccessConfig={"HubContentArn": "arn"}),
    Gap.DATA_MANIFEST: source(ManifestS3Uri="s3://b/manifest"),
    Gap.EXPLAINER: config("c", variant(), ExplainerConfig={"ClarifyExplainerConfig": {}}),
    Gap.SHADOW_VARIANTS: config("c", variant(), ShadowProductionVariants=[variant()]),
    Gap.DATA_CAPTURE: config("c", variant(), DataCaptureConfig={"EnableCapture": True}),
    Gap.PREFIX_AWARE: config("c", variant(RoutingConfig={"RoutingStrategy": "PREFIX_AWARE"})),
    Gap.KV_AWARE: config("c", variant(RoutingConfig={"RoutingStrategy": "KV_AWARE"})),
    Gap.COMPONENTS: config("c", variant(ModelName=None), ExecutionRoleArn="arn"),
    Gap.INSTANCE_POOLS: config("c", variant(InstancePools=[{"InstanceType": "ml.m5.large"}])),
    Gap.MANAGED_SCALING: config("c", variant(ManagedInstanceScaling={"Status": "ENABLED"})),
    Gap.CAPACITY_RESERVATION: config("c", variant(CapacityReservationConfig={"MlReservationArn": "arn"})),
    Gap.BATCH_CAPTURE: job(DataCaptureConfig={"DestinationS3Uri": "s3://b/c"}),
}
CHECKS = {
    "CreateModel": rules.check_model,
    "CreateEndpointConfig": rules.check_endpoint_config,
    "CreateTransformJob": requests.check,
}


@pytest.mark.parametrize("gap", Gap)
def test_each_gap_is_refused_by_its_name(gap: Gap) -> None:
    """Whoever asks for it is told that it is not emulated, in the words of docs/fidelity.md."""
    with pytest.raises(AwsError) as caught:
        CHECKS[gap.operation](ASKING[gap])
    assert caught.value.message == f"{gap.what} is not emulated"


def test_what_has_no_effect_exists() -> None:
    """Each is a member of a shape of SageMaker's."""
    service = ServiceModel(Loader().load_service_model("sagemaker", "service-2"), "sagemaker")
    for name, members in WITHOUT_EFFECT.items():
        shape = service.shape_for(name)
        assert isinstance(shape, StructureShape)
        assert set(members) <= set(shape.members), name

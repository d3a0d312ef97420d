"""SageMaker: models, endpoint configurations, endpoints.

Models and configurations cannot change: a change is a new one under a new name, and the old one goes after the endpoint
has moved. An endpoint keeps its name and moves in place, by these rules (each a known way to lose a deploy):
- A failed update returns to `InService` on the old configuration: the live one is compared with the wanted one.
- A scaled count survives: with a scalable target the update retains the variants' properties.
- An autoscaled variant cannot change its instance type: its target is deregistered for the update, and registered again
  with its policies and schedules afterwards, also when the update failed.
- `Failed` allows only deletion: such an endpoint is made anew.
"""

from __future__ import annotations

import time

from workbench.stack.deployer.cloud import Cloud
from workbench.stack.deployer.errors import BrokenError, CloudError
from workbench.stack.deployer.row import Call, Instance, Row, Step, Tags, Templates
from workbench.stack.deployer.rows import scaling_pause
from workbench.stack.deployer.shapes import to_parameters
from workbench.stack.deployer.values import items, mapping

ENDPOINT_LIMIT_S = 3600.0
"""A GPU endpoint takes minutes; one that is stuck can take hours (FailureReason then comes late or never)."""
POLL_S = 0.2
SLOW_POLL_S = 5.0
SLOW_AFTER_S = 60.0

_TAGS = Tags("add_tags", "delete_tags", "ResourceArn")
_MOVING = {"Creating", "Updating", "SystemUpdating", "RollingBack", "Deleting"}


def _describe(instance: Instance) -> dict[str, object]:
    return instance.cloud.call("sagemaker", "describe_endpoint", {"EndpointName": instance.id})


def _at_rest(instance: Instance) -> dict[str, object]:
    """The endpoint's description once it stopped moving."""
    started = time.monotonic()
    while True:
        found = _describe(instance)
        if found["EndpointStatus"] not in _MOVING:
            return found
        waited = time.monotonic() - started
        if waited > ENDPOINT_LIMIT_S:
            status = found["EndpointStatus"]
            raise CloudError("sagemaker.describe_endpoint", f"{instance.id} is still {status} after {waited:.0f} s")
        instance.cloud.pause(POLL_S if waited < SLOW_AFTER_S else SLOW_POLL_S)


def _settle(instance: Instance) -> None:
    found = _at_rest(instance)
    if found["EndpointStatus"] != "InService":
        raise BrokenError("sagemaker.create_endpoint", f"{instance.id} is {found['EndpointStatus']}: {_reason(found)}")
    live, wanted = found["EndpointConfigName"], instance.inputs["endpointConfigName"]
    if live != wanted:
        raise CloudError(
            "sagemaker.update_endpoint",
            f"{instance.id} rolled back to {live}, {wanted} did not start: {_reason(found)}",
        )


def _move(instance: Instance) -> None:
    """Moves the endpoint to the wanted configuration."""
    found = _at_rest(instance)
    wanted = instance.inputs["endpointConfigName"]
    if found["EndpointStatus"] == "Failed":
        raise BrokenError("sagemaker.update_endpoint", f"{instance.id} is Failed: {_reason(found)}")
    if found["EndpointConfigName"] == wanted:
        return  # an earlier run got this far, or only the way of deploying changed: that counts from the next update on
    cloud = instance.cloud
    old, new = _instance_types(cloud, found["EndpointConfigName"]), _instance_types(cloud, wanted)
    targets = [target for name in old for target in scaling_pause.targets(cloud, instance.id, name, instance.notes)]
    parameters: dict[str, object] = {"EndpointName": instance.id, "EndpointConfigName": wanted}
    if targets:
        parameters["RetainAllVariantProperties"] = True
    if instance.inputs.get("deploymentConfig") is not None:
        given = {"deploymentConfig": instance.inputs["deploymentConfig"]}
        parameters |= to_parameters(given, cloud.shape("sagemaker", "update_endpoint"), {})
    moved = [target for target in targets if old.get(target.variant) != new.get(target.variant)]
    with scaling_pause.paused(cloud, moved):
        cloud.call("sagemaker", "update_endpoint", parameters)
        _settle(instance)


def _delete_endpoint(instance: Instance) -> None:
    """Deletes the endpoint and waits until it is gone, so that its name is free. SageMaker refuses while it moves."""
    try:
        instance.cloud.call("sagemaker", "delete_endpoint", {"EndpointName": instance.id})
    except CloudError:
        if _describe(instance)["EndpointStatus"] not in _MOVING:
            raise
        _at_rest(instance)
        instance.cloud.call("sagemaker", "delete_endpoint", {"EndpointName": instance.id})
    _at_rest(instance)  # ends with "not found"


def _instance_types(cloud: Cloud, configuration: object) -> dict[str, object]:
    """Variant -> instance type (`None` when serverless); empty when the configuration is already gone."""
    try:
        answer = cloud.call("sagemaker", "describe_endpoint_config", {"EndpointConfigName": configuration})
    except CloudError:
        return {}
    variants = [mapping(item) for item in items(answer.get("ProductionVariants"))]
    return {str(variant["VariantName"]): variant.get("InstanceType") for variant in variants}


def _reason(found: dict[str, object]) -> str:
    return str(found.get("FailureReason") or "no reason given; see the endpoint's log group")


def _fixed(type_: str, noun: str, name_member: str, arn_member: str) -> Row:
    """A resource that never changes: made, tagged, deleted."""
    by_name: Templates = {name_member: "{id}"}
    return Row(
        type=type_,
        service="sagemaker",
        create=Call(f"create_{noun}", rename={"name": name_member, "kmsKeyArn": "KmsKeyId"}),
        id="{in.name}",
        outputs={"name": "{in.name}", "arn": f"{{out.{arn_member}}}"},
        auto_name="name",
        tags=_TAGS,
        identity=("name",),
        read=Call(f"describe_{noun}", params=by_name),
        delete=Call(f"delete_{noun}", params=by_name),
    )


ROWS = (
    _fixed("aws:sagemaker/model:Model", "model", "ModelName", "ModelArn"),
    _fixed(
        "aws:sagemaker/endpointConfiguration:EndpointConfiguration",
        "endpoint_config",
        "EndpointConfigName",
        "EndpointConfigArn",
    ),
    Row(
        type="aws:sagemaker/endpoint:Endpoint",
        service="sagemaker",
        create=Call("create_endpoint", rename={"name": "EndpointName"}),
        id="{in.name}",
        outputs={"name": "{in.name}", "arn": "{out.EndpointArn}"},
        auto_name="name",
        steps=(Step(("endpointConfigName", "deploymentConfig"), _move, at="update"),),
        tags=_TAGS,
        identity=("name",),
        settle=_settle,
        read=Call("describe_endpoint", params={"EndpointName": "{id}"}),
        delete=_delete_endpoint,
    ),
)

"""Application Auto Scaling: scalable targets, policies and scheduled actions. All are put whole and known by names."""

from __future__ import annotations

from workbench.stack.deployer.row import Call, Instance, Row, Tags, Templates
from workbench.stack.deployer.rows.gone import listed

SERVICE = "application-autoscaling"
TARGET = ("serviceNamespace", "resourceId", "scalableDimension")

_TARGET: Templates = {
    "ServiceNamespace": "{in.serviceNamespace}",
    "ResourceId": "{in.resourceId}",
    "ScalableDimension": "{in.scalableDimension}",
}


class Scope:
    """The parameters that narrow a describe call to one resource, and to one name when `names` says its parameter."""

    def __init__(self, names: str) -> None:
        self._names = names

    def __call__(self, instance: Instance) -> dict[str, object]:
        scope: dict[str, object] = {
            "ServiceNamespace": instance.inputs["serviceNamespace"],
            "ResourceId": instance.inputs["resourceId"],
            "ScalableDimension": instance.inputs["scalableDimension"],
        }
        return {**scope, self._names: [instance.id]} if self._names else scope


def _one_target(instance: Instance) -> dict[str, object]:
    scope = Scope("")(instance)
    resource = scope.pop("ResourceId")
    return {**scope, "ResourceIds": [resource]}


ROWS = (
    Row(
        type="aws:appautoscaling/target:Target",
        service=SERVICE,
        create=Call("register_scalable_target", rename={"roleArn": "RoleARN"}),
        id="{in.resourceId}",
        outputs={"arn": "{out.ScalableTargetARN}"},
        tags=Tags("tag_resource", "untag_resource", "ResourceARN"),
        upsert=True,
        identity=TARGET,
        read=listed(SERVICE, "describe_scalable_targets", _one_target, "ScalableTargets", "ResourceId"),
        delete=Call("deregister_scalable_target", params=_TARGET),
    ),
    Row(
        type="aws:appautoscaling/policy:Policy",
        service=SERVICE,
        create=Call("put_scaling_policy", rename={"name": "PolicyName"}),
        id="{in.name}",
        outputs={"name": "{in.name}", "arn": "{out.PolicyARN}"},
        auto_name="name",
        upsert=True,
        identity=("name", *TARGET),
        read=listed(SERVICE, "describe_scaling_policies", Scope("PolicyNames"), "ScalingPolicies", "PolicyName"),
        delete=Call("delete_scaling_policy", params={**_TARGET, "PolicyName": "{in.name}"}),
    ),
    Row(
        type="aws:appautoscaling/scheduledAction:ScheduledAction",
        service=SERVICE,
        create=Call("put_scheduled_action", rename={"name": "ScheduledActionName"}),
        id="{in.name}",
        auto_name="name",
        upsert=True,
        identity=("name", *TARGET),
        read=listed(
            SERVICE,
            "describe_scheduled_actions",
            Scope("ScheduledActionNames"),
            "ScheduledActions",
            "ScheduledActionName",
        ),
        delete=Call("delete_scheduled_action", params={**_TARGET, "ScheduledActionName": "{in.name}"}),
    ),
)

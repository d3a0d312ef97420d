"""Takes an endpoint variant's scalable target off for a while, and puts it back as it was.

SageMaker refuses to change the instance type of a variant with a registered target. Deregistering also deletes the
target's policies and scheduled actions, so all of them are read first and put again afterwards, whatever happened in
between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from workbench.stack.deployer.cloud import Cloud
from workbench.stack.deployer.errors import CloudError
from workbench.stack.deployer.values import items, mapping

SERVICE = "application-autoscaling"
NOT_OFFERED = {"UnknownOperationException", "UnknownOperation", "InvalidAction"}
"""How emulators refuse an operation they do not have."""


@dataclass(frozen=True)
class ScaledVariant:
    """A registered target with all that goes when it goes."""

    variant: str
    target: Mapping[str, object]
    policies: tuple[Mapping[str, object], ...]
    actions: tuple[Mapping[str, object], ...]


def targets(cloud: Cloud, endpoint: str, variant: str, notes: list[str]) -> list[ScaledVariant]:
    """The scalable targets of one variant, usually none or one; what could not be read is said in `notes`."""
    resource = f"endpoint/{endpoint}/variant/{variant}"
    scope = {"ServiceNamespace": "sagemaker", "ResourceId": resource}
    found = cloud.call(
        SERVICE, "describe_scalable_targets", {"ServiceNamespace": "sagemaker", "ResourceIds": [resource]}
    )
    if not items(found.get("ScalableTargets")):
        return []
    policies = items(cloud.call(SERVICE, "describe_scaling_policies", scope).get("ScalingPolicies"))
    actions = _scheduled_actions(cloud, scope, notes)
    return [
        ScaledVariant(variant, target, _of(target, policies), _of(target, actions))
        for target in map(mapping, items(found["ScalableTargets"]))
    ]


def _scheduled_actions(cloud: Cloud, scope: Mapping[str, object], notes: list[str]) -> list[object]:
    try:
        return items(cloud.call(SERVICE, "describe_scheduled_actions", scope).get("ScheduledActions"))
    except CloudError as error:
        if error.code not in NOT_OFFERED:
            raise
        notes.append("this cloud knows no scheduled scaling actions, so there are none to keep over the update")
        return []


@contextmanager
def paused(cloud: Cloud, scaled: list[ScaledVariant]) -> Iterator[None]:
    """Deregisters the targets while the block runs."""
    for one in scaled:
        _put(cloud, "deregister_scalable_target", one.target)
    try:
        yield
    finally:
        for one in scaled:
            _put(cloud, "register_scalable_target", one.target)
            for policy in one.policies:
                _put(cloud, "put_scaling_policy", policy)
            for action in one.actions:
                _put(cloud, "put_scheduled_action", action)


def _put(cloud: Cloud, operation: str, described: Mapping[str, object]) -> None:
    """Calls an operation with those members of a description that it takes."""
    members = cloud.shape(SERVICE, operation).members
    cloud.call(SERVICE, operation, {name: value for name, value in described.items() if name in members})


def _of(target: Mapping[str, object], found: list[object]) -> tuple[Mapping[str, object], ...]:
    dimension = target["ScalableDimension"]
    return tuple(item for item in map(mapping, found) if item.get("ScalableDimension") == dimension)

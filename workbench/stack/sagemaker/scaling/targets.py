"""Scalable targets of endpoint variants: registered, described, deregistered, tagged. Pure; `now` is an argument.

A target is a variant's instance count or, for a serverless one, its provisioned concurrency, with a minimum and a
maximum. Its policies (`policies.py`) and scheduled actions (`schedules.py`) go with it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from workbench.stack.sagemaker.api import listing
from workbench.stack.sagemaker.api.wire import AwsError, Document, invalid
from workbench.stack.sagemaker.scaling.capacity import Cooldown
from workbench.stack.sagemaker.scaling.demands import Place
from workbench.stack.sagemaker.scaling.resources import DIMENSIONS, INSTANCES, Dimension, Resources

if TYPE_CHECKING:
    from workbench.stack.sagemaker.scaling.policies import Policy
    from workbench.stack.sagemaker.scaling.scaler import Change
    from workbench.stack.sagemaker.scaling.schedules import Action

_RESOURCE = re.compile(r"endpoint/([^/]+)/variant/([^/]+)")
_ROLE = "sagemaker.application-autoscaling.amazonaws.com/AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
_SUSPENSIONS = ("DynamicScalingInSuspended", "DynamicScalingOutSuspended", "ScheduledScalingSuspended")

Key = tuple[str, Dimension]


@dataclass(slots=True)
class Target:
    """A scalable target."""

    place: Place
    minimum: int
    maximum: int
    role: str
    created: float
    arn: str
    suspended: Mapping[str, bool]
    tags: dict[str, str] = field(default_factory=dict)
    policies: dict[str, Policy] = field(default_factory=dict)
    actions: dict[str, Action] = field(default_factory=dict)
    """Scheduled actions by name."""
    cooldown: Cooldown | None = None
    change: Change | None = None
    """The change of capacity that is going on."""

    @property
    def key(self) -> Key:
        """What it is found by."""
        return self.place.resource_id, self.place.dimension

    @property
    def counts_instances(self) -> bool:
        """Whether it scales instances."""
        return self.place.dimension == INSTANCES

    def bounded(self, count: int) -> int:
        """The count nearest to `count` that the target allows."""
        return min(max(count, self.minimum), self.maximum)

    def shown(self) -> Document:
        """As DescribeScalableTargets has it."""
        return {
            "ServiceNamespace": "sagemaker",
            "ResourceId": self.place.resource_id,
            "ScalableDimension": self.place.dimension,
            "MinCapacity": self.minimum,
            "MaxCapacity": self.maximum,
            "RoleARN": self.role,
            "CreationTime": self.created,
            "SuspendedState": dict(self.suspended),
            "ScalableTargetARN": self.arn,
        }


class Scaling:
    """Targets by resource and dimension."""

    def __init__(self, region: str, account: str, resources: Resources) -> None:
        self.region = region
        self.account = account
        self._resources = resources
        self._targets: dict[Key, Target] = {}

    @property
    def place(self) -> str:
        """Region and account, as ARNs have them."""
        return f"{self.region}:{self.account}"

    def of(self, endpoint: str) -> list[Target]:
        """The targets of an endpoint's variants."""
        return [t for t in self._targets.values() if t.place.endpoint == endpoint]

    def all(self) -> list[Target]:
        """Every target."""
        return list(self._targets.values())

    def forget(self, endpoint: str) -> None:
        """The endpoint is deleted, and its targets with it."""
        self._targets = {k: t for k, t in self._targets.items() if t.place.endpoint != endpoint}

    def add(self, target: Target) -> None:
        """Keep a target."""
        self._targets[target.key] = target

    def target(self, request: Document) -> Target:
        """The target a request names. Raises `AwsError`."""
        check_namespace(request)
        resource_id, dimension = request["ResourceId"], request["ScalableDimension"]
        found = self._targets.get((resource_id, dimension))
        if found is None:
            raise not_found(
                f"No scalable target found for service namespace: sagemaker, resource ID: {resource_id}, scalable "
                f"dimension: {dimension}"
            )
        return found

    def register(self, request: Document, now: float) -> tuple[Document, Target]:
        """RegisterScalableTarget, which also updates one. Returns the answer and the target, to be applied."""
        place = _place(request)
        reading = self._resources.read(place.endpoint, place.variant, place.dimension)
        known = self._targets.get((place.resource_id, place.dimension))
        minimum = request.get("MinCapacity", known.minimum if known else None)
        maximum = request.get("MaxCapacity", known.maximum if known else None)
        if minimum is None or maximum is None:
            raise invalid("MinCapacity and MaxCapacity are required to register a new scalable target.")
        if not reading.least <= minimum <= maximum:
            raise invalid(
                f"MinCapacity must be at least {reading.least} and at most MaxCapacity; got MinCapacity {minimum} and "
                f"MaxCapacity {maximum}."
            )
        if reading.most is not None and maximum > reading.most:
            raise invalid(f"MaxCapacity must be at most {reading.most}, the variant's own limit; got {maximum}.")
        target = known or self._new_target(place, now)
        target.minimum, target.maximum = minimum, maximum
        target.role = request.get("RoleARN", target.role)
        target.suspended = {**target.suspended, **(request.get("SuspendedState") or {})}
        target.tags.update(request.get("Tags") or {})
        self.add(target)
        return {"ScalableTargetARN": target.arn}, target

    def describe_targets(self, request: Document) -> Document:
        """DescribeScalableTargets."""
        check_namespace(request)
        ids, dimension = request.get("ResourceIds"), request.get("ScalableDimension")
        kept = [
            t
            for t in self._targets.values()
            if dimension in (None, t.place.dimension) and (not ids or t.place.resource_id in ids)
        ]
        found, token = page(kept, request, lambda t: "|".join(t.key))
        return {"ScalableTargets": [t.shown() for t in found], **token}

    def deregister(self, request: Document) -> Document:
        """DeregisterScalableTarget: its policies, their alarms and its scheduled actions go; the capacity stays."""
        del self._targets[self.target(request).key]
        return {}

    def list_tags(self, request: Document) -> Document:
        """ListTagsForResource."""
        return {"Tags": dict(self._by_arn(request["ResourceARN"]).tags)}

    def tag(self, request: Document) -> Document:
        """TagResource."""
        self._by_arn(request["ResourceARN"]).tags.update(request["Tags"])
        return {}

    def untag(self, request: Document) -> Document:
        """UntagResource."""
        tags = self._by_arn(request["ResourceARN"]).tags
        for key in request["TagKeys"]:
            tags.pop(key, None)
        return {}

    def _new_target(self, place: Place, now: float) -> Target:
        arn = f"arn:aws:application-autoscaling:{self.place}:scalable-target/{secrets.token_hex(16)}"
        role = f"arn:aws:iam::{self.account}:role/aws-service-role/{_ROLE}"
        return Target(place, 1, 1, role, now, arn, dict.fromkeys(_SUSPENSIONS, False))

    def _by_arn(self, arn: str) -> Target:
        for target in self._targets.values():
            if target.arn == arn:
                return target
        raise AwsError("ResourceNotFoundException", f"The specified resource doesn't exist: {arn}")


def check_namespace(request: Document) -> None:
    """Raises `AwsError` for another service's targets."""
    if request["ServiceNamespace"] != "sagemaker":
        raise invalid(f"Service namespace {request['ServiceNamespace']} is not emulated; only sagemaker is.")


def page(items: list[Any], request: Document, key: Callable[[Any], str]) -> tuple[list[Any], Document]:
    """One page of a Describe call, and the member that names the next."""
    found, token = listing.page(
        items, key=lambda i: [key(i)], size=int(request.get("MaxResults", 50)), token=request.get("NextToken")
    )
    return found, {"NextToken": token} if token else {}


def not_found(message: str) -> AwsError:
    """The refusal of a name that does not exist."""
    return AwsError("ObjectNotFoundException", message)


def _place(request: Document) -> Place:
    check_namespace(request)
    dimension = next((d for d in DIMENSIONS if d == request["ScalableDimension"]), None)
    if dimension is None:
        raise invalid(
            f"Scalable dimension {request['ScalableDimension']} is not emulated; only {' and '.join(DIMENSIONS)} are."
        )
    match = _RESOURCE.fullmatch(request["ResourceId"])
    if match is None:
        raise invalid("Unsupported resource ID: expected endpoint/<endpoint>/variant/<variant>.")
    return Place(request["ResourceId"], match[1], match[2], dimension)

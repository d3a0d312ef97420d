"""Application Auto Scaling's calls for endpoint variants: targets and policies, kept and validated. Pure.

Registering a target brings the variant's instance count between its minimum and maximum, as AWS does. The policies are
kept and listed, but nothing acts on them yet: no alarms are made and no metric moves a count.
"""

from __future__ import annotations

import re
import secrets
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.stack.sagemaker.api import listing
from workbench.stack.sagemaker.api.wire import AwsError, Document, invalid

DIMENSION = "sagemaker:variant:DesiredInstanceCount"
_RESOURCE = re.compile(r"endpoint/([^/]+)/variant/([^/]+)")
_ROLE = "sagemaker.application-autoscaling.amazonaws.com/AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"

Instances = Callable[[str, str], int | None]
"""Desired instances of (endpoint, variant): None for a serverless variant. Raises `AwsError` when there is none."""


@dataclass(slots=True)
class Target:
    """A scalable target."""

    resource_id: str
    endpoint: str
    variant: str
    minimum: int
    maximum: int
    role: str
    created: float
    arn: str
    suspended: Mapping[str, bool]
    tags: dict[str, str] = field(default_factory=dict)
    policies: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    actions: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Scheduled actions by name: `schedules.py`."""

    def bounded(self, count: int) -> int:
        """The count nearest to `count` that the target allows."""
        return min(max(count, self.minimum), self.maximum)


class Scaling:
    """Targets by resource id."""

    def __init__(self, region: str, account: str, instances: Instances) -> None:
        self.place = f"{region}:{account}"
        """Region and account, as ARNs have them."""
        self._account = account
        self._instances = instances
        self._targets: dict[str, Target] = {}

    def of(self, endpoint: str) -> list[Target]:
        """The targets of an endpoint's variants."""
        return [t for t in self._targets.values() if t.endpoint == endpoint]

    def all(self) -> list[Target]:
        """Every target."""
        return list(self._targets.values())

    def forget(self, endpoint: str) -> None:
        """The endpoint is deleted, and its targets with it."""
        self._targets = {k: t for k, t in self._targets.items() if t.endpoint != endpoint}

    def target(self, request: Document) -> Target:
        """The target a request names. Raises `AwsError`."""
        check_namespace(request)
        resource_id, dimension = request["ResourceId"], request["ScalableDimension"]
        found = self._targets.get(resource_id)
        if found is None or dimension != DIMENSION:
            raise not_found(
                f"No scalable target found for service namespace: sagemaker, resource ID: {resource_id}, scalable "
                f"dimension: {dimension}"
            )
        return found

    def register(self, request: Document, now: float) -> tuple[Document, Target]:
        """RegisterScalableTarget, which also updates one. Returns the answer and the target, to be applied."""
        endpoint, variant = _resource(request)
        if self._instances(endpoint, variant) is None:
            raise invalid(f"Variant {variant} of endpoint {endpoint} is serverless: it has no instance count to scale.")
        resource_id = request["ResourceId"]
        known = self._targets.get(resource_id)
        minimum = request.get("MinCapacity", known.minimum if known else None)
        maximum = request.get("MaxCapacity", known.maximum if known else None)
        if minimum is None or maximum is None:
            raise invalid("MinCapacity and MaxCapacity are required to register a new scalable target.")
        if not 1 <= minimum <= maximum:
            raise invalid(
                f"MinCapacity must be at least 1 and at most MaxCapacity; got MinCapacity {minimum} and MaxCapacity "
                f"{maximum}."
            )
        target = known or self._new_target(resource_id, endpoint, variant, now)
        target.minimum, target.maximum = minimum, maximum
        target.role = request.get("RoleARN", target.role)
        target.suspended = {**target.suspended, **(request.get("SuspendedState") or {})}
        target.tags.update(request.get("Tags") or {})
        self._targets[resource_id] = target
        return {"ScalableTargetARN": target.arn}, target

    def describe_targets(self, request: Document) -> Document:
        """DescribeScalableTargets."""
        check_namespace(request)
        ids, dimension = request.get("ResourceIds"), request.get("ScalableDimension", DIMENSION)
        kept = [t for t in self._targets.values() if dimension == DIMENSION and (not ids or t.resource_id in ids)]
        page, token = _page(kept, request, lambda t: t.resource_id)
        rows = [
            {
                "ServiceNamespace": "sagemaker",
                "ResourceId": t.resource_id,
                "ScalableDimension": DIMENSION,
                "MinCapacity": t.minimum,
                "MaxCapacity": t.maximum,
                "RoleARN": t.role,
                "CreationTime": t.created,
                "SuspendedState": dict(t.suspended),
                "ScalableTargetARN": t.arn,
            }
            for t in page
        ]
        return {"ScalableTargets": rows, **token}

    def deregister(self, request: Document) -> Document:
        """DeregisterScalableTarget: its policies and scheduled actions go too; the instance count stays."""
        target = self.target(request)
        del self._targets[target.resource_id]
        return {}

    def put_policy(self, request: Document, now: float) -> Document:
        """PutScalingPolicy, which also replaces one of that name."""
        target = self.target(request)
        name, kind = request["PolicyName"], request.get("PolicyType", "StepScaling")
        _check_policy(request, kind)
        known = target.policies.get(name)
        if known and known["PolicyType"] != kind:
            raise invalid(f"Policy {name} exists with PolicyType {known['PolicyType']}, which cannot be changed.")
        head = {
            "PolicyARN": known["PolicyARN"] if known else self._policy_arn(target, name),
            "CreationTime": known["CreationTime"] if known else now,
        }
        configuration = f"{kind}PolicyConfiguration"
        target.policies[name] = {
            "PolicyName": name,
            "ServiceNamespace": "sagemaker",
            "ResourceId": target.resource_id,
            "ScalableDimension": DIMENSION,
            "PolicyType": kind,
            configuration: request[configuration],
            "Alarms": [],
            **head,
        }
        return {"PolicyARN": head["PolicyARN"], "Alarms": []}

    def describe_policies(self, request: Document) -> Document:
        """DescribeScalingPolicies."""
        check_namespace(request)
        names, resource = request.get("PolicyNames"), request.get("ResourceId")
        every = [p for t in self._targets.values() for p in t.policies.values()]
        kept = [p for p in every if resource in (None, p["ResourceId"]) and (not names or p["PolicyName"] in names)]
        page, token = _page(kept, request, lambda p: f"{p['ResourceId']}/{p['PolicyName']}")
        return {"ScalingPolicies": page, **token}

    def delete_policy(self, request: Document) -> Document:
        """DeleteScalingPolicy."""
        target = self.target(request)
        name = request["PolicyName"]
        if target.policies.pop(name, None) is None:
            raise not_found(f"No scaling policy found for service namespace: sagemaker, policy name: {name}")
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

    def _new_target(self, resource_id: str, endpoint: str, variant: str, now: float) -> Target:
        arn = f"arn:aws:application-autoscaling:{self.place}:scalable-target/{secrets.token_hex(16)}"
        role = f"arn:aws:iam::{self._account}:role/aws-service-role/{_ROLE}"
        awake = dict.fromkeys(
            ("DynamicScalingInSuspended", "DynamicScalingOutSuspended", "ScheduledScalingSuspended"), False
        )
        return Target(resource_id, endpoint, variant, 1, 1, role, now, arn, awake)

    def _policy_arn(self, target: Target, name: str) -> str:
        place = f"arn:aws:autoscaling:{self.place}:scalingPolicy:{uuid.uuid4()}"
        return f"{place}:resource/sagemaker/{target.resource_id}:policyName/{name}"

    def _by_arn(self, arn: str) -> Target:
        for target in self._targets.values():
            if target.arn == arn:
                return target
        raise AwsError("ResourceNotFoundException", f"The specified resource doesn't exist: {arn}")


def check_namespace(request: Document) -> None:
    """Raises `AwsError` for another service's targets."""
    if request["ServiceNamespace"] != "sagemaker":
        raise invalid(f"Service namespace {request['ServiceNamespace']} is not emulated; only sagemaker is.")


def _resource(request: Document) -> tuple[str, str]:
    check_namespace(request)
    if request["ScalableDimension"] != DIMENSION:
        raise invalid(f"Scalable dimension {request['ScalableDimension']} is not emulated; only {DIMENSION} is.")
    match = _RESOURCE.fullmatch(request["ResourceId"])
    if match is None:
        raise invalid("Unsupported resource ID: expected endpoint/<endpoint>/variant/<variant>.")
    return match[1], match[2]


def _check_policy(request: Document, kind: str) -> None:
    if kind not in ("TargetTrackingScaling", "StepScaling"):
        raise invalid(f"PolicyType {kind} is not emulated.")
    if f"{kind}PolicyConfiguration" not in request:
        raise invalid(f"PolicyType {kind} requires {kind}PolicyConfiguration.")
    tracking = request.get("TargetTrackingScalingPolicyConfiguration")
    if tracking is not None:
        given = [n for n in ("PredefinedMetricSpecification", "CustomizedMetricSpecification") if tracking.get(n)]
        if len(given) != 1:
            raise invalid("Exactly one of PredefinedMetricSpecification and CustomizedMetricSpecification is required.")


def _page(items: list[Any], request: Document, key: Callable[[Any], str]) -> tuple[list[Any], Document]:
    found, token = listing.page(
        items, key=lambda i: [key(i)], size=int(request.get("MaxResults", 50)), token=request.get("NextToken")
    )
    return found, {"NextToken": token} if token else {}


def not_found(message: str) -> AwsError:
    """The refusal of a name that does not exist."""
    return AwsError("ObjectNotFoundException", message)

"""Scaling policies of the targets: put, described, deleted. Pure; `now` is an argument.

A target tracking policy has the alarms it made from the moment it is put; they keep their names while it is changed,
and go with it. A step scaling policy shows the alarms that name it, as far as they have been seen in CloudWatch.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.stack.sagemaker.api.wire import AwsError, Document, invalid
from workbench.stack.sagemaker.scaling.alarms import Alarm
from workbench.stack.sagemaker.scaling.demands import Stepping, Tracking, parse_stepping, parse_tracking
from workbench.stack.sagemaker.scaling.targets import Scaling, Target, check_namespace, not_found, page

MOST_POLICIES = 50
"""Per scalable target. Application Auto Scaling's quota."""


@dataclass(slots=True)
class Policy:
    """A policy of one target."""

    name: str
    arn: str
    created: float
    kind: str
    configuration: Document
    rule: Tracking | Stepping
    seen: tuple[str, ...] = ()
    """Names of the alarms that act for a step scaling policy."""

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The alarms the policy has made."""
        return self.rule.alarms if isinstance(self.rule, Tracking) else ()


class Policies:
    """Policies of the targets that `scaling` keeps."""

    def __init__(self, scaling: Scaling) -> None:
        self._scaling = scaling

    def put(self, request: Document, now: float) -> Document:
        """PutScalingPolicy, which also replaces one of that name."""
        target = self._scaling.target(request)
        name = request["PolicyName"]
        known = target.policies.get(name)
        kind = request.get("PolicyType", known.kind if known else "StepScaling")
        if known and known.kind != kind:
            raise invalid(f"Policy {name} exists with PolicyType {known.kind}, which cannot be changed.")
        if known is None and len(target.policies) >= MOST_POLICIES:
            raise AwsError("LimitExceededException", f"A scalable target can have {MOST_POLICIES} scaling policies.")
        configuration = _configuration(request, kind)
        policy = Policy(
            name,
            known.arn if known else self._arn(target, name),
            known.created if known else now,
            kind,
            configuration,
            parsed(configuration, kind, target, [a.name for a in known.alarms] if known else []),
            known.seen if known else (),
        )
        target.policies[name] = policy
        return {"PolicyARN": policy.arn, "Alarms": self._alarms(policy)}

    def describe(self, request: Document) -> Document:
        """DescribeScalingPolicies."""
        check_namespace(request)
        names, resource = request.get("PolicyNames"), request.get("ResourceId")
        dimension = request.get("ScalableDimension")
        rows = [
            self._shown(target, policy)
            for target in self._scaling.all()
            for policy in target.policies.values()
            if resource in (None, target.place.resource_id)
            and dimension in (None, target.place.dimension)
            and (not names or policy.name in names)
        ]
        found, token = page(rows, request, lambda p: f"{p['ResourceId']}/{p['ScalableDimension']}/{p['PolicyName']}")
        return {"ScalingPolicies": found, **token}

    def delete(self, request: Document) -> Document:
        """DeleteScalingPolicy."""
        target = self._scaling.target(request)
        name = request["PolicyName"]
        if target.policies.pop(name, None) is None:
            raise not_found(f"No scaling policy found for service namespace: sagemaker, policy name: {name}")
        return {}

    def _shown(self, target: Target, policy: Policy) -> Document:
        return {
            "PolicyARN": policy.arn,
            "PolicyName": policy.name,
            "ServiceNamespace": "sagemaker",
            "ResourceId": target.place.resource_id,
            "ScalableDimension": target.place.dimension,
            "PolicyType": policy.kind,
            f"{policy.kind}PolicyConfiguration": policy.configuration,
            "Alarms": self._alarms(policy),
            "CreationTime": policy.created,
        }

    def _alarms(self, policy: Policy) -> list[Document]:
        names = [alarm.name for alarm in policy.alarms] or policy.seen
        place = f"arn:aws:cloudwatch:{self._scaling.place}:alarm"
        return [{"AlarmName": name, "AlarmARN": f"{place}:{name}"} for name in names]

    def _arn(self, target: Target, name: str) -> str:
        place = f"arn:aws:autoscaling:{self._scaling.place}:scalingPolicy:{uuid.uuid4()}"
        return f"{place}:resource/sagemaker/{target.place.resource_id}:policyName/{name}"


def _configuration(request: Document, kind: str) -> Document:
    if kind not in ("TargetTrackingScaling", "StepScaling"):
        raise invalid(f"PolicyType {kind} is not supported for service namespace sagemaker.")
    configuration: Document | None = request.get(f"{kind}PolicyConfiguration")
    if configuration is None:
        raise invalid(f"PolicyType {kind} requires {kind}PolicyConfiguration.")
    return configuration


def parsed(configuration: Document, kind: str, target: Target, names: Sequence[str]) -> Tracking | Stepping:
    """A configuration as a rule; `names` are those of the alarms that it had before."""
    if kind == "StepScaling":
        return parse_stepping(configuration)
    return parse_tracking(configuration, target.place, names)

"""Application Auto Scaling as the rest of the server knows it: its operations, and what endpoints have to tell it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from workbench.stack.sagemaker.api.wire import Document
from workbench.stack.sagemaker.scaling.activities import Activities
from workbench.stack.sagemaker.scaling.policies import Policies
from workbench.stack.sagemaker.scaling.resources import Resources
from workbench.stack.sagemaker.scaling.scaler import Scaler
from workbench.stack.sagemaker.scaling.schedules import Schedules
from workbench.stack.sagemaker.scaling.targets import Scaling
from workbench.stack.sagemaker.settings import Settings


class AutoScaling:
    """The service."""

    def __init__(self, settings: Settings, resources: Resources) -> None:
        self.targets = Scaling(settings.region, settings.account, resources)
        self.policies = Policies(self.targets)
        self.schedules = Schedules(self.targets)
        self.activities = Activities()
        self.scaler = Scaler(resources, self.activities, settings.clock)
        self.changed = asyncio.Event()
        """Set when the set of alarms may be another one than before."""
        targets, policies, schedules, clock = self.targets, self.policies, self.schedules, settings.clock
        self.operations: dict[str, Callable[[Document], Document]] = {
            "RegisterScalableTarget": self._register,
            "DescribeScalableTargets": targets.describe_targets,
            "DeregisterScalableTarget": self._noticed(targets.deregister),
            "PutScalingPolicy": self._noticed(lambda r: policies.put(r, time.time())),
            "DescribeScalingPolicies": policies.describe,
            "DeleteScalingPolicy": self._noticed(policies.delete),
            "PutScheduledAction": lambda r: schedules.put(r, time.time(), clock.now()),
            "DescribeScheduledActions": schedules.describe,
            "DeleteScheduledAction": schedules.delete,
            "DescribeScalingActivities": self._describe_activities,
            "ListTagsForResource": targets.list_tags,
            "TagResource": targets.tag,
            "UntagResource": targets.untag,
        }

    def scaled(self, endpoint: str) -> set[str]:
        """The endpoint's variants that have a scalable instance count."""
        return {t.place.variant for t in self.targets.of(endpoint) if t.counts_instances}

    def settled(self, endpoint: str) -> None:
        """The endpoint has come to rest InService."""
        for target in self.targets.of(endpoint):
            self.scaler.watch(target)
            self.scaler.enforce(target)

    def forget(self, endpoint: str) -> None:
        """The endpoint is deleted, and its targets with it."""
        self.targets.forget(endpoint)
        self.changed.set()

    def _register(self, request: Document) -> Document:
        answer, target = self.targets.register(request, time.time())
        self.scaler.enforce(target)
        return answer

    def _describe_activities(self, request: Document) -> Document:
        return self.activities.describe(request, time.time())

    def _noticed(self, operation: Callable[[Document], Document]) -> Callable[[Document], Document]:
        def noticed(request: Document) -> Document:
            answer = operation(request)
            self.changed.set()
            return answer

        return noticed

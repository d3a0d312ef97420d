"""What every invocation passes first: does the endpoint exist, is the request well-formed and small enough, which
variant serves it, and do faults stand in the way. And the wire form of what is refused.

- Variants are drawn by weight unless the caller names one.
- An asynchronous endpoint takes asynchronous invocations only, any other none (developer guide, "async-inference"; the
  service's words for either are not documented).
- A body over the limit is HTTP 413 on a real-time endpoint, a ValidationError on a serverless one.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.stack.sagemaker.api import wire
from workbench.stack.sagemaker.api.invocations import ASYNC, Operation, Parameters, operations
from workbench.stack.sagemaker.api.wire import Answer, AwsError
from workbench.stack.sagemaker.control.deployment import Deployment
from workbench.stack.sagemaker.control.lifecycle import Lifecycle
from workbench.stack.sagemaker.model.lane import Lane, NotReadyError, ThrottledError, UnavailableError
from workbench.stack.sagemaker.model.replica import StartError
from workbench.stack.sagemaker.settings import Settings

NOT_EMULATED = (
    "TargetModel", "TargetContainerHostname", "InferenceComponentName", "SessionId", "EnableExplanations",
)  # fmt: skip

REFUSALS = (AwsError, ThrottledError, UnavailableError, NotReadyError, StartError)
"""What an invocation may raise before a container has answered."""


class ResetError(Exception):
    """The connection is to be reset instead of answered (the `reset` fault)."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A request that may go on."""

    endpoint: str
    deployment: Deployment
    parameters: Parameters


@dataclass(frozen=True, slots=True)
class Door:
    """The runtime's first look at a request."""

    settings: Settings
    lifecycle: Lifecycle
    operations: Mapping[str, Operation] = field(default_factory=operations)

    def largest_body(self, endpoint: str, operation: str) -> int:
        """Most bytes a request may have."""
        if operation == ASYNC:
            return self.settings.max_async_inline_bytes
        return largest(self.settings, serverless=self._is_serverless(endpoint))

    def too_large(self, endpoint: str, operation: str, id_: str) -> Answer:
        """The refusal of a body over `largest_body`."""
        if operation == ASYNC:
            text = f"The inline payload must not be larger than {self.settings.max_async_inline_bytes} bytes."
            return wire.runtime_error(AwsError("ValidationError", text), id_)
        if self._is_serverless(endpoint):
            return wire.runtime_error(AwsError("ValidationError", f"Request {id_} has oversize body."), id_)
        limit = self.largest_body(endpoint, operation)
        return wire.runtime_error(AwsError("413", f"HTTP content length exceeded {limit} bytes.", 413), id_)

    def enter(self, endpoint: str, operation: str, headers: Mapping[str, str]) -> Visit:
        """A request to what serves. Raises `AwsError`."""
        deployment = self.lifecycle.pick(endpoint)
        if deployment is None:
            raise AwsError("ValidationError", f"Endpoint {endpoint} of account {self.settings.account} not found.")
        parameters = self.operations[operation].parse(headers)
        for name in NOT_EMULATED:
            if name in parameters:
                raise AwsError("ValidationError", f"{name} is not emulated")
        if (deployment.plan.config.asynchronous is None) == (operation == ASYNC):
            kind = "does not accept" if operation == ASYNC else "accepts only"
            raise AwsError("ValidationError", f"Endpoint {endpoint} {kind} asynchronous invocations.")
        return Visit(endpoint, deployment, parameters)

    def refused(self, endpoint: str, error: Exception, id_: str) -> Answer:
        """One of `REFUSALS` as the caller sees it."""
        match error:
            case AwsError():
                refusal = error
            case ThrottledError():
                refusal = wire.throttled()
            case UnavailableError():
                refusal = AwsError("ServiceUnavailable", f"Endpoint {endpoint} is unavailable: {error}.", 503)
            case NotReadyError():
                refusal = wire.platform_error(429)
            case _:
                # A serverless container that does not come up; the caller sees a failing container.
                return wire.model_error(500, str(error), self.place(endpoint), id_)
        return wire.runtime_error(refusal, id_)

    def place(self, endpoint: str) -> wire.LogPlace:
        """Where the endpoint's logs would be."""
        return wire.LogPlace(self.settings.region, self.settings.account, endpoint)

    def _is_serverless(self, endpoint: str) -> bool:
        deployment = self.lifecycle.live.get(endpoint)
        return bool(deployment and any(lane.planned.variant.serverless for lane in deployment.lanes.values()))


def largest(settings: Settings, *, serverless: bool) -> int:
    """Most bytes of a synchronous request or answer."""
    return settings.max_serverless_payload_bytes if serverless else settings.max_payload_bytes


def choose(deployment: Deployment, target: str | None) -> Lane:
    """The variant that serves a request. Raises `AwsError`."""
    lanes = deployment.lanes
    if target is not None:
        if target not in lanes:
            raise AwsError("ValidationError", f"Variant {target} of endpoint {deployment.plan.endpoint} not found.")
        return lanes[target]
    if len(lanes) == 1:
        return next(iter(lanes.values()))
    weights = [deployment.weights[name] for name in lanes]
    if not any(weights):
        return next(iter(lanes.values()))
    return random.choices(list(lanes.values()), weights)[0]


def pass_faults(lane: Lane) -> None:
    """Faults with which the platform itself answers. Raises `ResetError` or `AwsError`."""
    if lane.faults.resets:
        raise ResetError
    if lane.faults.denies:
        settings = lane.factory.host.settings
        raise wire.denied(settings.region, settings.account, lane.factory.endpoint)
    if (status := lane.faults.refusal) is not None:
        raise wire.platform_error(status)

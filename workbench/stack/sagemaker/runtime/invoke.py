"""The runtime's InvokeEndpoint: which variant serves, what the model answered, and how either looks on the wire.

Variants are drawn by weight unless the caller names one. The body goes to the model process untouched, with the headers
the API has; the process's answer comes back as it is when it is 2xx, else as a ModelError. ModelLatency is the time
from sending to the last byte; OverheadLatency is the rest, so a cold start is part of it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import aiohttp

from workbench.stack.sagemaker.api import wire
from workbench.stack.sagemaker.api.wire import Answer, AwsError
from workbench.stack.sagemaker.control.deployment import Deployment
from workbench.stack.sagemaker.control.lifecycle import Lifecycle
from workbench.stack.sagemaker.faults import VariantFaults
from workbench.stack.sagemaker.metrics.points import Kind, Outcome
from workbench.stack.sagemaker.model.container import SLOW_HEADER
from workbench.stack.sagemaker.model.lane import Lane, NotReadyError, ThrottledError, UnavailableError
from workbench.stack.sagemaker.model.replica import Replica, StartError
from workbench.stack.sagemaker.settings import Settings

TARGET_VARIANT = "X-Amzn-SageMaker-Target-Variant"
CUSTOM_ATTRIBUTES = "X-Amzn-SageMaker-Custom-Attributes"
INVOKED_VARIANT = "x-Amzn-Invoked-Production-Variant"
FORWARDED = ("Content-Type", "Accept", CUSTOM_ATTRIBUTES, "X-Amzn-SageMaker-Inference-Id")
NOT_EMULATED = ("X-Amzn-SageMaker-Target-Model", "X-Amzn-SageMaker-Inference-Component")
LONGEST_HEADER = 1024

OnOutcome = Callable[[str, str, Outcome], None]
"""Told of each request that a variant served: endpoint, variant, outcome."""


class ResetError(Exception):
    """The connection is to be reset instead of answered (the `reset` fault)."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What came from the container. Status 0: it did not answer, and `body` says why."""

    status: int
    body: bytes
    content_type: str | None = None
    custom_attributes: str | None = None


class Runtime:
    """Serves InvokeEndpoint."""

    def __init__(self, settings: Settings, session: aiohttp.ClientSession, lifecycle: Lifecycle, on: OnOutcome) -> None:
        self._settings = settings
        self._session = session
        self._lifecycle = lifecycle
        self._on_outcome = on

    def largest_body(self, endpoint: str) -> int:
        """Most bytes a request to that endpoint may have; generous when there is no such endpoint."""
        deployment = self._lifecycle.live.get(endpoint)
        if deployment and any(lane.planned.variant.serverless for lane in deployment.lanes.values()):
            return self._settings.max_serverless_payload_bytes
        return self._settings.max_payload_bytes

    def too_large(self, endpoint: str, id_: str) -> Answer:
        """The refusal of a body over `largest_body`: 400 on serverless, 413 on real-time endpoints."""
        limit = self.largest_body(endpoint)
        deployment = self._lifecycle.live.get(endpoint)
        if deployment and any(lane.planned.variant.serverless for lane in deployment.lanes.values()):
            return wire.runtime_error(AwsError("ValidationError", f"Request {id_} has oversize body."), id_)
        return wire.runtime_error(AwsError("413", f"HTTP content length exceeded {limit} bytes.", 413), id_)

    async def invoke(self, endpoint: str, headers: Mapping[str, str], body: bytes, id_: str) -> Answer:
        """Serve one request. Raises `ResetError`."""
        began = time.perf_counter()
        try:
            deployment = self._deployment(endpoint)
            _check_headers(headers)
            lane = _choose(deployment, headers.get(TARGET_VARIANT))
            if lane.faults.resets:
                raise ResetError
            if (status := lane.faults.refusal) is not None:
                raise wire.platform_error(status)
            spilled = lane.spills
            async with lane.lease() as replica:
                sent = time.perf_counter()
                answer = await self._call(lane, replica, headers, body)
                model_s = time.perf_counter() - sent
                overhead_s = time.perf_counter() - began - model_s
                self._report(endpoint, lane, replica, (answer.status, model_s, overhead_s), spilled)
        except (AwsError, ThrottledError, UnavailableError, NotReadyError, StartError) as error:
            return self._refused(endpoint, error, id_)
        return self._rendered(endpoint, lane, answer, id_)

    def _refused(self, endpoint: str, error: Exception, id_: str) -> Answer:
        match error:
            case AwsError():
                refusal = error
            case ThrottledError():
                refusal = wire.throttled()
            case UnavailableError():
                text = f"Endpoint {endpoint} is unavailable: {error}."
                refusal = AwsError("ServiceUnavailable", text, 503)
            case NotReadyError():
                refusal = wire.platform_error(429)
            case _:
                # A serverless container that does not come up; the caller sees a failing container.
                return wire.model_error(500, str(error), self._place(endpoint), id_)
        return wire.runtime_error(refusal, id_)

    def _deployment(self, endpoint: str) -> Deployment:
        deployment = self._lifecycle.pick(endpoint)
        if deployment is None:
            raise AwsError("ValidationError", f"Endpoint {endpoint} of account {self._settings.account} not found.")
        return deployment

    async def _call(self, lane: Lane, replica: Replica, headers: Mapping[str, str], body: bytes) -> ModelAnswer:
        status = lane.faults.error_status(random.uniform(0, 100))
        if status is not None:
            return ModelAnswer(status, b"injected by the errors fault", "text/plain")
        sent = {name: headers[name] for name in FORWARDED if name in headers} | _slowdown(lane.faults)
        timeout = aiohttp.ClientTimeout(total=self._settings.invocation_timeout_s)
        url = f"{replica.url}/invocations"
        try:
            if lane.faults.hangs:
                await self._hang(lane)
            async with self._session.post(url, data=body, headers=sent, timeout=timeout) as response:
                content = await response.read()
                if len(content) > self._largest_answer(lane):
                    return ModelAnswer(0, b"The response of container primary is larger than the endpoint allows.")
                attributes = response.headers.get(CUSTOM_ATTRIBUTES)
                return ModelAnswer(response.status, content, response.headers.get("Content-Type"), attributes)
        except TimeoutError:
            return ModelAnswer(0, wire.TIMED_OUT.encode())
        except (aiohttp.ClientError, OSError) as error:
            cause = f"The connection to container primary ended before it answered ({type(error).__name__})."
            return ModelAnswer(0, cause.encode())

    async def _hang(self, lane: Lane) -> None:
        """A container that accepts and does not answer: until the time limit, or until it is gone. Always raises."""
        async with asyncio.timeout(self._settings.invocation_timeout_s):
            await lane.until(lambda: not lane.faults.hangs)
        raise ConnectionResetError

    def _largest_answer(self, lane: Lane) -> int:
        settings = self._settings
        serverless = lane.planned.variant.serverless is not None
        return settings.max_serverless_payload_bytes if serverless else settings.max_payload_bytes

    def _report(
        self, endpoint: str, lane: Lane, replica: Replica, seen: tuple[int, float, float], spilled: bool | None
    ) -> None:
        kind: Kind = "dedicated" if lane.planned.variant.serverless is None else "serverless"
        outcome = Outcome(kind, *seen, sum(r.ready for r in lane.replicas), replica.id, spilled)
        self._on_outcome(endpoint, lane.planned.variant.name, outcome)

    def _rendered(self, endpoint: str, lane: Lane, answer: ModelAnswer, id_: str) -> Answer:
        if not 200 <= answer.status < 300:
            text = answer.body.decode(errors="replace")
            return wire.model_error(answer.status, text, self._place(endpoint), id_)
        headers = {"x-amzn-RequestId": id_, INVOKED_VARIANT: lane.planned.variant.name}
        if answer.content_type:
            headers["Content-Type"] = answer.content_type
        if answer.custom_attributes:
            headers[CUSTOM_ATTRIBUTES] = answer.custom_attributes
        return Answer(200, headers, answer.body)

    def _place(self, endpoint: str) -> wire.LogPlace:
        return wire.LogPlace(self._settings.region, self._settings.account, endpoint)


def _check_headers(headers: Mapping[str, str]) -> None:
    for name in NOT_EMULATED:
        if name in headers:
            raise AwsError("ValidationError", f"{name} is not emulated")
    for name in FORWARDED:
        if len(headers.get(name, "")) > LONGEST_HEADER:
            raise AwsError("ValidationError", f"{name} is longer than {LONGEST_HEADER} characters")


def _choose(deployment: Deployment, target: str | None) -> Lane:
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


def _slowdown(faults: VariantFaults) -> dict[str, str]:
    slow = faults.slowdown
    return {SLOW_HEADER: f"{slow.factor};{slow.ms}"} if slow else {}

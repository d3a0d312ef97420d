"""InvokeEndpoint: the model's answer as it is when it is 2xx, else a ModelError.

ModelLatency is the time from sending to the last byte; OverheadLatency is the rest, so a cold start is part of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from workbench.stack.sagemaker.api import wire
from workbench.stack.sagemaker.api.invocations import SYNC
from workbench.stack.sagemaker.api.wire import Answer
from workbench.stack.sagemaker.metrics.points import Kind, Outcome
from workbench.stack.sagemaker.model.lane import Lane
from workbench.stack.sagemaker.model.replica import Replica
from workbench.stack.sagemaker.runtime.door import REFUSALS, Door, choose, largest, pass_faults
from workbench.stack.sagemaker.runtime.model_call import CUSTOM_ATTRIBUTES, ModelAnswer, ModelCall

INVOKED_VARIANT = "x-Amzn-Invoked-Production-Variant"

OnOutcome = Callable[[str, str, Outcome], None]
"""Told of each request that a variant served: endpoint, variant, outcome."""


@dataclass(frozen=True, slots=True)
class Invoke:
    """Serves InvokeEndpoint."""

    door: Door
    on_outcome: OnOutcome

    async def answer(self, endpoint: str, headers: Mapping[str, str], body: bytes, id_: str) -> Answer:
        """Serve one request. Raises `ResetError`."""
        began, settings = time.perf_counter(), self.door.settings
        try:
            visit = self.door.enter(endpoint, SYNC, headers)
            lane = choose(visit.deployment, visit.parameters.get("TargetVariant"))
            pass_faults(lane)
            spilled = lane.spills
            async with lane.lease() as replica:
                sent = time.perf_counter()
                call = ModelCall(lane, replica, visit.parameters, settings.invocation_timeout_s)
                most_bytes = largest(settings, serverless=lane.planned.variant.serverless is not None)
                answer = await call.answer(body, most_bytes)
                model_s = time.perf_counter() - sent
                overhead_s = time.perf_counter() - began - model_s
                outcome = outcome_of(lane, replica, (answer.status, model_s, overhead_s), spilled)
                self.on_outcome(endpoint, lane.planned.variant.name, outcome)
        except REFUSALS as error:
            return self.door.refused(endpoint, error, id_)
        return self._rendered(endpoint, lane, answer, id_)

    def _rendered(self, endpoint: str, lane: Lane, answer: ModelAnswer, id_: str) -> Answer:
        if not answer.good:
            text = answer.body.decode(errors="replace")
            return wire.model_error(answer.status, text, self.door.place(endpoint), id_)
        headers = {"x-amzn-RequestId": id_, INVOKED_VARIANT: lane.planned.variant.name}
        if answer.content_type:
            headers["Content-Type"] = answer.content_type
        if answer.custom_attributes:
            headers[CUSTOM_ATTRIBUTES] = answer.custom_attributes
        return Answer(200, headers, answer.body)


def outcome_of(lane: Lane, replica: Replica, seen: tuple[int, float, float], spilled: bool | None) -> Outcome:
    """What metrics are told of a request: `seen` is its status and its two latencies in seconds."""
    kind: Kind = "dedicated" if lane.planned.variant.serverless is None else "serverless"
    return Outcome(kind, *seen, sum(r.ready for r in lane.replicas), replica.id, spilled)

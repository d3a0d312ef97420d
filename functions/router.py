"""The use case of the `route` function: one call in, one answer and perhaps a receipt out.

Order: liveness → who calls → policy → what the router believes (`GET /v1/lanes`), or decide and execute. Where batch
is first the request becomes a job; where it comes later, when every lane before it has failed. Knows neither Lambda nor
AWS: time, metrics, policy and lanes come through ports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from functions.answer import Answer, Call, document_answer, only, problem_answer
from functions.board import board
from functions.body import named_in
from functions.core.decider import Decider
from functions.core.decision import Decision
from functions.core.estimates import service_s
from functions.core.outcome import Kind, failure_of
from functions.core.plan import usable_s
from functions.core.policy import MAX_DEADLINE_MS, Policy
from functions.core.pricing import counterfactual_usd
from functions.core.problem import Problem
from functions.core.receipt import Attempt, Receipt
from functions.core.request import Request
from functions.core.snapshot import Snapshot
from functions.core.topology import DedicatedLane, SyncLane, Topology
from functions.core.wishes import WishError, read_wishes
from functions.execute import Execution, Payload, execute
from functions.health import Alone, Health
from functions.ports import Clock, FailureMarks, Invoker, PolicySource, Race, SignalSource
from functions.race import ThreadRace

if TYPE_CHECKING:  # loaded where the stack has them
    from functions.capture import Capturer
    from functions.core.policy import Route
    from functions.defer import Deferral, Deferred

HEALTH_PATH: Final = "/healthz"
LANES_PATH: Final = "/v1/lanes"
_NO_LANES: Final[Mapping[str, SyncLane]] = {}
_FIRST_POLICY_S: Final = 10.0
"""Far more than AppConfig takes on its worst day; in an outage each caller of a new instance holds it this long."""
_ACCEPT_S: Final = 1.0
"""Kept back of a deadline, at most a fifth of it, to accept as a job what no lane could answer."""
_LATEST_S: Final = MAX_DEADLINE_MS / 1000
"""When every answer must have left; nothing is promised to a caller whom the gateway no longer holds."""
_PUBLISH_S: Final = 1.0
"""More than the failure marks' store takes to be given up."""
_NOTHING_DONE: Final = Execution((), None)
_INFERENCE_ID: Final = "x-amzn-sagemaker-inference-id"
"""Lets a request be found in SageMaker's own records; at most 64 characters."""


class Router:
    """Holds what one process knows: its ports, and the health of its lanes."""

    def __init__(
        self,
        topology: Topology,
        policies: PolicySource,
        signals: SignalSource,
        invoker: Invoker,
        clock: Clock,
        marks: FailureMarks | None = None,
        race: Callable[[], Race] = ThreadRace,
        deferral: Callable[[], Deferral] | None = None,
        capturer: Callable[[], Capturer] | None = None,
    ) -> None:
        """Nothing is read until the first call. `marks` None: this instance learns alone.

        `deferral` is asked for when a request is deferred; None: this stack has no batch lane. `capturer` likewise,
        when a route wants its traffic kept; None: this stack keeps none.
        """
        self._topology = topology
        self._lanes = {model: topology.sync_lanes(model) for model in topology.models}
        self._policies = policies
        self._signals = signals
        self._invoker = invoker
        self._clock = clock
        self._race = race
        self._deferral = deferral
        self._capturer = capturer
        self._health = Health(marks or Alone(), clock)
        self._decider: Decider | None = None

    def answer(self, call: Call) -> Answer:
        """Answer one call."""
        began = self._clock.monotonic()
        request = call.request
        if request.path == HEALTH_PATH:
            return only(request, "GET") or document_answer(request, {"status": "ok"})
        if request.identity.kind == "anonymous":
            return problem_answer(request.id, Problem(401, "The call carries no identity that the gateway proved."))
        now = self._clock.now()
        policy = self._policies.policy(now, 0.0 if self._decider is not None else _patience_s(call))
        if policy is None:
            problem = Problem(503, "There is no policy yet that could decide.", "no-policy", retry_after_s=5)
            return problem_answer(request.id, problem)
        if request.path == LANES_PATH:
            return only(request, "GET") or self._board(request, policy, now)
        route = policy.route_of(request.path)
        if route is not None:
            if (wrong := only(request, "POST")) is not None:
                return wrong
            if route.model_from_body is not None:
                named = replace(request, model=named_in(call.body, route.model_from_body))
                call = replace(call, request=named)
        return self._route(call, policy, route, began, now)

    def _board(self, request: Request, policy: Policy, now: float) -> Answer:
        return document_answer(request, board(self._snapshot(now), policy, self._topology, now))

    def _snapshot(self, now: float) -> Snapshot:
        return self._health.seen(self._signals.snapshot(now), now)

    def _route(self, call: Call, policy: Policy, route: Route | None, began: float, now: float) -> Answer:
        request = call.request
        snapshot = self._snapshot(now)
        deciding = self._clock.monotonic()
        if self._decider is None or self._decider.policy is not policy:
            self._decider = Decider(policy, self._topology)
        decision = self._decider.decide(request, snapshot, now)
        moment = _Moment(
            began, now, self._clock.monotonic() - deciding, snapshot, self._decider.looked_at(request.headers)
        )
        done, deferred, captured = _NOTHING_DONE, None, None
        if decision.shed is not None:
            shed = decision.shed
            answer = problem_answer(request.id, Problem(shed.status, shed.reason, retry_after_s=shed.retry_after_s))
        elif decision.async_ and self._deferral is not None:
            deferred = self._defer(self._deferral(), call, decision, policy, began)
            answer = deferred.answer
        elif not (
            lanes := [known for name in decision.order if (known := self._lanes[decision.model or ""].get(name))]
        ):
            answer = problem_answer(request.id, Problem(503, "This stack does not run deferred work."))
        else:
            done = self._execute(call, decision, lanes, began)
            answer = _answer(request.id, done)
            if done.outcome is None and decision.within_s is not None and self._deferral is not None and call.body:
                deferred = self._defer(self._deferral(), call, decision, policy, began)
                # Without a job the caller is told of the lanes that failed, unless it is its key that is at fault.
                answer = deferred.answer if deferred.answer.status < HTTPStatus.INTERNAL_SERVER_ERROR else answer
            elif self._capturer is not None and route is not None and route.capture is not None:
                captured = self._capture(self._capturer(), call, route, decision, done, moment)
            self._publish(call, decision, began)
        return self._with_receipt(call, answer, decision, done, moment, _Besides(deferred, captured))

    def _defer(self, deferral: Deferral, call: Call, decision: Decision, policy: Policy, began: float) -> Deferred:
        """Make a job of it, as far as there is time for that."""
        left_s = min(_LATEST_S, call.time_left_s) - (self._clock.monotonic() - began)
        return deferral.defer(call, decision, policy, self._topology, left_s)

    def _capture(
        self, capturer: Capturer, call: Call, route: Route, decision: Decision, done: Execution, moment: _Moment
    ) -> bool | None:
        """Keep a request that was answered well, while there is still time."""
        if done.outcome is None or done.served is None or done.outcome.kind is not Kind.OK:
            return None
        left_s = _deadline_s(call, decision) - (self._clock.monotonic() - moment.began)
        return capturer.keep(call, route, decision, done.served.lane, done.outcome, moment.now, left_s)

    def _execute(self, call: Call, decision: Decision, lanes: Sequence[SyncLane], began: float) -> Execution:
        model = decision.model or ""
        predicted = self._health.corrected(model, decision.predicted, decision.order)
        if decision.hedge:
            self._health.hedge_requested()
        return execute(
            lanes,
            Payload(call.body, call.request.content_type, call.accept, {_INFERENCE_ID: call.request.id[:64]}),
            predicted,
            began=began,
            deadline=began + usable_s(self._attempts_s(call, decision)),
            invoker=self._invoker,
            clock=self._clock,
            watch=self._health.watch(model, decision.predicted),  # not corrected: a hanging lane must not excuse itself
            race=self._race if decision.hedge else None,
        )

    def _attempts_s(self, call: Call, decision: Decision) -> float:
        """The deadline for the lanes: the caller's, less what accepting a job takes where that comes after them."""
        deadline_s = _deadline_s(call, decision)
        if decision.within_s is None or self._deferral is None:
            return deadline_s
        return deadline_s - min(_ACCEPT_S, deadline_s / 5)

    def _publish(self, call: Call, decision: Decision, began: float) -> None:
        """Share what opened here, unless that could make the caller late: the next request can still do it."""
        if self._clock.monotonic() - began < _deadline_s(call, decision) - _PUBLISH_S:
            self._health.publish(self._clock.now())

    def _with_receipt(
        self,
        call: Call,
        answer: Answer,
        decision: Decision,
        done: Execution,
        moment: _Moment,
        besides: _Besides,
    ) -> Answer:
        served = done.served
        lanes = self._lanes.get(decision.model or "", _NO_LANES)
        receipt = Receipt(
            request=call.request,
            headers=moment.headers,
            at=moment.now,
            decision=decision,
            attempts=done.attempts,
            status=answer.status,
            lane=served.lane if served else None,
            latency_s=self._clock.monotonic() - moment.began,
            decide_s=moment.decide_s,
            bytes_out=len(answer.body),
            cost_usd=_total([attempt.cost_usd for attempt in done.attempts]),
            counterfactual_usd=counterfactual_usd(lanes, served.lane, served.duration_s) if served else {},
            snapshot_age_s=moment.snapshot.age_s(moment.now),
            breakers={name: moment.snapshot.lane(decision.model or "", name).breaker for name in lanes},
            demand_s=_demand_s(lanes, decision, moment),
            job=None if besides.deferred is None else besides.deferred.job,
            recorded=besides.deferred is not None and besides.deferred.recorded,
            promoted=besides.deferred is not None and besides.deferred.promoted,
            captured=besides.captured,
        )
        headers = {**answer.headers, **_receipt_headers(receipt)}
        return Answer(answer.status, answer.body, answer.content_type, headers, receipt)


@dataclass(frozen=True, slots=True)
class _Moment:
    """When a request came in, and what was known then."""

    began: float
    now: float
    decide_s: float
    snapshot: Snapshot
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Besides:
    """What became of a request besides what its lanes did."""

    deferred: Deferred | None
    captured: bool | None


def _answer(request_id: str, done: Execution) -> Answer:
    if done.outcome is None:
        # A lane whose breaker lets nothing through is as unavailable as one that cannot be reached.
        kinds = [attempt.kind for attempt in done.attempts] + [Kind.UNREACHABLE for _ in done.refused]
        failure = failure_of(kinds)
        problem = Problem(failure.status, failure.detail, failure.slug, failure.retry_after_s, done.attempts)
        return problem_answer(request_id, problem)
    outcome = done.outcome
    return Answer(outcome.status or 200, outcome.body, outcome.content_type, {"x-request-id": request_id})


def _demand_s(lanes: Mapping[str, SyncLane], decision: Decision, moment: _Moment) -> float | None:
    """Seconds of dedicated work asked for; None for a request that names no model, or without a service time."""
    dedicated = [lane for lane in lanes.values() if isinstance(lane, DedicatedLane)]
    if not dedicated or decision.model is None:
        return None
    return service_s(dedicated[0], decision.model, moment.snapshot, moment.now)


def _patience_s(call: Call) -> float:
    """How long a new instance may look for its first policy: half of what the caller can wait, and not for ever."""
    try:
        asked_ms = read_wishes(call.request.headers).deadline_ms or MAX_DEADLINE_MS
    except WishError:  # refused as soon as there is a policy
        asked_ms = MAX_DEADLINE_MS
    return min(_FIRST_POLICY_S, min(asked_ms / 1000, call.time_left_s) / 2)


def _deadline_s(call: Call, decision: Decision) -> float:
    """What the caller can wait; one whose work may be deferred has said nothing of it."""
    return min((decision.deadline_ms or MAX_DEADLINE_MS) / 1000, call.time_left_s)


def _total(costs: list[float | None]) -> float | None:
    return None if None in costs else sum(cost for cost in costs if cost is not None)


def _receipt_headers(receipt: Receipt) -> dict[str, str]:
    headers = {
        "x-inferlane-rule": receipt.decision.rule,
        "x-inferlane-policy": receipt.decision.policy_version,
        "server-timing": _server_timing(receipt.decide_s, receipt.attempts),
    }
    if receipt.lane is not None:
        headers["x-inferlane-lane"] = receipt.lane
    if receipt.cost_usd is not None and receipt.attempts:
        headers["x-inferlane-cost-usd"] = f"{receipt.cost_usd:.9f}"
    return headers


def _server_timing(decide_s: float, attempts: tuple[Attempt, ...]) -> str:
    parts = [f"decide;dur={decide_s * 1000:.3f}"]
    parts += [f'attempt;desc="{attempt.lane}";dur={attempt.duration_s * 1000:.3f}' for attempt in attempts]
    return ", ".join(parts)

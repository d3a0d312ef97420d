"""The receipt: a decision and what came of it. One line of JSON a request, schema `inferlane/receipt/v1`.

It carries no payload, no credential and no identity beyond tenant, tier and cost center. Of the request it holds all
else that a decision looks at, so that another policy can be asked what it would have decided (`policy diff`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from functions.core.decision import Decision
from functions.core.document import show_time
from functions.core.outcome import Kind
from functions.core.request import Request
from functions.core.snapshot import Breaker

SCHEMA: Final = "inferlane/receipt/v1"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try on one lane. Times in seconds; `started_s` since the request came in."""

    lane: str
    kind: Kind
    status: int | None
    started_s: float
    duration_s: float
    timeout_s: float
    cost_usd: float | None
    detail: str = ""
    """Why it failed, for operators: never payload, never shown to the caller."""
    hedge: bool = False
    """Whether it was begun while the one before it still ran. Abandoned: `cost_usd` is estimated."""

    def to_json(self) -> dict[str, object]:
        """The receipt's form."""
        return {
            "lane": self.lane,
            "outcome": str(self.kind),
            "status": self.status,
            "started_ms": _ms(self.started_s),
            "duration_ms": _ms(self.duration_s),
            "timeout_ms": _ms(self.timeout_s),
            "cost_usd": self.cost_usd,
            **({"hedge": True} if self.hedge else {}),
            **({"detail": self.detail} if self.detail and self.kind is not Kind.OK else {}),
        }


@dataclass(frozen=True, slots=True)
class Receipt:
    """What happened to one request."""

    request: Request
    headers: Mapping[str, str]
    """Those of the request's that this policy's decisions look at: wishes, claims, and what its rules name."""
    at: float
    """Unix seconds of its arrival."""
    decision: Decision
    attempts: tuple[Attempt, ...]
    status: int
    lane: str | None
    """The lane whose answer the caller got."""
    latency_s: float
    decide_s: float
    bytes_out: int
    cost_usd: float | None
    counterfactual_usd: Mapping[str, float | None]
    snapshot_age_s: float | None
    breakers: Mapping[str, Breaker] = field(default_factory=dict)
    """Of the model's lanes, as the decision saw them."""
    demand_s: float | None = None
    """Seconds of dedicated work that this arrival asks for, as far as its service time is known."""
    job: str | None = None
    """The id of the job that it became, or is already."""
    recorded: bool = False
    """Whether that job is new."""
    promoted: bool = False
    """Whether it is new and too urgent for batch: another lane is to answer it."""
    captured: bool | None = None
    """Whether it was kept for the nightly recheck; None: it was not to be."""

    @property
    def request_id(self) -> str:
        """The request's."""
        return self.request.id

    @property
    def fallbacks(self) -> int:
        """Attempts made because one before had failed."""
        return sum(1 for attempt in self.attempts[1:] if not attempt.hedge)

    @property
    def hedges(self) -> int:
        """Attempts begun while another still ran."""
        return sum(1 for attempt in self.attempts if attempt.hedge)

    def to_json(self) -> dict[str, object]:
        """The contract form."""
        return {**self.about(), "decision": self.decision.to_json()}

    def about(self) -> dict[str, object]:
        """The contract form without the decision, which requests may share."""
        return {
            "schema": SCHEMA,
            "request_id": self.request.id,
            "at": show_time(self.at),
            "method": self.request.method,
            "path": self.request.path,
            "model": self.request.model,
            "content_type": self.request.content_type,
            "headers": dict(self.headers),
            "attempts": [attempt.to_json() for attempt in self.attempts],
            "status": self.status,
            "lane": self.lane,
            "latency_ms": _ms(self.latency_s),
            "decide_ms": _ms(self.decide_s),
            "bytes_in": self.request.bytes,
            "bytes_out": self.bytes_out,
            "cost_usd": self.cost_usd,
            "counterfactual_usd": dict(self.counterfactual_usd),
            "snapshot_age_s": None if self.snapshot_age_s is None else round(self.snapshot_age_s, 3),
            "breakers": dict(self.breakers),
            "policy_version": self.decision.policy_version,
            **({} if self.job is None else {"job": self.job}),
        }


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)

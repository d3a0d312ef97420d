"""What `decide` answers: the lanes to try and why, or why nothing is tried. Schema `inferlane/decision/v1`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from functions.core.estimates import Prediction
from functions.core.identity import Caller
from functions.core.policy import DEFAULT_RULE
from functions.core.request import Priority

SCHEMA: Final = "inferlane/decision/v1"


@dataclass(frozen=True, slots=True)
class Rejected:
    """A lane that is not tried, and why."""

    lane: str
    reason: str


@dataclass(frozen=True, slots=True)
class Shed:
    """Nothing is tried: the status the caller gets, why, and when to come back."""

    status: int
    reason: str
    retry_after_s: int | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Ordered lanes with the reasons; `order` is empty exactly when `shed` is set."""

    model: str | None
    order: tuple[str, ...]
    rule: str
    tenant: str | None
    tier: str | None
    cost_center: str | None
    asked: Priority | None
    granted: Priority | None
    deadline_ms: int | None
    rejected: tuple[Rejected, ...]
    latches: Mapping[str, bool | None]
    predicted: Mapping[str, Prediction]
    shed: Shed | None
    policy_version: str
    experiment: str | None = None
    async_: bool = False
    """`async` in the document, a word that Python keeps for itself: true exactly when `order[0]` is batch."""
    within_s: float | None = None
    """When the batch answer is due; None when batch is not in the order."""
    hedge: bool = False
    """Whether the rule lets a slow attempt be doubled on the next lane."""
    claims_refused: tuple[str, ...] = ()
    """What was asked beyond what the identity may have, such as `priority`: granted at the tier, and counted."""
    unknown: tuple[str, ...] = ()
    """Rules that could not be told for want of metrics."""

    def to_json(self) -> dict[str, object]:
        """The contract form."""
        return {
            "schema": SCHEMA,
            "model": self.model,
            "order": list(self.order),
            "rule": self.rule,
            "experiment": self.experiment,
            "tenant": self.tenant,
            "tier": self.tier,
            "cost_center": self.cost_center,
            "priority": {
                "asked": None if self.asked is None else self.asked.word,
                "granted": None if self.granted is None else self.granted.word,
            },
            "deadline_ms": self.deadline_ms,
            "async": self.async_,
            "within_s": self.within_s,
            "hedge": self.hedge,
            "claims_refused": list(self.claims_refused),
            "rejected": [{"lane": item.lane, "reason": item.reason} for item in self.rejected],
            "latches": dict(self.latches),
            "predicted": {
                name: {"p99_ms": item.p99_ms, "cost_usd": item.cost_usd} for name, item in self.predicted.items()
            },
            "shed": None
            if self.shed is None
            else {
                "status": self.shed.status,
                "reason": self.shed.reason,
                "retry_after_s": self.shed.retry_after_s,
            },
            "unknown": list(self.unknown),
            "policy_version": self.policy_version,
        }


def refusal(
    policy_version: str, caller: Caller | None, model: str | None, shed: Shed, lanes: Iterable[str] = ()
) -> Decision:
    """A request that is refused before any of the model's `lanes` is looked at."""
    return Decision(
        model=model,
        order=(),
        rule=DEFAULT_RULE,
        tenant=None if caller is None else caller.tenant,
        tier=None if caller is None else caller.tier,
        cost_center=None if caller is None else caller.cost_center,
        asked=None,
        granted=None,
        deadline_ms=None,
        rejected=tuple(Rejected(lane, "the request is refused") for lane in lanes),
        latches={},
        predicted={},
        shed=shed,
        policy_version=policy_version,
    )

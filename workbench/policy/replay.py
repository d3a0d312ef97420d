"""Which decisions change from one policy to another, over recorded requests or receipts.

A request says who calls; a receipt says only as which tenant and tier, and who pays. For a receipt, an identity that
the old policy maps to the same stands for the caller; where it has none any more, the receipt is counted as skipped.
All else that the old policy could test is in the receipt. Of the request's headers it holds the wishes and those that
the rules of its time named: what another header would decide under the new policy cannot be told from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from functions.core.decider import Decider
from functions.core.decision import Decision
from functions.core.document import Fields, as_time
from functions.core.identity import Caller, identify
from functions.core.policy import Policy, TenantEntry
from functions.core.receipt import SCHEMA as RECEIPT_SCHEMA
from functions.core.request import ANONYMOUS, Identity, Request, read_headers
from functions.core.snapshot import Snapshot
from functions.core.topology import Topology
from workbench.policy.contracts import Record

SHOWN: Final = 20
"""Kinds of change told apart; the rest is counted as one."""
_RUNS: Final = ("", "x", "stand-in", "0")
"""What a `*` may stand for."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a decision comes to for the caller: equal outcomes are no change, whatever rule they come from."""

    model: str | None
    order: tuple[str, ...]
    tenant: str | None
    tier: str | None
    cost_center: str | None
    granted: str | None
    deadline_ms: int | None
    within_s: float | None
    hedge: bool
    shed: int | None

    @classmethod
    def of(cls, decision: Decision) -> Outcome:
        """The outcome of a decision."""
        return cls(
            decision.model,
            decision.order,
            decision.tenant,
            decision.tier,
            decision.cost_center,
            None if decision.granted is None else decision.granted.word,
            decision.deadline_ms,
            decision.within_s,
            decision.hedge,
            None if decision.shed is None else decision.shed.status,
        )


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of change: the rules that decided, and what is different."""

    rule_before: str
    rule_after: str
    differences: tuple[tuple[str, str, str], ...]
    """(what, before, after)."""

    def __str__(self) -> str:
        told = ", ".join(f"{what} {before} -> {after}" for what, before, after in self.differences)
        by = self.rule_before if self.rule_before == self.rule_after else f"{self.rule_before} -> {self.rule_after}"
        return f"{told} (rule {by})"


@dataclass(slots=True)
class Comparison:
    """Counts over all requests."""

    requests: int = 0
    changed: int = 0
    skipped: int = 0
    kinds: dict[Kind, int] = field(default_factory=dict)
    examples: dict[Kind, str] = field(default_factory=dict)

    def add(self, request_id: str, before: Decision, after: Decision) -> None:
        """Count one request's two decisions."""
        self.requests += 1
        kind = _kind(before, after)
        if kind is None:
            return
        self.changed += 1
        if kind in self.kinds or len(self.kinds) < SHOWN:
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
            self.examples.setdefault(kind, request_id)

    def to_json(self) -> dict[str, object]:
        """For --json."""
        kinds = [
            {
                "requests": number,
                "rule": [kind.rule_before, kind.rule_after],
                "differences": {what: [before, after] for what, before, after in kind.differences},
                "example": self.examples[kind],
            }
            for kind, number in self.most_common()
        ]
        return {"requests": self.requests, "changed": self.changed, "skipped": self.skipped, "kinds": kinds}

    def most_common(self) -> list[tuple[Kind, int]]:
        """The kinds, most frequent first."""
        return sorted(self.kinds.items(), key=lambda item: -item[1])


@dataclass(frozen=True, slots=True)
class Scene:
    """What else decides: the lanes, what is known of them, and when."""

    topology: Topology
    snapshot: Snapshot
    now: float
    receipts_keep_their_time: bool = True


def compare(records: Iterable[Record], before: Policy, after: Policy, scene: Scene) -> Comparison:
    """Decide every record under both policies. Raises `UserError` for one that is neither request nor receipt."""
    found = Comparison()
    deciders = Decider(before, scene.topology), Decider(after, scene.topology)
    for record in records:
        caller = record.read(lambda value: read(value, before))
        if caller is None:
            found.requests += 1
            found.skipped += 1
            continue
        request, own = caller
        now = scene.now if own is None or not scene.receipts_keep_their_time else own
        old, new = (decider.decide(request, scene.snapshot, now) for decider in deciders)
        found.add(request.id, old, new)
    return found


def read(value: object, policy: Policy) -> tuple[Request, float | None] | None:
    """A request, or a receipt with its time; None when nobody can stand for a receipt's caller."""
    if not isinstance(value, Mapping) or value.get("schema") != RECEIPT_SCHEMA:
        return Request.from_json(value), None
    root = Fields.of(value)
    decision = root.fields("decision")
    tenant, tier = (decision.text_or(key, "") for key in ("tenant", "tier"))
    cost_center = decision.text_or("cost_center", "") or None
    identity = stand_in(policy, tenant, tier, cost_center) if tenant else ANONYMOUS
    if identity is None:
        return None
    request = Request(
        id=root.text_or("request_id", "r-0"),
        method=root.text("method"),
        path=root.text("path"),
        headers=read_headers(root.fields("headers")),
        content_type=root.text("content_type") if root.get("content_type") else None,
        bytes=root.integer_or("bytes_in", 0, at_least=0),
        identity=identity,
        model=root.text("model") if root.get("model") else None,
    )
    return request, as_time(root.require("at"), root.at("at"))


def stand_in(policy: Policy, tenant: str, tier: str, cost_center: str | None) -> Identity | None:
    """An identity that the policy maps to these; None when it maps nobody to them."""
    if tier not in policy.tiers:
        return None
    wanted = Caller(tenant, tier, cost_center, policy.tiers[tier])
    entries = [entry for entry in policy.tenants if entry.tenant == tenant]
    for identity in (*(someone for entry in entries for someone in _someone(entry)), ANONYMOUS):
        if identify(identity, policy) == wanted:
            return identity
    return None


def _someone(entry: TenantEntry) -> Iterator[Identity]:
    """Identities that the entry matches, unlike enough for one of them to pass by the entries before it."""
    for run in _RUNS:
        if entry.identity is not None:
            yield Identity("iam", arn=_literal(entry.identity, run))
        elif entry.api_key is not None:
            yield Identity("api_key", key_id=_literal(entry.api_key, run))
        else:
            yield Identity("jwt", claims={name: _literal(pattern, run) for name, pattern in entry.claims})


def _literal(pattern: str, run: str) -> str:
    """A text that the wildcard matches, `run` for each `*`."""
    return pattern.replace("?", "x").replace("*", run)


def _kind(before: Decision, after: Decision) -> Kind | None:
    old, new = Outcome.of(before), Outcome.of(after)
    if old == new:
        return None
    names = ("model", "order", "tenant", "tier", "cost_center", "granted", "deadline_ms", "within_s", "hedge", "shed")
    pairs = ((name, getattr(old, name), getattr(new, name)) for name in names)
    return Kind(before.rule, after.rule, tuple((name, _word(a), _word(b)) for name, a, b in pairs if a != b))


def _word(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(str(part) for part in value) + "]"
    return "none" if value is None else str(value)

"""The authored document: who may ask for what, and which lanes are tried in which order.

Schema `inferlane/policy/v1`. Experiments come first, then the first rule that matches decides; one with a share passes
on what it does not take; none: the default order. Read by `policy_parser`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from functions.core.conditions import Condition, leaves
from functions.core.document import DocumentError
from functions.core.latches import Signal
from functions.core.patterns import PathPattern, arn_match, wildcard_match
from functions.core.redaction import Pointer
from functions.core.request import Identity, Priority

SCHEMA: Final = "inferlane/policy/v1"
DEFAULT_RULE: Final = "default"
"""The rule's name in a decision when none matched."""
MAX_DEADLINE_MS: Final = 29_000
"""API Gateway's HTTP API gives up after 30 s; a second is left to answer."""


class PolicyError(DocumentError):
    """The policy document cannot be used."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds where neither rule nor route nor caller says otherwise."""

    order: tuple[str, ...]
    deadline_ms: int
    within_s: float
    tenant: str
    tier: str
    refuse_unknown: bool
    """Whether an authenticated caller without a tenants entry is refused."""


@dataclass(frozen=True, slots=True)
class Capture:
    """What of a route's traffic is kept for the nightly recheck."""

    share: float
    """The part of its answered requests, 0–1."""
    pointers: tuple[Pointer, ...] = ()
    """What is taken out of JSON bodies first."""
    bodies: bool = True
    """Whether bodies are kept at all, or only their sizes and types."""


@dataclass(frozen=True, slots=True)
class Route:
    """A path pattern that names a model: outright, by its segment `{model}`, or by a key of the request's body."""

    pattern: PathPattern
    model: str | None
    within_s: float | None = None
    model_from_body: str | None = None
    """The top-level key of a JSON body whose text names the model."""
    prefer_async: bool = False
    capture: Capture | None = None

    def model_of(self, path: str, in_body: str | None) -> str | None:
        """The model that a request to `path` means; None when its body names none."""
        if self.model is not None:
            return self.model
        if self.model_from_body is not None:
            return in_body
        return (self.pattern.match(path) or {}).get("model")


@dataclass(frozen=True, slots=True)
class TenantEntry:
    """Whom a proven identity stands for. Exactly one of `identity`, `claims`, `api_key` is set."""

    tenant: str
    tier: str
    cost_center: str | None
    identity: str | None = None
    claims: tuple[tuple[str, str], ...] = ()
    api_key: str | None = None

    def matches(self, caller: Identity, arn: str | None) -> bool:
        """Whether the caller is meant; `arn` is its role's form (see `identity.role_arn`)."""
        if self.identity is not None:
            return arn is not None and arn_match(self.identity, arn)
        if self.api_key is not None:
            return caller.key_id is not None and wildcard_match(self.api_key, caller.key_id)
        return bool(self.claims) and all(
            name in caller.claims and wildcard_match(pattern, caller.claims[name]) for name, pattern in self.claims
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition and the lanes to try when it holds."""

    id: str
    when: Condition
    order: tuple[str, ...]
    within_s: float | None = None
    share: float | None = None
    """The part of the requests that reach it which it takes, 0–1; None: all."""
    hedge: bool = False


@dataclass(frozen=True, slots=True)
class Guard:
    """What stops an experiment, as rates 0–1. At least one is set."""

    max_error_rate: float | None
    max_late_rate: float | None


@dataclass(frozen=True, slots=True)
class Experiment:
    """A rule on trial: it comes before all rules, takes a share, and stops when its guard trips."""

    id: str
    rule: Rule
    """Named `experiment/<id>`, always with a share."""
    guard: Guard


@dataclass(frozen=True, slots=True)
class Policy:
    """A whole policy, valid in itself."""

    version: str
    timezone: str
    zone: tzinfo
    """The same, with its data, for clock and weekday."""
    defaults: Defaults
    routes: tuple[Route, ...]
    """The document's, then the built-in one."""
    tiers: Mapping[str, Priority]
    """The highest priority each tier may have."""
    tenants: tuple[TenantEntry, ...]
    signals: Mapping[str, Signal]
    rules: tuple[Rule, ...]
    experiments: tuple[Experiment, ...] = ()
    by_cost: bool = False
    """`objective: cost`: the lanes left are tried by marginal cost."""

    def route_of(self, path: str) -> Route | None:
        """The first route that matches, or None."""
        return next((route for route in self.routes if route.pattern.match(path) is not None), None)

    def model_of(self, path: str, in_body: str | None = None) -> str | None:
        """The model of the first matching route; None when the path is no route, or the body names no model."""
        route = self.route_of(path)
        return None if route is None else route.model_of(path, in_body)

    def conditions(self) -> Iterator[Condition]:
        """Every question that its rules and experiments ask."""
        for rule in (*(experiment.rule for experiment in self.experiments), *self.rules):
            yield from leaves(rule.when)

"""The authored document: who may ask for what, and which lanes are tried in which order.

Schema `inferlane/policy/v1`. The first rule that matches decides; none: the default order. Read by `policy_parser`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from functions.core.conditions import Condition
from functions.core.document import DocumentError
from functions.core.latches import Signal
from functions.core.patterns import PathPattern, wildcard_match
from functions.core.request import Identity, Priority

SCHEMA: Final = "inferlane/policy/v1"
DEFAULT_RULE: Final = "default"
"""The rule's name in a decision when none matched."""


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
class Route:
    """A path pattern that names a model; None: the segment `{model}` names it."""

    pattern: PathPattern
    model: str | None
    within_s: float | None = None


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
            return arn is not None and wildcard_match(self.identity, arn)
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


@dataclass(frozen=True, slots=True)
class Policy:
    """A whole policy, valid in itself."""

    version: str
    timezone: str
    defaults: Defaults
    routes: tuple[Route, ...]
    """The document's, then the built-in one."""
    tiers: Mapping[str, Priority]
    """The highest priority each tier may have."""
    tenants: tuple[TenantEntry, ...]
    signals: Mapping[str, Signal]
    rules: tuple[Rule, ...]

    def model_of(self, path: str) -> str | None:
        """The model that the first matching route names, or None when the path is no route."""
        for route in self.routes:
            taken = route.pattern.match(path)
            if taken is not None:
                return route.model if route.model is not None else taken["model"]
        return None

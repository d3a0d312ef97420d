"""From a proven identity to tenant, tier and cost center: the first tenants entry that matches.

An assumed role's session (`arn:aws:sts::ACCOUNT:assumed-role/NAME/SESSION`) is matched as its role
(`arn:aws:iam::ACCOUNT:role/NAME`), since the session's name is the caller's to choose.

Callers without an entry share a tenant's name and tier, and nothing else: what belongs to one of them, such as a job,
is kept under its own identity (`owner`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from functions.core.policy import Policy, TenantEntry
from functions.core.request import Identity, Priority

_SUBJECT: Final = ("iss", "sub", "client_id")
"""The claims that stay the same from one token of a caller to the next."""
_SESSION: Final = re.compile(r"arn:(aws[a-z-]*):sts::(\d*):assumed-role/([^/]+)/.*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who pays, and how much they may ask for."""

    tenant: str
    tier: str
    cost_center: str | None
    cap: Priority

    def grant(self, asked: Priority | None) -> Priority:
        """What is granted: normal unless asked otherwise, never above the cap."""
        return min(Priority.NORMAL if asked is None else asked, self.cap)


def role_arn(arn: str) -> str:
    """The role behind an assumed-role session; any other ARN unchanged."""
    match = _SESSION.fullmatch(arn)
    return f"arn:{match[1]}:iam::{match[2]}:role/{match[3]}" if match else arn


def identify(identity: Identity, policy: Policy) -> Caller | None:
    """The caller, or None when the policy refuses who has no entry."""
    entry = entry_of(identity, policy)
    if entry is not None:
        return Caller(entry.tenant, entry.tier, entry.cost_center, policy.tiers[entry.tier])
    if policy.defaults.refuse_unknown:
        return None
    return Caller(policy.defaults.tenant, policy.defaults.tier, None, policy.tiers[policy.defaults.tier])


def entry_of(identity: Identity, policy: Policy) -> TenantEntry | None:
    """The first entry that means this identity."""
    arn = role_arn(identity.arn) if identity.arn is not None else None
    return next((entry for entry in policy.tenants if entry.matches(identity, arn)), None)


def owner(identity: Identity, policy: Policy) -> str:
    """Whose a job is that this caller asks for: its tenant's; without an entry, its own, `anonymous~5f3c…`."""
    entry = entry_of(identity, policy)
    if entry is not None:
        return entry.tenant
    claims = identity.claims
    same = {name: claims[name] for name in _SUBJECT if name in claims} if {"sub", "client_id"} & set(claims) else claims
    arn = role_arn(identity.arn) if identity.arn is not None else None
    who = repr((identity.kind, arn, identity.key_id, sorted(same.items())))
    return f"{policy.defaults.tenant}~{sha256(who.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"

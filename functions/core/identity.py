"""From a proven identity to tenant, tier and cost center: the first tenants entry that matches.

An assumed role's session (`arn:aws:sts::ACCOUNT:assumed-role/NAME/SESSION`) is matched as its role
(`arn:aws:iam::ACCOUNT:role/NAME`), since the session's name is the caller's to choose.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from functions.core.policy import Policy
from functions.core.request import Identity, Priority

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
    arn = role_arn(identity.arn) if identity.arn is not None else None
    for entry in policy.tenants:
        if entry.matches(identity, arn):
            return Caller(entry.tenant, entry.tier, entry.cost_center, policy.tiers[entry.tier])
    if policy.defaults.refuse_unknown:
        return None
    return Caller(policy.defaults.tenant, policy.defaults.tier, None, policy.tiers[policy.defaults.tier])

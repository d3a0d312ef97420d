"""Identity: who a proven caller stands for."""

from __future__ import annotations

import pytest

from functions.core.identity import identify, role_arn
from functions.core.request import Identity
from tests.unit.core.builders import policy

ROLE = "arn:aws:iam::123456789012:role/ops-night"


@pytest.mark.parametrize(
    ("arn", "role"),
    [
        ("arn:aws:sts::123456789012:assumed-role/ops-night/i-0abc", ROLE),
        ("arn:aws:sts::123456789012:assumed-role/ops-night/a/b", ROLE),
        ("arn:aws-cn:sts::123456789012:assumed-role/r/s", "arn:aws-cn:iam::123456789012:role/r"),
        (ROLE, ROLE),
        ("arn:aws:iam::123456789012:user/ann", "arn:aws:iam::123456789012:user/ann"),
        ("arn:aws:sts::123456789012:federated-user/ann", "arn:aws:sts::123456789012:federated-user/ann"),
    ],
)
def test_a_session_is_its_role(arn: str, role: str) -> None:
    """The session's name is the caller's to choose, so it cannot count."""
    assert role_arn(arn) == role


def test_a_session_named_like_a_role_gains_nothing() -> None:
    """A session called `role/ops-x` of another role stays that other role."""
    caller = identify(Identity("iam", arn="arn:aws:sts::1:assumed-role/guest/role/ops-x"), policy())
    assert caller is not None
    assert caller.tenant == "anonymous"


@pytest.mark.parametrize(
    ("identity", "tenant"),
    [
        (Identity("iam", arn=ROLE), "backoffice"),
        (Identity("iam", arn="arn:aws:iam::9:user/x:role/ops-night"), "anonymous"),
        (Identity("jwt", claims={"client_id": "acme"}), "acme"),
        (Identity("jwt", claims={"client_id": "ACME"}), "anonymous"),
        (Identity("jwt", claims={}), "anonymous"),
        (Identity("api_key", key_id="vip-1"), "vip"),
        (Identity("api_key", key_id="demo"), "anonymous"),
        (Identity("anonymous"), "anonymous"),
    ],
)
def test_the_first_matching_entry_counts(identity: Identity, tenant: str) -> None:
    """By ARN, claim or key id; case matters."""
    caller = identify(identity, policy())
    assert caller is not None
    assert caller.tenant == tenant

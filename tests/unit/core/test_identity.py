"""Identity: who a proven caller stands for."""

from __future__ import annotations

import pytest

from functions.core.identity import entry_of, identify, owner, role_arn
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


TOKEN = {"iss": "https://id.example", "sub": "u-1", "exp": "1"}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Identity("api_key", key_id="x-1"), Identity("api_key", key_id="x-2"), False),
        (Identity("jwt", claims=TOKEN), Identity("jwt", claims={**TOKEN, "exp": "2"}), True),
        (Identity("jwt", claims=TOKEN), Identity("jwt", claims={**TOKEN, "sub": "u-2"}), False),
        (Identity("jwt", claims=TOKEN), Identity("jwt", claims={**TOKEN, "iss": "https://other.example"}), False),
        (Identity("jwt", claims={"exp": "1"}), Identity("jwt", claims={"exp": "2"}), False),
        (Identity("jwt", claims={"iss": "a", "exp": "1"}), Identity("jwt", claims={"iss": "a", "exp": "2"}), False),
        (
            Identity("iam", arn="arn:aws:sts::123456789012:assumed-role/night/a"),
            Identity("iam", arn="arn:aws:sts::123456789012:assumed-role/night/b"),
            True,
        ),
        (
            Identity("iam", arn="arn:aws:iam::123456789012:user/a"),
            Identity("iam", arn="arn:aws:iam::123456789012:user/b"),
            False,
        ),
        (Identity("api_key", key_id="x"), Identity("iam", arn="x"), False),
    ],
)
def test_callers_without_an_entry_own_what_is_theirs(one: Identity, other: Identity, same: bool) -> None:
    """They share the default tenant's name; a token renewed, or another session of the role, is the same caller."""
    owners = [owner(who, policy()) for who in (one, other)]
    assert (owners[0] == owners[1]) is same
    assert all(name.startswith("anonymous~") for name in owners)


def test_what_a_listed_caller_asks_for_is_its_tenants() -> None:
    """Whichever of its entries it comes by."""
    assert owner(Identity("api_key", key_id="vip-1"), policy()) == "vip"
    assert entry_of(Identity("api_key", key_id="vip-1"), policy()) == policy().tenants[0]
    assert entry_of(Identity("api_key", key_id="x"), policy()) is None

"""The authorizer: hashed keys, and nothing but keys."""

from __future__ import annotations

import hashlib

import pytest

from functions.bootstrap import AuthorizeParts
from functions.handlers.authorize import KeyLookUpError, authorize
from functions.ports import KeyRecord
from tests.unit.handlers.fakes import FakeKeys, FakeLog


def hashed(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


PARTS = AuthorizeParts(
    FakeKeys({hashed("good"): KeyRecord("demo-app", False), hashed("gone"): KeyRecord("fired-app", True)}), FakeLog()
)


def event(key: str | None) -> dict[str, object]:
    """API Gateway's authorizer event of payload format 2.0."""
    return {
        "version": "2.0",
        "type": "REQUEST",
        "routeArn": "arn:aws:execute-api:us-east-1:123456789012:abcdef123/$default/POST/x",
        "identitySource": None if key is None else [key],
        "routeKey": "ANY /{proxy+}",
        "rawPath": "/x",
        "headers": {} if key is None else {"x-api-key": key},
    }


def test_a_known_key_is_let_in_under_its_id() -> None:
    """The simple response, with the key's id for the router."""
    assert authorize(event("good"), PARTS) == {"isAuthorized": True, "context": {"key_id": "demo-app"}}


@pytest.mark.parametrize("key", ["bad", "gone", "", None, "x" * 513, "☃", hashed("good")])
def test_every_other_key_is_not(key: str | None) -> None:
    """Unknown, disabled, empty, absent, absurd, or the hash itself."""
    assert authorize(event(key), PARTS) == {"isAuthorized": False}


def test_the_header_serves_where_there_is_no_identity_source() -> None:
    """Whatever the case of its name."""
    sent = {"headers": {"X-Api-Key": "good"}}
    assert authorize(sent, PARTS)["isAuthorized"] is True


@pytest.mark.parametrize(
    "sent", [None, [], {}, {"headers": None}, {"identitySource": "good"}, {"headers": {"x-api-key": 1}}]
)
def test_what_is_no_event_is_not_let_in(sent: object) -> None:
    """Malformed events authorize nobody."""
    assert authorize(sent, PARTS) == {"isAuthorized": False}


def test_a_table_that_cannot_be_read_is_a_fault_of_ours_and_names_nothing() -> None:
    """Raised, so that nothing is cached, without the error's own text: Lambda writes what is raised into the log."""

    class Denied:
        def find(self, key_hash: str) -> KeyRecord | None:
            raise RuntimeError("arn:aws:sts::123456789012:assumed-role/r is not authorized to read the table")

    log = FakeLog()
    with pytest.raises(KeyLookUpError) as raised:
        authorize(event("good"), AuthorizeParts(Denied(), log))
    assert raised.value.__suppress_context__
    assert "arn:" not in str(raised.value)
    ((level, message, extra),) = log.lines
    assert (level, message) == ("error", "the keys table cannot be read")
    assert "arn:aws:sts::<account>:assumed-role" in str(extra["cause"])
    assert "123456789012" not in str(extra)

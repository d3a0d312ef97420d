"""The AppConfig validator: a good document passes, a bad one is refused with every problem's place."""

from __future__ import annotations

import base64
import json

import pytest

from functions.handlers.validate import InvalidPolicyError, handler
from tests.unit.core.builders import policy_document


def event(content: bytes) -> dict[str, object]:
    """As AppConfig sends it."""
    return {
        "applicationId": "abc1234",
        "configurationProfileId": "def5678",
        "configurationVersion": "7",
        "content": base64.b64encode(content).decode(),
        "uri": "hosted",
    }


def refused(sent: object) -> str:
    with pytest.raises(InvalidPolicyError) as caught:
        handler(sent, None)
    return str(caught.value)


def test_a_good_document_passes() -> None:
    """Silently."""
    handler(event(json.dumps(policy_document()).encode()), None)


def test_every_problem_is_named_with_its_place() -> None:
    """Not the first only: the author mends them in one go."""
    document = policy_document(rules=[{"id": "a"}, {"id": "b", "order": ["moon"]}], objective="luck")
    message = refused(event(json.dumps(document).encode()))
    assert "rules[0]" in message
    assert "rules[1].order[0]" in message
    assert "objective" in message


def test_a_message_stays_readable() -> None:
    """Five hundred problems: as many as fit, and how many more."""
    document = policy_document(rules=[{"id": f"r{i}"} for i in range(500)])
    message = refused(event(json.dumps(document).encode()))
    assert len(message) <= 1000
    assert message.endswith(" more")


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"{", "not JSON: "),
        (b"\xff\xfe", "not UTF-8"),
        (b"[]", "expected a mapping"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"schema":"inferlane/policy/v2","version":"1"}', "schema"),
        (b'"' + b"x" * (1024 * 1024) + b'"', "larger than"),
    ],
)
def test_what_is_no_policy_is_refused_with_its_cause(content: bytes, cause: str) -> None:
    """Precisely, whatever the bytes."""
    assert cause in refused(event(content))


@pytest.mark.parametrize("sent", [None, [], {}, {"content": None}, {"content": "%%%"}, {"content": "é"}])
def test_what_is_no_event_of_appconfig_is_refused(sent: object) -> None:
    """A validator that cannot read must not let through."""
    assert "content" in refused(sent)

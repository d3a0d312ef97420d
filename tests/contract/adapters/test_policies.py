"""The PolicySource contract: AppConfigData over HTTP, the last good document, and the fake."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from functions.aws.appconfig import AppConfigPolicies
from functions.aws.direct import Service
from functions.core.policy import Policy
from functions.ports import PolicySource
from functions.settings import AccessKeys
from tests.contract.adapters.stub import Reply, Stub, unused_url
from tests.unit.core.builders import NOW, policy, policy_document
from tests.unit.handlers.fakes import FakeLog, FakePolicies

SESSION = Reply(201, b'{"InitialConfigurationToken":"t-0"}', {"content-type": "application/json"})


def document(version: str, **parts: object) -> bytes:
    return json.dumps({**policy_document(**parts), "version": version}).encode()


def configuration(body: bytes, token: str = "t-n", interval_s: int = 15) -> Reply:
    headers = {
        "content-type": "application/json",
        "Next-Poll-Configuration-Token": token,
        "Next-Poll-Interval-In-Seconds": str(interval_s),
    }
    return Reply(200, body, headers)


def error(code: str, status: int = 400) -> Reply:
    body = json.dumps({"message": "secret of account 123456789012"}).encode()
    return Reply(status, body, {"x-amzn-ErrorType": code, "content-type": "application/json"})


KEYS = AccessKeys("test", "test", None)


def client(url: str) -> Service:
    return Service("appconfig", "appconfigdata", "us-east-1", KEYS, url=url, timeout_s=1)


def source(url: str, log: FakeLog | None = None, ttl_s: float = 30.0) -> AppConfigPolicies:
    return AppConfigPolicies(
        client(url), application="a", environment="live", profile="policy", ttl_s=ttl_s, log=log or FakeLog()
    )


def versions(made: PolicySource, *at: float) -> list[str | None]:
    found = [made.policy(NOW + later) for later in at]
    return [None if item is None else item.version for item in found]


def test_a_policy_is_fetched_once_per_time_to_live_and_reloaded_hot() -> None:
    """An empty answer means unchanged; a new document is served from the next poll on."""
    with Stub(
        SESSION, configuration(document("1"), "t-1"), configuration(b"", "t-2"), configuration(document("2"))
    ) as it:
        assert versions(source(it.url), 0, 29, 31, 61, 62) == ["1", "1", "1", "2", "2"]
        paths = [seen.path for seen in it.received]
        session = json.loads(it.received[0].body)
    assert paths == [
        "/configurationsessions",
        *(f"/configuration?configuration_token={token}" for token in ("t-0", "t-1", "t-2")),
    ]
    assert session == {
        "ApplicationIdentifier": "a",
        "EnvironmentIdentifier": "live",
        "ConfigurationProfileIdentifier": "policy",
        "RequiredMinimumPollIntervalInSeconds": 30,
    }


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not"),
        (b"[]", "expected a mapping"),
        (document("2", rules=[{"id": "r"}]), "rules[0]: key 'order' is missing"),
        (b"[" * 100_000, ""),
        (b'"' + b"x" * (1024 * 1024) + b'"', "larger than"),
    ],
    ids=["cut", "bytes", "list", "rule", "nesting", "size"],
)
def test_a_bad_document_never_replaces_a_good_one(body: bytes, cause: str) -> None:
    """Logged with its cause; the old one serves on; a later good one is taken."""
    log = FakeLog()
    with Stub(SESSION, configuration(document("1")), configuration(body), configuration(document("3"))) as it:
        assert versions(source(it.url, log), 0, 31, 62) == ["1", "1", "3"]
    assert [line[0] for line in log.lines] == ["error"]
    assert cause in str(log.lines[0][2]["cause"])
    assert len(str(log.lines[0][2]["cause"])) <= 300


def test_a_bad_first_document_gives_no_policy() -> None:
    """Nothing good to fall back on: None, both causes logged, and the next good document is taken."""
    log = FakeLog()
    with Stub(SESSION, configuration(b"{"), configuration(document("2"))) as it:
        assert versions(source(it.url, log), 0, 31) == [None, "2"]
    assert [line[0] for line in log.lines] == ["error", "warning"]


def test_a_lost_session_is_opened_anew() -> None:
    """A token that AppConfig no longer knows costs one poll, not the policy."""
    log = FakeLog()
    script = [
        SESSION,
        configuration(document("1")),
        error("BadRequestException"),
        SESSION,
        configuration(document("2")),
    ]
    with Stub(*script) as it:
        assert versions(source(it.url, log), 0, 31, 62) == ["1", "1", "2"]
    assert "123456789012" not in str(log.lines)


def test_the_services_own_interval_is_kept() -> None:
    """A time to live of 5 s does not poll a service that asks for 15."""
    with Stub(SESSION, configuration(document("1")), configuration(document("2"))) as it:
        assert versions(source(it.url, ttl_s=5), 0, 6, 12, 18) == ["1", "1", "1", "2"]


def test_a_service_that_was_never_reached_gives_no_policy_and_is_asked_again_soon() -> None:
    """None, not an exception; five seconds later another try."""
    log = FakeLog()
    with Stub(error("InternalServerException", 500), SESSION, configuration(document("1"))) as it:
        assert versions(source(it.url, log), 0, 4, 5) == [None, None, "1"]
    assert [line[0] for line in log.lines] == ["warning"]


def test_a_caller_who_waits_survives_a_slow_start() -> None:
    """An error, a lost token and an answer slower than usual: the first request still gets its policy."""
    script = [
        error("InternalServerException", 500),
        SESSION,
        error("BadRequestException"),
        SESSION,
        replace(configuration(document("1")), after_s=1.2),
    ]
    log = FakeLog()
    with Stub(*script) as it:
        made = source(it.url, log)
        found = made.policy(NOW, patience_s=20)
        assert found is not None
        assert made.policy(NOW + 1) is found
        assert len(it.received) == 5
    assert [line[0] for line in log.lines] == ["warning"]


def test_no_caller_waits_for_a_bad_document_or_longer_than_he_can() -> None:
    """A document that cannot be used is not waited for; a service that hangs is, for as long as was said."""
    began = time.monotonic()
    with Stub(SESSION, configuration(b"{")) as it:
        assert source(it.url).policy(NOW, patience_s=20) is None
    assert time.monotonic() - began < 1
    with Stub(replace(SESSION, after_s=60)) as it:
        assert source(it.url).policy(NOW, patience_s=1) is None
    assert time.monotonic() - began < 3


@pytest.fixture(params=["fake", "appconfig", "unreachable"])
def any_source(request: pytest.FixtureRequest) -> Iterator[PolicySource]:
    if request.param == "fake":
        yield FakePolicies(policy())
    elif request.param == "unreachable":
        yield source(unused_url())
    else:
        with Stub(SESSION, configuration(document("1"))) as it:
            yield source(it.url)


def test_a_source_gives_a_policy_or_none_and_the_same_within_a_moment(any_source: PolicySource) -> None:
    """The fake's promise and the adapter's."""
    first: Any = any_source.policy(NOW)
    assert first is None or isinstance(first, Policy)
    assert any_source.policy(NOW + 0.1) is first

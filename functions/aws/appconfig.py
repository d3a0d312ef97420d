"""AppConfig as a `PolicySource`: the last good document serves, whatever comes after it.

AppConfigData answers an unchanged poll with an empty body. A document that does not parse is logged with its cause
(never its content) and not taken; so is a service that cannot be reached. An instance that has no policy yet asks
again while its caller can wait: a slow answer to the first poll must not refuse a request.
"""

from __future__ import annotations

import json
import time
from typing import Final

from functions.aws.direct import Service
from functions.aws.redaction import redacted
from functions.core.policy import Policy
from functions.core.policy_parser import parse_policy
from functions.ports import Log
from functions.refresh import LastGood

_SHORTEST_POLL_S: Final = 15
"""AppConfigData refuses to be polled more often."""
_LARGEST: Final = 1024 * 1024


class PolicyUnavailableError(ValueError):
    """The policy could not be fetched or used; the message says why, without its content."""


class AppConfigPolicies:
    """Polls one configuration profile."""

    def __init__(
        self,
        service: Service,
        *,
        application: str,
        environment: str,
        profile: str,
        ttl_s: float,
        log: Log,
    ) -> None:
        """`service` is AppConfigData."""
        self._service = service
        self._names = (application, environment, profile)
        self._poll_s = max(_SHORTEST_POLL_S, int(ttl_s))
        self._log = log
        self._token: str | None = None
        self._poll_at = float("-inf")
        self._policy: Policy | None = None
        self._kept = LastGood(self._read, ttl_s, self._report, hopeless=(PolicyUnavailableError,))

    def policy(self, now: float, patience_s: float = 0.0) -> Policy | None:
        """The policy in force (see `ports.PolicySource`)."""
        return self._kept.get(now, patience_s)

    def _read(self, now: float, within_s: float | None) -> Policy:
        if now >= self._poll_at and (content := self._poll(now, within_s)):
            self._take(content)
        if self._policy is None:
            raise PolicyUnavailableError("AppConfig has no usable policy document yet")
        return self._policy

    def _poll(self, now: float, within_s: float | None) -> bytes:
        ends = None if within_s is None else time.monotonic() + within_s
        if self._token is None:
            application, environment, profile = self._names
            asked = {
                "ApplicationIdentifier": application,
                "EnvironmentIdentifier": environment,
                "ConfigurationProfileIdentifier": profile,
                "RequiredMinimumPollIntervalInSeconds": self._poll_s,
            }
            headers = {"content-type": "application/json"}
            body = json.dumps(asked).encode()
            session = self._service.call("POST", "/configurationsessions", headers, body, ends=ends)
            self._token = str(json.loads(session.body)["InitialConfigurationToken"])
        token, self._token = self._token, None  # a token serves once, also when the call fails
        answer = self._service.call("GET", "/configuration", {}, query={"configuration_token": token}, ends=ends)
        self._token = answer.headers["next-poll-configuration-token"]
        self._poll_at = now + float(answer.headers["next-poll-interval-in-seconds"])
        return answer.body

    def _take(self, content: bytes) -> None:
        try:
            self._policy = _parse(content)
        except (ValueError, RecursionError) as error:
            self._log.error(
                "The new policy document is refused; the last good one serves on", extra={"cause": _cause(error)}
            )

    def _report(self, error: Exception) -> None:
        left = "the last policy serves on" if self._policy is not None else "there is no policy to serve by yet"
        self._log.warning(f"AppConfig cannot be read; {left}", extra={"cause": redacted(error)})


def _parse(content: bytes) -> Policy:
    if len(content) > _LARGEST:
        raise PolicyUnavailableError(f"the document is larger than {_LARGEST} bytes")
    return parse_policy(json.loads(content))


def _cause(error: Exception) -> str:
    """Why a document is refused. JSON errors name a place; neither repeats the document."""
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg} at line {error.lineno} column {error.colno}"
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    return str(error)[:300]

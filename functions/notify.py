"""The use case of the `notify` function: who asked to be told of ended jobs is told, by topic or by a signed call.

A notice names jobs and their states, nothing else; whoever wants more asks for the job with their own key. A webhook is
called over HTTPS only, in 5 s, and is not followed where it redirects; anything but a 2xx answer means: once more. So
a notice may come twice; `X-Inferlane-Notice` is the same both times. `X-Inferlane-Signature: t=<Unix seconds>,
v1=<hex>`, without a space, is HMAC-SHA256 over `<t>.<body>` with the webhook's secret: a receiver checks it, and that t
is not long ago.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from functions.batch_settings import CHANNELS, Channel, Webhook
from functions.ports import Clock, Log


class Topic(Protocol):
    """Where everything is told."""

    def announce(self, subject: str, text: str) -> None:
        """Publish. Raises `batch_ports.BatchError`."""
        ...


class Webhooks(Protocol):
    """Calls of tenants' servers."""

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """The answer's status. Raises `batch_ports.BatchError` when there was none in time."""
        ...


class Secrets(Protocol):
    """Secrets by name."""

    def read(self, name: str) -> bytes:
        """The secret. Raises `batch_ports.BatchError`."""
        ...


@dataclass(frozen=True, slots=True)
class Notice:
    """A message of the notices queue."""

    to: Channel
    tenant: str
    jobs: tuple[tuple[str, str], ...]
    """(id, state)."""


class Notifier:
    """Tells, one notice at a time."""

    def __init__(
        self,
        topic: Topic | None,
        webhooks: Mapping[str, Webhook],
        calls: Webhooks,
        secrets: Secrets,
        clock: Clock,
        log: Log,
    ) -> None:
        """`webhooks` by tenant; a notice for which there is no receiver any more is dropped."""
        self._topic = topic
        self._webhooks = webhooks
        self._calls = calls
        self._secrets = secrets
        self._clock = clock
        self._log = log

    def notify(self, notice: Notice, notice_id: str) -> bool:
        """Tell; False when it has to be tried again. Raises `batch_ports.BatchError`, with the same meaning."""
        jobs = [{"id": job, "status": state} for job, state in notice.jobs]
        if notice.to == "topic":
            if self._topic is not None:
                told = {"notice": notice_id, "tenant": notice.tenant, "jobs": jobs}
                self._topic.announce(f"{len(jobs)} jobs ended", json.dumps(told, separators=(",", ":")))
            return True
        webhook = self._webhooks.get(notice.tenant)
        return webhook is None or self._call(webhook, jobs, notice_id)

    def _call(self, webhook: Webhook, jobs: list[dict[str, str]], notice_id: str) -> bool:
        body = json.dumps({"jobs": jobs}, separators=(",", ":")).encode()
        headers = {
            "content-type": "application/json",
            "user-agent": "inferlane",
            "x-inferlane-notice": notice_id,
            "x-inferlane-signature": signature(
                self._secrets.read(webhook.secret_parameter), int(self._clock.now()), body
            ),
        }
        status = self._calls.post(webhook.url, body, headers)
        if 200 <= status < 300:
            return True
        self._log.warning("A webhook did not take a notice", extra={"notice": notice_id, "status": status})
        return False


def signature(secret: bytes, at: int, body: bytes) -> str:
    """The signature's header: proves who sent `body`, and that it was sent at `at` (Unix seconds)."""
    return f"t={at},v1={hmac.new(secret, f'{at}.'.encode() + body, hashlib.sha256).hexdigest()}"


def read_notice(text: str) -> Notice | None:
    """A message of the queue; None when it is none of ours."""
    try:
        document = json.loads(text)
        jobs = tuple((str(job["id"]), str(job["status"])) for job in document["jobs"])
        to, tenant = document["to"], document["tenant"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    return Notice(to, tenant, jobs) if to in CHANNELS and isinstance(tenant, str) else None

"""Tenants' servers as `Webhooks`: one POST over verified TLS, within 5 s, never followed elsewhere.

Who answers is not trusted: an answer is read to a few kilobytes at most, and nothing of it but its status is used.
Certificates are checked against the machine's store; `SSL_CERT_FILE` names another, with an authority of one's own.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlsplit

from functions.aws.http1 import Peer
from functions.aws.redaction import redacted
from functions.batch_ports import UnavailableError

_PATIENCE_S: Final = 5.0
_LARGEST: Final = 64 * 1024
_PATH: Final = "/%:@!$&'()*+,;=~-._"


class HttpsWebhooks:
    """Keeps a connection to each server for a while."""

    def __init__(self) -> None:
        """Nothing is connected yet."""
        self._peers: dict[str, Peer] = {}

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """The answer's status (see `notify.Webhooks`). Raises ValueError for an address that is not https."""
        parts = urlsplit(url)
        if parts.scheme != "https":
            raise ValueError("a webhook must be called over https")
        origin = f"https://{parts.netloc.rpartition('@')[2]}"
        peer = self._peers.setdefault(origin, Peer(origin, largest=_LARGEST))
        path = quote(parts.path or "/", safe=_PATH)
        target = f"{path}?{quote(parts.query, safe=_PATH + '?')}" if parts.query else path
        try:
            return peer.exchange(target, headers, body, time.monotonic() + _PATIENCE_S).status
        except OSError as error:
            raise UnavailableError(f"a webhook could not be called: {redacted(error)}") from error

"""Signature Version 4 for requests to one service in one region: what botocore's signer does, in a quarter of the time.

botocore builds a general request object, re-reads its headers through `email.message`, and derives the day's key anew
for each request; on the way to a model that is a tenth of what the router may take. Here the key is kept for the day
and the credentials it was made of. `tests/contract/adapters/test_signing.py` holds every signature equal to botocore's
over random requests. Rules: AWS General Reference, "Signature Version 4 signing process". S3 differs from all others
(S3 API Reference, "Authenticating Requests"): it wants the body's digest as a header, and its paths encoded once.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from functools import lru_cache
from time import gmtime, strftime
from typing import Final, Protocol
from urllib.parse import quote

_ALGORITHM: Final = "AWS4-HMAC-SHA256"


@lru_cache(maxsize=256)
def _encoded(path: str) -> str:
    """As a canonical request wants it. A process calls few paths, again and again."""
    return quote(path, safe="/~")


class Keys(Protocol):
    """An access key, as botocore's `ReadOnlyCredentials` and `settings.AccessKeys` have it."""

    @property
    def access_key(self) -> str | None:
        """Its id."""
        ...

    @property
    def secret_key(self) -> str | None:
        """Its secret."""
        ...

    @property
    def token(self) -> str | None:
        """Its session's token, if it has one."""
        ...


class Credentials(Protocol):
    """Where keys come from."""

    def get_frozen_credentials(self) -> Keys:
        """The keys of the moment."""
        ...


class Signer:
    """Signs requests to one host. Made once; safe to share between threads."""

    def __init__(self, service: str, region: str, host: str) -> None:
        """`host` as the HTTP client sends it, with a port that is not the scheme's own."""
        self._scope = f"{region}/{service}/aws4_request"
        self._region = region
        self._service = service
        self._host = host
        self._objects = service == "s3"
        self._key: tuple[tuple[str, str], bytes] | None = None

    def sign(
        self,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        keys: Keys,
        now: float,
        *,
        method: str = "POST",
        query: str = "",
    ) -> dict[str, str]:
        """`headers` (names in lower case) and those that prove the sender.

        `path` and `query` as sent, the query's parts encoded and sorted; `now` is Unix seconds.
        """
        stamp = strftime("%Y%m%dT%H%M%SZ", gmtime(now))
        day = stamp[:8]
        payload = hashlib.sha256(body).hexdigest()
        sent = {**headers, "x-amz-date": stamp}
        if self._objects:
            sent["x-amz-content-sha256"] = payload
        if keys.token:
            sent["x-amz-security-token"] = keys.token
        signed = sorted([*sent.items(), ("host", self._host)])
        names = ";".join([name for name, _ in signed])
        canonical = "\n".join(
            [
                method,
                path if self._objects else _encoded(path),
                query,
                *[f"{name}:{' '.join(value.split())}" for name, value in signed],
                "",
                names,
                payload,
            ]
        )
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        to_sign = f"{_ALGORITHM}\n{stamp}\n{day}/{self._scope}\n{digest}"
        signature = hmac.digest(self._key_of(day, keys.secret_key or ""), to_sign.encode(), "sha256").hex()
        sent["authorization"] = (
            f"{_ALGORITHM} Credential={keys.access_key}/{day}/{self._scope}, "
            f"SignedHeaders={names}, Signature={signature}"
        )
        return sent

    def _key_of(self, day: str, secret: str) -> bytes:
        kept = self._key
        if kept is not None and kept[0] == (day, secret):
            return kept[1]
        key = f"AWS4{secret}".encode()
        for part in (day, self._region, self._service, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        self._key = ((day, secret), key)
        return key

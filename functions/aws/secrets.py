"""Systems Manager's parameter store as `Secrets`: decrypted when first needed, and kept for some minutes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from functions.aws.sdk_errors import translated

_KEPT_S: Final = 300.0
"""How long a secret that was replaced may still be signed with."""


class SsmClient(Protocol):
    """What is used of boto3's client."""

    def get_parameter(self, **asked: Any) -> Mapping[str, Any]:
        """GetParameter."""
        ...


class SsmSecrets:
    """Parameters of one account and region."""

    def __init__(self, client: SsmClient, monotonic: Callable[[], float]) -> None:
        """`monotonic` gives seconds that never go back."""
        self._client = client
        self._monotonic = monotonic
        self._kept: dict[str, tuple[bytes, float]] = {}

    def read(self, name: str) -> bytes:
        """The secret (see `notify.Secrets`)."""
        now = self._monotonic()
        kept = self._kept.get(name)
        if kept is not None and now - kept[1] < _KEPT_S:
            return kept[0]
        with translated():
            answer = self._client.get_parameter(Name=name, WithDecryption=True)
        secret = str(answer["Parameter"]["Value"]).encode()
        self._kept[name] = secret, now
        return secret

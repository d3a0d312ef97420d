"""Which requests a share takes: a stable place in [0, 1) for each request, the same on every instance.

The place comes from the rule, the tenant and the request's Idempotency-Key, or else its id, so a retry lands where the
first try did. The policy's version is not part of it, and a larger share takes all that a smaller one took. The key is
hashed. Keys that end in a number are hashed in blocks of 64 whose places lie 1/64 apart from a hashed start: of ids
that count up, a share takes its part of every block instead of a lottery's. Nothing here is secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

_STEPS: Final = 2**53
"""As many places as a float can tell apart, so that comparing with a share is exact."""
_DIGITS: Final = "0123456789"
_LONGEST_NUMBER: Final = 18


@dataclass(frozen=True, slots=True)
class Share:
    """One rule's share of one tenant's requests."""

    limit: float
    seed: bytes

    @classmethod
    def of(cls, share: float, rule_id: str, tenant: str) -> Share:
        """The part `share` (0–1) of the tenant's requests that reach the rule or experiment `rule_id`."""
        return cls(share * _STEPS, _framed(rule_id) + _framed(tenant))

    def takes(self, key: str) -> bool:
        """Whether the request with this key is in it."""
        return _place(self.seed, key) >> 11 < self.limit


def _place(seed: bytes, key: str) -> int:
    """Of 2⁶⁴, uniform over keys and independent between seeds."""
    text = key.rstrip(_DIGITS)
    text = key[: max(len(text), len(key) - _LONGEST_NUMBER)]
    data = seed + text.encode("utf-8", "surrogatepass")
    if len(text) == len(key):
        return _hash(data)
    block, within = divmod(int(key[len(text) :]), 64)
    start = _hash(b"%s#%d" % (data, block))
    stride = (
        start % 32 * 2 + 1
    ) << 58  # an odd number of 64ths visits each of them once, in an order of the block's own
    return (start + within * stride) % 2**64


def _hash(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big")


def _framed(text: str) -> bytes:
    """Text with its length before it, so that no two pairs of names run together."""
    data = text.encode("utf-8", "surrogatepass")
    return b"%d:%s" % (len(data), data)

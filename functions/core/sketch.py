"""How long a lane takes of late: a quantile sketch of durations in which the past fades.

Logarithmic buckets (Masson et al., "DDSketch", VLDB 2019): value v falls into bucket ceil(log_γ v), so that a quantile
is right within ±α (5 %) whatever the scale, in memory that depends on the range only: 1 ms to 60 s is 110 buckets.
Exponential decay by half-life (Cormode et al., "Forward decay", ICDE 2009): instead of ageing what is stored, newer
observations weigh more, 2^(t ÷ half-life); the ratio of two weights is what ageing would have made it. The reference
time moves on before weights grow large.
"""

from __future__ import annotations

import math
from typing import Final

ACCURACY: Final = 0.05
"""Relative error of a quantile."""
HALF_LIFE_S: Final = 60.0
"""CloudWatch's points come each minute; between two of them the own outcomes are the news."""
_SHORTEST_S: Final = 1e-4
_GAMMA: Final = (1 + ACCURACY) / (1 - ACCURACY)
_LOG_GAMMA: Final = math.log(_GAMMA)
_HEAVIEST_EXPONENT: Final = 40.0
"""Half-lives until the reference moves: 2^40 leaves a float 13 bits of the oldest, which by then are worth 10⁻¹²."""


class Sketch:
    """Durations of one lane, seconds. `now` may be any steady clock's."""

    def __init__(self, half_life_s: float = HALF_LIFE_S) -> None:
        """Empty."""
        self._half_life_s = half_life_s
        self._weights: dict[int, float] = {}
        self._total = 0.0
        self._since = 0.0

    def add(self, seconds: float, now: float) -> None:
        """One more duration."""
        if not self._weights:
            self._since = now
        exponent = (now - self._since) / self._half_life_s
        if exponent > _HEAVIEST_EXPONENT:
            self._rebase(exponent, now)
            exponent = 0.0
        weight = 2.0**exponent
        index = math.ceil(math.log(max(seconds, _SHORTEST_S)) / _LOG_GAMMA)
        self._weights[index] = self._weights.get(index, 0.0) + weight
        self._total += weight

    def count(self, now: float) -> float:
        """How many recent durations it stands for: one of a half-life ago counts half."""
        exponent = (now - self._since) / self._half_life_s
        return self._total * 2.0 ** -min(exponent, 1000.0) if self._weights else 0.0

    def quantile(self, q: float) -> float | None:
        """The duration that a share `q` (0–1) of the recent ones stays within; None while empty."""
        if not self._weights:
            return None
        rank, seen = q * self._total, 0.0
        *lower, index = sorted(self._weights)
        for each in lower:
            seen += self._weights[each]
            if seen >= rank:
                index = each
                break
        return 2.0 * _GAMMA**index / (_GAMMA + 1)

    def _rebase(self, exponent: float, now: float) -> None:
        factor = 2.0 ** -min(exponent, 1000.0)
        kept = {index: weight * factor for index, weight in self._weights.items()}
        self._weights = {index: weight for index, weight in kept.items() if weight > 1e-6}
        self._total = sum(self._weights.values())
        self._since = now

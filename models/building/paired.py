"""Whether one model is right more often than another on the same texts: McNemar's exact test.

Rule: texts that both judge alike say nothing. Of the others, were the models equal, each would be a fair coin; p is the
two-sided chance of a split at least as uneven. (McNemar 1947, Psychometrika 12:153; exact as in Fagerland et al. 2013,
BMC Medical Research Methodology 13:91.)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb, sqrt

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Z_95 = 1.959964


@dataclass(frozen=True)
class Paired:
    """How often two models are right on the same texts."""

    texts: int
    both_right: int
    only_first: int
    only_second: int
    both_wrong: int
    p_value: float

    @property
    def first_accuracy(self) -> float:
        """The share that the first is right on."""
        return (self.both_right + self.only_first) / self.texts

    @property
    def second_accuracy(self) -> float:
        """The share that the second is right on."""
        return (self.both_right + self.only_second) / self.texts

    @property
    def gain(self) -> tuple[float, float, float]:
        """How much more accurate the first is, and the 95 % interval of that (Wald's, for paired shares)."""
        lead = self.only_first - self.only_second
        reach = Z_95 * sqrt(self.only_first + self.only_second - lead**2 / self.texts)
        return lead / self.texts, (lead - reach) / self.texts, (lead + reach) / self.texts


def compare(first: Flags, second: Flags) -> Paired:
    """Compare two models by where each is right; shapes are (n,)."""
    only_first, only_second = int((first & ~second).sum()), int((second & ~first).sum())
    return Paired(
        texts=len(first),
        both_right=int((first & second).sum()),
        only_first=only_first,
        only_second=only_second,
        both_wrong=int((~first & ~second).sum()),
        p_value=p_value(only_first, only_second),
    )


def p_value(only_first: int, only_second: int) -> float:
    """Return the exact two-sided p of the discordant counts."""
    tosses, fewer = only_first + only_second, min(only_first, only_second)
    return float(min(Fraction(1), Fraction(2 * sum(comb(tosses, hits) for hits in range(fewer + 1)), 1 << tosses)))

"""What the scores are worth: the usual figures of a binary classifier, each with a 95 % interval.

Rules: toxic is the positive class. A proportion (accuracy, precision, recall) has its Wilson interval; F1 and ROC-AUC
have the 2.5th to 97.5th percentile of 2,000 bootstrap resamples with a fixed seed, each class drawn from itself (their
sizes were fixed by the split). ROC-AUC is the Mann-Whitney statistic with ties counted half.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

RESAMPLES = 2_000
Z_95 = 1.959964


@dataclass(frozen=True)
class Figure:
    """A measured value and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Confusion:
    true_toxic: int
    false_toxic: int
    true_ok: int
    false_ok: int


@dataclass(frozen=True)
class Slice:
    """Accuracy on the texts of one length: tells where the model is weak."""

    name: str
    texts: int
    accuracy: Figure
    missed_toxic: int
    flagged_ok: int


@dataclass(frozen=True)
class Quality:
    texts: int
    toxic: int
    accuracy: Figure
    precision: Figure
    recall: Figure
    f1: Figure
    roc_auc: Figure
    confusion: Confusion
    by_length: tuple[Slice, ...]


def measure(scores: Floats, flagged: Flags, toxic: Flags, words: NDArray[np.int64]) -> Quality:
    """Judge `scores` and the labels `flagged` against the truth; `words` are the texts' lengths. Shapes are (n,)."""
    confusion = _confusion(flagged, toxic)
    return Quality(
        texts=len(toxic),
        toxic=int(toxic.sum()),
        accuracy=_wilson(int((flagged == toxic).sum()), len(toxic)),
        precision=_wilson(confusion.true_toxic, confusion.true_toxic + confusion.false_toxic),
        recall=_wilson(confusion.true_toxic, confusion.true_toxic + confusion.false_ok),
        f1=_bootstrap(lambda i: f1(flagged[i], toxic[i]), toxic),
        roc_auc=_bootstrap(lambda i: roc_auc(scores[i], toxic[i]), toxic),
        confusion=confusion,
        by_length=_by_length(flagged, toxic, words),
    )


def f1(flagged: Flags, toxic: Flags) -> float:
    """Return the harmonic mean of precision and recall, 0 where nothing is toxic or flagged."""
    claimed = int(flagged.sum()) + int(toxic.sum())
    return 2 * int((flagged & toxic).sum()) / claimed if claimed else 0.0


def roc_auc(scores: Floats, toxic: Flags) -> float:
    """Return the chance that a toxic text scores above another; both classes must occur."""
    _, group, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(sizes) - (sizes - 1) / 2)[group]  # tied scores share their mean rank
    positives = int(toxic.sum())
    wins = float(ranks[toxic].sum()) - positives * (positives + 1) / 2
    return wins / (positives * (len(toxic) - positives))


def _confusion(flagged: Flags, toxic: Flags) -> Confusion:
    return Confusion(
        true_toxic=int((flagged & toxic).sum()),
        false_toxic=int((flagged & ~toxic).sum()),
        true_ok=int((~flagged & ~toxic).sum()),
        false_ok=int((~flagged & toxic).sum()),
    )


def _by_length(flagged: Flags, toxic: Flags, words: NDArray[np.int64]) -> tuple[Slice, ...]:
    bands = (
        ("up to 10 words", words <= 10),
        ("11 to 40 words", (words > 10) & (words <= 40)),
        ("over 40 words", words > 40),
    )
    return tuple(
        Slice(
            name=name,
            texts=int(band.sum()),
            accuracy=_wilson(int((flagged == toxic)[band].sum()), int(band.sum())),
            missed_toxic=int((~flagged & toxic)[band].sum()),
            flagged_ok=int((flagged & ~toxic)[band].sum()),
        )
        for name, band in bands
    )


def _wilson(hits: int, tries: int) -> Figure:
    if not tries:
        return Figure(0.0, 0.0, 1.0)
    share, z2 = hits / tries, Z_95**2
    centre = (share + z2 / (2 * tries)) / (1 + z2 / tries)
    reach = Z_95 * sqrt(share * (1 - share) / tries + z2 / (4 * tries**2)) / (1 + z2 / tries)
    return Figure(share, centre - reach, centre + reach)


def _bootstrap(statistic: Callable[[NDArray[np.int64]], float], toxic: Flags) -> Figure:
    draw = np.random.default_rng(20_210_101)  # a fixed seed: the interval is part of the record
    classes = (np.flatnonzero(toxic), np.flatnonzero(~toxic))
    resampled = [
        statistic(np.concatenate([draw.choice(members, len(members)) for members in classes])) for _ in range(RESAMPLES)
    ]
    low, high = np.percentile(resampled, [2.5, 97.5])
    return Figure(statistic(np.arange(len(toxic))), float(low), float(high))

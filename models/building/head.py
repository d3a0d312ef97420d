"""The logistic head: trained, regularised and given its threshold on the training half alone.

Rules
- L2-regularised logistic regression, solved by Newton's method to the optimum: no seed, no step size, one answer.
- The penalty is the one of those given with the least log loss over five folds. The answer carries a probability, so a
  proper scoring rule picks it, not a count of hits.
- The threshold is the hundredth with the most hits on those out-of-fold probabilities; of equal ones, the nearest to
  0.5.
- Weights are kept to six decimals, coarser than a BLAS's noise: two builds give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

PENALTIES = (0.03125, 0.0625, 0.125, 0.25, 0.5, 1.0)  # of ½·penalty·|w|²; scikit-learn's C is 1/penalty
THRESHOLDS = tuple(step / 100 for step in range(20, 81))
FOLDS = 5


@dataclass(frozen=True)
class Head:
    weights: tuple[float, ...]
    bias: float
    threshold: float
    penalty: float
    log_loss: tuple[tuple[float, float], ...]  # (penalty, out-of-fold log loss), as compared
    accuracy: float  # out of fold, at the threshold


def train(vectors: Floats, toxic: Flags, penalties: Sequence[float] = PENALTIES) -> Head:
    """Fit the head on the training half: `vectors` (n, d) and `toxic` (n,), in an order that is as good as random."""
    losses: list[tuple[float, float]] = []
    guesses: dict[float, Floats] = {}
    for penalty in penalties:
        guesses[penalty] = _out_of_fold(vectors, toxic, penalty)
        losses.append((penalty, _log_loss(guesses[penalty], toxic)))
    best = min(losses, key=lambda pair: pair[1])[0]
    solution = _fit(vectors, toxic, best)
    threshold = _threshold(guesses[best], toxic)
    return Head(
        weights=tuple(round(float(weight), 6) for weight in solution[:-1]),
        bias=round(float(solution[-1]), 6),
        threshold=threshold,
        penalty=best,
        log_loss=tuple(losses),
        accuracy=float(((guesses[best] >= threshold) == toxic).mean()),
    )


def score(vectors: Floats, toxic: Flags, penalty: float, repeats: int) -> tuple[float, float]:
    """Return the accuracy at one half and the log loss out of fold, over `repeats` deals of the texts into folds."""
    accuracies, losses = [], []
    for seed in range(repeats):
        order = np.random.default_rng(seed).permutation(len(toxic))
        guess = _out_of_fold(vectors[order], toxic[order], penalty)
        accuracies.append(float(((guess >= 0.5) == toxic[order]).mean()))
        losses.append(_log_loss(guess, toxic[order]))
    return float(np.mean(accuracies)), float(np.mean(losses))


def _out_of_fold(vectors: Floats, toxic: Flags, penalty: float) -> Floats:
    guess = np.zeros(len(toxic))
    fold_of = np.arange(len(toxic)) % FOLDS
    for fold in range(FOLDS):
        out = fold_of == fold
        guess[out] = _probability(vectors[out], _fit(vectors[~out], toxic[~out], penalty))
    return guess


def _fit(vectors: Floats, toxic: Flags, penalty: float) -> Floats:
    """Return the d weights and, last, the bias (which is not penalised)."""
    design = np.column_stack([vectors, np.ones(len(vectors))])
    ridge = np.full(design.shape[1], penalty)
    ridge[-1] = 0.0
    solution = np.zeros(design.shape[1])
    for _ in range(50):
        chance = _sigmoid(design @ solution)
        gradient = design.T @ (chance - toxic) + ridge * solution
        hessian = (design.T * (chance * (1 - chance))) @ design + np.diag(ridge)
        step = np.linalg.solve(hessian, gradient)
        solution -= step
        if float(np.abs(step).max()) < 1e-9:
            return solution
    raise ArithmeticError(f"the head did not converge in 50 Newton steps (penalty {penalty})")


def _threshold(chance: Floats, toxic: Flags) -> float:
    return max(THRESHOLDS, key=lambda cut: (int(((chance >= cut) == toxic).sum()), -abs(cut - 0.5)))


def _log_loss(chance: Floats, toxic: Flags) -> float:
    return float(-np.log(np.where(toxic, chance, 1 - chance)).mean())


def _probability(vectors: Floats, solution: Floats) -> Floats:
    return _sigmoid(vectors @ solution[:-1] + solution[-1])


def _sigmoid(logits: Floats) -> Floats:
    odds: Floats = 1.0 / (1.0 + np.exp(-logits))
    return odds

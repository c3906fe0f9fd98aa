"""One signed number per pair: its probability, its decision, and how far a swap falls short of negating it.

Every method of this project ends in a score *s*: positive means that the canonical response *a* is preferred, and its
size says how firmly. This file turns scores into probabilities and decisions and measures antisymmetry; it knows
nothing about judges, tables or labels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit


def probability(score: ArrayLike) -> NDArray[np.float64]:
    """Probability that *a* is preferred: the sigmoid of the signed score (BAER Eq. 1a).

    Parameters
    ----------
    score : array of any shape; signed log-odds, ±inf allowed, NaN for no score.

    Returns
    -------
    array of the same shape in [0, 1]; NaN where the score is NaN. Never overflows.
    """
    return expit(np.asarray(score, dtype=float))


def decision(score: ArrayLike) -> NDArray[np.int64]:
    """The response a score picks: +1 (*a*) at or above zero, -1 (*b*) below (BAER Eq. 1b).

    Parameters
    ----------
    score : array of any shape; NaN for no score.

    Returns
    -------
    integer array of the same shape: +1, -1, and 0 where the score is NaN (the paper is silent; 0 is never correct).
    A score of exactly 0, of either sign, gives +1 for a pair *and* for its swap: the one place where the rule is not
    antisymmetric, which is why ties are counted apart wherever decisions are scored.
    """
    score = np.asarray(score, dtype=float)
    return np.where(np.isnan(score), 0, np.where(score >= 0, 1, -1))


def antisymmetry_gap(score: ArrayLike, swapped_score: ArrayLike) -> float:
    """Largest amount by which the score of a swapped pair misses the negated score (BAER Eq. 2).

    Parameters
    ----------
    score, swapped_score : arrays of the same shape; the scores of x and of Tx, row by row.

    Returns
    -------
    max ``|s(Tx) + s(x)|``. Zero where infinities cancel and where both are NaN (nothing to compare); infinite where
    only one is NaN, so that a score lost in the swap cannot pass; 0.0 for no pairs.

    Raises
    ------
    ValueError
        when the shapes differ.
    """
    score, swapped_score = np.asarray(score, dtype=float), np.asarray(swapped_score, dtype=float)
    if score.shape != swapped_score.shape:
        raise ValueError(
            f"both arrays must hold one score per pair; they have shapes {score.shape} and {swapped_score.shape}. "
            "Score the swapped pairs in the same order."
        )
    with np.errstate(invalid="ignore"):
        gap = np.abs(swapped_score + score)
    gap = np.where(np.isnan(gap), np.inf, gap)
    gap = np.where((swapped_score == -score) | (np.isnan(score) & np.isnan(swapped_score)), 0.0, gap)
    return float(gap.max(initial=0.0))

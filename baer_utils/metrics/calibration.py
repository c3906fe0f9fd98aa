"""Whether a probability means what it says: Brier score and calibration error, the same for a pair and its swap."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from baer_utils.metrics.rules import check_labels


def brier_score(probability: ArrayLike, y: ArrayLike) -> float:
    """Mean squared distance between the probability that *a* is preferred and what was; 1/4 for a coin.

    Parameters
    ----------
    probability : array (N,) in [0, 1]. y : array (N,) of labels, +1 or -1.
    """
    return float(((np.asarray(probability, dtype=float) - (check_labels(y, probability) > 0)) ** 2).mean())


def calibration_error(probability: ArrayLike, y: ArrayLike, *, bins: int = 10) -> float:
    """Expected calibration error of the confidence max(p, 1 - p), in equal bins of [1/2, 1].

    Parameters
    ----------
    probability : array (N,) in [0, 1] that *a* is preferred. y : array (N,) of labels, +1 or -1.

    Returns
    -------
    mean over pairs of ``|accuracy - confidence|`` of their bin; a probability of exactly 1/2 is half right.
    """
    p, y = np.asarray(probability, dtype=float), check_labels(y, probability)
    confidence, right = np.maximum(p, 1 - p), np.where(p == 0.5, 0.5, (p > 0.5) == (y > 0))
    bin_of = np.minimum(((confidence - 0.5) * 2 * bins).astype(int), bins - 1)
    return float(np.abs(np.bincount(bin_of, right - confidence)).sum() / len(y))

"""How firm a score must be to stop asking: a threshold that changes few answers, with a guarantee.

The loss is 1 where a pair that exits early gets another answer than the whole bank would have given. It needs no label,
and it bounds what accuracy can be lost: early exit is right wherever the bank is right and the answer did not change.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from baer_utils.early_exit.exits import Terms, exit_scores, exit_steps
from baer_utils.selective import binomial_p

STEPS = 25  # thresholds on a grid


@dataclass(frozen=True)
class ExitThreshold:
    """Exit where abs(score) exceeds `value`; infinite where nothing could be certified: only the exact exit is left.

    Attributes
    ----------
    value, alpha, delta : the threshold, the share of changed answers it holds, the probability with which that fails.
    steps : one row per threshold tested, in order: ``threshold``, ``pairs``, ``changed``, ``p``, ``certified``.
    """

    value: float
    alpha: float
    delta: float
    steps: pd.DataFrame = field(compare=False, repr=False)


def changed_answers(terms: Terms, threshold: float) -> NDArray[np.bool_]:
    """Whether exiting at a threshold gives each pair another sign than asking the whole bank."""
    return np.sign(exit_scores(terms, exit_steps(terms, threshold))) != np.sign(terms.partial[:, -1])


def exit_grid(terms: Terms, steps: int = STEPS) -> NDArray[np.float64]:
    """Thresholds to test, highest first: quantiles of abs(score) before the last step, over pairs not tested on.

    Returns
    -------
    strictly falling, ending at 0, where the first expert with an opinion decides. Fixed before the tested pairs are
    seen, as a fixed sequence must be.
    """
    size = np.abs(terms.partial[:, :-1]).ravel()
    values = np.quantile(size, np.linspace(1, 0, steps)) if size.size else np.empty(0)
    return np.unique(np.append(values, 0.0))[::-1]


def fit_exit(terms: Terms, grid: ArrayLike, *, alpha: float = 0.1, delta: float = 0.1) -> ExitThreshold:
    """The lowest threshold whose share of changed answers is certified, by fixed-sequence testing.

    Parameters
    ----------
    terms : of pairs that neither the stack nor the grid has seen, one per question: the test rests on independence.
    grid : thresholds, strictly falling (`exit_grid`).
    alpha : share of all pairs whose answer may change. delta : the chance that more do.

    Returns
    -------
    ExitThreshold
        Thresholds are tested from the highest down until the first failure, each by the exact binomial p-value
        P(Bin(n, alpha) <= changed) against delta, over all n pairs; the last that passed is deployed. Over new draws of
        these pairs the share of changed answers exceeds alpha with probability delta at most. It counts all pairs, not
        only those that exit early, so that alpha also bounds the accuracy lost against the whole bank. Source:
        Angelopoulos et al., Learn then Test (Ann. Appl. Stat. 19, 2025), fixed sequence testing.

    Raises
    ------
    ValueError
        for a grid that does not fall, or levels outside (0, 1).
    """
    grid = np.asarray(grid, dtype=float)
    if not (0 < alpha < 1 and 0 < delta < 1) or not len(grid) or (np.diff(grid) >= 0).any() or grid[-1] < 0:
        raise ValueError(
            f"alpha and delta must lie strictly between 0 and 1 and the grid fall strictly to 0 or more; they are "
            f"{alpha}, {delta} and {grid.tolist()}. Use exit_grid."
        )
    n = len(terms.partial)
    changed = np.array([changed_answers(terms, threshold).sum() for threshold in grid], dtype=int)
    p = binomial_p(changed, n, alpha)
    certified = np.logical_and.accumulate(p <= delta)
    columns = {"threshold": grid, "pairs": n, "changed": changed, "p": p, "certified": certified}
    value = float(grid[certified][-1]) if certified.any() else float("inf")
    return ExitThreshold(value, alpha, delta, pd.DataFrame(columns)[: certified.sum() + 1])

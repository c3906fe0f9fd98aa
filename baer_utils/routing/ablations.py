"""Two simpler ways to choose an expert, which the paper reports as failing: the most confident, the best on the subset.

They stand beside the router so that a reader can see what its features add. Both keep the choice under a swap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from baer_utils.records import question_folds
from baer_utils.routing.choosing import best_available


def confidence_switch(z: ArrayLike) -> NDArray[np.int64]:
    """The expert that is surest of itself on each pair: the largest ``|z|`` (rounded to 1e-9), equal ones by order.

    Parameters
    ----------
    z : array (N, K) of signed log-odds; 0 is no opinion.

    Returns
    -------
    array (N,) of column indices. Nothing is fitted.
    """
    confidence = np.round(np.abs(np.asarray(z, dtype=float)), 9)
    return best_available(confidence, confidence > 0)


@dataclass(frozen=True)
class SubsetLookup:
    """Share of pairs on which each expert was right, by subset: (K,) arrays; `overall` serves a subset never met."""

    by_subset: dict[str, NDArray[np.float64]] = field(repr=False)
    overall: NDArray[np.float64] = field(repr=False)

    def choose(self, subset: Sequence[str], available: ArrayLike) -> NDArray[np.int64]:
        """The available expert that was right most often on each pair's subset: (N,) column indices."""
        table = [self.by_subset.get(name, self.overall) for name in subset]
        return best_available(np.reshape(table, (len(table), len(self.overall))), available)


def fit_subset_lookup(correct: ArrayLike, subset: Sequence[str]) -> SubsetLookup:
    """Count how often each expert is right in each subset; no opinion counts one half, as a coin would.

    Parameters
    ----------
    correct : array (N, K): 1, 0, NaN for no opinion. subset : (N,) names.
    """
    share, subset = np.nan_to_num(np.asarray(correct, dtype=float), nan=0.5), np.asarray(subset, dtype=object)
    overall = share.mean(axis=0) if len(share) else np.full(share.shape[1], 0.5)
    return SubsetLookup({name: share[subset == name].mean(axis=0) for name in sorted(set(subset))}, overall)


def out_of_fold_lookup(
    correct: ArrayLike, subset: Sequence[str], groups: Sequence[str], *, seed: int
) -> NDArray[np.int64]:
    """The expert that a lookup by subset chooses on each pair, counted without the questions of its fold.

    Parameters
    ----------
    correct, subset : as in `fit_subset_lookup`. groups : (N,) question of each pair. seed : deals the folds.

    Returns
    -------
    array (N,) of column indices.
    """
    correct, subset = np.asarray(correct, dtype=float), np.asarray(subset, dtype=object)
    fold, chosen = question_folds(groups, seed=seed), np.zeros(len(correct), dtype=int)
    for held in range(fold.max(initial=-1) + 1):
        table, out = fit_subset_lookup(correct[fold != held], subset[fold != held]), fold == held
        chosen[out] = table.choose(subset[out], ~np.isnan(correct[out]))
    return chosen

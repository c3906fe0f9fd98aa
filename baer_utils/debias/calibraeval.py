"""CalibraEval: one increasing map of P(label A), fitted without labels on the prompts of several pairs.

`ecdf` is what the released settings come to (learning rate 10, one epoch: the map hardly leaves its start, the ranks of
the pooled probabilities); `optimised` goes on downhill. This file knows nothing about tables, splits or labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from baer_utils.debias.objective import LAMBDA, Orbit, gradient, loss, map_values
from baer_utils.debias.pride import log_odds_of

MODES = ("ecdf", "optimised")
EPOCHS, LEARNING_RATE = 500, 10.0
HALVINGS = 40


@dataclass(frozen=True)
class IncreasingMap:
    """A fitted g: strictly increasing between its knots, constant beyond them.

    Attributes
    ----------
    knots : the distinct probabilities of the label A that it was fitted on, increasing.
    values : g at the knots, strictly increasing in (0, 1).
    pairs : ids of the pairs it was fitted on, sorted.
    """

    knots: tuple[float, ...]
    values: tuple[float, ...]
    pairs: tuple[str, ...] = ()

    def __call__(self, probability: ArrayLike) -> NDArray[np.float64]:
        """g of probabilities of the label A: linear between knots, held at the outer values beyond; NaN stays."""
        return np.interp(np.asarray(probability, dtype=float), self.knots, self.values)

    def log_odds(self, label_log_odds: ArrayLike) -> NDArray[np.float64]:
        """Calibrated log-odds of the label A, always finite; NaN stays."""
        return log_odds_of(self(expit(np.asarray(label_log_odds, dtype=float))))


def fit_map(
    label_log_odds: NDArray,
    orbit: Orbit,
    *,
    mode: str = "ecdf",
    epochs: int = EPOCHS,
    learning_rate: float = LEARNING_RATE,
    lam: float = LAMBDA,
    pairs: Sequence[str] = (),
) -> IncreasingMap:
    """Fit g on the prompts of K pairs, without labels.

    Parameters
    ----------
    label_log_odds : array (K, P), log-odds of the label A in the orbit's views; ±inf allowed, NaN not.
    orbit : the prompts, and which of them should complement each other or agree.
    mode : ``ecdf``, the ranks of the distinct pooled probabilities over their number + 1; or ``optimised``, from there
        `epochs` steps down the gradient of all pairs at once, each `learning_rate` long and halved until the loss does
        not rise and the map still increases. Nothing is drawn at random.
    pairs : ids to remember.

    Returns
    -------
    IncreasingMap. The order of the pairs leaves no trace in it, nor, where the orbit is closed, does exchanging the
    responses of any pair: rows are brought to one canonical order first.

    Raises
    ------
    ValueError
        for an unknown mode, no pairs, the wrong number of views, or a missing read.
    """
    _refuse_unfit(label_log_odds, orbit, mode)
    knots, items = np.unique(expit(label_log_odds), return_inverse=True)
    rows = items.reshape(label_log_odds.shape).tolist()
    items = np.array(sorted(min(row, row[::-1]) for row in rows) if orbit.closed else sorted(rows))
    theta = np.zeros(len(knots) + 1)
    if mode == "optimised":
        theta = _descend(theta, items, orbit, epochs, learning_rate, lam)
    values = map_values(theta)
    return IncreasingMap(tuple(knots.tolist()), tuple(values.tolist()), tuple(sorted(pairs)))


def _descend(theta: NDArray, items: NDArray, orbit: Orbit, epochs: int, rate: float, lam: float) -> NDArray[np.float64]:
    """Gradient descent with halving; items (K, P) are positions of knots. Stops early where no step helps."""
    least = loss(map_values(theta)[items], orbit, lam=lam)
    for _ in range(epochs):
        slope = gradient(theta, items, orbit, lam=lam)
        for halving in range(HALVINGS):
            there = theta - rate / 2**halving * slope
            there -= there.mean()
            reached = map_values(there)
            cost = loss(reached[items], orbit, lam=lam)
            if cost <= least and (np.diff(reached, prepend=0, append=1) > 0).all():
                break
        else:
            return theta
        theta, least = there, cost
    return theta


def _refuse_unfit(reads: NDArray, orbit: Orbit, mode: str) -> None:
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}; it is {mode!r}.")
    if reads.ndim != 2 or reads.shape[1] != len(orbit.views) or not len(reads) or np.isnan(reads).any():
        raise ValueError(
            f"a map is fitted on at least one pair with a read in each of the views {', '.join(orbit.views)}; an array "
            f"of shape {reads.shape} came, {int(np.isnan(reads).sum())} reads missing. Drop pairs with missing reads."
        )

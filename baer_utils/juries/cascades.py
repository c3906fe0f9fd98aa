"""A cascade over one global order: the next judge is called while the answer is still uncertain.

It knows no specialists. A prefix of calls is read through the same cells as a panel; how uncertain it leaves an item
is the variance of the labels in its cell, which for binary labels is m (1 - m) and so the distance of m from one half.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from baer_utils.calibrators import Audit, cell_means, one_cell, refine
from baer_utils.juries.outputs import by_quality, codes_like, construction, cost_vector, standalone_risk

THRESHOLDS = 40  # at most so many candidate thresholds, quantiles of those that make a difference


def prefix_tables(codes, y, new_codes, sizes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and variance of the labels in the cell of every prefix of judges.

    Parameters
    ----------
    codes, y : (n, judges) and (n,), the rows that are counted. new_codes : (m, judges), the rows that are looked up.
    sizes : number of symbols of each judge. Judges stand in calling order.

    Returns
    -------
    mean, variance : (m, judges), column t after t + 1 calls. An unseen prefix has those of all labels.
    """
    cells = one_cell(len(codes), len(new_codes))
    mean = np.empty(new_codes.shape)
    variance = np.empty(new_codes.shape)
    for t, size in enumerate(sizes):
        cells = refine(cells, codes[:, t], new_codes[:, t], size)
        first = np.append(cell_means(cells.fit, y, cells.number)[0], y.mean())
        second = np.append(cell_means(cells.fit, y**2, cells.number)[0], np.mean(y**2))
        mean[:, t] = first[cells.other]
        variance[:, t] = np.maximum(second - first**2, 0)[cells.other].round(12)
    return mean, variance


def stopping_place(variance: NDArray[np.float64], threshold: float) -> NDArray[np.int64]:
    """Column at which each item stops: the first whose variance is at most the threshold, else the last."""
    done = variance <= threshold
    done[:, -1] = True
    return done.argmax(axis=1)


class FrugalCascade:
    """Judges in order of validation quality, the next one called while the prediction is uncertain (Panels section 4).

    Parameters
    ----------
    lam : price of a unit of cost in risk, for choosing the threshold and the depth.

    Attributes
    ----------
    order_ : names in calling order, as deep as the cascade goes. threshold_ : label variance at or below which it
        stops; for binary labels this is |m - 1/2| >= sqrt(1/4 - threshold).

    Notes
    -----
    After FrugalGPT. Threshold and depth minimise validation risk + lam * cost, with tables of the fit rows; ties go to
    the lower cost, then the smaller depth. Where a prefix was never seen the prediction is the label mean, and the
    cascade goes on, as it would with a cell of that mean.
    """

    def __init__(self, *, lam: float = 0.0) -> None:
        self.lam = lam

    def fit(self, fit: Audit, validation: Audit, *, costs=None, seed: int = 0) -> FrugalCascade:
        """Choose order, threshold and depth on validation; then count the cells of fit and validation together."""
        parts = construction(fit, validation)
        order = by_quality(standalone_risk(parts), parts.judges)
        sizes = [parts.sizes[place] for place in order]
        spent = np.cumsum(cost_vector(costs, parts.judges)[order])
        tables = prefix_tables(parts.fit_codes[:, order], parts.fit_y, parts.validation_codes[:, order], sizes)
        self.threshold_, depth = _choose_cascade(*tables, parts.validation_y, spent, self.lam)
        self.places_, self.sizes_ = order[:depth], sizes[:depth]
        self.order_ = tuple(parts.judges[place] for place in self.places_)
        self.levels_, self.codes_, self.y_ = parts.levels, parts.codes[:, self.places_], parts.y
        return self

    def predict(self, Z: NDArray[np.object_], slices=None) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Probability at the place where each item stops, and the calls made until there."""
        codes = codes_like(Z, self.levels_)[:, self.places_]
        mean, variance = prefix_tables(self.codes_, self.y_, codes, self.sizes_)
        stop = stopping_place(variance, self.threshold_)
        called = np.zeros(np.shape(Z), dtype=bool)
        called[:, self.places_] = np.arange(len(self.places_)) <= stop[:, None]
        return mean[np.arange(len(stop)), stop], called


def _choose_cascade(mean, variance, y, spent, lam) -> tuple[float, int]:
    """Threshold and depth with the lowest validation risk + lam * cost."""
    loss = (mean - y[:, None]) ** 2
    item, depths = np.arange(len(y))[:, None], np.arange(len(spent))
    best = None
    for threshold in _candidates(variance):
        stop = np.minimum(stopping_place(variance, threshold)[:, None], depths)
        cost = spent[stop].mean(axis=0)
        value = (loss[item, stop].mean(axis=0) + lam * cost).round(12)
        depth = int(np.lexsort((cost, value))[0])
        key = (value[depth], cost[depth].round(12), depth, -threshold)
        best = key if best is None else min(best, key)
    return -best[3], best[2] + 1


def _candidates(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Thresholds that make a difference: the distinct values, thinned to quantiles where there are many."""
    distinct = np.unique(values)
    if len(distinct) <= THRESHOLDS:
        return distinct
    return distinct[np.linspace(0, len(distinct) - 1, THRESHOLDS).round().astype(int)]

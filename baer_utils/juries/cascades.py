"""Cascades over one global order, and a threshold between two judges: call more where the answer is still uncertain.

Neither knows specialists. A prefix of calls is read through the same cells as a panel; how uncertain it leaves an item
is the variance of the labels in its cell, which for binary labels is m (1 - m) and so the distance of m from one half.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from baer_utils.calibrators import Audit, cell_means, one_cell, refine, route_labels
from baer_utils.juries.outputs import (
    by_quality,
    codes_like,
    construction,
    cost_vector,
    own_predictions,
    own_tables,
    standalone_risk,
)

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


class TwoJudgeThreshold:
    """A weak judge, or a strong one where the item's slice says that it will win (after RouteLLM).

    Parameters
    ----------
    lam : price of a unit of cost in risk.

    Attributes
    ----------
    weak_, strong_ : names. strong: lowest validation risk. weak: the cheapest other judge, then the lowest risk.
    win_rate_ : {slice: (wins + 1) / (items + 2)}, wins of the strong judge in squared loss on the fit rows, ties half.
    threshold_ : win rate from which on the strong judge is called; infinite where it never is.

    Notes
    -----
    Like RouteLLM it decides before either judge has spoken, and calls exactly one. What it may look at is the slice,
    because a panel audit holds no text; without slices it is all or nothing. The threshold minimises validation risk +
    lam * cost, ties going to fewer strong calls. A slice that was never seen has the win rate of all items.
    """

    def __init__(self, *, lam: float = 0.0) -> None:
        self.lam = lam

    def fit(self, fit: Audit, validation: Audit, *, costs=None, seed: int = 0) -> TwoJudgeThreshold:
        """Choose the two judges and the threshold; then count both judges' tables on fit and validation together."""
        parts = construction(fit, validation)
        cost, risk = cost_vector(costs, parts.judges), standalone_risk(parts)
        order = by_quality(risk, parts.judges)
        strong = order[0]
        weak = min(order[1:], key=lambda place: (cost[place], order.index(place)), default=strong)
        self.places_ = [weak, strong]
        self.weak_, self.strong_ = parts.judges[weak], parts.judges[strong]
        tables = own_tables(parts.fit_codes, parts.fit_y, parts.width)
        loss_fit = (own_predictions(parts.fit_codes, tables) - parts.fit_y[:, None]) ** 2
        guess = own_predictions(parts.validation_codes, tables)
        loss = (guess - parts.validation_y[:, None]) ** 2
        wins = 0.5 + 0.5 * np.sign((loss_fit[:, weak] - loss_fit[:, strong]).round(12))
        self.win_rate_ = _win_rates(wins, route_labels(fit.slices, len(fit)))
        self.threshold_ = self._choose(loss, cost, self._rates(validation.slices, len(validation)))
        self.levels_, self.tables_ = parts.levels, own_tables(parts.codes, parts.y, parts.width)
        return self

    def predict(self, Z: NDArray[np.object_], slices=None) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """What the called judge's own table says, and which of the two was called."""
        strong = self._rates(slices, len(Z)) >= self.threshold_
        place = np.where(strong, self.places_[1], self.places_[0])
        called = np.zeros(np.shape(Z), dtype=bool)
        called[np.arange(len(place)), place] = True
        return own_predictions(codes_like(Z, self.levels_), self.tables_)[np.arange(len(place)), place], called

    def _choose(self, loss, cost, rates) -> float:
        weak, strong = self.places_
        value = loss + self.lam * cost
        tried = [np.inf, *np.unique(rates)[::-1]]
        means = [np.where(rates >= t, value[:, strong], value[:, weak]).mean().round(12) for t in tried]
        return float(tried[int(np.argmin(means))])

    def _rates(self, slices, n_items: int) -> NDArray[np.float64]:
        return np.array([self.win_rate_.get(r, self.win_rate_[None]) for r in route_labels(slices, n_items)])


def _win_rates(wins, routes) -> dict[str | None, float]:
    """Smoothed win rate of each slice; under None that of all items."""
    names = {None: np.ones(len(wins), dtype=bool)} | {name: routes == name for name in {*routes} - {None}}
    return {name: float((wins[rows].sum() + 1) / (rows.sum() + 2)) for name, rows in names.items()}

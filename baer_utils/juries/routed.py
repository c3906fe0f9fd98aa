"""A threshold between two judges, decided by the slice before either has spoken (after RouteLLM).

It calls exactly one judge for an item and combines nothing: what a router without panels can do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from baer_utils.calibrators import Audit, route_labels
from baer_utils.juries.outputs import (
    by_quality,
    codes_like,
    construction,
    cost_vector,
    own_predictions,
    own_tables,
    standalone_risk,
)
from baer_utils.panels import call_costs
from baer_utils.panels.routable import refuse_label_derived, refuse_unpriced


class TwoJudgeThreshold:
    """A weak judge, or a strong one where the item's slice says that it will win (after RouteLLM).

    Parameters
    ----------
    lam : price of a unit of cost in risk.
    route_key : where slices come from: judges of the pool, called on every item as soon as both judges are in use, or
        other names, whose price in `costs` is then paid for every item; what `RolePolicy` calls by this name.
    audit_only : as in `build_policy`: without it, or a route key, slices that the labels decide are refused.

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

    def __init__(
        self, *, lam: float = 0.0, route_key: str | Sequence[str] | None = None, audit_only: bool = False
    ) -> None:
        self.lam, self.audit_only = lam, audit_only
        self.route_key = (route_key,) if isinstance(route_key, str) else tuple(route_key or ())

    def fit(self, fit: Audit, validation: Audit, *, costs=None, seed: int = 0) -> TwoJudgeThreshold:
        """Choose the two judges and the threshold; then count both judges' tables on fit and validation together."""
        if not (self.audit_only or self.route_key):
            refuse_label_derived(fit, validation)
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
        self._pay_for_keys(parts.judges, costs)
        self.levels_, self.tables_ = parts.levels, own_tables(parts.codes, parts.y, parts.width)
        return self

    def predict(self, Z: NDArray[np.object_], slices=None) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """What the called judge's own table says, and which of the two was called."""
        strong = self._rates(slices, len(Z)) >= self.threshold_
        place = np.where(strong, self.places_[1], self.places_[0])
        called = np.zeros(np.shape(Z), dtype=bool)
        called[np.arange(len(place)), place] = True
        called[:, self.keys_] = True
        return own_predictions(codes_like(Z, self.levels_), self.tables_)[np.arange(len(place)), place], called

    def _pay_for_keys(self, judges, costs) -> None:
        """Keys are looked up only where slices fall on both sides of the threshold."""
        prices = call_costs(judges, costs)
        refuse_unpriced(self.route_key, prices)
        sides = {rate >= self.threshold_ for rate in self.win_rate_.values()}
        used = self.route_key if len(sides) == 2 else ()
        self.keys_ = [judges.index(name) for name in used if name in judges]
        self.route_key_cost = float(sum(prices[name] for name in used if name not in judges))

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

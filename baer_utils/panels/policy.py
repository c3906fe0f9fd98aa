"""A call plan: which judges to call on everything, which on one slice only, and what their answers then mean.

A `CallPolicy` is what gets deployed. It reads the outputs of the judges it calls and no others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Real

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from baer_utils.calibrators import Audit, named_columns, route_labels
from baer_utils.panels.report import StoppingReport
from baer_utils.panels.saving import read_parts, saved_parts
from baer_utils.panels.search import GLOBAL, Step

FORMAT = "baer_utils call plan 1"


@dataclass(eq=False)
class CallPolicy:
    """Global judges, routed specialists, and the table that turns their outputs into a probability.

    `global_panel` is called on every item; an item of a slice in `routes` gets the judges named there as well, and the
    slice's own table; any other item, of a slice unseen before or of none, gets the global table. `steps` are the
    inequalities that held, in order; `stopping_report` those that failed.
    """

    judges: tuple[str, ...]
    """The declared pool: the columns of Z."""
    global_panel: tuple[str, ...]
    routes: dict[str, tuple[str, ...]]
    steps: tuple[Step, ...]
    stopping_report: StoppingReport
    tables: dict[str, object]
    """A fitted calibrator of the global panel under "(all)" and of each routed slice under its name."""
    costs: dict[str, float]
    route_key: tuple[str, ...] = ()
    """Where slices come from: judges of the pool (called on every item once anything is routed), or names that `costs`
    price."""
    audit_only: bool = False
    """The slices are not known at deployment: the plan may be studied, not applied to new items."""
    fallback_rate_: float = field(default=float("nan"), repr=False)
    """Share of the items of the last `predict` whose pattern was in no table."""

    @property
    def calls(self) -> frozenset[tuple[str, str]]:
        """(scope, judge) of everything the plan may call: what two plans are compared by."""
        called = {(GLOBAL, judge) for judge in self.global_panel}
        return frozenset(called | {(name, judge) for name, extra in self.routes.items() for judge in extra})

    @property
    def route_key_cost(self) -> float:
        """Paid for every item to learn its slice, where the key is no judge of the pool; 0 when nothing is routed."""
        outside = [name for name in self.route_key if name not in self.judges]
        return float(sum(self.costs[name] for name in outside)) if self.routes else 0.0

    def judges_for(self, slice: str | None) -> tuple[str, ...]:
        """The judges called on an item of this slice, in order: route keys, global panel, the slice's own."""
        keys = [name for name in self.route_key if name in self.judges] if self.routes else []
        return tuple(dict.fromkeys([*keys, *self.panel_of(slice)]))

    def panel_of(self, slice: str | None) -> tuple[str, ...]:
        """The judges whose outputs the item's table reads."""
        return (*self.global_panel, *self.routes.get(route_labels([slice], 1)[0], ()))

    @property
    def needed(self) -> frozenset[str]:
        """Every judge that some item may need."""
        return frozenset(judge for name in (None, *self.routes) for judge in self.judges_for(name))

    def refit(self, construction: Audit) -> CallPolicy:
        """The same plan with every table counted anew, on fit and validation items together.

        Raises
        ------
        ValueError
            where a routed slice has no item in `construction`.
        """
        tables = {}
        for name, old in self.tables.items():
            inside = construction if name == GLOBAL else construction.take(construction.route_names == name)
            tables[name] = clone(old).fit(inside, inside.y)
        return replace(self, tables=tables)

    def predict(self, Z: ArrayLike, slices: object = None) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Probability of every item and what was called for it.

        Parameters
        ----------
        Z : object array (N, J), columns as in `judges`, or a frame with a column for every judge in `needed`. Only
            outputs of called judges are read; a missing one, or a pattern the table does not hold, is predicted by the
            table's label mean and counted in `fallback_rate_`.
        slices : one label per item, or a boolean frame (the first true column counts); needed where the plan routes.

        Returns
        -------
        probability (N,), and called (N, J), True where the plan calls the judge on the item.

        Raises
        ------
        ValueError
            for another number of columns, or no slices where the plan routes.
        """
        if isinstance(Z, pd.DataFrame):
            named_columns(Z, sorted(self.needed))  # refuses a frame that lacks one
            Z = Z.reindex(columns=list(self.judges))
        outputs = np.asarray(Z, dtype=object)
        if outputs.ndim != 2 or outputs.shape[1] != len(self.judges):
            raise ValueError(
                f"Z must be items x {len(self.judges)} judges ({', '.join(self.judges)}); {outputs.shape} came."
            )
        if self.routes and slices is None:
            raise ValueError(
                f"this plan routes {', '.join(self.routes)}; pass the slice of every item, or None for none."
            )
        route = route_labels(slices, len(outputs)) if self.routes else np.full(len(outputs), None, dtype=object)
        probability, called = np.empty(len(outputs)), np.zeros(outputs.shape, dtype=bool)
        routed, missed = np.zeros(len(outputs), dtype=bool), 0.0
        for name in [*self.routes, GLOBAL]:
            inside = ~routed if name == GLOBAL else route == name
            routed |= inside
            rows = np.flatnonzero(inside)
            if len(rows):
                table, extra = self.tables[name], None if name == GLOBAL else name
                probability[rows] = table.predict(outputs[rows])
                missed += getattr(table, "fallback_rate_", 0.0) * len(rows)
                called[np.ix_(rows, [self.judges.index(judge) for judge in self.judges_for(extra)])] = True
        self.fallback_rate_ = missed / len(outputs) if len(outputs) else 0.0
        return probability, called

    def to_json(self) -> str:
        """The whole plan as strict JSON: calls, tables, costs, steps and why it stopped; `from_json` gives it back."""
        return json.dumps({"format": FORMAT, **saved_parts(self)}, indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> CallPolicy:
        """The plan that `to_json` wrote: it predicts the same numbers to the last bit.

        Raises
        ------
        ValueError
            for text that is no such plan.
        """
        return cls(**read_parts(text, FORMAT))

    def table(self) -> pd.DataFrame:
        """The plan as a table that someone could deploy from: a row per slice, what is called, what a call costs."""
        rows = [
            {"slice": name or "any other", "calls": ", ".join(self.judges_for(name)) or "nothing: a constant",
             "cost": sum(self.costs[judge] for judge in self.judges_for(name)) + self.route_key_cost}
            for name in (*self.routes, None)
        ]  # fmt: skip
        return pd.DataFrame(rows)


def call_costs(judges: tuple[str, ...], costs: Mapping[str, float] | None) -> dict[str, float]:
    """Cost of one call of every judge, in any one unit: 1 by default; other names (route keys) are kept.

    Raises
    ------
    ValueError
        where a judge has no cost, or a cost is negative or not a number.
    """
    if costs is None:
        return dict.fromkeys(judges, 1.0)
    missing = [judge for judge in judges if judge not in costs]
    wrong = {name: cost for name, cost in costs.items() if not (isinstance(cost, Real) and 0 <= cost < float("inf"))}
    if missing or wrong:
        raise ValueError(
            f"costs must give every judge a cost of at least 0; missing: {', '.join(missing) or 'none'}, "
            f"wrong: {wrong or 'none'}. Add them, in the same unit."
        )
    return {name: float(cost) for name, cost in costs.items()}

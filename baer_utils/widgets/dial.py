"""The tau dial: turn the least gain that a judge must bring, and see the plan, its risk and its cost change.

It knows nothing about panels: a function of tau says what a setting gives. All settings are computed once, at the
start, so that turning the dial waits for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypedDict

import pandas as pd
from IPython.display import HTML
from ipywidgets import HTML as HtmlView
from ipywidgets import Layout, SelectionSlider

from baer_utils.plots import tau_path
from baer_utils.widgets.escaping import picture, sentence, table
from baer_utils.widgets.views import LiveView, shown


class Setting(TypedDict):
    """What one tau gives: the plan (a frame, one row per step or judge), its risk, and its cost per item."""

    plan: pd.DataFrame
    risk: float
    cost: float


def tau_dial(
    setting_at: Callable[[float], Setting], taus: Sequence[float], *, start: float | None = None,
    cost: str = "cost per item",
) -> TauDial | HTML:  # fmt: skip
    """Turn tau and read off plan, risk and cost; without a reader, all settings in one figure and one table.

    Parameters
    ----------
    setting_at : tau -> what it gives, such as ``{"plan": policy steps, "risk": ..., "cost": ...}``.
    taus : the settings of the dial. start : where it stands at first; the smallest if not given.
    cost : name and unit of the cost.
    """
    settings = Settings(setting_at, taus, start=start, cost=cost)
    return shown(lambda: TauDial(settings), settings.static)


class Settings:
    """Every setting of a dial: `taus` in rising order, `table` (risk and cost by tau), `plans`, and the `start`."""

    def __init__(
        self, setting_at: Callable[[float], Setting], taus: Sequence[float], *, start: float | None, cost: str
    ):
        self.taus, self.cost = sorted(set(map(float, taus))), cost
        self.start = self.taus[0] if start is None and self.taus else start
        if self.start not in self.taus:
            raise ValueError(f"start must be one of the taus {self.taus}; it is {start}. Add it to them.")
        given = {tau: setting_at(tau) for tau in self.taus}
        self.plans = {tau: one["plan"] for tau, one in given.items()}
        numbers = {tau: (one["risk"], one["cost"]) for tau, one in given.items()}
        self.table = pd.DataFrame.from_dict(numbers, orient="index", columns=["risk", "cost"]).rename_axis("tau")

    def page(self, tau: float) -> str:
        """One setting as HTML: risk and cost among those of the other settings, and the plan."""
        risk, cost = self.table.loc[tau]
        said = f"tau = {tau:g}: risk {risk:.4f}, {self.cost} {cost:,.2f}."
        plan = self.plans[tau]
        steps = table(plan.columns, plan.itertuples(index=False)) if len(plan) else sentence("The plan calls nobody.")
        return sentence(said) + picture(tau_path(self.table, chosen=tau, cost=self.cost), said) + steps

    def static(self) -> str:
        """All settings in one table under the page of the one that the dial starts at."""
        rows = [(f"{tau:g}", f"{row.risk:.4f}", f"{row.cost:,.2f}", len(self.plans[tau]))
                for tau, row in zip(self.taus, self.table.itertuples(), strict=True)]  # fmt: skip
        return self.page(self.start) + table(["tau", "risk", self.cost, "rows of the plan"], rows)


class TauDial(LiveView):
    """The live dial: `tau` turns, `page` shows."""

    def __init__(self, settings: Settings):
        self.settings = settings
        options = [(f"{tau:g}", tau) for tau in settings.taus]
        self.tau = SelectionSlider(
            options=options, value=settings.start, description="tau", layout=Layout(width="30em", max_width="100%")
        )
        self.page = HtmlView(settings.page(settings.start), layout=Layout(width="auto"))
        super().__init__([self.tau, self.page], settings.static())
        self.tau.observe(lambda change: self._show(change["new"]), "value")

    def _show(self, tau: float) -> None:
        self.page.value = self.settings.page(tau)

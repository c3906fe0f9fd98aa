"""A plan of the calls that recur: what construction data split again and again keep asking for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from baer_utils.calibrators import Audit
from baer_utils.panels.assembling import assemble
from baer_utils.panels.building import search_plan
from baer_utils.panels.policy import call_costs
from baer_utils.panels.role_policy import RolePolicy
from baer_utils.panels.search import GLOBAL, Grown


class StablePolicy(RolePolicy):
    """The role policy of calls that recur in at least a share of random halvings of the construction items.

    Parameters
    ----------
    repeats : halvings by group into new fit and validation parts. share : of them in which a call must recur.
    settings : of `build_policy`.

    Attributes
    ----------
    plan_ : `CallPolicy`; judges in order of frequency, then name. A judge is routed to a slice when it is called there,
        globally or by route, often enough, and is not itself global. frequency_ : {(scope, judge): count}.
    """

    def __init__(self, *, repeats: int = 10, share: float = 0.5, **settings: object) -> None:
        super().__init__(**settings)
        if repeats < 1 or not 0 < share <= 1:
            raise ValueError(f"repeats must be at least 1 and share in (0, 1]; {repeats} and {share} came.")
        self.repeats, self.share = repeats, share

    def fit(
        self, fit: Audit, validation: Audit, *, costs: Mapping[str, float] | None = None, seed: int = 0
    ) -> StablePolicy:
        """Halve fit and validation items together `repeats` times, build a plan each time, keep what recurs."""
        whole = fit.join(validation)
        halves = [_halves(whole, seed, number) for number in range(self.repeats)]
        plans = [search_plan(*pair, costs=costs, **self.settings) for pair in halves]
        names = sorted({name for plan in plans for name in plan.routes})
        self.frequency_ = Counter((GLOBAL, judge) for plan in plans for judge in plan.global_panel)
        self.frequency_.update((name, judge) for name in names for plan in plans for judge in plan.panel_of(name))
        base = self._recurring(GLOBAL, ())
        panels = {GLOBAL: base} | {name: base + self._recurring(name, base) for name in names}
        parts = {name: tuple(_inside(part, name) for part in (fit, validation)) for name in panels}
        search = self.settings["search"]
        kept = {name: panel for name, panel in panels.items() if all(parts[name]) and search.measurable(*parts[name])}
        scopes = {name: search.scope(*parts[name]) for name in kept}
        grown = {name: Grown(scopes[name].start(fit.columns(panel)), (), ()) for name, panel in kept.items()}
        never = set.intersection(*({*plan.stopping_report.skipped} for plan in plans))
        skipped = {name: int((fit.route_names == name).sum()) for name in sorted(never)}
        prices = call_costs(fit.judges, costs)
        plan = assemble(parts, grown, skipped, prices, plans[0].route_key, plans[0].audit_only, search)
        self.plan_ = plan.refit(whole)
        return self

    def _recurring(self, scope: str, base: tuple[str, ...]) -> tuple[str, ...]:
        often = [
            (-count, judge)
            for (where, judge), count in self.frequency_.items()
            if where == scope and judge not in base and count >= self.share * self.repeats
        ]
        return tuple(judge for _, judge in sorted(often))


def _halves(audit: Audit, seed: int, number: int) -> tuple[Audit, Audit]:
    groups, place = np.unique(audit.coding.group, return_inverse=True)
    rank = np.random.default_rng([seed, number]).permutation(len(groups))[place]
    return audit.take(rank < len(groups) // 2), audit.take(rank >= len(groups) // 2)


def _inside(audit: Audit, name: str) -> Audit | None:
    rows = audit.route_names == name
    return audit if name == GLOBAL else audit.take(rows) if rows.any() else None

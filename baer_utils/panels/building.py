"""From an audit to a call plan: the global panel first, then every slice with that panel frozen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from baer_utils.calibrators import Audit, PatternCalibrator
from baer_utils.panels.policy import CallPolicy, call_costs
from baer_utils.panels.report import StoppingReport
from baer_utils.panels.routable import refuse_label_derived
from baer_utils.panels.search import GLOBAL, Grown, Rule, grow
from baer_utils.roles import EstimatorScope, FoldedScope, Scope, check_audits, slice_items

Costs = Mapping[str, float] | None


@dataclass(frozen=True)
class Search:
    """How gains are measured and panels are searched; the defaults are the paper's.

    smoothing : kappa of `PatternCalibrator`. calibrator : another estimator, called with the panel's names, in place of
    the pattern table. folds : cross-fit gains over this many group folds of fit and validation together; 0 for one fit
    and one validation set. one_se, beam, pairs : as in `Rule`.
    """

    smoothing: float = 0.0
    calibrator: Callable[[tuple[str, ...]], object] | None = None
    folds: int = 0
    one_se: bool = False
    beam: int = 1
    pairs: bool = False

    def scope(self, fit: Audit, validation: Audit) -> object:
        """The scope in which panels are tried on these items."""
        if self.folds:
            both = fit.join(validation)
            fold = _folds(both, self.folds)
            plain = replace(self, folds=0)
            return FoldedScope([plain.scope(both.take(fold != k), both.take(fold == k)) for k in range(fold.max() + 1)])
        if self.calibrator is not None:
            return EstimatorScope(fit, validation, self.calibrator)
        return Scope(fit, validation, smoothing=self.smoothing)

    def table(self, panel: tuple[str, ...]) -> object:
        """The unfitted calibrator of a panel."""
        return self.calibrator(panel) if self.calibrator else PatternCalibrator(panel, smoothing=self.smoothing)


PAPER = Search()


def build_policy(
    fit: Audit,
    validation: Audit,
    *,
    slices: Sequence[str] | None = None,
    costs: Costs = None,
    tau_global: float = 0.005,
    tau_slice: float = 0.005,
    lam: float = 0.0,
    lam_slice: float = 0.0,
    seed_panel: Sequence[str] = (),
    audit_only: bool = False,
    route_key: str | Sequence[str] | None = None,
    search: Search = PAPER,
) -> CallPolicy:
    """The stopped role policy: who is called on everything, who on one slice, and why nobody else.

    Parameters
    ----------
    fit, validation : audits with the same judges, complete cases. Tables are counted on `fit`, gains measured on
        `validation`; call `refit` with both joined before the plan is used.
    slices : names of slices that may be routed; None for all that the audits declare, () for none. Where slices overlap
        an item belongs to the first in declared order alone, in search as in use.
    costs : of a call of each judge (1 by default), and of route keys that are no judges.
    tau_global, tau_slice : a candidate's gain minus lam (lam_slice) times its cost must exceed them strictly.
    seed_panel : judges that are called in any case.
    audit_only, route_key : slices from which the labels can be read are refused, unless `route_key` names what tells
        the slice of a new item, or `audit_only` says that the plan is to be studied and not deployed.
    search : how gains are measured and panels searched.

    Returns
    -------
    CallPolicy with tables of the fit items. Slices with fewer than 20 fit items, or no validation item, get no route
    (`stopping_report.skipped`). The route key's cost does not enter the search. An empty plan is legal: the label mean.

    Raises
    ------
    ValueError
        for audits that do not fit together, missing outputs, unknown judges or slices, costs that are not, and slices
        that the labels decide.
    """
    shared = {
        "slices": slices, "costs": costs, "lam": lam, "lam_slice": lam_slice, "seed_panel": seed_panel,
        "audit_only": audit_only, "route_key": route_key, "search": search,
    }  # fmt: skip
    plan = search_plan(fit, validation, tau_global=tau_global, tau_slice=tau_slice, **shared)
    others = [
        search_plan(fit, validation, tau_global=tau_global * by, tau_slice=tau_slice * by, **shared)
        for by in (0.5, 2.0)
    ]
    kept = tuple(plan_jaccard(plan.calls, other.calls) for other in others)
    return replace(plan, stopping_report=replace(plan.stopping_report, stability=kept))


def search_plan(
    fit: Audit,
    validation: Audit,
    *,
    slices: Sequence[str] | None,
    costs: Costs,
    tau_global: float,
    tau_slice: float,
    lam: float,
    lam_slice: float,
    seed_panel: Sequence[str],
    audit_only: bool,
    route_key: str | Sequence[str] | None,
    search: Search,
) -> CallPolicy:
    """`build_policy` without the two searches at other thresholds: what `RolePolicy` runs on every split."""
    check_audits(fit, validation)
    prices = call_costs(fit.judges, costs)
    cost = [prices[judge] for judge in fit.judges]
    names = fit.coding.routes if slices is None else tuple(slices)
    keys = (route_key,) if isinstance(route_key, str) else tuple(route_key or ())
    if names and not (audit_only or keys):
        refuse_label_derived(fit, validation)
    manner = {"one_se": search.one_se, "beam": search.beam, "pairs": search.pairs}
    start = fit.columns(seed_panel)
    grown = {GLOBAL: grow(GLOBAL, search.scope(fit, validation), start, cost, Rule(tau_global, lam, **manner))}
    parts, skipped, panel = {GLOBAL: (fit, validation)}, {}, grown[GLOBAL].state.panel
    for name in names:
        inside = slice_items(fit, validation, name)
        if inside is None:
            skipped[name] = int((fit.route_names == name).sum())
            continue
        parts[name] = inside
        grown[name] = grow(name, search.scope(*inside), panel, cost, Rule(tau_slice, lam_slice, **manner))
    return _plan(parts, grown, skipped, prices, keys, audit_only, search)


def _plan(
    parts: dict[str, tuple[Audit, Audit]], grown: dict[str, Grown], skipped: dict[str, int], prices: dict[str, float],
    keys: tuple[str, ...], audit_only: bool, search: Search,
) -> CallPolicy:  # fmt: skip
    judges = parts[GLOBAL][0].judges
    panels = {name: tuple(judges[place] for place in end.state.panel) for name, end in grown.items()}
    base = len(panels[GLOBAL])
    routes = {name: panel[base:] for name, panel in panels.items() if name != GLOBAL and len(panel) > base}
    tables = {name: search.table(panels[name]).fit(parts[name][0], parts[name][0].y) for name in (GLOBAL, *routes)}
    report = StoppingReport(
        failed=tuple(step for end in grown.values() for step in end.failed),
        skipped=skipped,
        cells={name: _occupied(parts[name][0], panel) for name, panel in panels.items()},
        unseen={name: end.state.unseen for name, end in grown.items()},
        risk={name: end.state.risk for name, end in grown.items()},
    )
    steps = tuple(step for end in grown.values() for step in end.steps)
    return CallPolicy(judges, panels[GLOBAL], routes, steps, report, tables, prices, keys, audit_only)


def _occupied(audit: Audit, panel: tuple[str, ...]) -> int:
    return len(np.unique(audit.coding.codes[:, audit.columns(panel)], axis=0)) if panel else 1


def _folds(audit: Audit, folds: int) -> np.ndarray:
    """Fold of every item: groups in order, dealt round robin."""
    group = np.unique(audit.coding.group, return_inverse=True)[1]
    return group % min(folds, int(group.max()) + 1)


def plan_jaccard(first: frozenset, second: frozenset) -> float:
    """Jaccard index of the calls of two plans; 1 for two empty ones."""
    return len(first & second) / len(first | second) if first | second else 1.0


DEFAULTS = {
    "slices": None, "tau_global": 0.005, "tau_slice": 0.005, "lam": 0.0, "lam_slice": 0.0, "seed_panel": (),
    "audit_only": False, "route_key": None, "search": PAPER,
}  # fmt: skip


class RolePolicy:
    """`build_policy` under the interface that all policies share; the settings are those of `build_policy`.

    `plan_` is the fitted `CallPolicy`, its tables counted on fit and validation items together.
    """

    def __init__(self, **settings: object) -> None:
        unknown = settings.keys() - DEFAULTS.keys()
        if unknown:
            raise ValueError(f"settings must be among {', '.join(DEFAULTS)}; {', '.join(sorted(unknown))} came.")
        self.settings = DEFAULTS | settings

    def fit(self, fit: Audit, validation: Audit, *, costs: Costs = None, seed: int = 0) -> RolePolicy:
        """Search on fit and validation, then count the tables on both. Nothing is drawn: `seed` changes nothing."""
        self.plan_ = search_plan(fit, validation, costs=costs, **self.settings).refit(fit.join(validation))
        return self

    def predict(self, Z: np.ndarray, slices: object = None) -> tuple[np.ndarray, np.ndarray]:
        """Probability and called mask, as `CallPolicy.predict`."""
        return self.plan_.predict(Z, slices)

"""From an audit to a call plan: the global panel first, then every slice with that panel frozen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from baer_utils.calibrators import Audit
from baer_utils.panels.assembling import assemble
from baer_utils.panels.manner import PAPER, Search
from baer_utils.panels.policy import CallPolicy, call_costs
from baer_utils.panels.routable import refuse_label_derived, refuse_unpriced
from baer_utils.panels.search import GLOBAL
from baer_utils.roles import check_audits, slice_items

Costs = Mapping[str, float] | None


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
    costs : of a call of each judge (1 by default), and of every route key that is no judge: 0 where it is known before
        anybody is asked, as metadata are.
    tau_global, tau_slice : a candidate's gain minus lam (lam_slice) times its cost must exceed them strictly.
    seed_panel : judges that are called in any case. search : how gains are measured and panels searched.
    audit_only, route_key : slices from which the labels can be read are refused, unless `route_key` names what tells
        the slice of a new item, or `audit_only` says that the plan is to be studied and not deployed.

    Returns
    -------
    CallPolicy with tables of the fit items. Slices with fewer than 20 fit items, or no validation item, get no route
    (`stopping_report.skipped`). The route key's cost does not enter the search. An empty plan is legal: the label mean.

    Raises
    ------
    ValueError
        for audits that do not fit together, missing outputs, unknown judges or slices, a slice named "(all)", costs
        that are not, a route key without a price, and slices that the labels decide.
    """
    shared = {
        "slices": slices, "costs": costs, "lam": lam, "lam_slice": lam_slice, "seed_panel": seed_panel,
        "audit_only": audit_only, "route_key": route_key, "search": search,
    }  # fmt: skip
    plan = search_plan(fit, validation, tau_global=tau_global, tau_slice=tau_slice, **shared)
    near = [{"tau_global": by * tau_global, "tau_slice": by * tau_slice} for by in (0.5, 2.0)]
    others = [search_plan(fit, validation, **taus, **shared) for taus in near]
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
    names = tuple(dict.fromkeys((*fit.coding.routes, *validation.coding.routes) if slices is None else slices))
    if GLOBAL in names:
        raise ValueError(f"no slice may be called {GLOBAL}: it stands for all items. Rename that slice.")
    keys = (route_key,) if isinstance(route_key, str) else tuple(route_key or ())
    refuse_unpriced(keys, prices)
    if names and not (audit_only or keys):
        refuse_label_derived(fit, validation)
    start = fit.columns([*dict.fromkeys(seed_panel)])
    grown = {GLOBAL: search.grow(GLOBAL, fit, validation, start, cost, tau=tau_global, lam=lam)}
    parts, skipped, panel = {GLOBAL: (fit, validation)}, {}, grown[GLOBAL].state.panel
    for name in names:
        inside = slice_items(fit, validation, name)
        if inside is None or not search.measurable(*inside):
            skipped[name] = int((fit.route_names == name).sum())
            continue
        parts[name] = inside
        grown[name] = search.grow(name, *inside, panel, cost, tau=tau_slice, lam=lam_slice)
    return assemble(parts, grown, skipped, prices, keys, audit_only, search)


def plan_jaccard(first: frozenset, second: frozenset) -> float:
    """Jaccard index of the calls of two plans; 1 for two empty ones."""
    return len(first & second) / len(first | second) if first | second else 1.0

"""How far a plan can be trusted to come out again: over splits, on half the audit; how full its tables are.

Risk and the plan are different questions: risk may be stable while the calls behind it change, which asks for more
audit labels before a rare specialist is relied on. These are diagnostics, no guarantees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from baer_utils.calibrators import Audit, Split, split_audit
from baer_utils.panels import GLOBAL, RolePolicy, call_costs, measure, plan_jaccard


def thinned(part: Audit, share: float, seed: int) -> Audit:
    """A random share of the groups of an audit, at least one; the order of the items has no say in which ones."""
    groups = np.unique(part.coding.group)
    kept = np.random.default_rng(seed).permutation(groups)[: max(1, round(share * len(groups)))]
    return part.take(np.isin(part.coding.group, kept))


def fitted_plans(
    audit: Audit,
    *,
    share: float = 1.0,
    costs: Mapping[str, float] | None = None,
    seeds: Iterable[int] = range(10),
    **settings,
) -> list[tuple[Split, RolePolicy]]:
    """The role policy of every split, built on a share of its construction groups; the test items stay whole.

    Parameters
    ----------
    audit : incomplete items are left out first. share : of the groups of the fit and of the validation part.
    settings : of `RolePolicy`.

    Returns
    -------
    list of (split, its construction parts thinned, and the fitted policy).
    """
    whole = audit.complete()[0]
    plans = []
    for seed in seeds:
        fit, validation, test = split_audit(whole, seed)
        if share < 1:
            fit, validation = thinned(fit, share, seed), thinned(validation, share, seed)
        policy = RolePolicy(**settings).fit(fit, validation, costs=costs, seed=seed)
        plans.append((Split(fit, validation, test), policy))
    return plans


def frequency_audit(audit: Audit, *, shares: Sequence[float] = (0.5, 1.0), **settings) -> pd.DataFrame:
    """Which calls recur over the splits, on parts of the audit and on all of it (Panels Tables 7 and 17).

    Parameters
    ----------
    shares : of the construction groups. settings : `costs`, `seeds`, and those of `RolePolicy`.

    Returns
    -------
    frame with one row per share and call: share, scope (all items, or the slice), judge, count, splits, recurs: whether
    the call is in at least half of the plans. The most frequent first.
    """
    settings, rows = settings | {"seeds": list(settings.get("seeds", range(10)))}, []
    for share in shares:
        plans = [policy.plan_.calls for _, policy in fitted_plans(audit, share=share, **settings)]
        for scope, judge in sorted(frozenset().union(*plans)):
            count = sum((scope, judge) in plan for plan in plans)
            rows.append((share, scope, judge, count, len(plans), 2 * count >= len(plans)))
    table = pd.DataFrame(rows, columns=["share", "scope", "judge", "count", "splits", "recurs"])
    order = ["share", "count", "scope", "judge"]
    return table.sort_values(order, ascending=[True, False, True, True]).reset_index(drop=True)


def audit_size(
    audit: Audit,
    *,
    shares: Sequence[float] = (0.5, 1.0),
    costs: Mapping[str, float] | None = None,
    seeds: Iterable[int] = range(10),
    **settings,
) -> pd.DataFrame:
    """The role policy with its construction items thinned and its test items fixed (Panels Table 15).

    Returns
    -------
    frame with one row per share and split: share, seed, risk, accuracy, cost, calls, and jaccard: how far the plan is
    that of the whole construction set (Jaccard index of its calls).
    """
    seeds, prices = list(seeds), call_costs(audit.judges, costs)
    whole = [policy.plan_.calls for _, policy in fitted_plans(audit, costs=costs, seeds=seeds, **settings)]
    rows = []
    for share in shares:
        plans = fitted_plans(audit, share=share, costs=costs, seeds=seeds, **settings)
        for seed, full, (split, policy) in zip(seeds, whole, plans, strict=True):
            seen = measure(policy, split.test, prices)
            kept = {name: seen[name] for name in ("risk", "accuracy", "cost", "calls")}
            rows.append({"share": share, "seed": seed, **kept, "jaccard": plan_jaccard(policy.plan_.calls, full)})
    return pd.DataFrame(rows)


def pattern_sparsity(audit: Audit, **settings) -> pd.DataFrame:
    """How many cells the plans' tables hold and how many items fall outside them (Panels Table 14).

    Parameters
    ----------
    settings : `costs`, `seeds`, and those of `RolePolicy`.

    Returns
    -------
    frame with one row per split: fit, validation, test (items), calls, global_cells, route_cells (of the largest routed
    slice, 0 without routes), both after the refit; validation_fallback (tables of the fit items) and test_fallback
    (after the refit), shares of items predicted by a label mean because their pattern was never seen.
    """
    rows = []
    for split, policy in fitted_plans(audit, **settings):
        plan = policy.plan_
        called = policy.predict(split.test.Z, split.test.slices)[1]
        cells = {name: len(table.patterns_) for name, table in plan.tables.items()}
        rows.append(
            {
                "fit": len(split.fit),
                "validation": len(split.validation),
                "test": len(split.test),
                "calls": called.sum() / len(called),
                "global_cells": cells[GLOBAL],
                "route_cells": max((n for name, n in cells.items() if name != GLOBAL), default=0),
                "validation_fallback": _unseen(plan, split.validation),
                "test_fallback": plan.fallback_rate_,
            }
        )
    return pd.DataFrame(rows)


def _unseen(plan, validation: Audit) -> float:
    """Share of validation items outside the table that would answer for them, by the plan's stopping report."""
    unseen = plan.stopping_report.unseen
    each = [unseen[route if route in plan.routes else GLOBAL] for route in validation.route_names]
    return float(np.mean(each))

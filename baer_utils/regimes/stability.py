"""How far a plan can be trusted to come out again: over splits, on half the audit, under other thresholds and prices.

Risk and the plan are different questions: risk may be stable while the calls behind it change, which asks for more
audit labels before a rare specialist is relied on. These are diagnostics, no guarantees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from baer_utils.calibrators import Audit, Split, split_audit
from baer_utils.panels import RolePolicy, plan_jaccard

def thinned(part: Audit, share: float, seed: int) -> Audit:
    """A random share of the groups of an audit, at least one; which ones does not depend on the order of the items."""
    groups = np.unique(part.coding.group)
    kept = np.random.default_rng(seed).permutation(groups)[: max(1, round(share * len(groups)))]
    return part.take(np.isin(part.coding.group, kept))


def fitted_plans(
    audit: Audit,
    *,
    share: float = 1.0,
    costs: Mapping[str, float] | None = None,
    seeds: Sequence[int] = range(10),
    **settings,
) -> list[tuple[Split, RolePolicy]]:
    """The role policy of every split, built on a share of its construction groups; the test items stay whole.

    Parameters
    ----------
    audit : incomplete items are left out first. settings : of `RolePolicy`.

    Returns
    -------
    list of (split with the thinned fit and validation parts, fitted policy).
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
    frame with one row per share and call: share, scope (`GLOBAL`, or the slice), judge, count, splits, recurs:
    whether the call is in at least half of the plans. The most frequent first.
    """
    rows = []
    for share in shares:
        plans = [policy.plan_.calls for _, policy in fitted_plans(audit, share=share, **settings)]
        for scope, judge in sorted(frozenset.union(*plans)):
            count = sum((scope, judge) in plan for plan in plans)
            rows.append((share, scope, judge, count, len(plans), 2 * count >= len(plans)))
    table = pd.DataFrame(rows, columns=["share", "scope", "judge", "count", "splits", "recurs"])
    order = ["share", "count", "scope", "judge"]
    return table.sort_values(order, ascending=[True, False, True, True]).reset_index(drop=True)

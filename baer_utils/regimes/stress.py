"""Stress tests of a call plan: exact copies, near-duplicate variants, other thresholds, other prices.

Each returns the per-split table of `panels.evaluate` with one more column, `setting`, that names what was changed; the
tables of `comparing` then summarise it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from baer_utils.calibrators import Audit, Split
from baer_utils.juries import FlatAll, ReliabilityJury, SingleBest
from baer_utils.panels import RolePolicy, call_costs, evaluate

SEEDS = range(10)


def with_copies(audit: Audit, judge: str, copies: int) -> Audit:
    """The audit with exact copies of a judge, named `<judge>#copy1` and so on, as further judges."""
    column = audit.Z[:, audit.columns([judge])]
    names = tuple(f"{judge}#copy{number + 1}" for number in range(copies))
    Z = np.hstack([audit.Z, *[column] * copies])
    return Audit(Z, audit.y, (*audit.judges, *names), audit.slices, audit.groups)


def single_best(fit: Audit, validation: Audit) -> str:
    """The judge that construction data call the single best one."""
    return SingleBest().fit(fit, validation).panel_[0]


def copy_stress(
    audit: Audit,
    *,
    copies: int = 4,
    judge: str | None = None,
    costs: Mapping[str, float] | None = None,
    seeds: Iterable[int] = SEEDS,
    **settings,
) -> pd.DataFrame:
    """The role policy and the reliability jury with and without exact copies of a judge (Panels Table 9).

    Parameters
    ----------
    judge : the one that is copied; by default each split's own single best one. A copy costs what its original costs.
    settings : of `RolePolicy`.

    Returns
    -------
    frame of `evaluate` with setting: original or copied. A copy has conditional value 0 whatever the panel, so the role
    policy's risk, cost and plan are the same in both; the jury counts the judge once more per copy, and pays for it.
    """
    prices = call_costs(audit.judges, costs)
    prices |= {f"{name}#copy{number + 1}": prices[name] for name in audit.judges for number in range(copies)}

    def copied(split: Split) -> Split:
        best = single_best(split.fit, split.validation) if judge is None else judge
        return Split(*(with_copies(part, best, copies) for part in split))

    policies, seeds = {"role": RolePolicy(**settings), "reliability_jury": ReliabilityJury()}, list(seeds)
    changes = {"original": None, "copied": copied}
    return _stack(
        {name: evaluate(audit, policies, costs=prices, seeds=seeds, prepare=change) for name, change in changes.items()}
    )


def threshold_sensitivity(
    audit: Audit,
    *,
    taus: Sequence[float] = (0.001, 0.005, 0.02),
    costs: Mapping[str, float] | None = None,
    seeds: Iterable[int] = SEEDS,
    **settings,
) -> pd.DataFrame:
    """The role policy under several thresholds, the same everywhere and in slices (Panels Table 8).

    Returns
    -------
    frame of `evaluate` with setting: `tau 0.005` and so on; `settings` are the others of `RolePolicy`.
    """
    policies = {tau: {"role": RolePolicy(**settings, tau_global=tau, tau_slice=tau)} for tau in taus}
    seeds = list(seeds)
    return _stack({f"tau {tau:g}": evaluate(audit, p, costs=costs, seeds=seeds) for tau, p in policies.items()})


def price_sensitivity(
    audit: Audit,
    prices: Mapping[str, Mapping[str, float] | None],
    *,
    lams: Sequence[float] = (0.0, 0.002, 0.005),
    seeds: Iterable[int] = SEEDS,
    **settings,
) -> pd.DataFrame:
    """The role policy under several price lists and several prices of cost in risk (Panels Table 18).

    Parameters
    ----------
    prices : {name: cost of a call of each judge}, for example API models 5, local ones 1 or 3, verifiers .05.
    lams : what a unit of cost must gain in risk, everywhere and in slices. settings : the others of `RolePolicy`.

    Returns
    -------
    frame of `evaluate` with setting: `<price list>, lambda 0.002` and so on.
    """
    seeds = list(seeds)
    return _stack(
        {
            f"{name}, lambda {lam:g}": evaluate(
                audit, {"role": RolePolicy(**settings, lam=lam, lam_slice=lam)}, costs=costs, seeds=seeds
            )
            for name, costs in prices.items()
            for lam in lams
        }
    )


def variant_stress(
    audit: Audit,
    families: Mapping[str, Sequence[str]],
    *,
    costs: Mapping[str, float] | None = None,
    seeds: Iterable[int] = SEEDS,
    **settings,
) -> pd.DataFrame:
    """Near-duplicate prompt variants: all bought, all but the first deleted, or routed by their gain (Panels Table 19).

    Parameters
    ----------
    families : {name: judges that are variants of one another}; the first of each is the one that is kept where variants
        are deleted. Judges of no family stay. settings : of `RolePolicy`.

    Returns
    -------
    frame of `evaluate` with setting: all variants, or one variant each; policies role and flat_all, and the column
    variants: how many judges of the families the plan calls anywhere (for flat_all: how many there are).
    """
    extra = {judge for family in families.values() for judge in family[1:]}
    audit.columns(sorted(extra))  # refuses names that no judge has
    kept = audit.select([judge for judge in audit.judges if judge not in extra])
    prices, seeds = call_costs(audit.judges, costs), list(seeds)
    policies = {"role": RolePolicy(**settings), "flat_all": FlatAll()}
    table = _stack(
        {name: evaluate(part, policies, costs=prices, seeds=seeds)
         for name, part in (("all variants", audit), ("one variant each", kept))}
    )  # fmt: skip
    members = {judge for family in families.values() for judge in family}
    called = [{judge for _, judge in json.loads(plan)} for plan in table["plan"]]
    return table.assign(variants=[len(members & judges) for judges in called])


def _stack(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The tables under each other, each with its name in the first column."""
    return pd.concat([table.assign(setting=name) for name, table in tables.items()], ignore_index=True)

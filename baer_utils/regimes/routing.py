"""Routes and mixes: what a deployable proxy is worth beside audited strata, and what happens when slices shift.

A route is good for deployment only if it is known before any label; a plan is good for another stream only if its risk
holds where the slices come in other shares than in the audit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from baer_utils.calibrators import Audit, split_audit
from baer_utils.panels import RolePolicy, call_costs, evaluate, measure

METRICS = ("risk", "accuracy", "cost", "calls")


@dataclass(frozen=True, eq=False)
class Route:
    """Slices to route by, and where they come from: `route_key` at deployment, or labels that only an audit has."""

    slices: object
    route_key: str | tuple[str, ...] | None = None
    audit_only: bool = False


def sliced_by_judge(audit: Audit, judge: str) -> Route:
    """The route that a judge's own output makes: slices `<judge>=<output>`, the judge called on every item for it."""
    column = audit.columns([judge])[0]
    names = [f"{judge}={symbol}" for symbol in audit.coding.levels[column]]
    return Route(np.array([*names, None], dtype=object)[audit.coding.codes[:, column]], route_key=judge)


def proxy_routing(
    audit: Audit,
    routes: Mapping[str, Route],
    *,
    costs: Mapping[str, float] | None = None,
    seeds: Iterable[int] = range(10),
    **settings,
) -> pd.DataFrame:
    """The panel that stops globally beside the one that routes, for every way to make slices (Panels Table 10).

    Parameters
    ----------
    routes : {name: `Route`}, for example a classifier's output beside a human label. costs : of judges, and of route
        keys that are no judges: both are paid for every item as soon as anything is routed. settings : of `RolePolicy`.

    Returns
    -------
    frame of `evaluate` with setting (the route's name), policies stopped and role, and deployable: whether the slice of
    a new item can be known.
    """
    tables, seeds = [], list(seeds)
    for name, route in routes.items():
        sliced = Audit(audit.Z, audit.y, audit.judges, route.slices, audit.groups)
        key = {"route_key": route.route_key, "audit_only": route.audit_only}
        policies = {"stopped": RolePolicy(**settings, slices=()), "role": RolePolicy(**settings, **key)}
        table = evaluate(sliced, policies, costs=costs, seeds=seeds)
        tables.append(table.assign(setting=name, deployable=not route.audit_only))
    return pd.concat(tables, ignore_index=True)


def slice_outcomes(
    audit: Audit,
    policies: Mapping[str, object],
    *,
    costs: Mapping[str, float] | None = None,
    seeds: Iterable[int] = range(10),
) -> pd.DataFrame:
    """What each policy does in each slice of the test items, split by split.

    Returns
    -------
    frame with policy, seed, slice ("" for items of no slice), items, risk, accuracy, cost, calls.
    """
    audit, _ = audit.complete()
    prices = call_costs(audit.judges, costs)
    rows = []
    for seed in seeds:
        split = split_audit(audit, seed)
        names = np.array([name or "" for name in split.test.route_names])
        parts = {name: split.test.take(names == name) for name in np.unique(names)}
        for policy_name, policy in policies.items():
            policy.fit(split.fit, split.validation, costs=prices, seed=seed)
            for name, part in parts.items():
                seen = measure(policy, part, prices)
                rows.append({"policy": policy_name, "seed": seed, "slice": name, "items": len(part)}
                            | {metric: seen[metric] for metric in METRICS})  # fmt: skip
    return pd.DataFrame(rows)


def slice_mix_shift(outcomes: pd.DataFrame, mixes: Mapping[str, Mapping[str, float]] | None = None) -> pd.DataFrame:
    """Policies built on the audit's mix of slices and deployed on another one (Panels Table 16).

    Parameters
    ----------
    outcomes : of `slice_outcomes`. mixes : {name: {slice: weight}}, weights scaled to add up to 1; by default the mix
        as audited, all slices alike, the audited mix turned round (weights 1 / items), and every slice by itself.

    Returns
    -------
    frame with one row per mix, policy and split: setting (the mix), policy, seed, risk, accuracy, cost, calls: the
    figures of the slices averaged with the mix's weights. Within a slice nothing is assumed to change. A slice with
    weight but without a test item in a split leaves NaN there.
    """
    items = outcomes.groupby("slice")["items"].mean()
    if mixes is None:
        mixes = {"as audited": items, "all alike": items * 0 + 1, "turned round": 1 / items}
        mixes |= {f"only {name}": {name: 1.0} for name in items.index}
    rows = []
    for name, mix in mixes.items():
        weight = pd.Series(mix, dtype=float)
        unknown = [slice for slice in weight.index if slice not in items.index]
        if unknown or not (weight >= 0).all() or not weight.sum() > 0:
            raise ValueError(
                f"a mix gives weights of at least 0, some above, to {', '.join(items.index)}; {name} is {dict(mix)}."
            )
        for (policy, seed), part in outcomes.groupby(["policy", "seed"], sort=False):
            there = part.set_index("slice").reindex(weight[weight > 0].index)[list(METRICS)]
            mean = (there.mul(weight[weight > 0] / weight.sum(), axis=0)).sum(axis=0, skipna=False)
            rows.append({"setting": name, "policy": policy, "seed": seed, **mean})
    return pd.DataFrame(rows)

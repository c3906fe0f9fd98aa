"""Policies side by side: intervals over splits, paired differences, and the paper's comparison tables.

Works on one long table with a row per setting, policy and split. It fits nothing and calls nobody.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from baer_utils.juries.bench import FULL_CALL, NOT_ROLE
from baer_utils.panels import split_interval

METRICS = ("risk", "accuracy", "cost", "calls")


def interval_table(table: pd.DataFrame, metric: str = "risk") -> pd.DataFrame:
    """Mean, sd and intervals of one metric for every setting and policy (Panels Table 13).

    Parameters
    ----------
    table : columns setting, policy, seed and the metric.

    Returns
    -------
    frame with setting, policy and the columns of `split_interval`, in the order of the table.
    """
    groups = table.groupby(["setting", "policy"], sort=False)[metric]
    rows = [{"setting": s, "policy": p, **split_interval(values)} for (s, p), values in groups]
    return pd.DataFrame(rows)


def frontier_points(table: pd.DataFrame) -> pd.DataFrame:
    """Every policy's mean cost and its risk with the interval over splits: what the frontier draws (Panels Figure 2).

    Parameters
    ----------
    table : the rows of one setting.

    Returns
    -------
    frame with one row per policy: policy, cost, calls, risk, low, high, undercut: whether a policy that costs no more
    has a lower mean risk.
    """
    means = table.groupby("policy", sort=False)[["cost", "calls", "risk"]].mean()
    bounds = {name: split_interval(part["risk"]) for name, part in table.groupby("policy", sort=False)}
    means["low"] = [bounds[name]["low"] for name in means.index]
    means["high"] = [bounds[name]["high"] for name in means.index]
    risk, cost = means["risk"].to_numpy(), means["cost"].to_numpy()
    means["undercut"] = ((risk[None, :] < risk[:, None]) & (cost[None, :] <= cost[:, None])).any(axis=1)
    return means.reset_index()


def paired_difference(table: pd.DataFrame, first: str, second: str, metric: str = "risk") -> dict[str, float]:
    """`split_interval` of first minus second, split by split.

    Parameters
    ----------
    table : the rows of one setting: columns policy, seed and the metric.

    Raises
    ------
    ValueError
        where a policy is not in the table, or the two were not measured on the same splits.
    """
    wide = table.pivot(index="seed", columns="policy", values=metric)
    missing = [name for name in (first, second) if name not in wide.columns or wide[name].isna().any()]
    if missing:
        raise ValueError(f"{first} and {second} must both be measured on every split; {', '.join(missing)} is not.")
    return split_interval(wide[first] - wide[second])


def side_by_side(table: pd.DataFrame, policies: Sequence[str] = ("single_best", "flat_all", "role")) -> pd.DataFrame:
    """Mean risk, accuracy, cost and calls of some policies in every setting (Panels Table 3).

    Returns
    -------
    frame indexed by setting, columns (policy, metric).
    """
    means = table[table["policy"].isin(policies)].groupby(["setting", "policy"], sort=False)[list(METRICS)].mean()
    wide = means.unstack("policy").swaplevel(axis=1)
    return wide.reindex(columns=pd.MultiIndex.from_product([policies, METRICS], names=["policy", "metric"]))


def endpoints(table: pd.DataFrame) -> pd.DataFrame:
    """The best full-call policy and the best matched panel beside the role policy (Panels Table 4).

    Returns
    -------
    frame with one row per setting and kind (full call, matched, role): setting, kind, policy, risk, cost. "Best" is the
    lowest mean test risk of its kind, so the two rivals are flattered by having been picked after the fact.
    """
    means = table.groupby(["setting", "policy"], sort=False)[["risk", "cost"]].mean().reset_index()
    kinds = {**dict.fromkeys(FULL_CALL, "full call"), **dict.fromkeys(NOT_ROLE, "matched"), "role": "role"}
    means.insert(1, "kind", means["policy"].map(kinds))
    means = means.dropna(subset="kind").sort_values("risk", kind="stable")
    best = means.drop_duplicates(["setting", "kind"])
    order = {name: place for place, name in enumerate(["full call", "matched", "role"])}
    settings = {name: place for place, name in enumerate(table["setting"].unique())}
    best = best.sort_values(
        ["setting", "kind"], key=lambda column: column.map(settings if column.name == "setting" else order)
    )
    return best.reset_index(drop=True)


def against_role(table: pd.DataFrame, policies: Sequence[str] = ("reliability_jury", "frugal_cascade")) -> pd.DataFrame:
    """Risk and cost of some policies minus the role policy's, paired by split (Panels Table 5).

    Returns
    -------
    frame with one row per setting and policy: setting, policy, risk, cost (their means), and risk_difference, low,
    high, cost_difference: positive where the role policy is better or cheaper.
    """
    rows = []
    for setting, part in table.groupby("setting", sort=False):
        for policy in policies:
            own = part[part["policy"] == policy]
            risk, cost = (paired_difference(part, policy, "role", metric) for metric in ("risk", "cost"))
            rows.append(
                {
                    "setting": setting,
                    "policy": policy,
                    "risk": own["risk"].mean(),
                    "cost": own["cost"].mean(),
                    "risk_difference": risk["mean"],
                    "low": risk["low"],
                    "high": risk["high"],
                    "cost_difference": cost["mean"],
                }
            )
    return pd.DataFrame(rows)

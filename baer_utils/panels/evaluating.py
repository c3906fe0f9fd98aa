"""Policies side by side on random splits: every choice on construction items, one look at the test items per split.

A policy is anything with ``fit(fit, validation, *, costs, seed)`` and ``predict(Z, slices) -> (probability, called)``.
What it costs is read off the called mask.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.stats import t as student

from baer_utils.calibrators import Audit, Split, split_audit
from baer_utils.panels.policy import call_costs

MEASURED = ("risk", "accuracy", "cost", "calls", "fallback", "cells")


def evaluate(
    audit: Audit,
    policies: Mapping[str, object],
    *,
    costs: Mapping[str, float] | None,
    seeds: Iterable[int] = range(10),
    prepare: Callable[[Split], Split] | None = None,
) -> pd.DataFrame:
    """Held-out risk, accuracy, cost and calls of every policy on every split.

    Parameters
    ----------
    audit : items with a missing output of any judge are dropped first; the account is in ``frame.attrs``.
    policies : {name: policy}; each is fitted anew on every split, on its fit and validation items only.
    costs : of a call of each judge, 1 by default, and of route keys that are no judges.
    seeds : one split each, 25/25/50 by groups.
    prepare : applied to every split before anything is fitted, for example `bin_scores` on its three audits.

    Returns
    -------
    frame, one row per policy and split: policy, seed, risk (mean squared error on the test items), accuracy (decision 1
    where probability >= 1/2; NaN where y is not binary), ties (items at exactly 1/2), cost and calls per item, fallback
    (share of test items outside the policy's tables), cells (largest table), the sizes of the three parts, and plan
    (JSON: the calls by scope) where the policy has one. `summarize_splits` gives means, deviations and intervals.
    """
    audit, account = audit.complete()
    prices = call_costs(audit.judges, costs)
    rows = []
    for seed in seeds:
        split = split_audit(audit, seed)
        split = Split(*prepare(split)) if prepare else split
        sizes = {f"n_{name}": len(part) for name, part in split._asdict().items()}
        for name, policy in policies.items():
            policy.fit(split.fit, split.validation, costs=prices, seed=seed)
            rows.append({"policy": name, "seed": seed} | measure(policy, split.test, prices) | sizes)
    frame = pd.DataFrame(rows)
    frame.attrs["complete_cases"] = str(account)
    return frame


def measure(policy: object, test: Audit, costs: Mapping[str, float]) -> dict[str, object]:
    """Risk, accuracy, ties, cost, calls, fallback, cells and plan of one fitted policy on labelled items."""
    probability, called = policy.predict(test.Z, test.slices)
    plan = getattr(policy, "plan_", policy)
    binary = bool(np.isin(test.y, (0, 1)).all())
    number = called.sum(axis=0)
    paid = math.fsum(costs[judge] * int(n) for judge, n in zip(test.judges, number, strict=True)) / len(test)
    return {
        "risk": float(np.mean((test.y - probability) ** 2)),
        "accuracy": float(np.mean((probability >= 0.5) == (test.y == 1))) if binary else float("nan"),
        "ties": int((probability == 0.5).sum()),
        "cost": paid + getattr(plan, "route_key_cost", 0.0),
        "calls": int(number.sum()) / len(test),
        "fallback": float(getattr(plan, "fallback_rate_", float("nan"))),
        "cells": max((len(table.patterns_) for table in getattr(plan, "tables", {}).values()
                      if hasattr(table, "patterns_")), default=float("nan")),
        "plan": plan_text(plan) if hasattr(plan, "calls") else "",
    }  # fmt: skip


def plan_text(plan: object) -> str:
    """The calls of a plan as JSON, a sorted list of [scope, judge]: equal plans give equal texts."""
    return json.dumps(sorted(plan.calls))


def split_interval(values: Sequence[float], *, level: float = 0.95, overlap: float = 1.0) -> dict[str, float]:
    """Mean over splits with its t interval, and the wider one that remembers that the splits overlap.

    Parameters
    ----------
    values : one value per split. overlap : n_test / n_construction, 1 for the 25/25/50 of `split_audit`.

    Returns
    -------
    dict
        mean, sd (ddof 1), low, high: mean ± t sd / sqrt(n), which describes how the splits vary and no more (Panels
        section 6). wide_low, wide_high: the same with the variance sd^2 (1 / n + overlap) of Nadeau and Bengio (2003).
        NaN bounds for a single split.
    """
    values = np.asarray(values, dtype=float)
    n, mean = len(values), float(values.mean())
    sd = float(values.std(ddof=1)) if n > 1 else float("nan")
    reach = float(student.ppf((1 + level) / 2, n - 1)) * sd if n > 1 else float("nan")
    half, wide = reach * math.sqrt(1 / n), reach * math.sqrt(1 / n + overlap)
    bounds = {"low": mean - half, "high": mean + half, "wide_low": mean - wide, "wide_high": mean + wide}
    return {"mean": mean, "sd": sd, **bounds}


def summarize_splits(frame: pd.DataFrame, *, level: float = 0.95, nadeau_bengio: bool = False) -> pd.DataFrame:
    """Mean, standard deviation and t interval over splits of everything `evaluate` measures.

    Parameters
    ----------
    frame : of `evaluate`. level : of the interval.
    nadeau_bengio : widen the interval by the overlap of the training sets: variance s^2 (1/n + n_test/n_constr) in
        place of s^2/n.

    Returns
    -------
    frame indexed by policy (in the order they were given) and measure, columns mean, sd (ddof = 1), low, high, splits.
    The plain interval mean ± t s / sqrt(n) describes the variation between splits of these items and nothing else: test
    sets overlap, so it is too narrow for the population. One split: NaN.
    """
    rows = {}
    for policy, part in frame.groupby("policy", sort=False):
        overlap = float((part["n_test"] / (part["n_fit"] + part["n_validation"])).mean())
        for name in MEASURED:
            found = split_interval(part[name], level=level, overlap=overlap)
            low, high = ("wide_low", "wide_high") if nadeau_bengio else ("low", "high")
            rows[policy, name] = {"mean": found["mean"], "sd": found["sd"], "low": found[low], "high": found[high],
                                  "splits": len(part)}  # fmt: skip
    out = pd.DataFrame.from_dict(rows, orient="index")
    out.index = pd.MultiIndex.from_tuples(out.index, names=["policy", "measure"])
    return out

"""Accuracy against tokens over question-grouped splits: policies side by side, panels from one expert to nine.

Every choice is made on construction pairs, the tokens are those that the calls on the test pairs really need. A pair
and its swap get opposite answers, so a tie is right on one of the two: it counts one half, whatever the label.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baer_utils.calibrators import Split, split_audit
from baer_utils.early_exit.bank import Bank, SymmetricPolicy, bin_evidence
from baer_utils.juries import FixedPanel
from baer_utils.panels import split_interval

SPLITS = range(10)
MEASURES = ("accuracy", "risk", "tokens", "tokens_alone", "experts")


class ListedPanel(FixedPanel):
    """A panel that was chosen elsewhere, fitted like any other."""

    def __init__(self, panel: Sequence[str]) -> None:
        self.panel = tuple(panel)

    def _choose(self, parts, size: int) -> list[int]:
        return [parts.judges.index(name) for name in self.panel]


def compare_policies(
    bank: Bank, policies: Mapping[str, object], *, seeds: Iterable[int] = SPLITS, bins: int = 1
) -> pd.DataFrame:
    """Every policy on every split of a bank.

    Parameters
    ----------
    bank : of one condition. policies : {name: policy}, each fitted anew on every split, made symmetric by
        `SymmetricPolicy`, and told the standalone tokens as costs.
    seeds : one 25/25/50 split by question each. bins : see `bin_evidence`; edges come from the fit pairs.

    Returns
    -------
    frame, one row per policy and split: policy, seed, accuracy (ties count one half), risk, tokens (per test pair, what
    the calls made there need together), tokens_alone (as separate prompts), experts (called per pair), panel (those
    called on any test pair), n_test and n_construction (pairs).
    """
    rows = []
    for seed, split in _splits(bank, seeds, bins):
        for name, policy in policies.items():
            policy = SymmetricPolicy(policy).fit(split.fit, split.validation, costs=bank.costs, seed=seed)
            rows.append({"policy": name, "seed": seed} | _measure(bank, policy, split))
    return pd.DataFrame(rows)


def compare_sizes(
    bank: Bank, choosers: Mapping[str, FixedPanel], *, seeds: Iterable[int] = SPLITS, bins: int = 1
) -> pd.DataFrame:
    """Panels of every size, from one expert to all, nested along each chooser's order.

    Parameters
    ----------
    choosers : {name: fixed panel of all experts}; its `panel_` after a fit is the order, such as
        ``PrunedBank(prices, size=K)`` or ``TopK(K)``. At size K all orders are the same flat panel.
    bank, seeds, bins : as in `compare_policies`.

    Returns
    -------
    frame as of `compare_policies`, with the column ``size`` and a row for each size.
    """
    rows = []
    for seed, split in _splits(bank, seeds, bins):
        for name, chooser in choosers.items():
            order = chooser.fit(split.fit, split.validation, costs=bank.costs, seed=seed).panel_
            for size in range(1, len(order) + 1):
                panel = SymmetricPolicy(ListedPanel(order[:size])).fit(split.fit, split.validation)
                rows.append({"policy": name, "size": size, "seed": seed} | _measure(bank, panel, split))
    return pd.DataFrame(rows)


def over_splits(
    frame: pd.DataFrame, by: Sequence[str] = ("policy",), measures: Sequence[str] = MEASURES
) -> pd.DataFrame:
    """Mean and t interval over splits of every measure.

    Parameters
    ----------
    frame : one row per split and whatever `by` names. measures : columns to summarise.

    Returns
    -------
    frame indexed by `by`, columns (measure, mean | low | high | wide_low | wide_high). ``low`` and ``high`` are the
    paper's mean ± t(.975, n - 1) s / sqrt(n): variation between splits of these pairs, and too narrow for new ones,
    because test sets overlap. The wide ones allow for that (Nadeau and Bengio: s^2 (1/n + n_test / n_construction)).
    NaN with a single split.
    """
    columns = {}
    for key, part in frame.groupby(list(by), sort=False):
        overlap = float((part["n_test"] / part["n_construction"]).mean())
        found = {measure: split_interval(part[measure], overlap=overlap) for measure in measures}
        columns[key] = {(m, k): v for m, bounds in found.items() for k, v in bounds.items() if k != "sd"}
    out = pd.DataFrame.from_dict(columns, orient="index")
    out.columns = pd.MultiIndex.from_tuples(out.columns)
    out.index = pd.Index([key[0] for key in columns], name=by[0]) if len(by) == 1 else pd.MultiIndex.from_tuples(
        list(columns), names=list(by))  # fmt: skip
    return out


def savings(frame: pd.DataFrame, pruned: str, full: str) -> pd.DataFrame:
    """What one policy saves against another, and what it loses, paired split by split.

    Parameters
    ----------
    frame : of `compare_policies`. pruned, full : names of two of its policies.

    Returns
    -------
    frame with the rows ``tokens_saved`` and ``tokens_alone_saved`` (shares of the full policy's; 0 where that one
    calls nobody), ``accuracy_lost`` and ``risk_added``, columns as of `over_splits`.
    """
    known = set(frame["policy"])
    if pruned not in known or full not in known:
        raise ValueError(f"pruned and full must be among {', '.join(sorted(known))}; {pruned} and {full} came.")
    first, second = (frame[frame["policy"] == name].set_index("seed") for name in (pruned, full))
    paired = first[["n_test", "n_construction"]].assign(
        tokens_saved=_share_saved(first["tokens"], second["tokens"]),
        tokens_alone_saved=_share_saved(first["tokens_alone"], second["tokens_alone"]),
        accuracy_lost=second["accuracy"] - first["accuracy"],
        risk_added=first["risk"] - second["risk"],
        policy=pruned,
    )
    names = ["tokens_saved", "tokens_alone_saved", "accuracy_lost", "risk_added"]
    return over_splits(paired.reset_index(), measures=names).iloc[0].unstack(sort=False)


def _share_saved(spent: pd.Series, full: pd.Series) -> pd.Series:
    return 1 - spent / full.where(full > 0, spent.where(spent > 0, 1.0))


def _splits(bank: Bank, seeds: Iterable[int], bins: int) -> Iterable[tuple[int, Split]]:
    for seed in seeds:
        yield seed, Split(*bin_evidence(*split_audit(bank.audit, seed), bins=bins))


def _measure(bank: Bank, policy: SymmetricPolicy, split: Split) -> dict[str, object]:
    test = split.test
    probability, called = policy.predict(test.Z, test.slices)
    n_pairs = len(test) // 2
    return {
        "accuracy": float(np.mean((probability >= 0.5) == (test.y == 1))),
        "risk": float(np.mean((probability - test.y) ** 2)),
        "tokens": _tokens(bank, bank.pairs_of(test), called[:n_pairs], test.judges),
        "tokens_alone": sum(bank.prices.alone[name] * share for name, share in
                            zip(test.judges, called.mean(axis=0).tolist(), strict=True)),
        "experts": float(called.sum(axis=1).mean()),
        "panel": tuple(np.array(test.judges)[called.any(axis=0)].tolist()),
        "n_test": n_pairs,
        "n_construction": (len(split.fit) + len(split.validation)) // 2,
    }  # fmt: skip


def _tokens(bank: Bank, places: NDArray, called: NDArray[np.bool_], judges: Sequence[str]) -> float:
    """Tokens per pair: each set of experts is priced on the pairs that it is called for."""
    sets, which = np.unique(called, axis=0, return_inverse=True)
    bills = []
    for number, mask in enumerate(sets):
        ids = [bank.pair_ids[place] for place in places[which.ravel() == number]]
        bills.append(len(ids) * bank.prices.of([name for name, on in zip(judges, mask, strict=True) if on], ids))
    return math.fsum(bills) / len(called)

"""The nine experts as an audit in which every pair stands beside its swap, and policies that a swap can only negate.

An output is the signed evidence z of an expert, or the bin of it: z of the swapped pair is -z, to the last bit, so that
exchanging the responses negates every output and turns the label round. The panel method then sees each pattern as
often as its opposite, and what it says about the one is one minus what it says about the other.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from baer_utils.calibrators import Audit
from baer_utils.debias import Debias, bank_runs
from baer_utils.early_exit.prices import BankPrices
from baer_utils.evidence import Evidence, run_array, summarize


@dataclass(frozen=True, eq=False)
class Bank:
    """One condition's experts, ready to be pruned.

    Attributes
    ----------
    audit : 2N items: the pairs, then their swaps in the same order; Z holds the signed evidence z, 0 where an expert
        has no opinion (a tie, orders that cancel, nothing parsed), so every item is a complete case.
    pair_ids : (N,) names of the pairs. evidence : of the N pairs, columns as `audit.judges`.
    prices : tokens of any set of the experts. silent : {expert: pairs without any parsed answer}, counted and kept.
    signal : column of the pair table that slices come from, None without.
    """

    audit: Audit
    pair_ids: tuple[str, ...]
    evidence: Evidence
    prices: BankPrices
    silent: dict[str, int]
    signal: str | None = None

    @property
    def costs(self) -> dict[str, float]:
        """Tokens of every expert as separate prompts; the signal is known with the pair, so it costs nothing."""
        return self.prices.alone | ({self.signal: 0.0} if self.signal else {})

    def pairs_of(self, part: Audit) -> NDArray[np.int64]:
        """Places of the pairs (not the swaps) whose question is in a part of the audit, in the part's order."""
        inside = np.isin(self.audit.groups[: len(self.pair_ids)].astype(str), part.groups.astype(str))
        return np.flatnonzero(inside)


def bank_of(
    pairs: pd.DataFrame,
    runs: pd.DataFrame,
    experts: Sequence[str],
    *,
    debias: Debias | None = None,
    slices: str | None = None,
) -> Bank:
    """The audit of our own bank, symmetric by construction, with what its sets cost.

    Parameters
    ----------
    pairs : pair table, every label known: development pairs, or an opened test. runs : run table of one backbone.
    experts : names, in the order of the columns. debias : fitted corrections, where `pride` or `calibraeval` is among
        the experts.
    slices : column of `pairs` that may be routed on, such as ``subset``; the same for a pair and its swap. None: no
        routes. A slice has twice as many items as pairs, so the 20 fit items that a route needs are 10 pairs.

    Raises
    ------
    ValueError
        for pairs without a label, and what `bank_runs` and `run_array` refuse.
    """
    unknown = pairs["label"].isna()
    if unknown.any() or not len(pairs):
        raise ValueError(
            f"a bank is pruned on labelled pairs, at least one; of {len(pairs)} pairs {int(unknown.sum())} have no "
            "label. Leave sealed test pairs out."
        )
    L = run_array(bank_runs(runs, experts, debias), experts, pairs["pair_id"])
    evidence = summarize(L, experts)
    Z = np.vstack([0.0 + evidence.z, 0.0 - evidence.z]).astype(object)
    y = (np.concatenate([pairs["label"], -pairs["label"]]) + 1) / 2
    twice = [np.tile(pairs[name].to_numpy(object), 2) if name else None for name in (slices, "group_id")]
    silent = dict(zip(evidence.experts, (~evidence.available).sum(axis=0).tolist(), strict=True))
    prices = BankPrices(runs, experts, pairs["pair_id"])
    return Bank(Audit(Z, y, tuple(experts), *twice), tuple(pairs["pair_id"]), evidence, prices, silent, slices)


def bin_evidence(fit: Audit, *others: Audit, bins: int = 1) -> tuple[Audit, ...]:
    """The same audits with evidence cut into symbols that a swap negates: a decision, or a decision and its firmness.

    Parameters
    ----------
    fit : the only audit whose evidence decides the edges. others : audits cut at the same edges.
    bins : bins of abs(z) between its quantiles over the fit items that have an opinion; 1 leaves the decision alone.

    Returns
    -------
    audits, fit first. Symbols are 0 for no opinion, else ±1, ±2, … ±bins, firmer as the number grows. The edges see
    abs(z) only, which a pair shares with its swap.
    """
    if bins < 1:
        raise ValueError(f"bins must be at least 1; it is {bins}. 1 keeps the decision alone.")
    edges = []
    for column in np.abs(fit.Z.astype(float)).T:
        firm = column[column > 0]
        edges.append(np.unique(np.quantile(firm, np.arange(1, bins) / bins)) if len(firm) else np.empty(0))
    return tuple(_cut(audit, edges) for audit in (fit, *others))


def _cut(audit: Audit, edges: list[NDArray[np.float64]]) -> Audit:
    z = audit.Z.astype(float)
    places = [np.searchsorted(edge, np.abs(column), side="right") for edge, column in zip(edges, z.T, strict=True)]
    symbols = np.sign(z).astype(int) * (1 + np.stack(places, axis=1))
    return Audit(symbols.astype(object), audit.y, audit.judges, audit.slices, audit.groups)


class SymmetricPolicy:
    """Any policy, asked about an item and about its swap, so that both answers add up to 1 to the last bit.

    The paper's tables do so by themselves: the rounded means s / n and (n - s) / n add up to 1. Smoothed tables and
    stacks do but for their rounding. Half the difference of both answers negates exactly under the swap; it is added to
    1/2 on one side, and the sum subtracted from 1 on the other, which is exact. An item that is its own swap (no expert
    has an opinion) gets 1/2, and so does an unseen pattern.

    Parameters
    ----------
    policy : with ``fit(fit, validation, *, costs, seed)`` and ``predict(Z, slices)``, over numeric outputs.
    """

    def __init__(self, policy: object) -> None:
        self.policy = policy

    @property
    def plan_(self) -> object:
        """The plan of the policy inside, where it has one: its calls, its tables, and what its route key costs."""
        return getattr(self.policy, "plan_", self.policy)

    def fit(self, fit: Audit, validation: Audit, *, costs=None, seed: int = 0) -> SymmetricPolicy:
        """Fit the policy on audits in which every item stands beside its swap."""
        self.policy.fit(fit, validation, costs=costs, seed=seed)
        return self

    def predict(self, Z: ArrayLike, slices: object = None) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Probability that *a* is preferred, and the calls: those that either of the two answers needs."""
        Z = np.asarray(Z, dtype=object)
        answer, called = self.policy.predict(Z, slices)
        swapped, needed = self.policy.predict(swap_outputs(Z), slices)
        lean = (answer - swapped) / 2
        high = 0.5 + np.abs(lean)
        return np.where(lean >= 0, high, 1.0 - high), called | needed


swap_outputs = np.frompyfunc(lambda output: 0 - output if isinstance(output, numbers.Real) else output, 1, 1)
"""Outputs of the swapped pairs: numbers negate, whatever else stands in an array of outputs stays."""

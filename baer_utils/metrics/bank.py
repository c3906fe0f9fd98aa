"""The bank as a whole: what a perfect chooser could reach, how often experts flip, disagree or err together.

Beside each flattering number stands the one that luck would give. Simple rules that a bank must beat (majority, best
single expert, the longer response) are here too. Works on signed evidence; it fits nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from baer_utils.metrics.rules import as_answers, check_labels, pairwise_accuracy

ONE_TEMPLATE = ("direct", "pride", "calibraeval")  # with both orders averaged these three decide alike: one vote


def any_expert_oracle(z: ArrayLike, y: ArrayLike) -> float:
    """Share of pairs where at least one expert is right; an expert with z = 0 or NaN never is.

    Parameters
    ----------
    z : array (N, K) of signed evidence. y : array (N,) of labels, +1 or -1.
    """
    return float((np.sign(z) == check_labels(y, z)[:, None]).any(axis=1).mean())


def coin_oracle(z: ArrayLike) -> float:
    """The oracle's value if every opinion were a coin: the mean of 1 - 2^-k, k experts having an opinion on a pair."""
    opinions = (np.abs(np.asarray(z, dtype=float)) > 0).sum(axis=1)
    return float((1 - 0.5**opinions).mean())


def flips(L: ArrayLike) -> NDArray[np.float64]:
    """Where an expert's verdict depends on the display order: order-inconsistent pairs.

    Parameters
    ----------
    L : array (N, K, M) of signed run log-odds toward *a* (`run_array`); NaN for a missing run.

    Returns
    -------
    array (N, K): 1 where the verdicts toward *a* are not all equal, 0 where they are, NaN with fewer than two answered
    runs (both orders). A tie in one order against a verdict in the other is a flip; a tie in both is not.
    """
    verdict = np.sign(np.asarray(L, dtype=float))
    answered = ~np.isnan(verdict)
    low, high = np.where(answered, verdict, np.inf).min(axis=-1), np.where(answered, verdict, -np.inf).max(axis=-1)
    return np.where(answered.sum(axis=-1) >= 2, (low != high).astype(float), np.nan)


def flip_rate(L: ArrayLike) -> NDArray[np.float64]:
    """Share of pairs on which an expert's verdict depends on the display order.

    Returns
    -------
    array (K,): the mean of `flips` over the pairs with both orders; NaN where no pair has both.
    """
    flipped = flips(L)
    counted = (~np.isnan(flipped)).sum(axis=0)
    return np.where(counted > 0, np.nansum(flipped, axis=0) / np.maximum(counted, 1), np.nan)


def opinions(z: ArrayLike, y: ArrayLike) -> dict[str, float]:
    """How the experts that have an opinion (z not 0, not NaN) stand to each other and to the label.

    Returns
    -------
    dict of shares of pairs that add up to 1: ``disagree``, ``agree_right``, ``agree_wrong`` (one lone opinion agrees
    with itself), ``silent`` (no expert has one). Only new evidence can repair ``agree_wrong``.
    """
    y, sign = check_labels(y, z), np.sign(np.nan_to_num(np.asarray(z, dtype=float)))
    low, high = np.where(sign == 0, np.inf, sign).min(axis=1), np.where(sign == 0, -np.inf, sign).max(axis=1)
    agree = low == high
    return {
        "disagree": float((low < high).mean()),
        "agree_right": float((agree & (low == y)).mean()),
        "agree_wrong": float((agree & (low == -y)).mean()),
        "silent": float((low > high).mean()),
    }


def agreement(z: ArrayLike) -> NDArray[np.float64]:
    """Share of pairs on which two experts name the same winner, among those where both have an opinion.

    Parameters
    ----------
    z : array (N, K) of signed evidence; 0 and NaN are no opinion.

    Returns
    -------
    array (K, K), symmetric, 1 on the diagonal; NaN where two experts never have an opinion on the same pair.
    """
    sign = np.sign(np.nan_to_num(np.asarray(z, dtype=float)))
    together = np.abs(sign).T @ np.abs(sign)
    return np.where(together > 0, (1 + (sign.T @ sign) / np.maximum(together, 1)) / 2, np.nan)


def vote_weights(experts: Sequence[str]) -> NDArray[np.int64]:
    """Votes of each expert, in sixths, so that weighted counts stay exact integers.

    An expert has 6. Those of `ONE_TEMPLATE` share one vote: 2 each (1/3) when all three are there, 3 when two are, and
    6 for the only one. With both orders of one template averaged, PriDe under any prior and CalibraEval under any
    increasing g decide exactly as direct judging does.
    """
    family = max(sum(name in ONE_TEMPLATE for name in experts), 1)
    return np.array([6 // family if name in ONE_TEMPLATE else 6 for name in experts], dtype=int)


def majority(z: ArrayLike, experts: Sequence[str]) -> NDArray[np.float64]:
    """Majority of the experts' signs, weighted by `vote_weights`; z = 0 and NaN do not vote.

    Returns
    -------
    array (N,): +1, -1, 0 where the votes balance, NaN where no expert has an opinion.
    """
    sign = np.sign(np.nan_to_num(np.asarray(z, dtype=float))).astype(int)
    return np.where((sign != 0).any(axis=1), np.sign(sign @ vote_weights(experts)), np.nan)


def best_single(z: ArrayLike, y: ArrayLike, experts: Sequence[str]) -> str:
    """Name of the expert that is right most often, matched rule, ties by name; choose it on development data."""
    by_name = zip(experts, np.transpose(z), strict=True)
    accuracy = {name: pairwise_accuracy(as_answers(column), y) for name, column in by_name}
    return min(accuracy, key=lambda name: (-accuracy[name], name))


def longer_response(pairs: pd.DataFrame) -> NDArray[np.float64]:
    """A judge that looks at length alone, in characters: +1 where *a* is longer, -1 where *b* is, 0 if equal."""
    return np.sign(pairs["response_a"].str.len().to_numpy(float) - pairs["response_b"].str.len().to_numpy(float))


def simple_rules(z: ArrayLike, experts: Sequence[str], pairs: pd.DataFrame, best: str) -> pd.DataFrame:
    """Answers of the three rules that any head should beat, for the rows that stand in every table of methods.

    Parameters
    ----------
    z : array (N, K) of signed evidence, NaN where the expert is missing. experts : K names. pairs : pair table, N rows.
    best : the expert that `best_single` named, on development data.

    Returns
    -------
    frame (N, 3), row for row the pairs: the best single expert's sign, the majority of the bank, the longer response;
    +1, -1, 0 for a tie, NaN for no answer. `ledger` turns each column into a row.
    """
    z = np.asarray(z, dtype=float)
    rules = {f"best single ({best})": np.sign(z[:, list(experts).index(best)]), "majority": majority(z, experts)}
    return pd.DataFrame(rules | {"longer response": longer_response(pairs)})

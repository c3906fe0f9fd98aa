"""Whether a probability means what it says: Brier score, calibration error, reliability curves, also by display order.

Confidence is max(p, 1 - p), the same for a pair and its swap; only where a bias to one side is the question is the
probability itself binned. Works on arrays; it knows nothing about heads or judges.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from baer_utils.metrics.intervals import share_interval
from baer_utils.metrics.rules import check_labels

BINS = 10
ORDERS = ("ab", "ba")
READ_FIGURES = ("brier", "ece", "accuracy", "first", "first_preferred", "bias")


def brier_score(probability: ArrayLike, y: ArrayLike) -> float:
    """Mean squared distance between the probability that *a* is preferred and what was; 1/4 for a coin.

    Parameters
    ----------
    probability : array (N,) in [0, 1]. y : array (N,) of labels, +1 or -1.
    """
    return float(((np.asarray(probability, dtype=float) - (check_labels(y, probability) > 0)) ** 2).mean())


def calibration_error(probability: ArrayLike, y: ArrayLike, *, bins: int = BINS, folded: bool = True) -> float:
    """Expected calibration error of the confidence max(p, 1 - p), in equal bins of [1/2, 1].

    Parameters
    ----------
    probability : array (N,) in [0, 1] that *a* is preferred. y : array (N,) of labels, +1 or -1.
    bins, folded : see `reliability_curve`.

    Returns
    -------
    mean over pairs of ``|accuracy - confidence|`` of their bin; a probability of exactly 1/2 is half right.
    """
    confidence, right, bin_of = _binned(probability, y, bins, folded)
    return float(np.abs(np.bincount(bin_of, right - confidence)).sum() / len(right))


def reliability_curve(
    probability: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None, *, bins: int = BINS, folded: bool = True
) -> pd.DataFrame:
    """How often answers of each confidence are right: the curve whose distance from the diagonal is the error.

    Parameters
    ----------
    probability : array (N,) in [0, 1] that *a* is preferred. y : array (N,) of labels, +1 or -1.
    groups : array (N,), the question of each pair, for the intervals; None where every pair is its own.
    bins : number of equal bins.
    folded : True bins the confidence max(p, 1 - p) in [1/2, 1] against the share right. False bins p itself in [0, 1]
        against the share of pairs whose label is +1: where p speaks of the response shown first, that shows a judge's
        position bias, which folding would hide; where p is the reliability of an expert and the label says whether it
        was right, a reliability below 1/2 is no confidence in the contrary.

    Returns
    -------
    frame, one row per bin that holds a pair: ``low`` and ``high`` (its edges; the last bin holds its upper edge too),
    ``pairs``, ``confidence`` (mean in the bin), ``accuracy`` with ``accuracy_low`` and ``accuracy_high`` (95 %,
    `share_interval`). The mean of ``|accuracy - confidence|``, weighted by pairs, is `calibration_error`.
    """
    confidence, right, bin_of = _binned(probability, y, bins, folded)
    groups = np.arange(len(right)) if groups is None else np.asarray(groups)
    edges = np.linspace(0.5 if folded else 0.0, 1.0, bins + 1)
    rows = []
    for place in np.unique(bin_of):
        inside = bin_of == place
        low, high = share_interval(right[inside], groups[inside])
        row = {"low": edges[place], "high": edges[place + 1], "pairs": int(inside.sum())}
        row |= {"confidence": confidence[inside].mean(), "accuracy": right[inside].mean()}
        rows.append(row | {"accuracy_low": low, "accuracy_high": high})
    return pd.DataFrame(rows)


def first_shown(L: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Every single-order read as a probability of the response *shown first*, and whether that one is preferred.

    Parameters
    ----------
    L : array (N, K, M) of signed run log-odds toward *a* (`run_array`): even places of the last axis are order ab, odd
        ones ba; NaN for a missing run, ±inf for a hard verdict. An imported expert that has only the net of both
        orders stands in the places of ab and has no display order: leave it out.
    y : array (N,) of labels, +1 or -1.

    Returns
    -------
    probability : (N, K, M), NaN where there is no read. label : (N, M), +1 where the response shown first is preferred.
    For the swapped pairs the two orders change places and nothing else.
    """
    L = np.asarray(L, dtype=float)
    side = np.where(np.arange(L.shape[-1]) % 2, -1.0, 1.0)
    return expit(L * side), check_labels(y, L)[:, None] * side


def order_calibration(L: ArrayLike, y: ArrayLike, experts: Sequence[str], *, bins: int = BINS) -> pd.DataFrame:
    """Calibration of each expert's single-order probability, by display order.

    Parameters
    ----------
    L, y : see `first_shown`. experts : K names.

    Returns
    -------
    frame indexed by expert and order (``ab``, ``ba``, ``both``: all reads together, whatever the frame): ``reads``;
    ``brier`` and ``ece`` (`calibration_error`, folded); ``accuracy`` (a read of exactly 1/2 is half right);
    ``first``, the mean probability given to the response shown first; ``first_preferred``, how often it was; ``bias``,
    their difference: a judge without position bias has 0. NaN where an expert has no read in that order; no rows
    without experts.
    """
    probability, label = first_shown(L, y)
    places = {order: np.arange(probability.shape[-1]) % 2 == m for m, order in enumerate(ORDERS)}
    places["both"] = np.ones(probability.shape[-1], dtype=bool)
    rows = []
    for k in range(len(experts)):
        for chosen in places.values():
            p = probability[:, k, chosen]
            read = ~np.isnan(p)
            rows.append(_read_figures(p[read], label[:, chosen][read], bins))
    index = pd.MultiIndex.from_product([list(experts), list(places)], names=["expert", "order"])
    return pd.DataFrame(rows, index=index, columns=["reads", *READ_FIGURES])


def order_curves(
    L: ArrayLike, y: ArrayLike, groups: ArrayLike, experts: Sequence[str], *, bins: int = BINS
) -> dict[str, pd.DataFrame]:
    """Unfolded `reliability_curve` of each expert's single reads, about the response shown first, both orders together.

    Parameters
    ----------
    L, experts : see `order_calibration`. y : array (N,), +1 or -1; pairs where it is NaN are left out.
    groups : array (N,), the question of each pair, for the intervals.

    Returns
    -------
    expert -> curve; an expert without a read on a labelled pair is left out.
    """
    y = np.asarray(y, dtype=float)
    known = ~np.isnan(y)
    if not known.any():
        return {}
    probability, label = first_shown(np.asarray(L, dtype=float)[known], y[known])
    question = np.repeat(np.asarray(groups)[known][:, None], label.shape[1], axis=1)
    curves = {}
    for k, name in enumerate(experts):
        read = ~np.isnan(probability[:, k])
        if read.any():
            rows = (values[read] for values in (probability[:, k], label, question))
            curves[name] = reliability_curve(*rows, bins=bins, folded=False)
    return curves


def _read_figures(p: NDArray, label: NDArray, bins: int) -> dict[str, float]:
    if not len(p):
        return {"reads": 0} | dict.fromkeys(READ_FIGURES, np.nan)
    _, right, _ = _binned(p, label, bins, folded=True)
    first, preferred = float(p.mean()), float((label > 0).mean())
    figures = (brier_score(p, label), calibration_error(p, label, bins=bins), float(right.mean()), first, preferred)
    return {"reads": len(p)} | dict(zip(READ_FIGURES, (*figures, first - preferred), strict=True))


def _binned(probability: ArrayLike, y: ArrayLike, bins: int, folded: bool) -> tuple[NDArray, NDArray, NDArray]:
    """Confidence, how right, and bin of each pair."""
    p, y = np.asarray(probability, dtype=float), check_labels(y, probability)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"probabilities must lie in [0, 1]; {int((~((p >= 0) & (p <= 1))).sum())} do not. Use Eq. 1a.")
    if not folded:
        return p, (y > 0).astype(float), np.minimum((p * bins).astype(int), bins - 1)
    confidence, right = np.maximum(p, 1 - p), np.where(p == 0.5, 0.5, (p > 0.5) == (y > 0))
    return confidence, right, np.minimum(((confidence - 0.5) * 2 * bins).astype(int), bins - 1)

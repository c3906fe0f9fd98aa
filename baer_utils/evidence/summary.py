"""What one expert says about a pair, and how firmly: mean preference, instability, shrunk log-odds (Eq. 3, 4).

Sums do not depend on the order of their terms, and *a* and *b* are accumulated separately, so that exchanging the
responses negates every value bit for bit. This file works on arrays; it knows nothing about tables, labels or judges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit


@dataclass(frozen=True)
class Evidence:
    """What K experts say about N pairs; all arrays (N, K), columns in the order of `experts`.

    Attributes
    ----------
    p : mean preference for *a* in [0, 1]; 1/2 where the expert is missing.
    delta : instability over the runs in [0, 1]; 0 for a single run and where the expert is missing.
    z : log-odds of p, clipped; 0 where missing.
    z_shrunk : z / (1 + 4 delta).
    available : True where at least one run gave a verdict.
    experts : names, in column order.
    """

    p: NDArray[np.float64]
    delta: NDArray[np.float64]
    z: NDArray[np.float64]
    z_shrunk: NDArray[np.float64]
    available: NDArray[np.bool_]
    experts: tuple[str, ...]


def order_free_sum(terms: NDArray) -> NDArray[np.float64]:
    """Sum over the last axis whose bits do not depend on the order of the terms: sorted first, then added."""
    return np.ascontiguousarray(np.sort(terms, axis=-1)).sum(axis=-1)


def mean_preference(L: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean probability that *a*, and that *b*, is preferred over an expert's runs (BAER Eq. 3a).

    Parameters
    ----------
    L : array (N, K, M) of signed run log-odds toward *a*; NaN for a missing run, ±inf for a hard verdict.

    Returns
    -------
    p_a, p_b : arrays (N, K), means of sigmoid(L) and of sigmoid(-L) over the runs that answered; 1/2 and 1/2 where none
    did. Both are accumulated, never one as 1 minus the other, so a swap exchanges them bit for bit.
    """
    L = _runs(L)
    answered = ~np.isnan(L)
    count = answered.sum(axis=-1)
    p_a, p_b = (
        order_free_sum(np.where(answered, expit(side), 0.0)) / np.maximum(count, 1) for side in (L, -L)
    )  # fmt: skip
    return np.where(count > 0, p_a, 0.5), np.where(count > 0, p_b, 0.5)


def order_instability(L: NDArray) -> NDArray[np.float64]:
    """Spread of an expert's answers over repeated and swapped runs (BAER Eq. 3b).

    Parameters
    ----------
    L : array (N, K, M) of signed run log-odds toward *a*; NaN for a missing run, ±inf for a hard verdict.

    Returns
    -------
    array (N, K), delta in [0, 1]: 0 for an expert that never moves or ran once, and 0 where every run is missing, so
    that absent evidence is neutral rather than distrusted. Half the spread of sigmoid(L) plus half that of sigmoid(-L):
    in exact arithmetic the paper's max - min, in floating point also even under the swap to the last bit.
    """
    L = _runs(L)
    answered = ~np.isnan(L)
    spreads = [
        np.where(answered, side, -np.inf).max(axis=-1) - np.where(answered, side, np.inf).min(axis=-1)
        for side in (expit(L), expit(-L))
    ]
    return np.where(answered.any(axis=-1), (spreads[0] + spreads[1]) / 2, 0.0)


def clip_limit(clip: float) -> float:
    """Largest log-odds that a clip of probabilities to [clip, 1 - clip] leaves: log((1 - clip) / clip)."""
    if not 0 < clip < 0.5:
        raise ValueError(f"clip must lie strictly between 0 and 1/2; it is {clip}. The default is 1e-4.")
    return float(np.log((1 - clip) / clip))


def log_odds(p_a: ArrayLike, p_b: ArrayLike, *, clip: float = 1e-4) -> NDArray[np.float64]:
    """Log odds of the mean preference, clipped once (BAER Eq. 4a).

    Parameters
    ----------
    p_a, p_b : arrays of one shape, the mean probabilities for *a* and for *b*, as `mean_preference` gives them.
    clip : probability in (0, 1/2); the result lies within ±log((1 - clip) / clip). The paper gives no constant; with
        hard verdicts it decides how loud one expert can be.

    Returns
    -------
    array, log p_a - log p_b: exactly 0 where both are equal, negated bit for bit when they change places.
    """
    limit = clip_limit(clip)
    with np.errstate(divide="ignore"):
        z = np.log(np.asarray(p_a, dtype=float)) - np.log(np.asarray(p_b, dtype=float))
    return np.clip(z, -limit, limit)


def shrunk_log_odds(z: ArrayLike, delta: ArrayLike) -> NDArray[np.float64]:
    """Log odds discounted by order instability, down to a fifth (BAER Eq. 4b).

    Parameters
    ----------
    z, delta : arrays of one shape: signed log-odds, and instability in [0, 1].

    Returns
    -------
    array, z / (1 + 4 delta).
    """
    return np.asarray(z, dtype=float) / (1 + 4 * np.asarray(delta, dtype=float))


def summarize(L: NDArray, experts: Sequence[str] | None = None, *, clip: float = 1e-4) -> Evidence:
    """Evidence of every expert on every pair, from the array of their runs.

    Parameters
    ----------
    L : array (N, K, M) of signed run log-odds toward *a*; NaN missing, ±inf hard.
    experts : K names in column order; ``expert_1`` … when left out.
    clip : see `log_odds`.

    Raises
    ------
    ValueError
        when L has not three axes, or the names do not match its second.
    """
    L = _runs(L)
    names = tuple(f"expert_{k + 1}" for k in range(L.shape[1])) if experts is None else tuple(experts)
    if len(names) != L.shape[1]:
        raise ValueError(
            f"experts must name the {L.shape[1]} columns of L; {len(names)} names came: {', '.join(names)}."
        )
    p_a, p_b = mean_preference(L)
    delta, z = order_instability(L), log_odds(p_a, p_b, clip=clip)
    return Evidence(p_a, delta, z, shrunk_log_odds(z, delta), ~np.isnan(L).all(axis=-1), names)


def _runs(L: NDArray) -> NDArray[np.float64]:
    L = np.asarray(L, dtype=float)
    if L.ndim != 3:
        raise ValueError(f"L must have the axes pairs, experts, runs; it has shape {L.shape}. Use run_array.")
    return L

"""How far a share could be luck: Wilson intervals, and a bootstrap over questions.

Pairs that ask the same question are not independent, so both know the question of each pair, and nothing else.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

BLOCK = 2**22  # numbers that a bootstrap holds at once


def wilson_interval(successes: float, n: float, *, level: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a share.

    Parameters
    ----------
    successes, n : numbers of successes and of trials; fractions are legal (half credit, effective sample sizes).

    Returns
    -------
    (low, high) within [0, 1]; (NaN, NaN) where n is 0.
    """
    if n <= 0:
        return float("nan"), float("nan")
    z2, share = float(norm.ppf((1 + level) / 2)) ** 2, successes / n
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return float(max(middle - half, 0.0)), float(min(middle + half, 1.0))


def share_interval(values: ArrayLike, groups: ArrayLike, *, level: float = 0.95) -> tuple[float, float]:
    """Wilson interval of a mean of values in [0, 1] over pairs that share questions.

    Parameters
    ----------
    values : array (N,): 1 right, 0 wrong, 1/2 half credit. groups : array (N,), the question of each pair.

    Returns
    -------
    (low, high). Where every pair has its own question this is Wilson's interval on N pairs. Where questions repeat, N
    is divided by the design effect: the between-question variance of the mean over the variance that independent pairs
    would give it, never below 1; a share of exactly 0 or 1 shows no variance, and N becomes the number of questions.
    """
    values = np.asarray(values, dtype=float)
    n, share = len(values), float(values.mean()) if len(values) else 0.0
    question, n_groups = _questions(groups)
    effective = n
    if n_groups < n:
        effective = n_groups
        if 0 < share < 1 and n_groups > 1:
            residual = np.bincount(question, values - share)
            variance = (residual**2).sum() / n**2 * n_groups / (n_groups - 1)
            effective = n / max(1.0, variance / (share * (1 - share) / n))
    return wilson_interval(share * effective, effective, level=level)


def paired_bootstrap(
    first: ArrayLike, second: ArrayLike, groups: ArrayLike, *, draws: int = 10_000, seed: int = 0, level: float = 0.95
) -> tuple[float, float, float]:
    """Difference of two accuracies on the same pairs, and its percentile interval over resampled questions.

    Parameters
    ----------
    first, second : arrays (N,), whether (or how far) each method is right on each pair.
    groups : array (N,), the question of each pair; whole questions are drawn, with replacement.

    Returns
    -------
    (difference, low, high), shares of pairs. Questions with the same size and the same net gain are interchangeable, so
    each draw is one multinomial over the kinds of questions: exact, fast at any N where values are 0, 1/2 or 1, and
    made in blocks, so that memory stays bounded whatever the values are. Where the two methods never differ, the
    interval is (0, 0): nothing was observed to vary, which is not proof of equality.

    Raises
    ------
    ValueError
        for no pairs, or arrays of different lengths.
    """
    gain = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    if not len(gain) or len(gain) != len(groups):
        raise ValueError(
            f"first, second and groups must hold one value for each of at least one pair; {len(gain)} gains and "
            f"{len(groups)} groups came. Align them by pair_id."
        )
    question, n_groups = _questions(groups)
    of_question = np.stack([np.bincount(question, gain), np.bincount(question)], axis=1)
    kinds, number = np.unique(of_question, axis=0, return_counts=True)
    rng, share, difference = np.random.default_rng(seed), number / n_groups, np.empty(draws)
    step = max(BLOCK // len(kinds), 1)
    for start in range(0, draws, step):
        drawn = rng.multinomial(n_groups, share, size=min(step, draws - start))
        difference[start : start + step] = (drawn @ kinds[:, 0]) / (drawn @ kinds[:, 1])
    low, high = np.quantile(difference, [(1 - level) / 2, (1 + level) / 2])
    return float(gain.mean()), float(low), float(high)


def _questions(groups: ArrayLike) -> tuple[NDArray[np.int64], int]:
    """A number for the question of each pair, and how many there are."""
    codes, names = pd.factorize(np.asarray(groups))
    return codes, len(names)

"""Is it luck: the exact test for two methods on the same pairs, several tests at once, and what n pairs can show.

Works on counts of pairs where the two methods differ in being right; it knows nothing about methods or scoring rules.
"""

from __future__ import annotations

import math
import operator
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom, norm


def discordant(first: ArrayLike, second: ArrayLike) -> tuple[int, int]:
    """Numbers of pairs where only the first method is right, and where only the second is.

    Parameters
    ----------
    first, second : boolean arrays (N,), whether each method is right on each pair, in the same order.
    """
    first, second = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    if first.shape != second.shape:
        raise ValueError(f"both methods must be judged on the same pairs; {first.shape} and {second.shape} came.")
    return int((first & ~second).sum()), int((second & ~first).sum())


def mcnemar(first_only: int, second_only: int, *, mid: bool = False) -> float:
    """Exact two-sided McNemar p-value of two methods on the same pairs.

    Parameters
    ----------
    first_only, second_only : the two discordant counts, from `discordant`.
    mid : the mid-p version, which counts half of the observed outcome; the paper's values are exact, not mid-p.

    Returns
    -------
    p in (0, 1]; 1 where the methods never differ. Exact integers up to 1,000 discordant pairs, the binomial
    distribution function beyond.
    """
    first_only, second_only = operator.index(first_only), operator.index(second_only)  # numpy's would overflow in 2**n
    low, n = min(first_only, second_only), first_only + second_only
    if low < 0:
        raise ValueError(f"discordant counts must be 0 or more; they are {first_only} and {second_only}.")
    if n <= 1000:
        point = Fraction(math.comb(n, low), 2**n)
        tail = Fraction(sum(math.comb(n, i) for i in range(low + 1)), 2**n)
    else:
        point, tail = binom.pmf(low, n, 0.5), binom.cdf(low, n, 0.5)
    return float(min(1, 2 * tail - point if mid else 2 * tail))


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Holm's step-down adjustment of several p-values, in their own order.

    Parameters
    ----------
    p_values : array (C,), one per condition, each in [0, 1].

    Returns
    -------
    array (C,): compare each with the level; the chance of any false star stays below it, whatever the dependence.
    """
    p = np.asarray(p_values, dtype=float)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"p-values must lie in [0, 1]; they are {p.tolist()}. Leave out conditions that have none.")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1)
    return adjusted


def minimum_detectable_effect(n: int, discordance: float, *, level: float = 0.05, power: float = 0.8) -> float:
    """Smallest true difference in accuracy that a two-sided McNemar test on n pairs would probably notice.

    Parameters
    ----------
    n : number of pairs. discordance : share of pairs where only one of the two methods is right, in (0, 1].
    level, power : of the test, 0 < level < 1 and 1/2 <= power < 1; the defaults are the customary ones.

    Returns
    -------
    difference in accuracy (a share, not points), the root of Connor's sample-size formula (Biometrics 43, 1987)
    ``sqrt(n) d = z_level sqrt(psi) + z_power sqrt(psi - d^2)``, psi the discordance. NaN where no difference that such
    a discordance allows (d <= psi) would be noticed, as with three pairs or fewer. The exact test is a little more
    demanding still.
    """
    if not (n > 0 and 0 < discordance <= 1):
        raise ValueError(f"n must be positive and discordance lie in (0, 1]; they are {n} and {discordance}.")
    if not (0 < level < 1 and 0.5 <= power < 1):
        raise ValueError(f"level must lie in (0, 1) and power in [0.5, 1); they are {level} and {power}.")
    a, b = float(norm.ppf(1 - level / 2)), float(norm.ppf(power))
    if n < a**2:  # the squared formula may have roots even so, none of which solves the formula itself
        return float("nan")
    root = a * math.sqrt(n * discordance)
    effect = (root + math.sqrt(max(root**2 - (n + b**2) * (a**2 - b**2) * discordance, 0.0))) / (n + b**2)
    return effect if effect <= discordance else float("nan")

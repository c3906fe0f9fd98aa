"""Above which confidence an answer is trusted: Learn-then-Test, which promises something, and SCOPE's rule.

Works on confidences and errors of pairs that are independent of each other, one per question; who may be among them is
decided in `halves`. This file knows nothing about heads, splits or tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom, nbinom

from baer_utils.selective.curves import risk_coverage

DELTA = 0.1  # the guarantee may fail in one fit of ten, as in the examples of Learn then Test
FEWEST = 25  # accepted pairs below which the method's own code does not test
STEPS = 25  # thresholds on a grid


@dataclass(frozen=True)
class Threshold:
    """Answers of a confidence above `value` are accepted; infinite where nothing could be certified: abstain always.

    Attributes
    ----------
    value, alpha, delta : the threshold, the risk it holds, and the probability with which that may fail.
    steps : one row per threshold tested, in order: ``threshold``, ``accepted``, ``errors``, ``p``, ``certified``.
    """

    value: float
    alpha: float
    delta: float
    steps: pd.DataFrame = field(compare=False, repr=False)

    def accepts(self, confidence: ArrayLike) -> NDArray[np.bool_]:
        """Whether each answer is accepted; an answer without confidence (0) never is."""
        return np.asarray(confidence, dtype=float) > self.value


def binomial_p(errors: ArrayLike, accepted: ArrayLike, alpha: float) -> NDArray[np.float64]:
    """p-value of "the risk is above alpha": the chance of so few errors if it were exactly alpha.

    Parameters
    ----------
    errors, accepted : whole numbers, of one shape. alpha : risk in (0, 1).

    Returns
    -------
    array, P(Bin(accepted, alpha) <= errors); 1 where nothing was accepted. Valid given the number accepted.
    """
    return np.asarray(binom.cdf(errors, accepted, alpha))


def fewest_accepted(alpha: float, delta: float = DELTA) -> int:
    """Accepted pairs from which a threshold can be certified though two of them are wrong; at least 25.

    Two, because a sequence that starts where a single error ends it often ends there, and one that starts with room for
    many never reaches the surest answers; in simulations of calibrated heads two accepted most.
    """
    _check_levels(alpha, delta)
    failures = nbinom.ppf(1 - delta, 3, alpha)  # right answers before the third wrong one, were the risk alpha
    return max(FEWEST, 3 + int(failures))


def confidence_grid(
    confidence: ArrayLike, n: int, *, alpha: float, delta: float = DELTA, steps: int = STEPS
) -> NDArray[np.float64]:
    """Thresholds to test on n pairs, highest first, from confidences that are not those of the n pairs.

    Parameters
    ----------
    confidence : array of confidences of other pairs of the same condition, such as the development pairs; no label is
        looked at, so the grid is fixed before any label of the n pairs is seen.
    n : pairs that the threshold will be fitted on.
    alpha, delta : see `fit_threshold`. steps : at most so many thresholds.

    Returns
    -------
    array, strictly falling, ending at 0 (every pair with an opinion). It starts where about `fewest_accepted` pairs
    would be accepted, or more where confidences are equal (a fixed sequence stops at its first failure, so one that
    starts with fewer would end there), and falls in equal steps of pairs. The method leaves the grid open.
    """
    confidence = _finite(confidence)
    values = np.unique(np.append(confidence, 0.0))
    above = len(confidence) - np.searchsorted(np.sort(confidence), values, side="right")  # falls as values rise
    wanted = np.linspace(min(fewest_accepted(alpha, delta), n), n, steps) / max(n, 1) * len(confidence)
    highest = np.searchsorted(-above, -wanted + 1e-9, side="right") - 1  # the last value with that many above it
    return np.unique(np.append(values[np.maximum(highest, 0)], 0.0))[::-1]


def fit_threshold(
    confidence: ArrayLike, wrong: ArrayLike, grid: ArrayLike, *, alpha: float, delta: float = DELTA
) -> Threshold:
    """The smallest threshold whose risk is certified: Learn-then-Test with exact binomial tests in a fixed sequence.

    Parameters
    ----------
    confidence : array (N,), 0 or more, the same for a pair and its swap. wrong : array (N,), 1 where the answer errs.
        One pair per question: the tests rest on independent pairs.
    grid : thresholds, strictly falling, fixed before these labels were seen (`confidence_grid`).
    alpha : the risk, errors among accepted answers, that must not be exceeded. delta : the chance that it is.

    Returns
    -------
    Threshold
        Thresholds are tested from the highest down, each at level delta, until the first failure; the last that passed
        is deployed. Over new draws of the fitted pairs the risk of accepted answers exceeds alpha with probability
        delta at most. Source: Angelopoulos et al., Learn then Test (Ann. Appl. Stat. 19, 2025), fixed sequence testing.

    Raises
    ------
    ValueError
        for unequal lengths, confidences that are negative or no number, a grid that does not fall, or levels outside
        (0, 1).
    """
    _check_levels(alpha, delta)
    confidence, wrong = _finite(confidence), np.asarray(wrong).astype(bool)
    grid = np.asarray(grid, dtype=float)
    if confidence.shape != wrong.shape or not len(grid) or (np.diff(grid) >= 0).any() or grid[-1] < 0:
        raise ValueError(
            f"confidence and wrong must hold one value per pair and the grid fall strictly to 0 or more; they have "
            f"shapes {confidence.shape} and {wrong.shape}, the grid is {grid.tolist()}. Use confidence_grid."
        )
    accepted = (confidence[:, None] > grid).sum(axis=0)
    errors = (wrong[:, None] & (confidence[:, None] > grid)).sum(axis=0)
    p = binomial_p(errors, accepted, alpha)
    certified = np.logical_and.accumulate(p <= delta)
    columns = {"threshold": grid, "accepted": accepted, "errors": errors, "p": p, "certified": certified}
    value = float(grid[certified][-1]) if certified.any() else float("inf")
    return Threshold(value, alpha, delta, pd.DataFrame(columns)[: certified.sum() + 1])


def scope_threshold(confidence: ArrayLike, wrong: ArrayLike, *, alpha: float) -> float:
    """SCOPE's rule, for comparison: the lowest confidence at which errors stay below alpha times accepted, minus one.

    Parameters
    ----------
    confidence, wrong, alpha : as in `fit_threshold`. SCOPE accepts by the binary entropy of the mean probability of
        both orders, which falls as ``|p - 1/2|`` grows, so a confidence in that order says the same.

    Returns
    -------
    the lowest c such that ``sum (wrong - alpha) <= -1`` over the pairs of confidence c or more; 0 where that holds for
    all pairs, infinite where it holds nowhere. Accept a confidence of c *or more*. The sum does not fall steadily, and
    the rule does not hold the risk among accepted answers at alpha: with ten pairs of one confidence, an error rate of
    .2 and alpha = .1 it accepts whenever all ten are right, and then errs at .2. Source: Badshah et al., SCOPE (arXiv
    2602.13110, 2026).
    """
    _check_levels(alpha, alpha)
    confidence, wrong = _finite(confidence), np.asarray(wrong).astype(bool)
    curve = risk_coverage(confidence, wrong)
    feasible = curve[np.round(curve["errors"] - alpha * curve["accepted"], 9) <= -1]
    if feasible.empty:
        return float("inf")
    return 0.0 if len(curve) - 1 in feasible.index else float(feasible["confidence"].iloc[-1])


def _check_levels(alpha: float, delta: float) -> None:
    if not (0 < alpha < 1 and 0 < delta < 1):
        raise ValueError(f"alpha and delta must lie strictly between 0 and 1; they are {alpha} and {delta}.")


def _finite(confidence: ArrayLike) -> NDArray[np.float64]:
    confidence = np.asarray(confidence, dtype=float)
    if not (confidence >= 0).all() or np.isinf(confidence).any():
        wrong = int((~(confidence >= 0) | np.isinf(confidence)).sum())
        raise ValueError(f"confidences must be finite and 0 or more; {wrong} are not. Use confidence_of; 0 for none.")
    return confidence

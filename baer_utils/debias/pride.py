"""PriDe for two options: how much of a judge's answer is a liking for the label A, and the answer without it.

Arrays in, arrays out: log-odds of the label A, whatever response carried it. This file knows nothing about tables,
splits or labels of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from baer_utils.records import unit_hash

FLOOR = 1e-10  # of a probability, as in the released code
AT_LEAST, SHARE = 100, 0.05  # size of the estimation set


def log_odds_of(probability: ArrayLike) -> NDArray[np.float64]:
    """log p - log(1 - p) of probabilities in [0, 1], without loss near 0."""
    probability = np.asarray(probability, dtype=float)
    with np.errstate(divide="ignore"):
        return np.log(probability) - np.log1p(-probability)


LIMIT = float(-log_odds_of(FLOOR))


def item_prior(l_ab: ArrayLike, l_ba: ArrayLike) -> NDArray[np.float64]:
    """Prior probability of the label A on each item: sigmoid of the mean log-odds over the two display orders.

    Zheng et al., "Large language models are not robust multiple choice selectors" (PriDe), for two options, where the
    cyclic and the full permutations are the same two orders: what survives the exchange of contents is the label's.

    Parameters
    ----------
    l_ab, l_ba : arrays of one shape: log-odds of the label A in the two orders; NaN for no read. Infinite ones are held
        at ±log((1 - 1e-10) / 1e-10), the released code's floor of 1e-10 on probabilities.

    Returns
    -------
    array in (0, 1); the same bits when the orders change places; NaN where either read is missing.
    """
    l_ab, l_ba = (np.clip(np.asarray(read, dtype=float), -LIMIT, LIMIT) for read in (l_ab, l_ba))
    return expit((l_ab + l_ba) / 2)


def mean_prior(priors: Iterable[float]) -> float:
    """The prior of a condition: the mean of the items' probabilities, not of their log-odds.

    Held within [1e-10, 1 - 1e-10]. The sum is exact, so the order of the items leaves no trace.

    Raises
    ------
    ValueError
        without any item: there is nothing to estimate a prior from.
    """
    priors = [float(prior) for prior in priors]
    if not priors:
        raise ValueError("a prior needs at least one item read in both orders; there is none. Judge some pairs first.")
    return min(max(math.fsum(priors) / len(priors), FLOOR), 1 - FLOOR)


def prior_sample(pair_ids: Sequence[str]) -> list[str]:
    """The estimation set: the first max(100, 5 %) pairs by hash, or all there are.

    In order of ``unit_hash("prior|" + pair_id)``. The paper draws 2 to 5 % at random and averages five draws; a hash is
    one draw that everybody repeats.
    """
    size = max(AT_LEAST, math.ceil(SHARE * len(pair_ids)))
    return sorted(pair_ids, key=lambda pair: (unit_hash(f"prior|{pair}"), pair))[:size]


def content_order(response_a: Iterable[str], response_b: Iterable[str]) -> NDArray[np.str_]:
    """The one display order in which PriDe's own inference asks: the response with the smaller text hash stands first.

    Returns
    -------
    array (N,) of ``ab`` and ``ba``. A pair and its swap are thus asked the same prompt; two equal texts give ``ab``.
    """
    hashes = zip(map(unit_hash, response_a), map(unit_hash, response_b), strict=True)
    return np.array(["ab" if a <= b else "ba" for a, b in hashes], dtype=np.str_)


def subtract_prior(label_log_odds: ArrayLike, prior: float) -> NDArray[np.float64]:
    """Log-odds of the label A without the judge's liking for it: l - logit(prior).

    Parameters
    ----------
    label_log_odds : array of any shape; ±inf and NaN stay.
    prior : probability of the label A, held within [1e-10, 1 - 1e-10].
    """
    return np.asarray(label_log_odds, dtype=float) - log_odds_of(min(max(prior, FLOOR), 1 - FLOOR))

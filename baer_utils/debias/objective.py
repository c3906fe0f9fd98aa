"""What CalibraEval asks of its increasing map g, as numbers: the loss of g on sets of prompts, and its true gradient.

The released code descends along something that is not the gradient of its printed loss; this is derived anew and
tested against finite differences. Arrays in, arrays out: this file knows nothing about tables, knots or stopping.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from baer_utils.prompts import LABEL_SIGN
from baer_utils.records import SWAPPED_VIEW

LAMBDA = 0.05  # the released run's; its function's default is 0.1


@dataclass(frozen=True)
class Orbit:
    """The prompts of one pair that a map is fitted on.

    Attributes
    ----------
    views : P names. In ``ab`` (prompt 1A) and ``ba_BA`` (2A) the label A speaks for the response a, in ``ab_BA`` (1B)
        and ``ba`` (2B) for b.
    opposed : pairs of columns whose probabilities should add up to 1.
    agreeing : pairs of columns whose probabilities should be equal.
    """

    views: tuple[str, ...]
    opposed: tuple[tuple[int, int], ...]
    agreeing: tuple[tuple[int, int], ...] = ()

    @property
    def closed(self) -> bool:
        """Whether exchanging the two responses merely reverses the columns."""
        return tuple(SWAPPED_VIEW[view] for view in reversed(self.views)) == self.views


EXPERT = Orbit(("ab", "ba"), opposed=((0, 1),))
THREE_PROMPTS = Orbit(("ab", "ba_BA", "ba"), opposed=((0, 2),), agreeing=((0, 1),))
FULL_ORBIT = Orbit(("ab", "ba_BA", "ab_BA", "ba"), opposed=((0, 2), (0, 3), (1, 2), (1, 3)), agreeing=((0, 1), (2, 3)))


def loss(g: NDArray, orbit: Orbit, *, lam: float = LAMBDA) -> float:
    """CalibraEval's label-free loss of calibrated probabilities; with `FULL_ORBIT` the symmetrised L4 of four prompts.

    Parameters
    ----------
    g : array (K, P), g(P(label A)) of K pairs in the orbit's P views.
    lam : weight of the term that keeps g away from the constant 1/2.

    Returns
    -------
    mean over pairs of: mean over opposed (i, j) of (g_i + g_j - 1)^2, plus mean over agreeing ones of (g_i - g_j)^2,
    minus lam times the mean over opposed ones of (g_i - g_j)^2. For `THREE_PROMPTS` this is the published loss (Li et
    al., CalibraEval); for `EXPERT` it is what remains of it without prompt 2A.
    """
    opposed, agreeing = _gaps(g, orbit)
    total = sum((complement**2 - lam * spread**2) / len(opposed) for complement, spread in opposed)
    total = total + sum(gap**2 / len(agreeing) for gap in agreeing)
    return float(total.mean())


def loss_slopes(g: NDArray, orbit: Orbit, *, lam: float = LAMBDA) -> NDArray[np.float64]:
    """Derivative of `loss` by each calibrated probability, array (K, P)."""
    opposed, agreeing = _gaps(g, orbit)
    slopes = np.zeros_like(g)
    for (i, j), (complement, spread) in zip(orbit.opposed, opposed, strict=True):
        slopes[:, i] += 2 * (complement - lam * spread) / len(opposed)
        slopes[:, j] += 2 * (complement + lam * spread) / len(opposed)
    for (i, j), gap in zip(orbit.agreeing, agreeing, strict=True):
        slopes[:, i] += 2 * gap / len(agreeing)
        slopes[:, j] -= 2 * gap / len(agreeing)
    return slopes / len(g)


def _gaps(g: NDArray, orbit: Orbit) -> tuple[list[tuple[NDArray, NDArray]], list[NDArray]]:
    opposed = [(g[:, i] + g[:, j] - 1, g[:, i] - g[:, j]) for i, j in orbit.opposed]
    return opposed, [g[:, i] - g[:, j] for i, j in orbit.agreeing]


def map_values(theta: NDArray) -> NDArray[np.float64]:
    """Values of g at U knots from U + 1 free numbers: partial sums of exp(theta) over their total, strictly increasing.

    All theta equal gives m / (U + 1), the rank transform. Adding a constant to theta changes nothing.
    """
    sums = np.cumsum(np.exp(theta - theta.max()))
    return sums[:-1] / sums[-1]


def gradient(theta: NDArray, items: NDArray, orbit: Orbit, *, lam: float = LAMBDA) -> NDArray[np.float64]:
    """Derivative of the loss by theta, (U + 1,).

    With D the derivative by the values at the knots and S the total of exp(theta): (exp(theta_n) / S) (the sum of D at
    the knots above n, minus the sum of D times the values).

    Parameters
    ----------
    theta : (U + 1,) numbers of `map_values`.
    items : (K, P) positions of knots: which value each prompt of each pair takes.
    """
    values, weights = map_values(theta), np.exp(theta - theta.max())
    by_knot = np.bincount(items.ravel(), loss_slopes(values[items], orbit, lam=lam).ravel(), len(values))
    above = np.append(np.cumsum(by_knot[::-1])[::-1], 0.0)
    return weights / weights.sum() * (above - (by_knot * values).sum())


def probability_excess(g: NDArray, orbit: Orbit) -> NDArray[np.float64]:
    """Mean calibrated probability of the response a over the prompts of an orbit, minus 1/2.

    Parameters
    ----------
    g : array (N, P), g(P(label A)) in the orbit's views; NaN for a missing read.

    Returns
    -------
    array (N,) in [-1/2, 1/2]; NaN where any read is missing. For `THREE_PROMPTS` (g1 + g2 + 1 - g3) / 3 - 1/2, which is
    not odd; for `FULL_ORBIT` p - 1/2 of the four-prompt mean p, which any g makes odd, to the last bit.
    """
    for_a = np.array([LABEL_SIGN[view] > 0 for view in orbit.views])
    shift = (~for_a).sum() - len(for_a) / 2
    return (np.sort(g[:, for_a]).sum(axis=1) - np.sort(g[:, ~for_a]).sum(axis=1) + shift) / len(for_a)

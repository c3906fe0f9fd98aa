"""Which expert speaks on a pair: the most reliable of those that have an opinion, and what it says.

Reliabilities are even under the swap, evidence is odd, so the choice stays and the score negates, bit for bit. This
file fits nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from baer_utils.routing.models import Fitted, predict_model


@dataclass(frozen=True)
class Reliability:
    """A fitted model of how likely an expert is to be right on a pair.

    Attributes
    ----------
    name : of the model, in `MODELS`.
    fitted : the model; a float where it had nothing to tell apart (see `models.fit_model`).
    accuracy_by_model : routed accuracy out of fold of every model that was compared; empty where none was.
    pairs_compared : pairs with an opinion behind these.
    """

    name: str
    fitted: Fitted = field(repr=False)
    accuracy_by_model: dict[str, float] = field(default_factory=dict)
    pairs_compared: int = 0

    def predict(self, rho: ArrayLike) -> NDArray[np.float64]:
        """Reliability of every expert on every pair: (N, K) in [0, 1], rounded to 1e-9, from features (N, K, R)."""
        return predict_model(self.fitted, np.asarray(rho, dtype=float))


def best_available(reliability: ArrayLike, available: ArrayLike) -> NDArray[np.int64]:
    """Index of the most reliable available expert; equal ones by their order, the first expert where none is available.

    Parameters
    ----------
    reliability : (N, K). available : (N, K) of bool.
    """
    return np.argmax(np.where(np.asarray(available, dtype=bool), reliability, -np.inf), axis=1)


def route(reliability: Reliability, rho: ArrayLike, available: ArrayLike) -> NDArray[np.int64]:
    """The expert that speaks on each pair: the most reliable one with an opinion (BAER Eq. 7b).

    Parameters
    ----------
    reliability : fitted on the same R features.
    rho : array (N, K, R) from `reliability_features`.
    available : array (N, K) of bool: the expert answered and its z is not 0. One without an opinion is chosen only
        where every expert has none; the score is then 0 whoever is chosen, and it is the first.

    Returns
    -------
    array (N,) of column indices; equal reliabilities go to the first expert in the fixed order.
    """
    return best_available(reliability.predict(rho), available)


def routed_score(z: ArrayLike, chosen: ArrayLike) -> NDArray[np.float64]:
    """The chosen expert's own signed evidence (BAER Eq. 7c).

    Parameters
    ----------
    z : array (N, K) of signed log-odds. chosen : array (N,) of column indices, from `route`.

    Returns
    -------
    array (N,).
    """
    z = np.asarray(z, dtype=float)
    return z[np.arange(len(z)), np.asarray(chosen, dtype=int)]

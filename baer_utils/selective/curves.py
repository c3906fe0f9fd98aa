"""What abstaining buys: risk against coverage over every threshold, and the area under that curve.

Describes pairs with labels; it fits no threshold and promises nothing.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike


def risk_coverage(confidence: ArrayLike, wrong: ArrayLike) -> pd.DataFrame:
    """Errors among the most confident answers, by the share of pairs answered.

    Parameters
    ----------
    confidence : array (N,), higher is surer. wrong : array (N,), 1 where the answer errs.

    Returns
    -------
    frame, one row per distinct confidence, from the highest: ``confidence`` (answers of this or more are accepted),
    ``accepted``, ``coverage``, ``errors``, ``risk``. Pairs of equal confidence enter together: no threshold parts them.
    """
    confidence, wrong = np.asarray(confidence, dtype=float), np.asarray(wrong, dtype=float)
    if confidence.shape != wrong.shape or not len(wrong) or np.isnan(confidence).any():
        raise ValueError(
            f"confidence and wrong must hold one number for each of at least one pair; they have shapes "
            f"{confidence.shape} and {wrong.shape}, {int(np.isnan(confidence).sum())} confidences are missing."
        )
    values, of = np.unique(-confidence, return_inverse=True)
    accepted, errors = np.bincount(of).cumsum(), np.bincount(of, wrong).cumsum()
    columns = {"confidence": -values, "accepted": accepted, "coverage": accepted / len(wrong)}
    return pd.DataFrame(columns | {"errors": errors, "risk": errors / accepted})


def aurc(confidence: ArrayLike, wrong: ArrayLike) -> dict[str, float]:
    """Area under the risk-coverage curve, beside that of a perfect order and that of a random one.

    Parameters
    ----------
    confidence, wrong : as in `risk_coverage`.

    Returns
    -------
    ``aurc``: mean risk over accepting 1, 2, … N pairs (Geifman and El-Yaniv, 2017), in expectation over the order of
    pairs of equal confidence; ``perfect``: the same if every right answer came before every wrong one; ``random``: the
    error rate, what a constant confidence gets.
    """
    wrong = np.asarray(wrong, dtype=float)
    return {"aurc": _area(confidence, wrong), "perfect": _area(-wrong, wrong), "random": float(wrong.mean())}


def _area(confidence: ArrayLike, wrong: np.ndarray) -> float:
    curve = risk_coverage(confidence, wrong)
    accepted, errors = (np.append(0.0, curve[name].to_numpy(float)) for name in ("accepted", "errors"))
    places = np.arange(1, len(wrong) + 1)
    return float((np.interp(places, accepted, errors) / places).mean())

"""Whether a reliability means what it says: of experts called 70 % reliable, are seven in ten right?

A reliability is the probability of an event of its own (this expert is right), so its curve runs from 0 to 1.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike


def reliability_curve(reliability: ArrayLike, correct: ArrayLike, *, bins: int = 10) -> pd.DataFrame:
    """Reliability against the share that was right, in equal bins of [0, 1].

    Parameters
    ----------
    reliability : array of probabilities, any shape. correct : the same shape: 1, 0, NaN for no opinion (left out).

    Returns
    -------
    frame with one row per bin that holds anything: `low`, `high`, `reliability` (mean), `right` (share), `count`.
    """
    said, was = np.ravel(np.asarray(reliability, dtype=float)), np.ravel(np.asarray(correct, dtype=float))
    if said.shape != was.shape:
        raise ValueError(f"reliability and correct must have one shape; they have {said.size} and {was.size} entries.")
    said, was = said[~np.isnan(was)], was[~np.isnan(was)]
    place = np.minimum((said * bins).astype(int), bins - 1)
    table = pd.DataFrame({"bin": place, "reliability": said, "right": was, "count": 1}).groupby("bin")
    curve = table.agg({"reliability": "mean", "right": "mean", "count": "sum"}).reset_index()
    curve.insert(0, "low", curve["bin"] / bins)
    curve.insert(1, "high", (curve["bin"] + 1) / bins)
    return curve.drop(columns="bin")


def reliability_error(reliability: ArrayLike, correct: ArrayLike, *, bins: int = 10) -> float:
    """Expected calibration error: the mean distance between both columns of `reliability_curve`; NaN without rows."""
    curve = reliability_curve(reliability, correct, bins=bins)
    distance = (curve["reliability"] - curve["right"]).abs()
    return float((distance * curve["count"]).sum() / curve["count"].sum()) if len(curve) else float("nan")

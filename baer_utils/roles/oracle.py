"""What a panel could know at best on given items, and what one more judge would add to it (R1-R3).

These are facts about one set of items, each cell predicted by its own mean: never negative, and exactly 0 for a judge
whose answers the panel already determines. What survives on items that were not counted is in `gains`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from baer_utils.calibrators import PatternCalibrator

Judge = str | int


def oracle_predictor(Z: ArrayLike, y: ArrayLike, panel: Sequence[Judge]) -> dict[tuple, float]:
    """Mean label of every joint pattern of a panel, eta_{P,S} (Panels R1).

    Parameters
    ----------
    Z : frame with a column per judge, audit, or array (N, J); no output of the panel missing. y : (N,) in [0, 1].
    panel : names, or column places of an array; the empty panel has the one pattern ().

    Returns
    -------
    {pattern: mean}, the pattern a tuple of symbols in the panel's order.

    Raises
    ------
    ValueError
        for missing outputs, unknown judges, or labels outside [0, 1].
    """
    model = PatternCalibrator(tuple(panel)).fit(Z, y)
    return dict(zip(model.patterns_, model.table_.tolist(), strict=True))


def oracle_risk(Z: ArrayLike, y: ArrayLike, panel: Sequence[Judge]) -> float:
    """Mean squared error of the oracle predictor on the very items that made it, R*_{P,S} (Panels R2).

    Arguments and errors as for `oracle_predictor`. The empty panel's risk is the variance of y.
    """
    return float(np.mean((np.asarray(y, dtype=float) - _eta(Z, y, panel)) ** 2))


def conditional_value(Z: ArrayLike, y: ArrayLike, panel: Sequence[Judge], judge: Judge) -> float:
    """Conditional value g_P(j|S) of adding a judge to a panel, by the projection identity (Panels R3).

    Arguments and errors as for `oracle_predictor`; `judge` is the name or place of the judge to add.

    Returns
    -------
    float, E[(eta_{S+j} - eta_S)^2]: never negative, exactly 0 where the panel determines the judge (a copy), and equal
    to R*_S - R*_{S+j} up to rounding.
    """
    finer = _eta(Z, y, panel if judge in panel else [*panel, judge])
    return float(np.mean((finer - _eta(Z, y, panel)) ** 2))


def _eta(Z: ArrayLike, y: ArrayLike, panel: Sequence[Judge]) -> NDArray[np.float64]:
    if not isinstance(Z, pd.DataFrame) and not hasattr(Z, "coding"):
        Z = np.asarray(Z, dtype=object)
    return PatternCalibrator(tuple(panel)).fit(Z, y).predict(Z)

"""The decision of each external baseline under its own inference rule.

One small function per kind of rule, one line per method in `NATIVE`. A tie and a missing answer leave as such: what
they count for is decided in `metrics`, where both scoring rules stand side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baer_utils.evidence.runs import run_array
from baer_utils.evidence.summary import summarize


def _sign_of_mean(runs: pd.DataFrame, pairs: pd.DataFrame, method: str) -> NDArray[np.float64]:
    """Soft reads in both orders: the sign of z, a tie at exactly 0, missing where no order answered."""
    evidence = summarize(run_array(runs, [method], pairs["pair_id"]))
    return np.where(evidence.available, np.sign(evidence.z), np.nan)[:, 0]


def _agreement(runs: pd.DataFrame, pairs: pd.DataFrame, method: str) -> NDArray[np.float64]:
    """Hard verdicts mapped to *a*: agree = that verdict, one parsed = that one, disagree = tie, none = missing.

    A parsed tie in one order against a verdict in the other does not agree either: tie.
    """
    verdict = np.sign(run_array(runs, [method], pairs["pair_id"])[:, 0, :])
    low, high = np.fmin.reduce(verdict, axis=-1), np.fmax.reduce(verdict, axis=-1)
    return np.where(low == high, low, np.where(np.isnan(low), np.nan, 0.0))


NATIVE: dict[str, Callable[[pd.DataFrame, pd.DataFrame, str], NDArray[np.float64]]] = {
    "direct": _sign_of_mean,
    "chain_of_thought": _agreement,
}


def native_decisions(runs: pd.DataFrame, pairs: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Decision of every external baseline under its own inference rule, before any rule about ties.

    Parameters
    ----------
    runs, pairs : run table and the pair table that gives the rows.
    methods : names of baselines; each has its rule in `NATIVE`.

    Returns
    -------
    frame, pair_id x methods: +1 for *a*, -1 for *b*, 0 for a tie, NaN for no answer.

    Raises
    ------
    ValueError
        for a method without a native rule.
    """
    unknown = [name for name in methods if name not in NATIVE]
    if unknown:
        raise ValueError(f"methods must have a native rule ({', '.join(NATIVE)}); not known: {', '.join(unknown)}.")
    index = pd.Index(pairs["pair_id"], name="pair_id")
    return pd.DataFrame({name: NATIVE[name](runs, pairs, name) for name in methods}, index=index, dtype=float)

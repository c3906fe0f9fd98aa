"""Across splits and conditions: what is lost from calibration to test, and how many columns a system leads.

Works on shares that others counted; it chooses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from baer_utils.metrics.intervals import share_interval

Share = tuple[float, float, float]  # a share, and the ends of its interval


def difference_interval(before: Share, after: Share) -> tuple[float, float, float]:
    """Difference of two independent shares, and its interval from theirs.

    Parameters
    ----------
    before, after : (share, low, high), such as an accuracy with its `share_interval`.

    Returns
    -------
    (after - before, low, high): Newcombe's interval (Stat. Med. 17, 1998, method 10). NaN where anything is unknown.
    """
    (b, b_low, b_high), (a, a_low, a_high) = before, after
    low, high = np.hypot(a - a_low, b_high - b), np.hypot(a_high - a, b - b_low)
    return a - b, float(a - b - low), float(a - b + high)


def transfer_gap(
    before: ArrayLike,
    after: ArrayLike,
    before_groups: ArrayLike | None = None,
    after_groups: ArrayLike | None = None,
    *,
    level: float = 0.95,
) -> tuple[float, float, float]:
    """Accuracy on test minus accuracy on calibration, and how far that could be luck.

    Parameters
    ----------
    before, after : arrays of 0 and 1 (1/2 for half credit), one value per pair, out of fold on calibration and on test.
    before_groups, after_groups : the question of each pair; None where every pair is its own.

    Returns
    -------
    (gap, low, high), shares; negative where something was lost: `difference_interval` of the two `share_interval`.
    (NaN, NaN, NaN) where either side has no pair. The paper (section 3.3) gives gaps without intervals.
    """
    sides = []
    for values, groups in ((before, before_groups), (after, after_groups)):
        values = np.asarray(values, dtype=float)
        if not len(values):
            return float("nan"), float("nan"), float("nan")
        groups = np.arange(len(values)) if groups is None else groups
        sides.append((float(values.mean()), *share_interval(values, groups, level=level)))
    return difference_interval(*sides)


def column_leads(accuracy: pd.DataFrame, baselines: Sequence[str]) -> pd.DataFrame:
    """How many conditions each system leads, and by how much: the progression of the paper's section 3.3.

    Parameters
    ----------
    accuracy : shares, one row per condition and one column per method, all under one scoring rule; NaN where a method
        was not evaluated. Put the systems in the order in which they were added.
    baselines : the columns that are external baselines; every condition needs at least one.

    Returns
    -------
    frame indexed by the other columns, in their order: ``leads``, the conditions where the system is strictly above
    every baseline (parity is no lead); ``conditions``, those where it was evaluated; ``mean_margin``, ``least_margin``
    and ``largest_margin`` over the strongest baseline of each condition, in points.
    """
    strongest = accuracy[list(baselines)].max(axis=1) if len(baselines) else pd.Series(np.nan, index=accuracy.index)
    if strongest.isna().any() or accuracy.empty:
        bare = [str(name) for name in strongest.index[strongest.isna()]]
        raise ValueError(f"every condition needs an accuracy of at least one baseline; without: {bare or 'all'}.")
    margins = 100 * accuracy.drop(columns=list(baselines)).sub(strongest, axis=0)
    columns = {"leads": (margins > 0).sum(), "conditions": margins.notna().sum()}
    columns |= {"mean_margin": margins.mean(), "least_margin": margins.min(), "largest_margin": margins.max()}
    return pd.DataFrame(columns).rename_axis("system")

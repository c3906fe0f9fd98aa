"""From a run table back to what the judge said: log-odds of the label A, whichever response carried it.

Both corrections act on the label, not on the response. This file turns the canonical frame back and knows nothing
about priors, maps or splits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baer_utils.prompts import LABEL_SIGN
from baer_utils.records import SILENT, about

SOURCE = "direct"  # whose reads are corrected
EXCHANGED_VIEWS = ("ab_BA", "ba_BA")  # the first response labelled B: asked by `direct`, or by `calibraeval` itself


def direct_reads(runs: pd.DataFrame) -> pd.DataFrame:
    """Rows of direct judging in the two display orders (stage verdict, views ab and ba, trial 0), one backbone."""
    is_read = (runs["protocol"] == SOURCE) & (runs["stage"] == "verdict") & (runs["trial"] == 0)
    return _one_each(runs[is_read & runs["view"].isin(["ab", "ba"])])


def label_log_odds(rows: pd.DataFrame) -> NDArray[np.float64]:
    """Log-odds of the label A of every row: the canonical value times the view's sign, NaN where nothing was said."""
    sign = rows["view"].map(LABEL_SIGN).to_numpy(float)
    return np.where(rows["status"].isin(SILENT), np.nan, sign * rows["log_odds"].to_numpy(float))


def label_reads(runs: pd.DataFrame, pair_ids: Sequence[str], views: Sequence[str]) -> NDArray[np.float64]:
    """Log-odds of the label A in several views of the same question.

    Parameters
    ----------
    runs : run table of one backbone. ``ab`` and ``ba`` are read from `direct`; in ``ab_BA`` and ``ba_BA`` the prompt of
        `direct` may also stand under `calibraeval`, which asks it for itself (where both stand, `direct` counts).
    pair_ids : N distinct pair ids, the order of the rows. views : P names, the order of the columns.

    Returns
    -------
    array (N, P); ±inf where one label had no probability at all, NaN for no read.

    Raises
    ------
    ValueError
        when a read occurs twice (two backbones in one table), or a pair id repeats.
    """
    index = pd.Index(pair_ids)
    if not index.is_unique:
        repeated = index[index.duplicated()][0]
        raise ValueError(f"pair_ids must name each pair once; {repeated!r} occurs again. Drop the repeats.")
    asked_by_itself = (runs["protocol"] == "calibraeval") & runs["view"].isin(EXCHANGED_VIEWS)
    is_read = (runs["stage"] == "verdict") & (runs["trial"] == 0) & runs["view"].isin(list(views))
    rows = runs[is_read & ((runs["protocol"] == SOURCE) | asked_by_itself) & about(runs, index)]
    reads = np.full((len(index), len(views)), np.nan)
    for name in ("calibraeval", SOURCE):  # the later one overwrites
        own = _one_each(rows[rows["protocol"] == name])
        place = index.get_indexer(own["pair_id"]), pd.Index(views).get_indexer(own["view"])
        reads[place] = label_log_odds(own)
    return reads


def _one_each(rows: pd.DataFrame) -> pd.DataFrame:
    repeated = rows[rows.duplicated(["pair_id", "view"])]
    if len(repeated):
        first = repeated.iloc[0]
        raise ValueError(
            f"each read must occur once; pair {first['pair_id']}, view {first['view']} occurs again ({len(repeated)} "
            "such). Keep the runs of one backbone."
        )
    return rows

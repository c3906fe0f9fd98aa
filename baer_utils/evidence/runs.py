"""From a run table to an array of signed log-odds, pairs x experts x runs.

Only verdicts that saw both responses enter, already in the canonical frame (toward *a*). This file counts votes and
refuses doubled runs; it knows nothing about labels, or about what a value means to the stack.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baer_utils.records import SILENT

NEEDED = ["pair_id", "protocol", "view", "trial", "status", "log_odds"]
VOTED = "self_consistency"  # its trials are votes, pooled into one value per order


def run_array(runs: pd.DataFrame, experts: Sequence[str], pair_ids: Sequence[str] | None = None) -> NDArray[np.float64]:
    """Signed log-odds of every verdict run as one array, pairs x experts x runs.

    Parameters
    ----------
    runs : run table. Only rows of stage ``verdict`` in the views ``ab``, ``ba`` and ``net`` are read; one-response
        views belong to `verification`, ``ab_BA`` and ``ba_BA`` to the baselines that ask for them.
    experts : K protocol names; one that never ran gives a column of NaN.
    pair_ids : N distinct pair ids, the order of the result's rows; a pair without runs gives a row of NaN and runs of
        other pairs are left out. By default every pair id of the run table, sorted.

    Returns
    -------
    array (N, K, M) toward *a*: ±inf for a hard verdict, 0 for a tie, NaN for none. M = 2: ``ab`` first, ``ba`` second.
    A ``net`` row (an imported judge whose orders are already combined) is a single run and stands in the first place.
    The trials of self-consistency become one value per order, log((n_a + 1/2) / (n_b + 1/2)) over its parsed votes (a
    parsed tie votes for neither). Where another protocol was tried T times, each trial is a run of its own, M = 2 T.

    Raises
    ------
    ValueError
        when pair ids or experts repeat, when one run occurs twice (two backbones in one table), or when an expert has
        both a ``net`` and an order on the same pair.
    """
    experts, index = list(experts), pd.Index(sorted(runs["pair_id"].unique()) if pair_ids is None else list(pair_ids))
    if not index.is_unique or len(set(experts)) != len(experts):
        raise ValueError("pair_ids and experts must name each pair and each expert once; a name repeats. Drop repeats.")
    verdicts = (runs["stage"] == "verdict") & runs["view"].isin(["ab", "ba", "net"]) & runs["protocol"].isin(experts)
    rows = runs.loc[verdicts, NEEDED]
    pair = index.get_indexer(rows["pair_id"])
    rows, pair = rows[pair >= 0], pair[pair >= 0]
    _refuse_repeats(rows)
    expert = pd.Index(experts).get_indexer(rows["protocol"])
    place = (rows["view"] == "ba").to_numpy().astype(int)
    value = np.where(rows["status"].isin(SILENT), np.nan, rows["log_odds"].to_numpy(float))

    voted = (rows["protocol"] == VOTED).to_numpy()
    trials, trial = np.unique(rows["trial"].to_numpy()[~voted], return_inverse=True)
    L = np.full((len(index), len(experts), 2 * max(len(trials), 1)), np.nan)
    L[pair[~voted], expert[~voted], 2 * trial + place[~voted]] = value[~voted]
    if voted.any():
        votes = _pooled_votes(value[voted], 2 * pair[voted] + place[voted], 2 * len(index))
        L[:, experts.index(VOTED), :2] = votes.reshape(-1, 2)
    return L


def _pooled_votes(value: NDArray, cell: NDArray, n_cells: int) -> NDArray[np.float64]:
    """log((n_a + 1/2) / (n_b + 1/2)) of the votes in each cell, as a difference of logs: odd to the last bit."""
    n_a, n_b = np.bincount(cell, value > 0, n_cells), np.bincount(cell, value < 0, n_cells)
    parsed = np.bincount(cell, ~np.isnan(value), n_cells)
    return np.where(parsed > 0, np.log(n_a + 0.5) - np.log(n_b + 0.5), np.nan)


def _refuse_repeats(rows: pd.DataFrame) -> None:
    key = ["pair_id", "protocol", "view", "trial"]
    repeated = rows[rows.duplicated(key)]
    if len(repeated):
        raise ValueError(
            f"each run must occur once; {tuple(repeated[key].iloc[0])} occurs again ({len(repeated)} such). "
            "Keep the runs of one backbone."
        )
    is_net = rows["view"] == "net"
    both = rows[is_net].merge(rows[~is_net], on=["pair_id", "protocol"]) if is_net.any() else rows[:0]
    if len(both):
        raise ValueError(
            f"an expert must have either a net verdict or its orders; {both['protocol'].iloc[0]} has both on pair "
            f"{both['pair_id'].iloc[0]} ({len(both)} such). Keep one of the two."
        )

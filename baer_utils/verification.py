"""Evidence from judging each response alone: pointwise reads, and verification against a reference (Eq. 8, 9).

Neither read sees the other response, so a score is the difference of two numbers that a swap merely exchanges: it
negates bit for bit. This file knows nothing about prompts, solutions or labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from baer_utils.evidence import clip_limit, log_odds


def pointwise_score(yes_a: ArrayLike, yes_b: ArrayLike, *, clip: float = 1e-4) -> NDArray[np.float64]:
    """Difference of the clipped label log-odds of the two responses, each judged alone (BAER Eq. 8).

    Parameters
    ----------
    yes_a, yes_b : arrays of one shape: log-odds of the prompt's positive label against its negative one, from the views
        ``a`` and ``b``; NaN for no read.
    clip : probability in (0, 1/2). Each logit is clipped at ±log((1 - clip) / clip), never the difference.

    Returns
    -------
    array of signed scores toward *a*; NaN where either read is missing.
    """
    limit = clip_limit(clip)
    return np.clip(np.asarray(yes_a, dtype=float), -limit, limit) - np.clip(
        np.asarray(yes_b, dtype=float), -limit, limit
    )


def yes_share(log_yes: ArrayLike, log_no: ArrayLike) -> NDArray[np.float64]:
    """Share of the positive label in the mass of the two labels, v(t) (BAER Eq. 9a).

    Parameters
    ----------
    log_yes, log_no : arrays of one shape: log-probabilities of the positive and the negative label, before normalising.

    Returns
    -------
    array in [0, 1], yes / (yes + no) without overflow; NaN where either is NaN or both are -inf.
    """
    with np.errstate(invalid="ignore"):
        return expit(np.asarray(log_yes, dtype=float) - np.asarray(log_no, dtype=float))


def reference_score(v_a: ArrayLike, v_b: ArrayLike, *, clip: float = 1e-4) -> NDArray[np.float64]:
    """Difference of the two responses' clipped logits under one reference (BAER Eq. 9b).

    Parameters
    ----------
    v_a, v_b : arrays of one shape in [0, 1], from `yes_share`; NaN for no read.
    clip : probability in (0, 1/2). Each logit is clipped at ±log((1 - clip) / clip), then the difference is taken.

    Returns
    -------
    array of signed scores toward *a*; NaN where either read is missing.
    """
    v_a, v_b = np.asarray(v_a, dtype=float), np.asarray(v_b, dtype=float)
    return log_odds(v_a, 1 - v_a, clip=clip) - log_odds(v_b, 1 - v_b, clip=clip)


def pointwise_evidence(
    runs: pd.DataFrame, pair_ids: Sequence[str], *, protocol: str = "pointwise", clip: float = 1e-4
) -> NDArray[np.float64]:
    """Pointwise scores of a run table, one per pair.

    Parameters
    ----------
    runs : run table; verdict rows of the protocol in the views ``a`` and ``b`` are read.
    pair_ids : N distinct pair ids, the order of the result. protocol : name in the run table. clip : as above.

    Returns
    -------
    array (N,), toward *a*; NaN where either response has no read. As an expert beside others, NaN means z = 0 and not
    available; its p is sigmoid(z) and, being a single run, its delta 0.

    Raises
    ------
    ValueError
        when a pair has two reads of one response (two backbones, or trials, in one table).
    """
    return pointwise_score(*_reads(runs, pair_ids, protocol), clip=clip)


def reference_evidence(runs: pd.DataFrame, pair_ids: Sequence[str], *, clip: float = 1e-4) -> NDArray[np.float64]:
    """Reference scores of a run table, one per pair: the same reads, each made beside the judge's own blind solution.

    Arguments, result and errors are those of `pointwise_evidence`, for the protocol ``reference``. Nothing is fitted.
    """
    return reference_score(*(yes_share(odds, 0.0) for odds in _reads(runs, pair_ids, "reference")), clip=clip)


def _reads(runs: pd.DataFrame, pair_ids: Sequence[str], protocol: str) -> list[NDArray[np.float64]]:
    """Label log-odds of *a* and of *b*, each alone; NaN where there is no read."""
    rows = runs[(runs["stage"] == "verdict") & (runs["protocol"] == protocol) & runs["view"].isin(["a", "b"])]
    repeated = rows[rows.duplicated(["pair_id", "view"])]
    if len(repeated):
        pair, view = repeated[["pair_id", "view"]].iloc[0]
        raise ValueError(
            f"each response must be read once by {protocol}; view {view} of pair {pair} occurs again "
            f"({len(repeated)} such). Keep the runs of one backbone and one trial."
        )
    value = rows["log_odds"].where(~rows["status"].isin(["unparsed", "error"]))
    yes = {view: value[rows["view"] == view].set_axis(rows.loc[rows["view"] == view, "pair_id"]) for view in ("a", "b")}
    return [yes[view].reindex(list(pair_ids)).to_numpy(float) for view in ("a", "b")]

"""What the router may choose on a pair: the stack's experts, and beside them judges of one response at a time.

The extra candidates never enter the stack: K stays the number of declared experts there. This file reads run tables; it
knows nothing about labels or about which candidate is any good.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from baer_utils.evidence import Evidence
from baer_utils.features import category_columns, reliability_features
from baer_utils.protocols import EXTRA_CANDIDATES
from baer_utils.records import about
from baer_utils.screening import screened_score


def extra_candidates(pairs: pd.DataFrame, runs: pd.DataFrame, experts: Sequence[str]) -> tuple[str, ...]:
    """The extra candidates that judged at least one of these pairs, in their fixed order."""
    ran = set(runs.loc[about(runs, pairs["pair_id"]), "protocol"].unique()) - set(experts)
    named = [name for name in EXTRA_CANDIDATES if name in ran]
    return tuple(name for name in named if not np.isnan(screened_score(runs, pairs["pair_id"], name)).all())


def candidate_evidence(
    evidence: Evidence, pairs: pd.DataFrame, runs: pd.DataFrame, extras: Sequence[str], *, clip: float
) -> Evidence:
    """Evidence of the experts, and after their columns that of the extra candidates.

    Parameters
    ----------
    evidence : of K experts on N pairs. pairs, runs : their tables. extras : E names.

    Returns
    -------
    Evidence of K + E candidates. An extra one answers once: z is its score, p = sigmoid(z), delta 0; where it has none,
    p = 1/2 and z = 0. Likelihoods are not clipped (a clip would turn every difference of sums into its limit).
    """
    if not extras:
        return evidence
    scores = np.stack([screened_score(runs, pairs["pair_id"], name, clip=clip) for name in extras], axis=1)
    z = np.nan_to_num(scores)
    blocks = (expit(z), np.zeros_like(z), z, z, ~np.isnan(scores))
    names = ("p", "delta", "z", "z_shrunk", "available")
    joined = (np.hstack([getattr(evidence, name), block]) for name, block in zip(names, blocks, strict=True))
    return Evidence(*joined, (*evidence.experts, *extras))


def routing_features(
    candidates: Evidence, pairs: pd.DataFrame, benchmark: str, categories: Sequence[str]
) -> NDArray[np.float64]:
    """The rho of Eq. 7 for every candidate: (N, K + E, R)."""
    columns = category_columns(pairs, benchmark, categories=list(categories))
    return reliability_features(candidates, pairs, columns.to_numpy(dtype=float))


def right_or_wrong(z: NDArray, y: NDArray) -> NDArray[np.float64]:
    """The router's target, (N, K): 1 where z y > 0, 0 where z y < 0, NaN where there is no opinion (z = 0)."""
    return np.where(z != 0, (z * y[:, None] > 0).astype(float), np.nan)

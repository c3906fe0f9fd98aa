"""What can be said about an expert on a pair without knowing which response is which: the rho of Eq. 7.

Every entry is built from magnitudes, from products of two odd terms, or from symmetric functions of the two responses,
then rounded to 1e-9: the features of a pair and of its swap are equal bit for bit. It never sees a label.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from baer_utils.evidence import Evidence
from baer_utils.metrics import longer_response, vote_weights

COUNTED = {
    "code_blocks": "```",
    "list_items": r"(?m)^[ \t]*(?:[-*+•]|[0-9]+[.)])[ \t]",
    "numbers": "[0-9]+(?:[.,][0-9]+)*",
}
OF_EXPERT = (
    "confidence", "distance_from_half", "delta", "agreeing_share", "agreement", "confidence_rank", "confidence_spread",
    "sides_with_longer",
)  # fmt: skip
OF_PAIR = (
    "length_min", "length_max", "length_difference", "length_log_ratio",
    *(f"{what}_{end}" for what in COUNTED for end in ("min", "max")),
)  # fmt: skip


def reliability_features(evidence: Evidence, pairs: pd.DataFrame, categories: ArrayLike) -> NDArray[np.float64]:
    """Candidate-invariant features of every expert on every pair.

    Parameters
    ----------
    evidence : Evidence of K experts on N pairs.
    pairs : pair table of the same N pairs, in the same order.
    categories : array or frame (N, G) of indicators.

    Returns
    -------
    array (N, K, R), columns named by `reliability_names`, every value rounded to 1e-9 and the same for a pair and its
    swap to the last bit:

    - expert identity, K indicators;
    - confidence ``|z|``; ``|p - 1/2|`` with p = sigmoid(z), z being clipped (`Evidence.p` is even only up to rounding);
      delta;
    - among the other experts that have an opinion, the share on this expert's side (1/2 where nobody has one, itself
      included), and over all others the mean of sign(z_k) sign(z_j); experts that read one template share one vote;
    - rank of ``|z|`` in the bank, 0 to 1, ties halved, and the bank's largest minus its smallest ``|z|``;
    - whether it sides with the longer response: +1, -1, and 0 without an opinion or with equal lengths;
    - lengths in characters (smaller, larger, difference, log ratio of length + 1), and the smaller and larger number of
      fenced code blocks, list items and numbers;
    - the G category indicators.

    Raises
    ------
    ValueError
        when evidence, pairs and categories have different numbers of rows.
    """
    categories = np.asarray(categories, dtype=float)
    n_pairs, n_experts = evidence.z.shape
    if len(pairs) != n_pairs or categories.shape[:1] != (n_pairs,):
        raise ValueError(
            f"evidence, pairs and categories must describe the same pairs; they have {n_pairs}, {len(pairs)} and "
            f"{len(categories)} rows. Pass pair_ids=pairs['pair_id'] to run_array."
        )
    shared = np.hstack([_of_pair(pairs), categories])
    blocks = [
        np.broadcast_to(np.eye(n_experts), (n_pairs, n_experts, n_experts)),
        np.stack([*_of_expert(evidence), np.sign(evidence.z) * longer_response(pairs)[:, None]], axis=-1),
        np.broadcast_to(shared[:, None, :], (n_pairs, n_experts, shared.shape[1])),
    ]
    return np.round(np.concatenate(blocks, axis=-1), 9) + 0.0


def reliability_names(experts: Sequence[str], categories: Sequence[str]) -> list[str]:
    """Names of the R columns of `reliability_features`, in order, for K experts and G categories."""
    return [*(f"is_{name}" for name in experts), *OF_EXPERT, *OF_PAIR, *(f"category_{name}" for name in categories)]


def _of_expert(evidence: Evidence) -> list[NDArray[np.float64]]:
    """Seven arrays (N, K), in the order of `OF_EXPERT`."""
    confidence, sign = np.abs(evidence.z), np.sign(evidence.z).astype(int)
    weight = vote_weights(evidence.experts)
    others = (sign @ weight)[:, None] - sign * weight
    voting = (np.abs(sign) @ weight)[:, None] - np.abs(sign) * weight
    agreement = sign * others
    heard = (sign != 0) & (voting > 0)
    share = np.where(heard, (voting + agreement) / (2 * np.maximum(voting, 1)), 0.5)
    below = (confidence[:, None, :] < confidence[:, :, None]).sum(axis=-1)
    level = (confidence[:, None, :] == confidence[:, :, None]).sum(axis=-1) - 1
    rank = (below + level / 2) / max(len(weight) - 1, 1)
    spread = np.broadcast_to(np.ptp(confidence, axis=1, keepdims=True), confidence.shape)
    mean_agreement = agreement / np.maximum(weight.sum() - weight, 1)
    return [confidence, expit(confidence) - 0.5, evidence.delta, share, mean_agreement, rank, spread]


def _of_pair(pairs: pd.DataFrame) -> NDArray[np.float64]:
    """Array (N, 10), in the order of `OF_PAIR`: symmetric functions of the two responses."""
    short, long = _low_high([pairs[side].str.len() for side in ("response_a", "response_b")])
    columns = [short, long, long - short, np.log1p(long) - np.log1p(short)]
    for what, pattern in COUNTED.items():
        counts = [pairs[side].str.count(pattern) for side in ("response_a", "response_b")]
        columns += _low_high([-(-count // 2) for count in counts] if what == "code_blocks" else counts)
    return np.stack(columns, axis=-1)


def _low_high(sides: list[pd.Series]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    a, b = (side.to_numpy(float) for side in sides)
    return np.minimum(a, b), np.maximum(a, b)

"""Who is fitted on and who is reported: halves by question, one pair per question, and how sure a head is of a pair.

Everything here is a fact about names and scores; no label is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from baer_utils.records import unit_hash


def confidence_of(s: ArrayLike, head: str = "stack", reliability: ArrayLike | None = None) -> NDArray[np.float64]:
    """How sure a head is of each pair; the same number for a pair and its swap.

    Parameters
    ----------
    s : array (N,) of signed scores. head : ``stack`` or ``reference``: the confidence is ``|s|``; ``route``: it is the
        reliability of the chosen expert, because the sizes of different experts' log-odds are not comparable.
    reliability : array (N,), of the chosen expert, in [0, 1]; needed for ``route``.

    Returns
    -------
    array (N,), 0 or more; 0 where s = 0 or NaN, which is no opinion, so that no threshold accepts it.
    """
    s = np.nan_to_num(np.asarray(s, dtype=float))
    if head != "route":
        return np.abs(s)
    if reliability is None or np.shape(reliability) != s.shape:
        came = None if reliability is None else np.shape(reliability)
        raise ValueError(f"the router's confidence is its chosen expert's reliability, {s.shape}; it is {came}.")
    return np.where(s == 0, 0.0, np.asarray(reliability, dtype=float))


def reported_half(group_ids: Sequence[str], *, seed: int = 0) -> NDArray[np.bool_]:
    """Whether each pair's question is in the half that is reported; the other half is fitted on.

    Parameters
    ----------
    group_ids : (N,) question of each pair. seed : part of the hash ``h(f"{seed}|selective|{group_id}")``, at or above
        .5 for the reported half: whole questions, whatever the order of rows and whoever opens the test.
    """
    half = {group: unit_hash(f"{seed}|selective|{group}") >= 0.5 for group in set(group_ids)}
    return np.array([half[group] for group in group_ids], dtype=bool)


def one_per_question(pair_ids: Sequence[str], group_ids: Sequence[str]) -> NDArray[np.bool_]:
    """Which pair stands for its question: the first by ``h(f"one|{pair_id}")``, equal ones by name.

    Pairs of one question are not independent; a guarantee is counted over questions.
    """
    rank = [(unit_hash(f"one|{pair}"), pair) for pair in pair_ids]
    first: dict[str, tuple[float, str]] = {}
    for group, place in zip(group_ids, rank, strict=True):
        first[group] = min(first.get(group, place), place)
    return np.array([first[group] == place for group, place in zip(group_ids, rank, strict=True)], dtype=bool)

"""What lies behind a win: experts that a stack turns around, and the subsets on which a lead rests.

A lead that one subset explains, or that is won by contradicting an expert, is worth another kind of belief than one
that holds everywhere; a reader should see which it is. Nothing here is fitted or chosen by.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from baer_utils.deployment.conditions import Condition
from baer_utils.stacking import Stack


def inversions(stack: Stack, condition: Condition) -> dict[str, list[str]]:
    """Experts and categories whose word a stack turns around.

    Returns
    -------
    dict: `experts`, whose evidence counts against what they say however unstable they are (raw and shrunk weight
    together below zero for delta = 0 and for delta = 1, hence for every delta between); `categories`, in which a bank
    that agrees (every z = 1, every delta = 0) would be answered the other way.
    """
    k = len(condition.experts)
    effect = stack.weights / stack.scale  # per nat
    steady, moving = (effect[:k] + effect[k : 2 * k] / discount for discount in (1, 5))
    turned = (steady < 0) & (moving < 0)
    against = steady.sum() + effect[2 * k :] < 0
    return {
        "experts": [name for name, is_so in zip(condition.experts, turned, strict=True) if is_so],
        "categories": [name for name, is_so in zip(condition.categories, against, strict=True) if is_so],
    }


def explaining_subsets(head: ArrayLike, baseline: ArrayLike, subset: Sequence[str]) -> list[str]:
    """The subsets on which a head's lead over a baseline rests.

    Parameters
    ----------
    head, baseline : (N,) right or wrong under the matched rule, the same pairs. subset : (N,) names.

    Returns
    -------
    list, largest lead first, ties by name: without the pairs of these subsets the head no longer leads, and none of
    them is left out as long as another with a larger lead is kept. Empty where there is no lead.
    """
    ahead = np.asarray(head, dtype=int) - np.asarray(baseline, dtype=int)
    by_subset = pd.Series(ahead).groupby(np.asarray(subset, dtype=object)).sum()
    left, named = int(ahead.sum()), []
    for name in sorted(by_subset.index, key=lambda name: (-by_subset[name], name)):
        if left <= 0:
            break
        named.append(name)
        left -= int(by_subset[name])
    return named

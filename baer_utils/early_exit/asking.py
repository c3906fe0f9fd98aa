"""One pair, asked one expert at a time: no call is made that the answer no longer needs.

The same steps and the same bits as `exits` has for a whole table. How an expert is asked is the caller's business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from baer_utils.early_exit.exits import evidence_limits, expert_weights, rest_limits, term_limits
from baer_utils.stacking import Stack


class Exit(NamedTuple):
    """Where a pair left: its score, the experts that were asked, and whether no later answer could turn the sign."""

    score: float
    asked: tuple[str, ...]
    certain: bool


def ask_until_settled(
    stack: Stack,
    experts: Sequence[str],
    order: Sequence[str],
    ask: Callable[[str], tuple[float, float]],
    categories: ArrayLike,
    *,
    threshold: float = float("inf"),
    limits: NDArray[np.float64] | None = None,
) -> Exit:
    """Ask experts in order until the answer of one pair is certain, firm enough, or everybody was asked.

    Parameters
    ----------
    stack, experts : the frozen stack and the names of its experts, in the order of its columns.
    order : all experts, in the order of asking. limits : as in `exits.stack_terms`.
    ask : name -> z and shrunk z of that expert on this pair; called once per expert until the pair leaves.
    categories : (G,) indicators of the pair. threshold : leave where abs(score) exceeds it.

    Raises
    ------
    ValueError
        for an order that does not name every expert once, or evidence beyond its limit.
    """
    if sorted(order) != sorted(experts):
        raise ValueError(f"order must name each of {', '.join(experts)} once; {', '.join(order)} came.")
    limits = evidence_limits(experts) if limits is None else limits
    row = np.asarray(categories, dtype=float)[None]
    raw, shrunk = expert_weights(stack, row, len(experts))
    places = [list(experts).index(name) for name in order]
    rest = rest_limits(term_limits(stack, row, limits)[:, places])[0]
    score = 0.0
    for step, (name, place) in enumerate(zip(order, places, strict=True)):
        z, z_shrunk = ask(name)
        if not abs(z) <= limits[place] * (1 + 1e-9):
            raise ValueError(f"evidence must lie within its limits, or no exit is exact; {name} answers {z}.")
        score += float(z * raw[0, place] + z_shrunk * shrunk[place])
        certain = abs(score) > rest[step] or step == len(order) - 1
        if certain or abs(score) > threshold:
            break
    return Exit(score, tuple(order[: step + 1]), certain)

"""When to stop asking: a stack taken apart into one signed term per expert, and the step at which a pair exits.

Experts are asked in a fixed order and their terms are added up. The rest is bounded: evidence is clipped and weights
are frozen, so from some step on no answer of the experts left out can turn the sign. That exit is exact. A threshold on
the size of the score lets a pair exit earlier, at a risk that `controlling` bounds. Both look at sizes only, so a pair
and its swap exit at the same step with scores that negate each other, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from baer_utils.early_exit.prices import BankPrices
from baer_utils.evidence import Evidence, clip_limit
from baer_utils.evidence.runs import VOTED
from baer_utils.protocols import Settings
from baer_utils.stacking import Stack

MOST_SHRUNK = 5.0  # z is divided by 1 + 4 delta, delta at most 1 (Eq. 4b)
ROUNDING = 1e-12  # of the sum of all limits: what the order of nine additions can change, and more


class Terms(NamedTuple):
    """A stack's score as a sum over experts, in the order of asking.

    order : names. partial : (N, K), the score after each step; the last column is the whole stack's.
    rest : (N, K), the most that all later experts together can add or take away; the last column is 0.
    """

    order: tuple[str, ...]
    partial: NDArray[np.float64]
    rest: NDArray[np.float64]

    def take(self, rows: ArrayLike) -> Terms:
        """The terms of some pairs, by places or by a mask."""
        return Terms(self.order, self.partial[rows], self.rest[rows])


def evidence_limits(experts: Sequence[str], *, clip: float = 1e-4, trials: int | None = None) -> NDArray[np.float64]:
    """The largest abs(z) that each expert can have, shape (K,).

    Parameters
    ----------
    experts : names. clip : of the log-odds (Eq. 4a).
    trials : votes of self-consistency per order, by default those of `Settings`: pooled, T votes are worth log(2T + 1)
        at most, which the mean over both orders cannot exceed. Every other expert is held by the clip alone.
    """
    votes = Settings().trials if trials is None else trials
    bound = clip_limit(clip)
    return np.array([min(bound, float(np.log(2 * votes + 1))) if name == VOTED else bound for name in experts])


def expert_weights(stack: Stack, categories: ArrayLike, n_experts: int) -> tuple[NDArray, NDArray]:
    """What a unit of z, and of shrunk z, of every expert adds to the score of every pair.

    Parameters
    ----------
    stack : over the features of Eq. 5: z, shrunk z, and the mean of z in each category. categories : (N, G) indicators.

    Returns
    -------
    raw (N, K) and shrunk (K,): the mean evidence in a category is a K-th of each expert's z, so its weight is shared
    out. Both are the same for a pair and its swap.

    Raises
    ------
    ValueError
        for a stack with another number of columns.
    """
    categories = np.ascontiguousarray(categories, dtype=float)  # the bits of a row's sum must not depend on the others
    if len(stack.weights) != 2 * n_experts + categories.shape[1]:
        raise ValueError(
            f"the stack must have 2 x {n_experts} + {categories.shape[1]} columns; it has {len(stack.weights)}."
        )
    unit = stack.weights / stack.scale
    in_category = (categories * unit[2 * n_experts :]).sum(axis=1) / n_experts
    return unit[:n_experts] + in_category[:, None], unit[n_experts : 2 * n_experts]


def term_limits(stack: Stack, categories: ArrayLike, limits: NDArray[np.float64]) -> NDArray[np.float64]:
    """The most that each expert can add to the score of each pair, (N, K), whatever it answers.

    Its term is z (raw + shrunk / (1 + 4 delta)), delta in [0, 1]: linear in 1 / (1 + 4 delta), so an end is the worst.
    """
    raw, shrunk = expert_weights(stack, categories, len(limits))
    return limits * np.maximum(np.abs(raw + shrunk), np.abs(raw + shrunk / MOST_SHRUNK))


def rest_limits(limits: NDArray[np.float64]) -> NDArray[np.float64]:
    """The most that all later experts together can add, (N, K), from the limits of the terms in the order of asking."""
    left = np.cumsum(limits[:, ::-1], axis=1)[:, ::-1]
    return np.hstack([left[:, 1:] + ROUNDING * left[:, :1], np.zeros((len(left), 1))])


def stack_terms(
    stack: Stack,
    evidence: Evidence,
    categories: ArrayLike,
    order: Sequence[str],
    *,
    limits: NDArray[np.float64] | None = None,
) -> Terms:
    """The score of a stack, expert by expert in the order of asking, with the bound of what is still to come.

    Parameters
    ----------
    stack : frozen, over all experts of `evidence`. evidence : of N pairs. categories : (N, G), as in the features.
    order : all experts, each once, in the order in which they would be asked.
    limits : largest abs(z) of each expert, in the order of `evidence.experts`; by default `evidence_limits`.

    Raises
    ------
    ValueError
        for an order that does not name every expert once, or evidence beyond its limit (another clip, more votes).
    """
    experts = evidence.experts
    if sorted(order) != sorted(experts):
        raise ValueError(f"order must name each of {', '.join(experts)} once; {', '.join(order)} came.")
    limits = evidence_limits(experts) if limits is None else limits
    beyond = (np.abs(evidence.z) > limits * (1 + 1e-9)).any(axis=0)
    if beyond.any():
        name = experts[int(np.flatnonzero(beyond)[0])]
        raise ValueError(f"evidence must lie within its limits, or no exit is exact; {name} exceeds its own. "
                         "Give the clip and the votes that it was made with.")  # fmt: skip
    raw, shrunk = expert_weights(stack, categories, len(experts))
    places = [experts.index(name) for name in order]
    terms = (evidence.z * raw + evidence.z_shrunk * shrunk)[:, places]
    bound = term_limits(stack, categories, limits)[:, places]
    return Terms(tuple(order), np.cumsum(terms, axis=1), rest_limits(bound))


def exit_steps(terms: Terms, threshold: float = float("inf")) -> NDArray[np.int64]:
    """Step at which each pair exits, counted from 0: the first where its answer is certain, or firm enough.

    Parameters
    ----------
    threshold : a pair also exits where abs(score) exceeds it; infinite leaves the exact exit alone.

    Returns
    -------
    (N,). Certain: abs(score) exceeds all that the experts left out can add, so their answers cannot turn the sign. The
    last step always exits.
    """
    size = np.abs(terms.partial)
    stop = (size > terms.rest) | (size > threshold)
    stop[:, -1] = True
    return stop.argmax(axis=1)


def exit_scores(terms: Terms, steps: NDArray[np.int64]) -> NDArray[np.float64]:
    """Score of each pair at the step where it exits."""
    return terms.partial[np.arange(len(steps)), steps]


def exit_tokens(terms: Terms, steps: NDArray[np.int64], prices: BankPrices, pair_ids: Sequence[str]) -> float:
    """Tokens per pair: the pairs of each exit step pay what the experts asked until then need together."""
    bill = 0.0
    for step in np.unique(steps):
        ids = [pair_ids[place] for place in np.flatnonzero(steps == step)]
        bill += len(ids) * prices.of(terms.order[: step + 1], ids)
    return bill / len(steps)


def exit_order(limits: NDArray[np.float64], experts: Sequence[str], prices: BankPrices) -> tuple[str, ...]:
    """An order of asking that settles pairs early for few tokens; no label is looked at.

    Parameters
    ----------
    limits : (N, K) of `term_limits` on construction pairs.

    Returns
    -------
    names: next is always the expert whose mean limit is largest per token that it adds (one that adds none comes at
    once); ties by name.
    """
    reach = dict(zip(experts, limits.mean(axis=0).tolist(), strict=True))
    order: list[str] = []
    while len(order) < len(reach):
        left = sorted(set(reach) - set(order))
        rate = [-reach[name] / added if (added := prices.added(order, name)) > 0 else -np.inf for name in left]
        order.append(left[int(np.argmin(rate))])
    return tuple(order)

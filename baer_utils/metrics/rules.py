"""How right, and on how many pairs: two scoring rules and one ledger per method.

A method answers +1 (*a*), -1 (*b*), 0 (a tie) or NaN (nothing). What a tie and a missing answer are worth is decided
here and nowhere else. This file compares answers with labels; it knows nothing about where either came from.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from baer_utils.metrics.intervals import share_interval
from baer_utils.scores import decision as decide


def as_answers(decision: ArrayLike) -> NDArray[np.int64]:
    """The matched rule: a tie (0) and a missing answer (NaN) count as the answer *a*.

    Parameters
    ----------
    decision : array (N,) of decisions, or of signed scores.

    Returns
    -------
    integer array of +1 and -1. A hash that has never seen the label decided which response is *a*, so this is one fair
    coin that every method shares. Use it wherever methods are compared: gates, strongest baseline, every p-value.
    """
    return np.where(np.asarray(decision, dtype=float) < 0, -1, 1)


def pairwise_accuracy(decision: ArrayLike, y: ArrayLike) -> float:
    """Share of all pairs whose decision equals the label; a decision of 0 or NaN is wrong (BAER Eq. 11).

    Parameters
    ----------
    decision : array (N,): +1, -1, 0 for a tie, NaN for no answer.
    y : array (N,) of labels, +1 or -1.

    Raises
    ------
    ValueError
        for no pairs, arrays of different lengths, or labels other than +1 and -1.
    """
    return float((np.asarray(decision, dtype=float) == check_labels(y, decision)).mean())


def ledger(answer: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None, *, head: bool = False) -> dict[str, float]:
    """Everything a report says about one method's answers, both scoring rules side by side.

    Parameters
    ----------
    answer : array (N,): decisions, or signed scores (their sign counts); 0 for a tie, NaN for no answer.
    y : array (N,) of labels, +1 or -1.
    groups : array (N,), what is asked in each pair (`group_id`); None where every pair is its own question.
    head : True for BAER's heads, whose score of 0 is the prediction *a* (Eq. 1) in ``strict`` and ``coverage``, and a
        tie in ``half_credit`` and ``covered_only``. A baseline's tie is wrong and not covered.

    Returns
    -------
    dict: ``n``, ``ties`` and ``missing`` (numbers of pairs); ``matched_rule`` (ties and missing count as *a*);
    ``paper_rule``, the same number as ``strict`` (correct / n); ``half_credit`` (a tie or no answer is worth 1/2);
    ``covered_only`` (correct among neither tied nor missing; NaN where there is none); ``coverage``. Each but the last
    with ``_low`` and ``_high``, its 95 % Wilson interval, widened where questions repeat (`share_interval`).

    Raises
    ------
    ValueError
        as `pairwise_accuracy`.
    """
    y = check_labels(y, answer)
    sign = np.sign(np.asarray(answer, dtype=float))
    groups = np.arange(len(y)) if groups is None else np.asarray(groups)
    tied, missing = sign == 0, np.isnan(sign)
    decided = ~(tied | missing)
    strict = (decide(sign) if head else sign) == y
    shares = {
        "matched_rule": (as_answers(sign) == y, groups),
        "paper_rule": (strict, groups),
        "strict": (strict, groups),
        "half_credit": (np.where(decided, sign == y, 0.5), groups),
        "covered_only": ((sign == y)[decided], groups[decided]),
    }
    entry = {"n": len(y), "ties": int(tied.sum()), "missing": int(missing.sum())}
    for name, (values, of) in shares.items():
        entry[name] = float(np.mean(values)) if len(values) else float("nan")
        entry[f"{name}_low"], entry[f"{name}_high"] = share_interval(values, of)
    return entry | {"coverage": float((~missing if head else decided).mean())}


def check_labels(y: ArrayLike, decision: ArrayLike) -> NDArray[np.float64]:
    """The labels as floats, once there is one of +1 or -1 for every decision."""
    y = np.asarray(y, dtype=float)
    wrong = ~np.isin(y, (1.0, -1.0))
    if not len(y) or y.shape != np.shape(decision)[:1] or wrong.any():
        came = f"row {int(np.flatnonzero(wrong)[0])} is {y[wrong][0]} ({int(wrong.sum())} such)" if wrong.any() else ""
        raise ValueError(
            f"there must be at least one pair and a label of +1 or -1 for each of the {len(np.asarray(decision))}; "
            f"{came or f'{len(y)} labels came'}. Drop sealed and unlabelled pairs first."
        )
    return y

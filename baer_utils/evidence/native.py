"""The decision of each external baseline under its own inference rule.

One small function per kind of rule, one line per method in `NATIVE`. A tie and a missing answer leave as such: what
they count for is decided in `metrics`, where both scoring rules stand side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from baer_utils.debias import THREE_PROMPTS, Debias, content_order, fit_three_prompts, label_reads, probability_excess
from baer_utils.evidence.runs import run_array
from baer_utils.evidence.summary import summarize
from baer_utils.protocols import EXPERTS, PROTOCOLS
from baer_utils.records import SILENT


def _signs_of_means(runs: pd.DataFrame, pairs: pd.DataFrame, methods: Sequence[str]) -> NDArray[np.float64]:
    """(N, K): the sign of z over both orders, a tie at exactly 0, missing where no order answered.

    Of hard verdicts (imported judges) this is the sign of the net of the orders: a verdict and a tie are that verdict,
    two that disagree are a tie.
    """
    evidence = summarize(run_array(runs, methods, pairs["pair_id"]))
    return np.where(evidence.available, np.sign(evidence.z), np.nan)


def _sign_of_mean(runs: pd.DataFrame, pairs: pd.DataFrame, method: str) -> NDArray[np.float64]:
    """Soft reads in both orders: the sign of z, a tie at exactly 0, missing where no order answered."""
    return _signs_of_means(runs, pairs, [method])[:, 0]


def _agreement(runs: pd.DataFrame, pairs: pd.DataFrame, method: str) -> NDArray[np.float64]:
    """Hard verdicts mapped to *a*: agree = that verdict, one parsed = that one, disagree = tie, none = missing.

    The hard letter of a read (rubric) is its sign. A parsed tie in one order against a verdict in the other does not
    agree either: tie.
    """
    verdict = np.sign(run_array(runs, [method], pairs["pair_id"])[:, 0, :])
    low, high = np.fmin.reduce(verdict, axis=-1), np.fmax.reduce(verdict, axis=-1)
    return np.where(low == high, low, np.where(np.isnan(low), np.nan, 0.0))


def _majority_of_votes(runs: pd.DataFrame, pairs: pd.DataFrame, method: str) -> NDArray[np.float64]:
    """Majority of all parsed votes, both orders together: equal numbers are a tie, none parsed is missing."""
    parsed = ~np.isnan(run_array(runs, [method], pairs["pair_id"])[:, 0, :]).all(axis=-1)
    is_vote = (runs["protocol"] == method) & (runs["stage"] == "verdict") & runs["view"].isin(["ab", "ba", "net"])
    votes = runs[is_vote & ~runs["status"].isin(SILENT)]
    total = np.sign(votes["log_odds"]).groupby(votes["pair_id"]).sum().reindex(pairs["pair_id"], fill_value=0)
    return np.where(parsed, np.sign(total.to_numpy(float)), np.nan)


def _order_by_content(runs: pd.DataFrame, pairs: pd.DataFrame, method: str) -> NDArray[np.float64]:
    """PriDe: the sign of one debiased read, in the order that shows the response with the smaller text hash first.

    The order is a fact about the two texts, so a swapped pair is read in the same prompt and the answer negates. Two
    equal texts leave nothing to choose: a tie. The prior is that of the `pride` rows (`debias.Debias.apply`).
    """
    L = run_array(runs, [method], pairs["pair_id"])[:, 0, :2]
    order = content_order(pairs["response_a"], pairs["response_b"])
    one_order = np.sign(np.where(order == "ab", L[:, 0], L[:, 1]))
    equal = (pairs["response_a"] == pairs["response_b"]).to_numpy()
    return np.where(equal, np.where(np.isnan(L).all(axis=-1), np.nan, 0.0), one_order)


def _three_prompts(
    runs: pd.DataFrame, pairs: pd.DataFrame, method: str, debias: Debias | None = None
) -> NDArray[np.float64]:
    """CalibraEval: (g(1A) + g(2A) + 1 - g(2B)) / 3 against 1/2, from the uncorrected reads under its own map g.

    Equal to 1/2 within 1e-12 is a tie; a pair without all three reads is missing. Without a fitted `debias` the map is
    fitted here, mode ``ecdf``, on the non-test pairs of the table.
    """
    reads = label_reads(runs, pairs["pair_id"], THREE_PROMPTS.views)
    if np.isnan(reads).any(axis=1).all():
        return np.full(len(pairs), np.nan)
    g = fit_three_prompts(runs, pairs) if debias is None else debias.three_prompts
    if g is None:
        raise ValueError(
            f"the native rule of {method} needs a map fitted on selection and calibration pairs read in the views "
            f"{', '.join(THREE_PROMPTS.views)}; {'the pair table' if debias is None else 'debias'} has none. "
            "Pass debias=fit_debias(runs, pairs) of the whole condition, judged in these views."
        )
    return np.sign(np.round(probability_excess(g(expit(reads)), THREE_PROMPTS), 12))


NATIVE: dict[str, Callable[[pd.DataFrame, pd.DataFrame, str], NDArray[np.float64]]] = {
    "direct": _sign_of_mean,
    "self_consistency": _majority_of_votes,
    "chain_of_thought": _agreement,
    "rubric": _agreement,
    "score_then_choose": _agreement,
    "prepair": _agreement,
    "pride": _order_by_content,
    "calibraeval": _three_prompts,
}


def native_decisions(
    runs: pd.DataFrame, pairs: pd.DataFrame, methods: Sequence[str], *, debias: Debias | None = None
) -> pd.DataFrame:
    """Decision of every external baseline under its own inference rule, before any rule about ties.

    Parameters
    ----------
    runs, pairs : run table and the pair table that gives the rows.
    methods : names of baselines: each has its rule in `NATIVE`, or is an imported judge, a protocol of the run table
        that is none of this project's; its rule is the net of its orders.
    debias : the condition's fitted corrections; only CalibraEval looks at them. When left out its map is fitted on the
        non-test pairs given, so a table of test pairs alone needs them.

    Returns
    -------
    frame, pair_id x methods: +1 for *a*, -1 for *b*, 0 for a tie, NaN for no answer.

    Raises
    ------
    ValueError
        for a method without a native rule (the deliberate expert, an imported judge without runs), and where
        CalibraEval has reads to decide on but no pairs to fit on.
    """
    imported = [name for name in methods if name not in {*NATIVE, *EXPERTS, *PROTOCOLS}]
    ran = set(runs["protocol"].unique()) if imported else set()
    unknown = [name for name in methods if name not in NATIVE and not (name in imported and name in ran)]
    if unknown:
        raise ValueError(
            f"methods must have a native rule ({', '.join(NATIVE)}); not known: {', '.join(unknown)}. "
            "An imported judge must have runs in the table."
        )
    index = pd.Index(pairs["pair_id"], name="pair_id")
    rules = NATIVE | {"calibraeval": partial(_three_prompts, debias=debias)}
    columns = {name: rules[name](runs, pairs, name) for name in methods if name in NATIVE}
    if imported:  # all at once: the same rule for each of what may be many
        columns |= dict(zip(imported, _signs_of_means(runs, pairs, imported).T, strict=True))
    return pd.DataFrame({name: columns[name] for name in methods}, index=index, dtype=float)

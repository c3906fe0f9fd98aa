"""One table per head: for each risk that must be held, the threshold, what it was fitted on, and what it was worth.

The opened test is cut in two by question: thresholds see the labels of one half, figures those of the other. Before the
opening the same table can be made of out-of-fold development scores, and says that it promises nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from baer_utils.metrics import share_interval
from baer_utils.selective.halves import one_per_question, reported_half
from baer_utils.selective.thresholds import DELTA, binomial_p, confidence_grid, fit_threshold, scope_threshold

ALPHAS = (0.05, 0.1, 0.15, 0.2, 0.25)  # the risks that SCOPE reports
PREVIEW = "none: a preview from development scores, which chose the head and its settings"
NO_GUARANTEE = "none: the rule does not hold the risk of accepted answers"


def selective_table(
    pairs: pd.DataFrame,
    confidence: ArrayLike,
    wrong: ArrayLike,
    development_confidence: ArrayLike,
    *,
    alphas: Sequence[float] = ALPHAS,
    delta: float = DELTA,
    seed: int = 0,
    preview: bool = False,
) -> pd.DataFrame:
    """Learn-then-Test and SCOPE thresholds, fitted on half of the questions and reported on the other half.

    Parameters
    ----------
    pairs : N rows with `pair_id` (column or index) and `group_id`: the opened test (`TestReport.pairs`).
    confidence : array (N,), `confidence_of` the head's scores. wrong : array (N,), 1 where its decision errs.
    development_confidence : confidences of the condition's development pairs under the same frozen head, for the grid
        (``Frozen.score_runs``; scores of other folds' heads may lie beside every score of this one).
    alphas, delta : see `fit_threshold`. seed : of the halves.
    preview : True where the pairs are development pairs with out-of-fold scores: the same figures, no guarantee.

    Returns
    -------
    frame, two rows per alpha (`rule` is "learn then test" or "SCOPE"): ``threshold`` (infinite: abstain always);
    ``fit_pairs``, one per question, ``fit_accepted``, ``fit_errors`` and ``p`` there; on the reported half ``pairs``,
    ``accepted``, ``coverage``, ``risk`` with ``risk_low`` and ``risk_high`` (95 %, widened where questions repeat; NaN
    where nothing is accepted), and ``question_risk``, of one pair per question, which the guarantee speaks of;
    ``guarantee``, in words.
    """
    confidence, wrong = np.asarray(confidence, dtype=float), np.asarray(wrong).astype(bool)
    ids = pairs.get("pair_id", pairs.index).to_numpy()
    groups = pairs["group_id"].to_numpy()
    shown, one = reported_half(groups, seed=seed), one_per_question(ids, groups)
    fitted = ~shown & one
    rows = []
    for alpha in alphas:
        grid = confidence_grid(development_confidence, int(fitted.sum()), alpha=alpha, delta=delta)
        tested = fit_threshold(confidence[fitted], wrong[fitted], grid, alpha=alpha, delta=delta)
        scope = scope_threshold(confidence[fitted], wrong[fitted], alpha=alpha)
        holds = f"risk at most {alpha:g} over questions, with probability {1 - delta:g}"
        for rule, value, accepted, promise in (
            ("learn then test", tested.value, tested.accepts(confidence), holds),
            ("SCOPE", scope, confidence >= scope, NO_GUARANTEE),
        ):
            row = {"rule": rule, "alpha": alpha, "threshold": value, "fit_pairs": int(fitted.sum())}
            row |= _fitted_figures(accepted[fitted], wrong[fitted], alpha)
            row |= _reported_figures(accepted[shown], wrong[shown], groups[shown], one[shown])
            rows.append(row | {"guarantee": PREVIEW if preview else promise})
    return pd.DataFrame(rows)


def _fitted_figures(accepted: NDArray, wrong: NDArray, alpha: float) -> dict[str, float]:
    n, errors = int(accepted.sum()), int((accepted & wrong).sum())
    return {"fit_accepted": n, "fit_errors": errors, "p": float(binomial_p(errors, n, alpha))}


def _reported_figures(accepted: NDArray, wrong: NDArray, groups: NDArray, one: NDArray) -> dict[str, float]:
    n = int(accepted.sum())
    figures = {"pairs": len(accepted), "accepted": n, "coverage": n / len(accepted) if len(accepted) else np.nan}
    risks = [float(wrong[rows].mean()) if rows.any() else np.nan for rows in (accepted, accepted & one)]
    low, high = share_interval(wrong[accepted], groups[accepted])
    return figures | {"risk": risks[0], "risk_low": low, "risk_high": high, "question_risk": risks[1]}

"""Out-of-fold scores of each head on development pairs, with what its own fit looked at.

The folds are the same for every head. Stack and router are fitted, and their settings chosen, without the questions of
the fold; the reference head has nothing to fit. Rows come sorted by pair_id and labelled; none of them is a test row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baer_utils import metrics, scores
from baer_utils.deployment.candidates import right_or_wrong, routing_features
from baer_utils.deployment.fitting import Fit, lambda_for
from baer_utils.evidence import Evidence
from baer_utils.gates import GATED
from baer_utils.routing import (
    MODELS,
    confidence_switch,
    out_of_fold_lookup,
    out_of_fold_routes,
    routed_score,
)
from baer_utils.stacking import fit_nonnegative_stack, fit_stack
from baer_utils.verification import reference_evidence


@dataclass(frozen=True)
class Evaluated:
    """Out-of-fold scores (N,) of a head, notes for `HeadFigures`, and columns of its own for the table of pairs."""

    s: NDArray[np.float64]
    notes: dict[str, object]
    columns: dict[str, NDArray] = field(default_factory=dict)


@dataclass(frozen=True)
class Rows:
    """Labelled development pairs with what every head needs: labels, splits, folds, and masks by part."""

    pairs: pd.DataFrame
    y: NDArray[np.float64]
    split: NDArray
    fold: NDArray[np.int64]
    masks: dict[str, NDArray[np.bool_]]
    few: bool  # too few questions to select anything on

    def accuracy(self, s: NDArray) -> dict[str, float]:
        """Share of pairs that a score decides right (Eq. 1), by part; NaN where a part has none."""
        right = scores.decision(s) == self.y
        return {part: share(right[mask]) for part, mask in self.masks.items()}


def share(right: NDArray) -> float:
    """Mean of an array of 0 and 1; NaN for an empty one."""
    return float(right.mean()) if len(right) else float("nan")


def out_of_fold(
    phi: NDArray, y: NDArray, split: NDArray, fold: NDArray, *, largest: bool, fit: Fit = fit_stack
) -> tuple[NDArray[np.float64], list[float]]:
    """Stack scores of pairs by weights that never saw their question, and the lambda of each fold.

    Parameters
    ----------
    phi : (N, D) features; y : (N,) labels, +1 or -1; split : (N,) "selection" or "calibration"; fold : (N,) integers.
    largest : no selection among lambdas, take the largest. fit : `fit_stack` or `fit_nonnegative_stack`.

    Returns
    -------
    s : (N,). A fold outside which there is no row (a single question) has learnt nothing: its scores are 0.
    lambdas : one per fold, NaN where nothing was fitted.
    """
    s, lambdas = np.zeros(len(y)), []
    for held in range(fold.max() + 1):
        train, held_out = fold != held, fold == held
        if not train.any():
            lambdas.append(float("nan"))
            continue
        lam = lambda_for(phi[train], y[train], split[train], largest=largest, fit=fit)
        s[held_out] = fit(phi[train], y[train], lam).score(np.ascontiguousarray(phi[held_out]))
        lambdas.append(lam)
    return s, lambdas


def evaluate_stack(phi: NDArray, rows: Rows) -> Evaluated:
    """The stack; beside it its lambdas, and the accuracies of the sign-constrained one."""
    s, lambdas = out_of_fold(phi, rows.y, rows.split, rows.fold, largest=rows.few)
    bounded, _ = out_of_fold(phi, rows.y, rows.split, rows.fold, largest=rows.few, fit=fit_nonnegative_stack)
    return Evaluated(s, {"lambda_by_fold": lambdas, "nonnegative_accuracy": rows.accuracy(bounded)})


def evaluate_route(
    candidates: Evidence, rows: Rows, benchmark: str, categories: Sequence[str], *, seed: int
) -> Evaluated:
    """The router over all candidates; beside it the models that were compared and the simple rules that it must beat.

    Notes: `model` (that is frozen if the router is), `accuracy_by_model`, `pairs_compared` and `model_by_fold`;
    `chosen`, the number of pairs on which each candidate speaks; `reliability_error`, the calibration error of the
    out-of-fold reliabilities of all candidates with an opinion, NaN without any; accuracies of `confidence_switching`
    and `subset_lookup` (out of fold, too). With too few questions to select on, nothing is compared: the model is the
    simplest.
    """
    z, groups = candidates.z, rows.pairs["group_id"]
    rho, correct = routing_features(candidates, rows.pairs, benchmark, categories), right_or_wrong(z, rows.y)
    models = MODELS[:1] if rows.few else MODELS
    found = out_of_fold_routes(rho, correct, groups, seed=seed, models=models)
    names = np.array(candidates.experts, dtype=object)[found.chosen]
    spoke = Counter(names[(z != 0).any(axis=1)])
    notes = {name: getattr(found, name) for name in ("model", "accuracy_by_model", "pairs_compared", "model_by_fold")}
    lookup = out_of_fold_lookup(correct, rows.pairs["subset"], groups, seed=seed)
    notes |= {
        "chosen": {name: spoke[name] for name in candidates.experts},
        "reliability_error": _reliability_error(found.reliability, correct),
        "confidence_switching": rows.accuracy(routed_score(z, confidence_switch(z))),
        "subset_lookup": rows.accuracy(routed_score(z, lookup)),
    }
    reliability = np.take_along_axis(found.reliability, found.chosen[:, None], axis=1)[:, 0]
    columns = {"route_expert": names, "route_reliability": reliability}
    return Evaluated(routed_score(z, found.chosen), notes, columns)


def _reliability_error(reliability: NDArray, correct: NDArray) -> float:
    """Calibration error of reliabilities (N, K) against who was right: 1, 0, NaN for no opinion (left out)."""
    said = ~np.isnan(correct)
    was = np.where(correct[said] == 1, 1, -1)
    return metrics.calibration_error(reliability[said], was, folded=False) if said.any() else float("nan")


def evaluate_reference(runs: pd.DataFrame, rows: Rows, *, clip: float) -> Evaluated | None:
    """The reference head; None where a split that has pairs has no read at all. A missing read is s = 0, counted."""
    s = reference_evidence(runs, rows.pairs["pair_id"], clip=clip)
    answered = ~np.isnan(s)
    if not all(answered[rows.split == part].any() for part in GATED if (rows.split == part).any()):
        return None
    return Evaluated(np.nan_to_num(s), {"missing": int((~answered).sum())})

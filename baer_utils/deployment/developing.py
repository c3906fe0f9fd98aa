"""Out-of-fold scores of every head on development pairs, and the figures that the gates look at.

Whole questions are dealt to folds by hash; a pair is scored only by weights that never saw its question. Baselines are
re-chosen on every split under the matched rule, and the paper's rule is counted beside it. This file reads selection
and calibration rows only: whatever stands in a test row, it cannot matter here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baer_utils import metrics, scores
from baer_utils.debias import Debias, bank_runs
from baer_utils.deployment.conditions import CLIP, baselines_of
from baer_utils.deployment.fitting import Fit, benchmark_of, labelled_development, lambda_for, represent
from baer_utils.evidence import native_decisions
from baer_utils.features import category_columns
from baer_utils.gates import (
    FOLDS,
    GATED,
    HEADS,
    MIN_QUESTIONS,
    POOLED,
    Development,
    HeadFigures,
    margin,
    strongest_baseline,
)
from baer_utils.records import unit_hash
from baer_utils.stacking import fit_nonnegative_stack, fit_stack


def question_folds(group_ids: Sequence[str], *, seed: int) -> NDArray[np.int64]:
    """Fold of every pair: its question's place in hash order, dealt round robin.

    Parameters
    ----------
    group_ids : (n_pairs,) question of each pair.
    seed : part of the hash.

    Returns
    -------
    (n_pairs,) integers from 0 to min(5, questions) - 1: the same for all pairs of a question, whatever the row order.
    """
    ordered = sorted(set(group_ids), key=lambda group: (unit_hash(f"{seed}|fold|{group}"), group))
    folds = min(FOLDS, max(len(ordered), 1))
    fold_of = {group: place % folds for place, group in enumerate(ordered)}
    return np.array([fold_of[group] for group in group_ids], dtype=int)


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


def develop(
    pairs: pd.DataFrame,
    runs: pd.DataFrame,
    experts: Sequence[str],
    *,
    seed: int = 0,
    clip: float = CLIP,
    debias: Debias | None = None,
) -> Development:
    """Everything the gates look at, from development rows only.

    PriDe's prior and CalibraEval's maps are fitted on all selection and calibration pairs and are the same in every
    fold. That is what the papers' rule allows: they are label-free and see no test input, so a fold's held-out labels
    cannot reach them, and the ones that are frozen are these very ones. What folds hold out is whatever labels fit.

    Parameters
    ----------
    pairs : pair table of one benchmark; test labels may be null. Unlabelled development pairs are left out, counted.
    runs : run table; an expert without runs is missing (z = 0).
    experts : names of the stack's experts, in order.
    seed : seed of the split, which deals the folds too.
    clip : see `evidence.log_odds`.
    debias : the condition's corrections, `fit_debias(runs, pairs)`; needed where `pride` or `calibraeval` is among the
        experts. Give `describe_condition` the same ones.

    Returns
    -------
    Development
        with out-of-fold scores. With fewer than 20 questions in selection every fold uses the largest lambda, because
        that is the stack which would be deployed.

    Raises
    ------
    ValueError
        without labelled development pairs, for pairs of two benchmarks, or for corrections needed and missing.
    """
    rows, unlabelled = labelled_development(pairs)
    benchmark = benchmark_of(rows)
    categories = category_columns(pairs[pairs["split"] != "test"], benchmark).columns
    runs = bank_runs(runs, experts, debias)
    phi, evidence = represent(rows, runs, experts, benchmark, categories, clip=clip)
    y, split = rows["label"].to_numpy(float), rows["split"].to_numpy()
    masks = {name: split == name for name in GATED} | {POOLED: np.ones(len(rows), dtype=bool)}
    questions = {name: int(rows.loc[mask, "group_id"].nunique()) for name, mask in masks.items()}

    fold = question_folds(rows["group_id"], seed=seed)
    s, notes = _stack_scores(phi, y, split, fold, masks, largest=questions["selection"] < MIN_QUESTIONS)
    native = native_decisions(runs, rows, baselines_of(experts), debias=debias)
    figures, baselines, accuracy = _compare({"stack": s}, native, y, masks, {"stack": notes})
    table = rows[["pair_id", "group_id", "split", "label"]].assign(fold=fold, stack=s)
    return Development(
        heads={name: figures.get(name) for name in HEADS},
        pairs={name: int(mask.sum()) for name, mask in masks.items()},
        questions=questions,
        baselines=baselines,
        baseline_accuracy=accuracy,
        best_single=metrics.best_single(evidence.z, y, experts),
        unlabelled=unlabelled,
        out_of_fold=table.join(native.reset_index(drop=True)),
    )


def _stack_scores(
    phi: NDArray, y: NDArray, split: NDArray, fold: NDArray, masks: dict[str, NDArray], *, largest: bool
) -> tuple[NDArray[np.float64], dict]:
    """Out-of-fold scores of the stack, and beside them its lambdas and the accuracies of the sign-constrained one."""
    s, lambdas = out_of_fold(phi, y, split, fold, largest=largest)
    bounded, _ = out_of_fold(phi, y, split, fold, largest=largest, fit=fit_nonnegative_stack)
    beside = {part: _share(scores.decision(bounded[mask]) == y[mask]) for part, mask in masks.items()}
    return s, {"lambda_by_fold": lambdas, "nonnegative_accuracy": beside}


def _compare(
    scores_by_head: dict[str, NDArray], native: pd.DataFrame, y: NDArray, masks: dict[str, NDArray], notes: dict
) -> tuple[dict[str, HeadFigures], dict[str, str], dict]:
    """Figures of every head, the strongest baseline of every split, and every baseline's accuracy under both rules."""
    matched = {name: metrics.as_answers(native[name]) == y for name in native}
    paper = {name: (native[name] == y).to_numpy() for name in native}
    baselines = {
        part: strongest_baseline({name: right[mask] for name, right in matched.items()}) for part, mask in masks.items()
    }
    accuracy = {
        rule: {part: {name: _share(right[mask]) for name, right in table.items()} for part, mask in masks.items()}
        for rule, table in (("matched", matched), ("paper", paper))
    }
    rivals = {part: (matched[name], paper[name]) for part, name in baselines.items()}
    figures = {head: _figures(s, y, masks, rivals, notes[head]) for head, s in scores_by_head.items()}
    return figures, baselines, accuracy


def _figures(s: NDArray, y: NDArray, masks: dict, rivals: dict, notes: dict) -> HeadFigures:
    right = scores.decision(s) == y
    parts = {part: (right[mask], *(rival[mask] for rival in rivals[part])) for part, mask in masks.items()}
    discordant = {part: metrics.discordant(head, matched) for part, (head, matched, _) in parts.items()}
    accuracy = {part: _share(head) for part, (head, _, _) in parts.items()}
    return HeadFigures(
        accuracy=accuracy,
        margin={part: margin(head, matched) for part, (head, matched, _) in parts.items()},
        paper_margin={part: margin(head, paper) for part, (head, _, paper) in parts.items()},
        discordant=discordant,
        mcnemar_p={part: metrics.mcnemar(*counts) for part, counts in discordant.items()},
        transfer_gap=100 * (accuracy["calibration"] - accuracy["selection"]),
        zero_scores=int((s == 0).sum()),
        notes=notes,
    )


def _share(right: NDArray) -> float:
    return float(right.mean()) if len(right) else float("nan")

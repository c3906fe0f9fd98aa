"""The figures that the gates look at, for every head, from out-of-fold scores on development pairs.

Whole questions are dealt to folds by hash; a pair is scored only by what never saw its question. Baselines are
re-chosen on every split under the matched rule, and the paper's rule is counted beside it. This file reads selection
and calibration rows only: whatever stands in a test row, it cannot matter here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from baer_utils import metrics
from baer_utils.debias import Debias, bank_runs
from baer_utils.deployment.candidates import candidate_evidence, extra_candidates
from baer_utils.deployment.conditions import CLIP, baselines_of
from baer_utils.deployment.evaluating import (
    Evaluated,
    Rows,
    evaluate_reference,
    evaluate_route,
    evaluate_stack,
    share,
)
from baer_utils.deployment.fitting import benchmark_of, labelled_development, represent
from baer_utils.evidence import native_decisions
from baer_utils.features import category_columns
from baer_utils.gates import (
    GATED,
    HEADS,
    MIN_QUESTIONS,
    POOLED,
    Development,
    HeadFigures,
    margin,
    strongest_baseline,
)
from baer_utils.records import question_folds

NO_CHOICE = "with a single expert there is nothing to choose between"
NO_READS = "its runs are missing on selection, on calibration, or on both"
NOT_ASKED = "it was left out"


def develop(
    pairs: pd.DataFrame,
    runs: pd.DataFrame,
    experts: Sequence[str],
    *,
    seed: int = 0,
    clip: float = CLIP,
    debias: Debias | None = None,
    heads: Sequence[str] = HEADS,
) -> Development:
    """Everything the gates look at, from development rows only.

    PriDe's prior and CalibraEval's maps are fitted on all selection and calibration pairs and are the same in every
    fold. That is what the papers' rule allows: they are label-free and see no test input, so a fold's held-out labels
    cannot reach them, and the ones that are frozen are these very ones. What folds hold out is whatever labels fit.

    Parameters
    ----------
    pairs : pair table of one benchmark; test labels may be null. Unlabelled development pairs are left out, counted.
    runs : run table; an expert without runs is missing (z = 0). Pointwise judging and the likelihoods, where they ran,
        are extra candidates of the router; reference verification, where it ran, is a head.
    experts : names of the stack's experts, in order.
    seed : seed of the split, which deals the folds too and is the router's.
    clip : see `evidence.log_odds`.
    debias : the condition's corrections, `fit_debias(runs, pairs)`; needed where `pride` or `calibraeval` is among the
        experts. Give `describe_condition` the same ones.
    heads : which to evaluate; the stack always is. The router takes most of the time.

    Returns
    -------
    Development
        with out-of-fold scores. With fewer than 20 questions in selection every fold uses the largest lambda, and the
        router's simplest model, because that is what would be deployed.

    Raises
    ------
    ValueError
        without labelled development pairs, for pairs of two benchmarks, or for corrections needed and missing.
    """
    table, unlabelled = labelled_development(pairs)
    benchmark = benchmark_of(table)
    categories = category_columns(pairs[pairs["split"] != "test"], benchmark).columns
    runs = bank_runs(runs, experts, debias)
    phi, evidence = represent(table, runs, experts, benchmark, categories, clip=clip)
    rows = development_rows(table, seed=seed)

    extras = extra_candidates(table, runs, experts) if "route" in heads else ()
    candidates = candidate_evidence(evidence, table, runs, extras, clip=clip)
    found = {"stack": evaluate_stack(phi, rows)}
    if "route" in heads and len(candidates.experts) > 1:
        found["route"] = evaluate_route(candidates, rows, benchmark, categories, seed=seed)
    reference = evaluate_reference(runs, rows, clip=clip) if "reference" in heads else None
    found |= {"reference": reference} if reference else {}
    best = metrics.best_single(evidence.z, rows.y, experts)
    rules = metrics.simple_rules(np.where(evidence.available, evidence.z, np.nan), experts, table, best)
    native = native_decisions(runs, table, baselines_of(experts), debias=debias)
    told = {"unlabelled": unlabelled, "not_evaluated": _reasons(heads, found), "extra_candidates": extras}
    return _development(rows, found, rules, native, best_single=best, **told)


def _development(
    rows: Rows, found: dict[str, Evaluated], rules: pd.DataFrame, native: pd.DataFrame, **told: object
) -> Development:
    """Figures of every head and simple rule against the baselines' native decisions; `told` is kept as it is."""
    rivals, baselines, accuracy = _rivals(native, rows)
    return Development(
        heads={head: _figures(found[head], rows, rivals) if head in found else None for head in HEADS},
        pairs={name: int(mask.sum()) for name, mask in rows.masks.items()},
        questions={name: int(rows.pairs.loc[mask, "group_id"].nunique()) for name, mask in rows.masks.items()},
        baselines=baselines,
        baseline_accuracy=accuracy,
        rules={name: _figures(Evaluated(rules[name].to_numpy(), {}), rows, rivals) for name in rules},
        out_of_fold=_out_of_fold(rows, found, native),
        **told,
    )


def development_rows(table: pd.DataFrame, *, seed: int) -> Rows:
    """Labels, splits, folds and masks of labelled development pairs, sorted by pair_id."""
    split = table["split"].to_numpy()
    masks = {name: split == name for name in GATED} | {POOLED: np.ones(len(table), dtype=bool)}
    few = table.loc[masks["selection"], "group_id"].nunique() < MIN_QUESTIONS
    fold = question_folds(table["group_id"], seed=seed)
    return Rows(table, table["label"].to_numpy(float), split, fold, masks, few)


def _out_of_fold(rows: Rows, found: dict[str, Evaluated], native: pd.DataFrame) -> pd.DataFrame:
    """One row per pair: its fold, what every evaluated head says of it, and every baseline's native decision."""
    columns = {name: values for head, each in found.items() for name, values in ({head: each.s} | each.columns).items()}
    table = rows.pairs[["pair_id", "group_id", "split", "label"]].assign(fold=rows.fold, **columns)
    return table.join(native.reset_index(drop=True))


def _reasons(heads: Sequence[str], found: dict[str, Evaluated]) -> dict[str, str]:
    """Why each head that has no figures has none."""
    why = {"route": NO_CHOICE, "reference": NO_READS}
    return {head: why[head] if head in heads else NOT_ASKED for head in HEADS if head not in found}


def _rivals(native: pd.DataFrame, rows: Rows) -> tuple[dict[str, tuple], dict[str, str], dict]:
    """The strongest baseline of every split: whether right (matched, paper); its name; all accuracies under both."""
    matched = {name: metrics.as_answers(native[name]) == rows.y for name in native}
    paper = {name: (native[name] == rows.y).to_numpy() for name in native}
    baselines = {
        part: strongest_baseline({name: right[mask] for name, right in matched.items()})
        for part, mask in rows.masks.items()
    }
    accuracy = {
        rule: {part: {name: share(right[mask]) for name, right in table.items()} for part, mask in rows.masks.items()}
        for rule, table in (("matched", matched), ("paper", paper))
    }
    return {part: (matched[name], paper[name]) for part, name in baselines.items()}, baselines, accuracy


def _figures(evaluated: Evaluated, rows: Rows, rivals: dict) -> HeadFigures:
    right, groups = metrics.as_answers(evaluated.s) == rows.y, rows.pairs["group_id"].to_numpy()
    parts = {part: (right[mask], *(rival[mask] for rival in rivals[part])) for part, mask in rows.masks.items()}
    discordant = {part: metrics.discordant(head, matched) for part, (head, matched, _) in parts.items()}
    accuracy = {part: share(head) for part, (head, _, _) in parts.items()}
    interval = {part: metrics.share_interval(right[mask], groups[mask]) for part, mask in rows.masks.items()}
    return HeadFigures(
        accuracy=accuracy,
        margin={part: margin(head, matched) for part, (head, matched, _) in parts.items()},
        paper_margin={part: margin(head, paper) for part, (head, _, paper) in parts.items()},
        discordant=discordant,
        mcnemar_p={part: metrics.mcnemar(*counts) for part, counts in discordant.items()},
        transfer_gap=100 * (accuracy["calibration"] - accuracy["selection"]),
        zero_scores=int((evaluated.s == 0).sum()),
        notes=evaluated.notes,
        accuracy_interval=interval,
    )

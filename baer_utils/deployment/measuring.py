"""What is measured on an opened test: every method's answers under both rules, the margins, the bank, the bill.

Counting only: labels come in as an array, a report goes out. This file knows nothing about seals and logs, and it fits
nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baer_utils import metrics, scores
from baer_utils.costs import TOKENS, price
from baer_utils.deployment.baselines import baseline_table
from baer_utils.deployment.counting import comparison_rows, expert_rows, head_rows, order_rows, rule_answers
from baer_utils.deployment.explaining import explaining_subsets
from baer_utils.deployment.fitting import features_of
from baer_utils.deployment.frozen import Frozen
from baer_utils.deployment.report import TestReport
from baer_utils.evidence import Evidence
from baer_utils.gates import POOLED

COST = ["calls", *TOKENS]


def measure(frozen: Frozen, pairs: pd.DataFrame, runs: pd.DataFrame, s: NDArray, y: NDArray) -> TestReport:
    """The report of a frozen head on labelled pairs.

    Parameters
    ----------
    frozen : the head; the rows of `pride` and `calibraeval` are those of its corrections, never refitted.
    pairs : pair table of the test, N rows; its label column is not looked at. runs : run table.
    s : (N,) scores of the head.
    y : (N,) labels, +1 or -1; rows where it is NaN are left out, counted in ``summary["unlabelled"]``.

    Returns
    -------
    TestReport, without openings. `summary` holds: pairs, questions, clustered (whether questions repeat), unlabelled;
    zero_scores; accuracy, calibration_accuracy (out of fold) and transfer_gap (test minus calibration, points) with
    transfer_gap_low and transfer_gap_high (95 %, `metrics.difference_interval`); oracle and oracle_coin_flippers; the
    shares of pairs where experts disagree, agree_right, agree_wrong or are silent; calls, prompt_tokens, unique_tokens
    and new_tokens per pair, of the head's experts together (`costs.price`); reasons, why this head is deployed;
    free_over_held (points by which the free stack is right more often than the sign-constrained one), inverted_experts
    and inverted_categories of the free one; explained_by, the subsets on which the head's lead over the development
    baseline rests (`explaining_subsets`), none where it does not lead. Where there are any, and other pairs are left,
    `without` is the same report on those.
    """
    known = ~np.isnan(y)
    if not known.any():
        raise ValueError(f"a test report needs labels; none of the {len(y)} test pairs has one. Load labelled pairs.")
    pairs, labels = pairs.assign(label=y)[known].reset_index(drop=True), y[known]
    told = frozen.head_scores(pairs, runs).assign(s=s[known])
    report = _report(frozen, pairs, runs, told, labels)
    report.summary["unlabelled"] = int((~known).sum())
    baseline = report.pairs[frozen.content["development"]["baselines"][POOLED]]
    right = scores.decision(s[known]) == labels
    explained = explaining_subsets(right, metrics.as_answers(baseline) == labels, pairs["subset"])
    report.summary["explained_by"] = explained
    kept = ~pairs["subset"].isin(explained).to_numpy()
    if not explained or not kept.any():
        return report
    rest = _report(frozen, pairs[kept].reset_index(drop=True), runs, told[kept].reset_index(drop=True), labels[kept])
    rest.summary["explained_by"], rest.summary["unlabelled"] = [], 0
    return replace(report, without=rest)


def _report(frozen: Frozen, pairs: pd.DataFrame, runs: pd.DataFrame, told: pd.DataFrame, y: NDArray) -> TestReport:
    """The report on these pairs, all labelled; `told` holds the scores of every head, and `s`."""
    phi, evidence = features_of(pairs, runs, frozen.condition)
    groups, s = pairs["group_id"].to_numpy(), told["s"].to_numpy()
    bills = {head: price(runs, frozen.protocols_of(head), pairs["pair_id"]) for head in frozen.heads}
    experts = expert_rows(frozen, pairs, runs, evidence)
    native = frozen.native_decisions(pairs, runs).reset_index(drop=True)
    rules = rule_answers(frozen, pairs, evidence)
    held = frozen.nonnegative_stack.score(phi)
    heads = head_rows(frozen, told, held, bills, y, groups)
    baselines = baseline_table(runs, pairs, list(native), frozen.debias)
    best = experts.loc[frozen.content["development"]["best_single"]].to_dict()
    costs = zip(rules, (best, bills["stack"], dict.fromkeys(COST, 0.0)), strict=True)
    ruled = {
        name: metrics.ledger(rules[name], y, groups) | {"kind": "reference"} | {key: cost[key] for key in COST}
        for name, cost in costs
    }
    rows = heads | baselines.assign(kind="baseline").to_dict("index") | ruled
    methods = pd.DataFrame.from_dict(rows, orient="index").rename_axis("method").drop(columns="unique_tokens")
    methods.insert(0, "kind", methods.pop("kind"))
    shown = told.drop(columns="s").assign(**native, **rules)
    return TestReport(
        sha256=frozen.sha256,
        head=frozen.head,
        condition={name: getattr(frozen.condition, name) for name in ("benchmark", "backbone", "seed", "n_pairs")},
        summary=_summary(frozen, s, evidence, y, groups)
        | {"reasons": frozen.content["reasons"]}
        | _gap(frozen, told["stack"].to_numpy(), held, y)
        | bills[frozen.head],
        methods=methods,
        comparisons=comparison_rows(frozen, s, native, y, groups),
        experts=experts,
        orders=order_rows(frozen, pairs, runs, y),
        pairs=pairs[["pair_id", "group_id", "subset"]].assign(label=y, s=s).join(shown).set_index("pair_id"),
    )


def _gap(frozen: Frozen, free: NDArray, held: NDArray, y: NDArray) -> dict:
    """Free stack against the sign-constrained one on these pairs, and what the free one turns around."""
    points = [100 * metrics.pairwise_accuracy(scores.decision(score), y) for score in (free, held)]
    inverted = {name: frozen.content["stack"][name] for name in ("inverted_experts", "inverted_categories")}
    return {"free_over_held": points[0] - points[1]} | inverted


def _summary(frozen: Frozen, s: NDArray, evidence: Evidence, y: NDArray, groups: NDArray) -> dict:
    questions, accuracy = len(np.unique(groups)), metrics.pairwise_accuracy(scores.decision(s), y)
    before = frozen.content["development"]["heads"][frozen.head]
    before = before["accuracy"]["calibration"], *before["accuracy_interval"]["calibration"]
    before = tuple(float("nan") if value is None else value for value in before)
    after = accuracy, *metrics.share_interval(scores.decision(s) == y, groups)
    gap = (100 * value for value in metrics.difference_interval(before, after))
    return {
        "pairs": len(y),
        "questions": questions,
        "clustered": questions < len(y),
        "zero_scores": int((s == 0).sum()),
        "accuracy": accuracy,
        "calibration_accuracy": before[0],
        **dict(zip(("transfer_gap", "transfer_gap_low", "transfer_gap_high"), gap, strict=True)),
        "oracle": metrics.any_expert_oracle(evidence.z, y),
        "oracle_coin_flippers": metrics.coin_oracle(evidence.z),
        **metrics.opinions(evidence.z, y),
    }

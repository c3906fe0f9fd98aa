"""What is measured on an opened test: every method's answers under both rules, the margins, the bank, the bill.

Counting only: labels come in as an array, a report goes out. This file knows nothing about seals and logs, and it fits
nothing.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baer_utils import metrics, scores
from baer_utils.deployment.fitting import features_of
from baer_utils.deployment.frozen import Frozen
from baer_utils.deployment.report import TestReport
from baer_utils.evidence import Evidence, native_decisions, run_array
from baer_utils.gates import ALPHA, POOLED, margin, strongest_baseline


def measure(frozen: Frozen, pairs: pd.DataFrame, runs: pd.DataFrame, s: NDArray, y: NDArray) -> TestReport:
    """The report of a frozen head on labelled pairs.

    Parameters
    ----------
    frozen : the head. pairs : pair table of the test, N rows; its label column is not looked at. runs : run table.
    s : (N,) scores of the head.
    y : (N,) labels, +1 or -1; rows where it is NaN are left out, counted in ``summary["unlabelled"]``.

    Returns
    -------
    TestReport, without openings. `summary` holds: pairs, questions, clustered (whether questions repeat), unlabelled;
    zero_scores; accuracy, calibration_accuracy (out of fold) and transfer_gap (test minus calibration, points); oracle
    and oracle_coin_flippers; the shares of pairs where experts disagree, agree_right, agree_wrong or are silent; calls,
    prompt_tokens and new_tokens per pair, summed over the head's experts; reasons, why this head is deployed.
    """
    known = ~np.isnan(y)
    if not known.any():
        raise ValueError(f"a test report needs labels; none of the {len(y)} test pairs has one. Load labelled pairs.")
    pairs, s, labels = pairs[known].reset_index(drop=True), s[known], y[known]
    phi, evidence = features_of(pairs, runs, frozen.condition)
    answers = _answers(frozen, pairs, runs, evidence)
    variants = {"stack, no weight below 0": frozen.nonnegative_stack.score(phi)}
    baselines = frozen.content["baselines"]

    groups = pairs["group_id"].to_numpy()
    kinds = {name: "baseline" if name in baselines else "reference" for name in answers}
    rows = {f"BAER ({frozen.head})": {"kind": "head"} | metrics.ledger(s, labels, groups, head=True)}
    rows |= {name: {"kind": "variant"} | metrics.ledger(v, labels, groups, head=True) for name, v in variants.items()}
    rows |= {name: {"kind": kinds[name]} | metrics.ledger(answers[name], labels, groups) for name in answers}
    experts = expert_rows(pairs, runs, evidence)
    return TestReport(
        sha256=frozen.sha256,
        head=frozen.head,
        condition={name: getattr(frozen.condition, name) for name in ("benchmark", "backbone", "seed", "n_pairs")},
        summary=_summary(frozen, s, evidence, labels, groups)
        | {"unlabelled": int((~known).sum()), "reasons": frozen.content["reasons"]}
        | experts[["calls", "prompt_tokens", "new_tokens"]].sum().to_dict(),
        methods=pd.DataFrame.from_dict(rows, orient="index").rename_axis("method"),
        comparisons=_comparisons(frozen, s, answers[baselines], labels, groups),
        experts=experts,
        pairs=pairs[["pair_id", "group_id", "subset"]].assign(label=labels, s=s, **answers).set_index("pair_id"),
    )


def _answers(frozen: Frozen, pairs: pd.DataFrame, runs: pd.DataFrame, evidence: Evidence) -> pd.DataFrame:
    """Native decisions of the external baselines, then the rows that any head should beat; one row per pair."""
    native = native_decisions(runs, pairs, frozen.content["baselines"]).reset_index(drop=True)
    best = frozen.content["development"]["best_single"]
    k = evidence.experts.index(best)
    sign = np.where(evidence.available[:, k], np.sign(evidence.z[:, k]), np.nan)
    return native.assign(
        **{
            f"best single ({best})": sign,
            "majority": metrics.majority(evidence.z, evidence.experts),
            "longer response": metrics.longer_response(pairs),
        }
    )


def _comparisons(frozen: Frozen, s: NDArray, answers: pd.DataFrame, y: NDArray, groups: NDArray) -> pd.DataFrame:
    """Head against the strongest baseline, by who named it and under which rule; margins in points."""
    right = scores.decision(s) == y
    matched = {name: metrics.as_answers(answers[name]) == y for name in answers}
    paper = {name: (answers[name] == y).to_numpy() for name in answers}
    named = {"development": frozen.content["development"]["baselines"][POOLED], "test": strongest_baseline(matched)}
    rows = []
    for where, name in named.items():
        for rule, theirs in (("matched", matched[name]), ("paper", paper[name])):
            first, second = metrics.discordant(right, theirs)
            _, low, high = metrics.paired_bootstrap(right, theirs, groups)
            p = metrics.mcnemar(first, second)
            row = {"named_on": where, "rule": rule, "baseline": name, "margin": margin(right, theirs)}
            row |= {"low": 100 * low, "high": 100 * high, "head_only": first, "baseline_only": second, "p": p}
            rows.append(row | {"star": p < ALPHA and (where, rule) == ("development", "matched")})
    return pd.DataFrame(rows)


def _summary(frozen: Frozen, s: NDArray, evidence: Evidence, y: NDArray, groups: NDArray) -> dict:
    questions, accuracy = len(np.unique(groups)), metrics.pairwise_accuracy(scores.decision(s), y)
    before = frozen.content["development"]["heads"][frozen.head]["accuracy"]["calibration"]
    before = float("nan") if before is None else before
    return {
        "pairs": len(y),
        "questions": questions,
        "clustered": questions < len(y),
        "zero_scores": int((s == 0).sum()),
        "accuracy": accuracy,
        "calibration_accuracy": before,
        "transfer_gap": 100 * (accuracy - before),
        "oracle": metrics.any_expert_oracle(evidence.z, y),
        "oracle_coin_flippers": metrics.coin_oracle(evidence.z),
        **metrics.opinions(evidence.z, y),
    }


def expert_rows(pairs: pd.DataFrame, runs: pd.DataFrame, evidence: Evidence) -> pd.DataFrame:
    """One row per expert: how it behaved on these pairs and what it cost.

    Returns
    -------
    frame indexed by expert. `answered`: share of pairs with any verdict; `no_opinion`: share with a verdict but z = 0;
    `flip_rate`: see `metrics.flip_rate`; `mean_delta`: over pairs with a verdict; `calls`, `prompt_tokens` and
    `new_tokens` per pair, every stage of the protocol counted.
    """
    mine = runs[runs["pair_id"].isin(pairs["pair_id"])]
    bill = mine.groupby("protocol").agg(
        calls=("view", "size"), prompt_tokens=("prompt_tokens", "sum"), new_tokens=("new_tokens", "sum")
    )
    has = evidence.available
    silent = (evidence.z == 0) & has
    frame = pd.DataFrame(
        {
            "answered": has.mean(axis=0),
            "no_opinion": silent.mean(axis=0),
            "flip_rate": metrics.flip_rate(run_array(mine, evidence.experts, pairs["pair_id"])),
            "mean_delta": (evidence.delta * has).sum(axis=0) / np.where(has.any(axis=0), has.sum(axis=0), np.nan),
        },
        index=pd.Index(evidence.experts, name="expert"),
    )
    return frame.join((bill / len(pairs)).reindex(frame.index, fill_value=0.0))

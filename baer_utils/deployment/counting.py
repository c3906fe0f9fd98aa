"""The tables of an opened test, one function each: heads, simple rules, comparisons, experts, and their orders.

Counting only, on pairs that are all labelled; which pairs those are, and what the tables say together, is for
`measuring`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baer_utils import metrics, scores
from baer_utils.costs import standalone
from baer_utils.debias import bank_runs
from baer_utils.deployment.frozen import Frozen
from baer_utils.evidence import Evidence, run_array
from baer_utils.gates import ALPHA, HEADS, POOLED, margin, strongest_baseline


def head_rows(
    frozen: Frozen, told: pd.DataFrame, held: NDArray, bills: dict, y: NDArray, groups: NDArray
) -> dict[str, dict]:
    """Ledger, calibration and bill of the deployed head, of the other frozen ones, and of the sign-constrained stack.

    Parameters
    ----------
    told : scores of every frozen head, one column each (`Frozen.head_scores`). held : (N,) of the sign-constrained
        stack. bills : head -> its calls and tokens per pair. y : (N,) labels. groups : (N,) questions.

    Returns
    -------
    method -> `kind`, `metrics.ledger`, the bill, and `brier` and `ece`: of the probability of *a* (Eq. 1), folded. The
    router's score is one expert's z, whose size says nothing across experts; its `brier` and `ece` are those of the
    chosen expert's reliability against whether it was right, over the pairs where it has an opinion.
    """
    shown = {f"BAER ({frozen.head})": ("head", frozen.head)}
    shown |= {head: ("variant", head) for head in frozen.heads if head != frozen.head}
    rows = {
        name: {"kind": kind}
        | metrics.ledger(told[head], y, groups, head=True)
        | bills[head]
        | _calibration(*_confidences(told, head, y)[:3])
        for name, (kind, head) in shown.items()
    }
    bounded = {"kind": "variant"} | metrics.ledger(held, y, groups, head=True) | bills["stack"]
    bounded |= _calibration(scores.probability(held), y, True)
    return rows | {"stack, no weight below 0": bounded}


def head_curves(pairs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Reliability curve of every frozen head on an opened test; its distance from the diagonal is the `ece` of its row.

    Parameters
    ----------
    pairs : `TestReport.pairs`: the score of every head, the router's reliabilities, labels and questions.

    Returns
    -------
    head -> `metrics.reliability_curve`: of the probability of *a*, folded; of the router, of the chosen expert's
    reliability, unfolded, because below 1/2 it is no confidence in the contrary. A router that never has an opinion is
    left out.
    """
    curves = {}
    for head in (head for head in HEADS if head in pairs):
        p, was, folded, spoke = _confidences(pairs, head, pairs["label"].to_numpy(float))
        if spoke.any():
            curves[head] = metrics.reliability_curve(p, was, pairs["group_id"].to_numpy()[spoke], folded=folded)
    return curves


def _calibration(p: NDArray, was: NDArray, folded: bool) -> dict[str, float]:
    if not len(p):
        return {"brier": np.nan, "ece": np.nan}
    return {"brier": metrics.brier_score(p, was), "ece": metrics.calibration_error(p, was, folded=folded)}


def _confidences(told: pd.DataFrame, head: str, y: NDArray) -> tuple[NDArray, NDArray, bool, NDArray]:
    """A head's probabilities, what came true (+1, -1), whether they are folded, and on which pairs (N,) they are."""
    s = told[head].to_numpy(float)
    if head != "route":
        return scores.probability(s), y, True, np.ones(len(s), dtype=bool)
    spoke, right = s != 0, np.where(scores.decision(s) == y, 1.0, -1.0)
    return told["route_reliability"].to_numpy(float)[spoke], right[spoke], False, spoke


def rule_answers(frozen: Frozen, pairs: pd.DataFrame, evidence: Evidence) -> pd.DataFrame:
    """Answers of the simple rules that any head should beat, one row per pair (`metrics.simple_rules`)."""
    z = np.where(evidence.available, evidence.z, np.nan)
    return metrics.simple_rules(z, evidence.experts, pairs, frozen.content["development"]["best_single"])


def comparison_rows(frozen: Frozen, s: NDArray, answers: pd.DataFrame, y: NDArray, groups: NDArray) -> pd.DataFrame:
    """Head against the strongest baseline, by who named it and under which rule.

    Returns
    -------
    frame, four rows. `margin`, `low`, `high` (95 %, whole questions resampled) and `detectable` in points: the smallest
    true margin that so many pairs, as often discordant as these, would notice four times in five
    (`metrics.minimum_detectable_effect`), NaN where none would be or nothing is discordant. `head_only` and
    `baseline_only`, discordant pairs; `p`, exact two-sided McNemar, and `mid_p` beside it; `star`, p below .05 in the
    row that is named on development data under the matched rule, which is the only valid test.
    """
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
            row |= {
                "mid_p": metrics.mcnemar(first, second, mid=True),
                "detectable": _detectable(first + second, len(y)),
            }
            rows.append(row | {"star": p < ALPHA and (where, rule) == ("development", "matched")})
    return pd.DataFrame(rows)


def _detectable(discordant: int, n: int) -> float:
    """Points; NaN where the two methods never differ."""
    return 100 * metrics.minimum_detectable_effect(n, discordant / n) if discordant else float("nan")


def expert_rows(frozen: Frozen, pairs: pd.DataFrame, runs: pd.DataFrame, evidence: Evidence) -> pd.DataFrame:
    """One row per expert: how it behaved on these pairs and what it cost.

    Returns
    -------
    frame indexed by expert. `answered`: share of pairs with any verdict; `no_opinion`: share with a verdict but z = 0;
    `flip_rate`: see `metrics.flip_rate`; `mean_delta`: over pairs with a verdict; `calls`, `prompt_tokens` and
    `new_tokens` per pair, of the expert by itself (`costs.standalone`). `pride` and `calibraeval` cost direct's two
    reads; beside direct they cost nothing more, which is why the column does not add up to the head's bill.
    """
    has = evidence.available
    silent = (evidence.z == 0) & has
    own = bank_runs(runs, evidence.experts, frozen.debias)
    frame = pd.DataFrame(
        {
            "answered": has.mean(axis=0),
            "no_opinion": silent.mean(axis=0),
            "flip_rate": metrics.flip_rate(run_array(own, evidence.experts, pairs["pair_id"])),
            "mean_delta": (evidence.delta * has).sum(axis=0) / np.where(has.any(axis=0), has.sum(axis=0), np.nan),
        },
        index=pd.Index(evidence.experts, name="expert"),
    )
    return frame.join(standalone(runs, evidence.experts, pairs["pair_id"]))


def order_rows(frozen: Frozen, pairs: pd.DataFrame, runs: pd.DataFrame, y: NDArray) -> pd.DataFrame:
    """Calibration of every expert's single reads by display order (`metrics.order_calibration`).

    Experts with any imported `net` verdict on these pairs are left out: what combines both orders has no order.
    """
    experts = frozen.condition.experts
    own = bank_runs(runs, experts, frozen.debias)
    mine = own["pair_id"].isin(pairs["pair_id"]) & (own["view"] == "net")
    asked = [name for name in experts if name not in set(own.loc[mine, "protocol"])]
    return metrics.order_calibration(run_array(own, asked, pairs["pair_id"]), y, asked)

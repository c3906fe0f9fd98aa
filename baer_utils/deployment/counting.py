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
from baer_utils.gates import ALPHA, POOLED, margin, strongest_baseline


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
        | (_routing_calibration(told, y) if head == "route" else _calibration(told[head], y))
        for name, (kind, head) in shown.items()
    }
    bounded = {"kind": "variant"} | metrics.ledger(held, y, groups, head=True) | bills["stack"] | _calibration(held, y)
    return rows | {"stack, no weight below 0": bounded}


def _calibration(s: NDArray, y: NDArray) -> dict[str, float]:
    p = scores.probability(s)
    return {"brier": metrics.brier_score(p, y), "ece": metrics.calibration_error(p, y)}


def _routing_calibration(told: pd.DataFrame, y: NDArray) -> dict[str, float]:
    s, reliability = (told[name].to_numpy(float) for name in ("route", "route_reliability"))
    spoke, right = s != 0, np.where(scores.decision(s) == y, 1, -1)
    if not spoke.any():
        return {"brier": np.nan, "ece": np.nan}
    said, was = reliability[spoke], right[spoke]
    return {"brier": metrics.brier_score(said, was), "ece": metrics.calibration_error(said, was, folded=False)}


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

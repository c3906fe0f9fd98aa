"""Heads fitted on development rows: features of a pair, lambda, weights, and which head speaks.

Every function that meets labels drops the test rows before it looks at anything else. This file knows nothing about
files, gates or reports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baer_utils.debias import bank_runs
from baer_utils.deployment.candidates import candidate_evidence, right_or_wrong, routing_features
from baer_utils.deployment.conditions import Condition, with_words
from baer_utils.evidence import Evidence, run_array, summarize
from baer_utils.features import category_columns, stack_features
from baer_utils.gates import Decision
from baer_utils.routing import Reliability, best_available, fit_reliability, routed_score
from baer_utils.stacking import GRID, Stack, choose_lambda, fit_nonnegative_stack, fit_stack

Fit = Callable[[NDArray, NDArray, float], Stack]


# ---------------------------------------------------------------- rows and features


def labelled_development(pairs: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Selection and calibration pairs that have a label, sorted by pair_id, and how many had none; never a test row."""
    development = pairs[pairs["split"] != "test"]
    labelled = development[development["label"].notna()].sort_values("pair_id").reset_index(drop=True)
    if labelled.empty:
        raise ValueError(
            f"development needs labelled selection or calibration pairs; of {len(development)} such pairs none has a "
            "label. Load pairs with labels, or raise n_pairs."
        )
    return labelled, len(development) - len(labelled)


def represent(
    pairs: pd.DataFrame,
    runs: pd.DataFrame,
    experts: Sequence[str],
    benchmark: str,
    categories: Sequence[str],
    *,
    clip: float,
) -> tuple[NDArray[np.float64], Evidence]:
    """Stack features (Eq. 5) and evidence of pairs, row for row; a swap negates the features bit for bit.

    Parameters
    ----------
    pairs : pair table, N rows.
    runs : run table; runs of other pairs are left out, an expert without runs is missing (z = 0).
    experts, categories : column names, in order. benchmark : whose categories these are.

    Returns
    -------
    phi : array (N, 2K + G), C-contiguous.
    evidence : (N, K) arrays.
    """
    evidence = summarize(run_array(runs, experts, pairs["pair_id"]), experts, clip=clip)
    columns = category_columns(pairs, benchmark, categories=list(categories))
    phi = stack_features(evidence.z, evidence.z_shrunk, columns.to_numpy(dtype=float))
    return np.ascontiguousarray(phi), evidence


def features_of(pairs: pd.DataFrame, runs: pd.DataFrame, condition: Condition) -> tuple[NDArray[np.float64], Evidence]:
    """`represent` under the names, the clip and the corrections of a condition, from its judge's own calls."""
    runs = bank_runs(runs, condition.experts, condition.debias)
    names = (condition.experts, condition.benchmark, condition.categories)
    return represent(pairs, runs, *names, clip=condition.clip)


def benchmark_of(pairs: pd.DataFrame) -> str:
    """The one benchmark of a pair table; a head serves one condition, so two are refused."""
    names = sorted(pairs["benchmark"].unique())
    if len(names) != 1:
        raise ValueError(f"pairs must come from one benchmark; these come from {names}. Score one condition at a time.")
    return names[0]


# ---------------------------------------------------------------- fitting


def lambda_for(phi: NDArray, y: NDArray, split: NDArray, *, largest: bool, fit: Fit = fit_stack) -> float:
    """Lambda for these rows: fitted on their selection rows, chosen on their calibration rows.

    Where there is nothing to select on, by decree (`largest`) or because either split has no row here, the largest.
    """
    chosen, judged = split == "selection", split == "calibration"
    if largest or not chosen.any() or not judged.any():
        return float(max(GRID))
    return choose_lambda(phi[chosen], y[chosen], phi[judged], y[judged], fit=fit)


@dataclass(frozen=True)
class Router:
    """A fitted router: K + E candidates in the order of its features, and their reliability model."""

    candidates: tuple[str, ...]
    reliability: Reliability


@dataclass(frozen=True)
class Heads:
    """Heads fitted on all labelled development rows of a condition; the sign-constrained stack is only shown.

    `router` is None, and `reference` False, where development did not evaluate that head.
    """

    condition: Condition
    stack: Stack
    nonnegative_stack: Stack
    rows: int
    router: Router | None = None
    reference: bool = False


def fit_heads(pairs: pd.DataFrame, runs: pd.DataFrame, decision: Decision, condition: Condition) -> Heads:
    """Fit every evaluated head for deployment, so that each can be shown beside the one that is deployed.

    Parameters
    ----------
    pairs, runs : tables of the condition; test rows are dropped unread, and rows are sorted by pair_id, so that their
        order leaves no trace in the frozen bits.
    decision : what `select_head` said. Lambda is chosen on selection and calibration, weights and scales are fitted on
        both; without a selection lambda is the largest. The router's model is the one that development compared best,
        fitted on all rows. The reference head has nothing to fit.

    Returns
    -------
    Heads
        whose condition also holds the words of the extra candidates and of reference verification where they serve.
    """
    rows, _ = labelled_development(pairs)
    phi, evidence = features_of(rows, runs, condition)
    y, split = rows["label"].to_numpy(float), rows["split"].to_numpy()
    stacks = []
    for fit in (fit_stack, fit_nonnegative_stack):
        stacks.append(fit(phi, y, lambda_for(phi, y, split, largest=not decision.selected, fit=fit)))
    figures, extras = decision.development.heads, decision.development.extra_candidates
    router = None
    if figures.get("route"):
        candidates = candidate_evidence(evidence, rows, runs, extras, clip=condition.clip)
        rho = routing_features(candidates, rows, condition.benchmark, condition.categories)
        model, right = figures["route"].notes["model"], right_or_wrong(candidates.z, y)
        reliability = fit_reliability(rho, right, rows["group_id"], seed=condition.seed, models=(model,))
        router = Router(candidates.experts, reliability)
    reference = figures.get("reference") is not None
    asked = (*(extras if router else ()), *(("reference",) if reference else ()))
    return Heads(with_words(condition, asked), *stacks, len(rows), router, reference)


def route_pairs(
    router: Router, pairs: pd.DataFrame, runs: pd.DataFrame, evidence: Evidence, condition: Condition
) -> pd.DataFrame:
    """The router's answer on every pair, row for row: `s`, the `expert` that speaks, and its `reliability`."""
    extras = router.candidates[len(condition.experts) :]
    candidates = candidate_evidence(evidence, pairs, runs, extras, clip=condition.clip)
    rho = routing_features(candidates, pairs, condition.benchmark, condition.categories)
    reliability = router.reliability.predict(rho)
    chosen = best_available(reliability, candidates.z != 0)
    names = np.array(router.candidates, dtype=object)[chosen]
    said = reliability[np.arange(len(chosen)), chosen]
    return pd.DataFrame({"s": routed_score(candidates.z, chosen), "expert": names, "reliability": said})


def deployed_score(scores_by_head: Mapping[str, NDArray], head: str) -> NDArray[np.float64]:
    """The score of the head that the condition deploys, the same head for every pair (BAER Eq. 10).

    Parameters
    ----------
    scores_by_head : head name -> (N,) signed scores.
    head : the condition's head.

    Raises
    ------
    ValueError
        when that head has no scores: no other head stands in for it.
    """
    if head not in scores_by_head:
        raise ValueError(f"the deployed head must have scores; {head!r} has none (there are {sorted(scores_by_head)}).")
    return np.asarray(scores_by_head[head], dtype=float)

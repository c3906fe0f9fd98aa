"""Our own judge as a setting of the panel method: nine experts and what it says of one response at a time.

Everything up to here in one call, for notebooks that begin where the first method ends. Only development pairs enter;
test labels stay sealed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from baer_utils.backbones import open_backbone
from baer_utils.benchmarks import load_pairs
from baer_utils.calibrators import Audit
from baer_utils.costs import TOKENS, priced
from baer_utils.debias import fit_debias, protocols_for
from baer_utils.early_exit.bank import bank_of, bin_evidence
from baer_utils.judging import answerable, judge_pairs
from baer_utils.protocols import EXPERTS
from baer_utils.regimes import Setting
from baer_utils.screening import screened_score
from baer_utils.store import open_store, seal
from baer_utils.verification import reference_evidence

ALONE = ("pointwise", "likelihood_mean", "reference")  # what never sees the other response
THOUSANDS = dict.fromkeys(TOKENS, 0.001)  # a unit of cost is a thousand tokens


def own_setting(
    benchmark: str,
    source: str | Path | None = None,
    *,
    backbone: str,
    seed: int = 0,
    n_pairs: int = 0,
    prices: Mapping[str, float] | pd.DataFrame = THOUSANDS,
) -> Setting:
    """The audit of our own judge on the development pairs of a benchmark, every pair beside its swap.

    Parameters
    ----------
    benchmark, source, seed, n_pairs : as for `load_pairs`. backbone : as for `open_backbone`; answers are kept in the
        store of the book and found there again. prices : as for `costs.priced`; by default thousands of tokens.

    Returns
    -------
    Setting. Judges: the nine experts and `ALONE`; an output is the sign of the evidence: 1 for *a*, -1 for *b*, 0 for
    no opinion. Slices: task types, known with the question; a pair and its swap are two of the 20 fit items that a
    route needs. Costs: per pair, as separate prompts; the task type is free.
    """
    pairs, judge = load_pairs(benchmark, source, seed=seed, n_pairs=n_pairs), open_backbone(backbone)
    store = open_store(judge.name, benchmark, seed=seed, n_pairs=n_pairs)
    asked = (*protocols_for(EXPERTS, native=False), *ALONE)
    pairs = answerable(seal(pairs, store), judge, asked)
    runs, _ = judge_pairs(pairs, judge, asked, store=store)
    known = pairs[pairs["label"].notna()].reset_index(drop=True)
    bank = bank_of(known, runs, EXPERTS, debias=fit_debias(runs, pairs), slices="task_type")
    audit = bin_evidence(with_signals(bank.audit, alone_scores(runs, known["pair_id"])))[0]
    return Setting(
        audit,
        why="experts of one small judge: many ways to ask, one source of errors",
        signal="task type of the question",
        costs=priced(runs, audit.judges, prices, known["pair_id"]) | {"task_type": 0.0},
        policy={"route_key": "task_type"},
    )


def alone_scores(runs: pd.DataFrame, pair_ids: pd.Series) -> dict[str, np.ndarray]:
    """Signed scores (N,) toward *a* of what was judged one response at a time."""
    scores = {name: screened_score(runs, pair_ids, name) for name in ALONE if name != "reference"}
    return scores | {"reference": reference_evidence(runs, pair_ids)}


def with_signals(audit: Audit, scores: Mapping[str, ArrayLike]) -> Audit:
    """A symmetric audit with further judges.

    Parameters
    ----------
    audit : of N pairs and then their swaps, as `bank_of` makes it. scores : {name: (N,) signed scores toward *a*}; NaN
        becomes 0, no opinion.
    """
    wrong = {name: len(score) for name, score in scores.items() if 2 * len(score) != len(audit)}
    if wrong:
        raise ValueError(f"scores must hold one number for each of {len(audit) // 2} pairs; {wrong} came.")
    single = [np.nan_to_num(np.asarray(score, dtype=float)) for score in scores.values()]
    columns = [np.concatenate([0.0 + score, 0.0 - score]).astype(object) for score in single]
    Z = np.column_stack([audit.Z, *columns])
    return Audit(Z, audit.y, (*audit.judges, *scores), audit.slices, audit.groups)

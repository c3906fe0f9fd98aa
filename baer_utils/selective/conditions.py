"""Abstention over conditions and split seeds: what each deployed head may answer if a risk must be held.

It lays out `selective_table` of every opened test; the figures come from `deployment.figures`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from baer_utils.deployment.tables import DECLARED
from baer_utils.selective.halves import confidence_of
from baer_utils.selective.tables import selective_table
from baer_utils.selective.thresholds import DELTA

FITTED = ["threshold", "fit_pairs", "fit_accepted", "fit_errors"]
REPORTED = ["coverage", "risk", "risk_low", "risk_high"]


def abstention_table(figures: Sequence[dict]) -> pd.DataFrame:
    """Learn-then-Test thresholds of every condition's deployed head, with SCOPE's rule beside them.

    Parameters
    ----------
    figures : of opened conditions (`deployment.banks.run_bank`), one per condition and seed.

    Returns
    -------
    frame indexed by condition and alpha, columns as in `selective_table`. On the declared split: the threshold
    (infinite: abstain always) and what it was fitted on, then `coverage` and `risk` of the other half, with an
    interval. Over all seeds: `certified`, in how many of `seeds` there is a threshold; `coverage_mean`, 0 where there
    is none; `risk_mean` over the seeds with an answer; the same of SCOPE's rule, which promises nothing, as
    `scope_coverage` and `scope_risk`.
    """
    table = pd.concat([_of_one(one) for one in figures], ignore_index=True)
    key = ["condition", "alpha"]
    tested, scope = (table[table["rule"] == rule] for rule in ("learn then test", "SCOPE"))
    over, beside = (rows.groupby(key, sort=False) for rows in (tested, scope))
    shown = tested[tested["seed"] == DECLARED].set_index(key)[["head", *FITTED, *REPORTED]]
    return shown.assign(
        seeds=over.size(),
        certified=over["threshold"].agg(lambda values: int(np.isfinite(values).sum())),
        coverage_mean=over["coverage"].mean(),
        risk_mean=over["risk"].mean(),
        scope_coverage=beside["coverage"].mean(),
        scope_risk=beside["risk"].mean(),
    )


def rendered_abstention(figures: Sequence[dict]) -> str:
    """The table with its title, as text."""
    title = f"Abstention: risk alpha held with probability {1 - DELTA:g}, fitted on half of the questions of the test"
    return f"{title}, shown on the other\n{abstention_table(figures).to_string(float_format='{:.3f}'.format)}"


def _of_one(one: dict) -> pd.DataFrame:
    """`selective_table` of one condition and seed, whose halves follow the split seed."""
    tables, right = one["scores"], one["right"]
    sure = {
        part: confidence_of(np.array(of["s"], dtype=float), one["head"], of["reliability"])
        for part, of in tables.items()
    }
    pairs = pd.DataFrame({"pair_id": right["pair"], "group_id": right["question"]})
    wrong = 1 - np.array(right[one["head"]])
    table = selective_table(pairs, sure["test"], wrong, sure["development"], seed=one["seed"])
    return table.assign(condition=one["bank"], seed=one["seed"], head=one["head"])

"""One table of the external baselines, each under its own inference: what failed, how right it is, what it costs.

The eight methods of the paper answer from one run table; none is asked again. Nothing is fitted here but CalibraEval's
own map, and that only where no fitted corrections come in.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from baer_utils import metrics
from baer_utils.costs import native_calls, per_pair
from baer_utils.debias import Debias, bank_runs
from baer_utils.evidence import native_decisions, run_array
from baer_utils.records import STATUSES

ONE_ORDER = ("pride",)  # methods that see each pair in one order, which cannot be inconsistent


def baseline_table(
    runs: pd.DataFrame, pairs: pd.DataFrame, methods: Sequence[str], debias: Debias | None = None
) -> pd.DataFrame:
    """Failures, accuracies and costs of external baselines on the labelled pairs given.

    Parameters
    ----------
    runs : run table of one backbone, with or without the rows of corrections.
    pairs : pair table; rows without a label are left out and counted in ``attrs["unlabelled"]``.
    methods : names with a rule in `evidence.NATIVE`.
    debias : the condition's corrections, needed where `pride` or `calibraeval` is among the methods.

    Returns
    -------
    frame indexed by method, three groups of columns:

    - calls by status, over all pairs and stages: `ok`, `tie`, `unparsed`, `truncated`, `error`; `cut_notes`, those of
      the truncated that are no verdicts but earlier texts (criteria, analyses), used as they are; `order_inconsistent`,
      pairs whose verdicts in the two orders differ, computed from the runs (for CalibraEval under the expert's map; NaN
      for a method that sees one order);
    - `metrics.ledger`: both scoring rules, strict, half-credit and covered-only, each with its interval, coverage, ties
      and missing answers among n pairs;
    - per pair, as separate prompts: `calls`, `prompt_tokens`, `new_tokens` (see `costs.native_calls`).

    Raises
    ------
    ValueError
        for a method without a native rule, corrections needed and missing, or no labelled pair.
    """
    labelled = pairs[pairs["label"].notna()].reset_index(drop=True)
    own = bank_runs(runs, methods, debias)
    decisions = native_decisions(own, labelled, methods, debias=debias)
    flipped = metrics.flips(run_array(own, methods, labelled["pair_id"]))
    rows = {}
    for k, name in enumerate(methods):
        calls = native_calls(runs, labelled, name)
        rows[name] = _statuses(calls) | {
            "order_inconsistent": np.nan if name in ONE_ORDER else np.nansum(flipped[:, k])
        }
        rows[name] |= metrics.ledger(decisions[name], labelled["label"], labelled["group_id"])
        rows[name] |= per_pair(calls, len(labelled))
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")
    table.attrs["unlabelled"] = len(pairs) - len(labelled)
    return table


def _statuses(calls: pd.DataFrame) -> dict[str, int]:
    """Numbers of calls by status, and how many cut ones are not verdicts."""
    counts = calls["status"].value_counts().reindex(list(STATUSES), fill_value=0).to_dict()
    notes = (calls["status"] == "truncated") & (calls["stage"] != "verdict")
    return {**{name: int(count) for name, count in counts.items()}, "cut_notes": int(notes.sum())}

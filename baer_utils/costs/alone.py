"""Which calls of a run table one method needs, and what they cost as separate prompts.

The rows that a correction adds to a table (`debias.bank_runs`) are no calls and are never counted. This file knows
nothing about what calls share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from baer_utils.debias import EXCHANGED_VIEWS, SOURCE, content_order
from baer_utils.protocols import DERIVED
from baer_utils.records import about

TOKENS = ["prompt_tokens", "new_tokens"]
PRICED = ["calls", *TOKENS, "seconds"]  # what a price table may price


def calls_of(runs: pd.DataFrame, expert: str) -> pd.DataFrame:
    """Rows of the calls that one expert needs: every stage, failed ones too; for a correction, direct's two reads."""
    source = SOURCE if expert in DERIVED else expert
    mine = runs[runs["protocol"] == source]
    return mine[~mine["view"].isin(EXCHANGED_VIEWS)] if source == SOURCE else mine


def native_calls(runs: pd.DataFrame, pairs: pd.DataFrame, method: str) -> pd.DataFrame:
    """Rows of the calls that an external baseline needs under its own inference, for the pairs given.

    They are those of the expert but for two. PriDe asks one order of each pair (`debias.content_order`); the pairs that
    its prior was estimated on were asked in both, which is paid once and not counted here. CalibraEval asks its third
    prompt, ``ba_BA``, besides direct's two.
    """
    runs = runs[about(runs, pairs["pair_id"])]
    own = calls_of(runs, method)
    if method == "pride":
        order = pd.Series(content_order(pairs["response_a"], pairs["response_b"]), pairs["pair_id"].to_numpy())
        return own[own["view"] == own["pair_id"].map(order)]
    if method == "calibraeval":
        third = runs[(runs["view"] == "ba_BA") & runs["protocol"].isin([SOURCE, method])]
        third = third.sort_values("protocol", ascending=False).drop_duplicates("pair_id")  # direct's, if both asked
        return pd.concat([own, third])
    return own


def standalone(runs: pd.DataFrame, experts: Sequence[str], pair_ids: Sequence[str] | None = None) -> pd.DataFrame:
    """What each expert costs by itself, as separate prompts.

    Parameters
    ----------
    runs : run table of one backbone, with or without the rows of corrections.
    experts : names; one that never ran costs 0.
    pair_ids : the pairs to count; by default all that the table has.

    Returns
    -------
    frame indexed by expert, each number per pair: `calls` (failed ones count, without tokens), `prompt_tokens` and
    `new_tokens` (of a likelihood: the tokens of its text). Rows do not add up to what a set costs: see `price`.
    """
    mine, n = of_pairs(runs, pair_ids)
    bills = {name: per_pair(calls_of(mine, name), n) for name in experts}
    return pd.DataFrame.from_dict(bills, orient="index", columns=["calls", *TOKENS]).rename_axis("expert")


def priced(
    runs: pd.DataFrame,
    experts: Sequence[str],
    prices: Mapping[str, float] | pd.DataFrame,
    pair_ids: Sequence[str] | None = None,
) -> dict[str, float]:
    """What each expert costs by itself in the unit of a price table: money, time, or anything that is named.

    Parameters
    ----------
    runs, experts, pair_ids : as in `standalone`; the runs may be of several backbones.
    prices : price of one of each of `PRICED`; what is not named costs nothing. A mapping holds for every backbone
        (``{"seconds": 1}`` is the time of calls made one after the other), a frame has a row for each backbone.

    Returns
    -------
    dict, expert -> cost per pair: what `panels.build_policy` takes as costs.

    Raises
    ------
    ValueError : for a price of anything else, negative or missing; a backbone without a row; a count that is missing.
    """
    mine, n = of_pairs(runs, pair_ids)
    mine = mine.assign(calls=1.0).reset_index(drop=True)
    names = mine["backbone"].unique()
    table = prices if isinstance(prices, pd.DataFrame) else pd.DataFrame([prices] * len(names), index=names)
    wrong = [str(name) for name in table.columns if name not in PRICED]
    left = [str(name) for name in names if name not in table.index]
    if wrong or left or not table.columns.size or not (table.to_numpy(float) >= 0).all():
        raise ValueError(
            f"prices must be numbers of at least 0 for some of {', '.join(PRICED)}, and for every backbone; unknown: "
            f"{', '.join(wrong) or 'none'}, backbones without a price: {', '.join(left) or 'none'}."
        )
    counts = mine[[*table.columns]].to_numpy(float)
    if np.isnan(counts).any():
        missing = mine.columns[mine.columns.isin(table.columns) & mine.isna().any().to_numpy()]
        raise ValueError(
            f"every call must have {', '.join(missing)} to be priced; some have none. Price calls instead."
        )
    bill = pd.Series((counts * table.loc[mine["backbone"]].to_numpy(float)).sum(axis=1))
    return {name: float(bill[calls_of(mine, name).index].sum()) / n for name in experts}


def per_pair(calls: pd.DataFrame, n: int) -> dict[str, float]:
    """Calls, prompt tokens and new tokens of these rows over n pairs."""
    return {"calls": len(calls) / n} | {name: float(calls[name].sum()) / n for name in TOKENS}


def of_pairs(runs: pd.DataFrame, pair_ids: Sequence[str] | None) -> tuple[pd.DataFrame, int]:
    """The rows of some pairs (None: all), and how many pairs to divide by."""
    ids = runs["pair_id"].unique() if pair_ids is None else pair_ids
    return runs[about(runs, ids)], max(len(ids), 1)

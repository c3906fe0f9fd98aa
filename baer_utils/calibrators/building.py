"""Audits from tables: a run table of this project, the long tables of judge outputs, scores cut into bins.

For pairwise judges a symbol is the net of the two orders: *a*, *b*, or *split* where they cancel. An output counts as
missing when one of the orders in which that judge was asked has no verdict.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baer_utils.calibrators.audit import Audit
from baer_utils.evidence import run_array
from baer_utils.verification import pointwise_evidence

NET = np.array(["b", "split", "a"], dtype=object)


def audit_from_runs(
    runs: pd.DataFrame, pairs: pd.DataFrame, judges: Sequence[str] | None = None, *, slices: object = "subset"
) -> Audit:
    """An audit of the experts of a run table: `a`, `b` or `split` for every pair, 1 where *a* is preferred.

    Parameters
    ----------
    runs : run table. pairs : pair table, every label known. judges : protocols; by default all that gave a verdict.
    slices : name of a column of pairs, or what `Audit` takes; None for none.

    Returns
    -------
    Audit with the pairs in their order, y = (label + 1) / 2, groups = group_id. Each order votes by the sign of its
    log-odds and the votes are added; the trials of self-consistency are pooled into one vote per order first. A judge
    that saw one response at a time (views ``a``, ``b``) votes by the sign of its pointwise score (Eq. 8).

    Raises
    ------
    ValueError
        for unknown labels, and for what `run_array` refuses.
    """
    unknown = pairs["label"].isna()
    if unknown.any():
        raise ValueError(
            f"every pair of an audit must have a label; {pairs['pair_id'][unknown].iloc[0]} has none "
            f"({int(unknown.sum())} such). Leave the sealed test pairs out."
        )
    verdicts = runs[runs["stage"] == "verdict"]
    judges = sorted(verdicts["protocol"].unique()) if judges is None else list(judges)
    alone = {*verdicts.loc[verdicts["view"].isin(["a", "b"]), "protocol"]}
    votes = {judge: _net(runs, pairs, judge, alone=judge in alone) for judge in judges}
    column = pairs[slices].to_numpy(object) if isinstance(slices, str) else slices
    y = (pairs["label"].to_numpy(float) + 1) / 2
    return Audit(np.stack([*votes.values()], axis=1), y, tuple(judges), column, pairs["group_id"].to_numpy(object))


def _net(runs: pd.DataFrame, pairs: pd.DataFrame, judge: str, *, alone: bool) -> NDArray[np.object_]:
    if alone:
        return net_symbols(pointwise_evidence(runs, pairs["pair_id"], protocol=judge)[:, None])
    return net_symbols(run_array(runs, [judge], pairs["pair_id"])[:, 0, :])


def net_symbols(votes: NDArray[np.float64]) -> NDArray[np.object_]:
    """Symbols of votes (N, M) for *a* (positive) or *b* (negative): `a`, `b`, `split` where they cancel.

    None where a vote is missing (NaN); a column in which every vote is missing was never asked and is left out.
    """
    votes = np.sign(votes[:, ~np.isnan(votes).all(axis=0)])
    net = np.sign(votes.sum(axis=1)) if votes.shape[1] else np.full(len(votes), np.nan)
    out = np.full(len(net), None, dtype=object)
    out[~np.isnan(net)] = NET[net[~np.isnan(net)].astype(int) + 1]
    return out


def audit_from_tables(
    labels: pd.DataFrame,
    verdicts: pd.DataFrame,
    judges: Sequence[str] | None = None,
    *,
    slices: object = "slice",
    scores: Sequence[str] = (),
) -> Audit:
    """An audit from long tables of labels and of verdicts.

    Parameters
    ----------
    labels : columns pair_id (unique), y, group, and the column that `slices` names.
    verdicts : columns pair_id, judge, order (ab, ba, pt, agg), verdict (1 first, 0 second, .5 tie, NaN missing), and
        score where `scores` asks for it.
    judges : names; by default all, sorted. slices : a column of labels, or what `Audit` takes.
    scores : judges whose mean score over the orders is the symbol, as a number; cut it with `bin_scores`.

    Returns
    -------
    Audit in the order of labels: pairwise verdicts (ab, ba, agg) as their net; pointwise ones (pt) as they are.

    Raises
    ------
    ValueError
        for repeated pair ids, a judge that is not in the table, or a verdict given twice.
    """
    if labels["pair_id"].duplicated().any():
        raise ValueError("labels must name each pair_id once; a pair_id repeats. Drop the repeats.")
    judges = sorted(verdicts["judge"].unique()) if judges is None else list(judges)
    by_judge = dict(iter(verdicts[verdicts["judge"].isin([*judges, *scores])].groupby("judge")))
    unknown = [judge for judge in judges if judge not in by_judge]
    if unknown:
        raise ValueError(f"every judge must be in the table of verdicts; {', '.join(unknown)} are not.")
    columns = [_symbols(by_judge[judge], labels["pair_id"], scored=judge in scores) for judge in judges]
    column = labels[slices].to_numpy(object) if isinstance(slices, str) else slices
    groups = labels["group"].to_numpy(object)
    return Audit(np.stack(columns, axis=1), labels["y"].to_numpy(float), tuple(judges), column, groups)


def _symbols(rows: pd.DataFrame, pair_ids: pd.Series, *, scored: bool) -> NDArray[np.object_]:
    if rows.duplicated(["pair_id", "order"]).any():
        raise ValueError(f"{rows['judge'].iloc[0]} must have one verdict per pair and order; one occurs again.")
    wide = rows.pivot(index="pair_id", columns="order", values="score" if scored else "verdict").reindex(pair_ids)
    values = wide.to_numpy(float)
    if scored or "pt" in wide.columns:
        mean = values.mean(axis=1)
        return np.where(np.isnan(mean), None, mean.astype(object))
    return net_symbols(2 * values - 1)


def bin_scores(fit: Audit, *others: Audit, judges: Sequence[str] | None = None, bins: int = 4) -> tuple[Audit, ...]:
    """The same audits with numeric outputs replaced by the bin between quantiles of the fit rows.

    Parameters
    ----------
    fit : the only audit whose scores decide the edges. others : audits cut at the same edges.
    judges : whose outputs to cut; by default every judge with more than `bins` distinct numbers among its fit outputs.
    bins : number of bins; equal quantiles (a mass of ties) merge.

    Returns
    -------
    audits, fit first. Symbols are 0, 1, ...: how many edges lie at or below the score. A missing score stays missing.
    """
    edges = {}
    for column in fit.columns(fit.judges if judges is None else judges):
        levels, codes = fit.coding.levels[column], fit.coding.codes[:, column]
        words, known = any(isinstance(level, str) for level in levels), np.unique(codes[codes >= 0])
        if words and judges is not None:
            raise ValueError(f"scores must be numbers to be binned; {fit.judges[column]} gives texts. Leave it out.")
        if not words and (judges is not None or len(known) > bins):
            score = np.array(levels, dtype=float)[codes[codes >= 0]]
            edges[column] = np.unique(np.quantile(_finite(score), np.arange(1, bins) / bins)) if len(score) else score
    return tuple(_cut(audit, edges) for audit in (fit, *others))


def _finite(score: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores in the same order, those of hard verdicts (infinite) one beyond the others: quantiles lie in between."""
    inside = score[np.isfinite(score)]
    return np.clip(score, inside.min() - 1, inside.max() + 1) if len(inside) else np.sign(score)


def _cut(audit: Audit, edges: dict[int, NDArray[np.float64]]) -> Audit:
    Z = audit.Z.copy()
    for column, edge in edges.items():
        score = pd.to_numeric(pd.Series(Z[:, column])).to_numpy(float)
        place = np.searchsorted(edge, score, side="right")
        Z[:, column] = np.where(np.isnan(score), None, place.astype(object))
    return Audit(Z, audit.y, audit.judges, audit.slices, audit.groups)

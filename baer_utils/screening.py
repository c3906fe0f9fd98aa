"""The development heads that the paper screened and did not keep (its Figure 3): their scores from a run table.

Each is odd to the last bit: it is built from sums that do not depend on order, and from differences of two numbers
that a swap exchanges. What is asked is in `protocols.screening`; whether a head passes is for `gates` to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from baer_utils.debias import FULL_ORBIT, fit_map, label_reads, probability_excess
from baer_utils.evidence import clip_limit
from baer_utils.prompts import claim_graph
from baer_utils.verification import pointwise_evidence


def screened_score(
    runs: pd.DataFrame, pair_ids: Sequence[str], head: str, *, clip: float = 1e-4
) -> NDArray[np.float64]:
    """Signed scores of one screened head.

    Parameters
    ----------
    runs : run table of one backbone.
    pair_ids : N distinct pair ids, the order of the result.
    head : a name in `HEADS`.
    clip : probability in (0, 1/2); label log-odds of one-response reads are clipped at ±log((1 - clip) / clip).

    Returns
    -------
    array (N,) toward *a*; NaN where a read that the head needs is missing.

    Raises
    ------
    ValueError : for an unknown head.
    """
    if head not in HEADS:
        raise ValueError(f"a screened head must be one of {', '.join(HEADS)}; it is {head!r}.")
    return HEADS[head](runs, list(pair_ids), clip)


def fourth_orbit_score(runs: pd.DataFrame, pairs: pd.DataFrame, *, mode: str = "ecdf") -> NDArray[np.float64]:
    """CalibraEval on its full fourth orbit: the log-odds of the mean calibrated probability of *a* in four prompts.

    Parameters
    ----------
    runs : run table with the four reads of the protocol `orbit`.
    pairs : pair table, N rows. The map is fitted on its selection and calibration pairs, without labels.
    mode : see `debias.fit_map`.

    Returns
    -------
    array (N,) toward *a*, odd to the last bit; NaN where one of the four reads is missing, and everywhere when no
    selection or calibration pair has all four.
    """
    asked = runs[runs["protocol"] == "orbit"].assign(protocol="direct")
    reads = label_reads(asked, pairs["pair_id"], FULL_ORBIT.views)
    fitted_on = (pairs["split"] != "test").to_numpy() & ~np.isnan(reads).any(axis=1)
    if not fitted_on.any():
        return np.full(len(pairs), np.nan)
    g = fit_map(reads[fitted_on], FULL_ORBIT, pairs=list(pairs.loc[fitted_on, "pair_id"]), mode=mode)
    excess = probability_excess(g(expit(reads)), FULL_ORBIT)
    return np.log(0.5 + excess) - np.log(0.5 - excess)


def _both_orders(protocol: str):
    def score(runs: pd.DataFrame, pair_ids: list[str], clip: float) -> NDArray[np.float64]:
        """Mean of the two orders' log-odds."""
        value = _reads(runs, pair_ids, protocol, ("ab", "ba"))
        return (value["ab"] + value["ba"]) / 2

    return score


def _orbit(runs: pd.DataFrame, pair_ids: list[str], clip: float) -> NDArray[np.float64]:
    """Mean log-odds over both orders under both assignments of the letters."""
    value = _reads(runs, pair_ids, "orbit", ("ab", "ba", "ab_BA", "ba_BA"))
    return ((value["ab"] + value["ba"]) + (value["ab_BA"] + value["ba_BA"])) / 4


def _alone(protocol: str):
    def score(runs: pd.DataFrame, pair_ids: list[str], clip: float) -> NDArray[np.float64]:
        """Difference of two clipped one-response reads."""
        return pointwise_evidence(runs, pair_ids, protocol=protocol, clip=clip)

    return score


def _difference(protocol: str):
    def score(runs: pd.DataFrame, pair_ids: list[str], clip: float) -> NDArray[np.float64]:
        """Plain difference of two likelihoods: a clip would turn every sum into 0."""
        value = _reads(runs, pair_ids, protocol, ("a", "b"))
        return value["a"] - value["b"]

    return score


def _claims(runs: pd.DataFrame, pair_ids: list[str], clip: float) -> NDArray[np.float64]:
    """Difference of the two responses' beliefs in their last claim.

    A claim's belief is its own probability times that of every claim it rests on, in logs. Longer chains are believed
    less by construction; the paper does not say which rule it used.
    """
    rows = runs[runs["protocol"] == "claim_graph"]
    texts = rows[rows["stage"] == "claims"].set_index(["pair_id", "view"])["text"]
    reads = rows[(rows["stage"] == "claim") & (rows["status"] != "error")].sort_values("trial")
    logits = reads.groupby(["pair_id", "view"])["log_odds"].agg(list)
    limit = clip_limit(clip)
    belief = {
        key: _last_belief(np.clip(values, -limit, limit), claim_graph(texts[key])) for key, values in logits.items()
    }
    value = {view: np.array([belief.get((pair, view), np.nan) for pair in pair_ids]) for view in ("a", "b")}
    return value["a"] - value["b"]


def _last_belief(logits: NDArray, claims: list) -> float:
    """Log-odds of the last claim given everything it rests on, directly or not; NaN if a claim was not read."""
    if len(claims) > len(logits):
        return float("nan")
    log_belief = -np.logaddexp(0, -logits)  # log of each claim's own probability
    for number, (_, parents) in enumerate(claims):
        log_belief[number] += sum(log_belief[parent] for parent in parents)
    last = log_belief[-1]
    return float(last - np.log(-np.expm1(last)))


HEADS: dict[str, Callable[[pd.DataFrame, list[str], float], NDArray[np.float64]]] = {
    "cf": _both_orders("cf"),
    "orbit": _orbit,
    "anchor": _both_orders("anchor"),
    "audit": _alone("audit"),
    "claim_graph": _claims,
    "pointwise": _alone("pointwise"),
    "likelihood_mean": _difference("likelihood_mean"),
    "likelihood_sum": _difference("likelihood_sum"),
    "likelihood_pmi": _difference("likelihood_pmi"),
}


def _reads(runs: pd.DataFrame, pair_ids: list[str], protocol: str, views: tuple[str, ...]) -> dict[str, NDArray]:
    """Verdict log-odds by view, aligned with the pair ids; NaN where there is none."""
    rows = runs[(runs["protocol"] == protocol) & (runs["stage"] == "verdict") & (runs["status"] != "error")]
    table = {view: rows[rows["view"] == view].set_index("pair_id")["log_odds"] for view in views}
    return {view: column.reindex(pair_ids).to_numpy(float) for view, column in table.items()}

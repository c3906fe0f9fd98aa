"""A condition nobody has labelled: which head would one deploy, from what its verdicts look like alone.

The paper leaves this as future work. Here it is the plainest attempt: a few label-free descriptors of a condition, a
ridge regression from them to what each head gains over the stack, trained on the other conditions, and the regret of
what it picks. It is an experiment to report, whatever comes out; nothing in the pipeline follows it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baer_utils.evidence import run_array, summarize
from baer_utils.metrics import flip_rate

PENALTY = 1.0  # on standardised descriptors; declared, not tuned: a handful of conditions leave nothing to tune on


def descriptors(runs: pd.DataFrame, experts: Sequence[str], pair_ids: Sequence[str]) -> dict[str, float]:
    """What can be said of a condition without a label.

    Returns
    -------
    dict: `flip_rate_mean` and `flip_rate_sd` over the experts that ran in both orders (0 where none did); `agreement`,
    mean over pairs and over pairs of experts with an opinion of sign(z_j) sign(z_k); `agreement_sd`, its spread over
    pairs of experts; `margin`, mean ``|majority|``, the absolute mean sign of a pair's experts; `confidence`, mean
    ``|z| / the clip`` over experts with an opinion; `silent`, share of answers without one; `experts`, log of K.
    """
    L = run_array(runs, experts, pair_ids)
    evidence, flips = summarize(L, experts), flip_rate(L)
    sign, flips = np.sign(evidence.z), flips[~np.isnan(flips)]
    has = np.abs(sign)
    together = has.T @ has
    agreeing = np.where(together > 0, sign.T @ sign / np.maximum(together, 1), 0.0)
    between = agreeing[np.triu_indices(len(experts), 1)]
    opinions = np.abs(evidence.z[has > 0])
    return {
        "flip_rate_mean": float(flips.mean()) if len(flips) else 0.0,
        "flip_rate_sd": float(flips.std()) if len(flips) else 0.0,
        "agreement": float(between.mean()) if len(between) else 1.0,
        "agreement_sd": float(between.std()) if len(between) else 0.0,
        "margin": float((np.abs(sign.sum(axis=1)) / np.maximum(has.sum(axis=1), 1)).mean()),
        "confidence": float(opinions.mean() / np.abs(evidence.z).max()) if len(opinions) else 0.0,
        "silent": float((has == 0).mean()),
        "experts": float(np.log(len(experts))),
    }


def leave_one_condition_out(
    features: pd.DataFrame, accuracy: pd.DataFrame, gated: Sequence[str], *, default: str = "stack"
) -> pd.DataFrame:
    """Regret of a head predicted from descriptors, of the gated choice, and of always deploying the default.

    Parameters
    ----------
    features : one row per condition and seed, indexed by condition: descriptors. All rows of a condition are held out
        together.
    accuracy : the same rows; test accuracy of every head that could be deployed, NaN where it was not evaluated.
    gated : head that the gates deployed, row for row.
    default : the head that is deployed where nothing speaks for another.

    Returns
    -------
    frame indexed by condition: `rows`; `predicted`, the head picked most often; mean regret in points (accuracy of the
    best head of that row minus that of the picked one) of `predicted_regret`, `gated_regret`, `default_regret`.
    """
    heads = [head for head in accuracy if accuracy[head].notna().all()]
    if default not in heads:
        raise ValueError(f"the default must be evaluated in every row; {default!r} is not among {heads}.")
    x, gains = features.to_numpy(float), accuracy[heads].sub(accuracy[default], axis=0).to_numpy()
    regret, out = accuracy[heads].rsub(accuracy[heads].max(axis=1), axis=0), {}
    order = sorted(heads, key=lambda head: head != default)  # equal guesses: the default
    columns = [heads.index(head) for head in order]
    for condition in features.index.unique():
        held = features.index == condition
        guess = _ridge(x[~held], gains[~held], x[held])[:, columns]
        picked = [order[place] for place in np.round(guess, 9).argmax(axis=1)]
        choices = {"predicted": picked, "gated": list(np.asarray(gated)[held]), "default": [default] * held.sum()}
        mine = regret[held].to_numpy()
        out[condition] = {"rows": len(mine), "predicted": pd.Series(picked).mode()[0]} | {
            f"{name}_regret": 100 * float(np.mean(mine[range(len(mine)), [heads.index(head) for head in choice]]))
            for name, choice in choices.items()
        }
    return pd.DataFrame.from_dict(out, orient="index").rename_axis("condition")


def _ridge(x: NDArray, y: NDArray, new: NDArray) -> NDArray[np.float64]:
    """Ridge regression on standardised columns, penalty on the slopes of the mean squared error."""
    centre, scale = x.mean(axis=0), x.std(axis=0)
    scale = np.where(scale > 1e-12, scale, 1.0)
    rows, mean = (x - centre) / scale, y.mean(axis=0)
    slopes = np.linalg.solve(rows.T @ rows / len(rows) + PENALTY * np.eye(x.shape[1]), rows.T @ (y - mean) / len(rows))
    return mean + (new - centre) / scale @ slopes

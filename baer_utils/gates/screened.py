"""The gates for heads that were screened and may have been asked about few pairs only."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baer_utils import metrics, scores
from baer_utils.gates.margins import GATED, advance, margin, strongest_baseline


def screen(pairs: pd.DataFrame, head_scores: Mapping[str, NDArray], native: pd.DataFrame) -> pd.DataFrame:
    """Both gates for every screened head, each on the pairs that it was asked about.

    Parameters
    ----------
    pairs : pair table, N rows; test rows and rows without a label are not looked at.
    head_scores : head -> (N,) signed scores, NaN where the head was not asked.
    native : (N, baselines) decisions of the external baselines (`evidence.native_decisions`), row for row the pairs.

    Returns
    -------
    frame indexed by head. For selection and calibration: `pairs` with a score, the head's `accuracy` on them, the
    strongest `baseline` on exactly these pairs and the `margin` against it (points, matched rule); NaN and an empty
    name where the head was asked about no pair of that split. `verdict`: "advances", "does not advance", or "not
    evaluated" where the selection margin is above 0 and calibration was never asked.
    """
    y = pairs["label"].to_numpy(float)
    answers = {name: metrics.as_answers(native[name]) == y for name in native}
    rows = {}
    for head, s in head_scores.items():
        right, row = scores.decision(s) == y, {}
        for part in GATED:
            mask = (pairs["split"] == part).to_numpy() & ~np.isnan(y) & ~np.isnan(s)
            found = {"pairs": int(mask.sum()), "accuracy": np.nan, "baseline": "", "margin": np.nan}
            if mask.any():
                rivals = {name: correct[mask] for name, correct in answers.items()}
                best = strongest_baseline(rivals)
                found |= {"accuracy": float(right[mask].mean()), "baseline": best}
                found["margin"] = margin(right[mask], rivals[best])
            row |= {f"{part}_{name}": value for name, value in found.items()}
        verdict = advance(row["selection_margin"], row["calibration_margin"])
        unasked = row["selection_margin"] > verdict.min_selection and not row["calibration_pairs"]
        rows[head] = row | {"verdict": "not evaluated" if unasked else str(verdict).rpartition(": ")[2]}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("head")

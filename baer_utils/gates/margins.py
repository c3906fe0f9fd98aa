"""Who advances, and every threshold that decides it, each with its reason.

A head earns its place on development data: on a small selection split and on a larger calibration split, against the
strongest external baseline of that very split. This file compares accuracies that others counted; it knows nothing
about judges, features or models, and it never sees a test label.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

# The paper lets a head advance on its accuracy margin, not on significance (section 3.4). Strictly above zero: parity
# with a baseline that costs less is no reason to deploy a head.
MIN_SELECTION_MARGIN = 0.0  # points
MIN_CALIBRATION_MARGIN = 0.0  # points
# Below 20 questions one question moves the selection margin by more than 5 points, which is as much as the largest
# gain that the paper saw reverse (+5.9 to -5.0): there is nothing to select on.
MIN_QUESTIONS = 20
# The paper stars a test result at p < .05.
ALPHA = 0.05

HEADS = ("stack", "route", "reference")  # in the order in which the paper adds them; stack is the default
POOLED = "pooled"  # selection and calibration together
GATED = ("selection", "calibration")


def strongest_baseline(correct_by_baseline: Mapping[str, ArrayLike] | pd.DataFrame) -> str:
    """Name of the baseline with the highest accuracy on exactly these pairs; equal ones by name.

    Parameters
    ----------
    correct_by_baseline : name -> (n_pairs,) 0 or 1, or a frame (pairs x baselines). Matched rule: a tie or a missing
        answer has already become the answer *a* (`metrics.as_answers`), so no entry is NaN.

    Raises
    ------
    ValueError
        without baselines, for unequal lengths, or for entries other than 0 and 1.
    """
    columns = {str(name): _correct(correct_by_baseline[name], name) for name in correct_by_baseline}
    if not columns:
        raise ValueError("strongest_baseline needs at least one baseline; it got none. Name the external baselines.")
    sizes = {name: len(values) for name, values in columns.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"baselines must be compared on the same pairs; they have {sizes}. Align them by pair_id.")
    return min(columns, key=lambda name: (-int(columns[name].sum()), name))


def margin(head_correct: ArrayLike, baseline_correct: ArrayLike) -> float:
    """Accuracy of a head minus that of a baseline on the same pairs, in points; NaN where there is no pair.

    Parameters
    ----------
    head_correct, baseline_correct : (n_pairs,) 0 or 1, row for row the same pairs.
    """
    head, baseline = _correct(head_correct, "the head"), _correct(baseline_correct, "the baseline")
    if len(head) != len(baseline):
        raise ValueError(
            f"a margin needs the same pairs on both sides; the head has {len(head)}, the baseline {len(baseline)}. "
            "Align them by pair_id."
        )
    return 100 * (int(head.sum()) - int(baseline.sum())) / len(head) if len(head) else float("nan")


def _correct(values: ArrayLike, name: str) -> np.ndarray:
    """(n_pairs,) whole numbers 0 or 1, so that equal counts compare as equal."""
    array = np.asarray(values, dtype=float).ravel()
    wrong = ~np.isin(array, (0.0, 1.0))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"{name}: correct must be 0 or 1; row {row} is {array[row]} ({int(wrong.sum())} such). "
            "Turn ties and missing answers into answers first (metrics.as_answers)."
        )
    return array.astype(int)


@dataclass(frozen=True)
class Verdict:
    """Whether a head passed both gates, and the margins (points) and thresholds that say so."""

    advances: bool
    selection_margin: float
    calibration_margin: float
    min_selection: float = MIN_SELECTION_MARGIN
    min_calibration: float = MIN_CALIBRATION_MARGIN

    def __bool__(self) -> bool:
        return self.advances

    def __str__(self) -> str:
        word = "advances" if self.advances else "does not advance"
        return f"{self.selection_margin:+.1f} / {self.calibration_margin:+.1f} points: {word}"


def advance(
    selection_margin: float,
    calibration_margin: float,
    *,
    min_selection: float = MIN_SELECTION_MARGIN,
    min_calibration: float = MIN_CALIBRATION_MARGIN,
) -> Verdict:
    """Two gates: a head advances only if both margins are strictly above their thresholds (seed 000, section 3.4).

    Parameters
    ----------
    selection_margin, calibration_margin : points against each split's own strongest baseline. NaN (no pair in that
        split) never passes.
    """
    passes = bool(selection_margin > min_selection and calibration_margin > min_calibration)
    return Verdict(passes, float(selection_margin), float(calibration_margin), min_selection, min_calibration)

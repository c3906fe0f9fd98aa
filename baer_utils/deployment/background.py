"""What stands behind Table 1: development scores with the rules that a router must beat, the way from development to
test, whether probabilities mean what they say, what a lead rests on, and the pairs of which a head says nothing.

It lays out figures of `figures.condition_figures`, one row per condition, and computes nothing on pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from baer_utils.deployment.tables import DECLARED
from baer_utils.gates import HEADS, POOLED

ABLATIONS = ("confidence_switching", "subset_lookup")  # which the paper reports as failing


def development_table(figures: Sequence[dict]) -> pd.DataFrame:
    """Out-of-fold accuracies on the development pairs, matched rule, means over the seeds, and the transfer gap.

    Columns: `HEADS`; `nonnegative`, the sign-constrained stack; `ABLATIONS`, two simpler ways to choose an expert;
    `best_single` (named on these pairs, which flatters it), `majority`, `longer`; `reliability_error`, the calibration
    error of the router's reliabilities; `transfer_gap`, points of the deployed head from calibration to test, mean, and
    on the declared split (`gap`, with its 95 % interval `gap_low`, `gap_high`). NaN where a head was not evaluated.
    """

    def row(one: dict) -> dict:
        development = one["development"]
        heads, rules = development["heads"], development["rules"]
        stack, route = heads["stack"], heads["route"] or {"notes": {}}
        shown = {head: heads[head]["accuracy"][POOLED] if heads[head] else np.nan for head in HEADS}
        shown["nonnegative"] = stack["notes"]["nonnegative_accuracy"][POOLED]
        shown |= {name: route["notes"].get(name, {POOLED: np.nan})[POOLED] for name in ABLATIONS}
        names = {"best_single": f"best single ({one['best_single']})", "majority": "majority"}
        names["longer"] = "longer response"
        shown |= {name: rules[rule]["accuracy"][POOLED] for name, rule in names.items()}
        error = route["notes"].get("reliability_error", np.nan)
        return shown | {"reliability_error": error, "transfer_gap": one["transfer_gap"][0]}

    declared = {one["bank"]: one["transfer_gap"] for one in figures if one["seed"] == DECLARED}
    gaps = pd.DataFrame.from_dict(declared, orient="index", columns=["gap", "gap_low", "gap_high"], dtype=float)
    return _means(figures, row).join(gaps)


def calibration_table(figures: Sequence[dict]) -> pd.DataFrame:
    """Brier score and calibration error of every evaluated head on test (`counting.head_rows`), means over seeds."""

    def row(one: dict) -> dict:
        return {f"{head} {name}": value for head, of in one["calibration"].items() for name, value in of.items()}

    table = _means(figures, row)
    return table[[f"{head} {name}" for head in HEADS for name in ("brier", "ece") if f"{head} {name}" in table]]


def behind_table(figures: Sequence[dict]) -> pd.DataFrame:
    """What a lead rests on, per condition.

    Columns: `rests_on`, the subsets without which the deployed head no longer leads the development baseline;
    `inverted_experts` and `inverted_categories`, which the free stack turns around; each name with the number of seeds;
    `free_over_held`, points by which the free stack is right more often than the sign-constrained one, mean.
    """
    rows = {}
    for condition in dict.fromkeys(one["bank"] for one in figures):
        mine = [one for one in figures if one["bank"] == condition]
        rows[condition] = {
            "rests_on": _counted([one["explained_by"] for one in mine]),
            "inverted_experts": _counted([one["inverted"]["experts"] for one in mine]),
            "inverted_categories": _counted([one["inverted"]["categories"] for one in mine]),
            "free_over_held": np.mean([one["inverted"]["points"] for one in mine]),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("condition")


def zero_lines(figures: Sequence[dict]) -> list[str]:
    """The test pairs of which the deployed head says nothing (s = 0), counted over all seeds and listed for the
    declared split; a condition without any has a line, too."""
    lines = []
    for condition in dict.fromkeys(one["bank"] for one in figures):
        mine = [one for one in figures if one["bank"] == condition]
        count, of = sum(len(one["zero_scores"]) for one in mine), sum(one["pairs"] for one in mine)
        declared = [pair for one in mine if one["seed"] == DECLARED for pair in one["zero_scores"]]
        listed = f"; seed {DECLARED}: {', '.join(declared)}" if declared else ""
        lines.append(f"{condition}: {count} of {of} over all seeds{listed}")
    return lines


def _means(figures: Sequence[dict], row: Callable[[dict], dict]) -> pd.DataFrame:
    """Mean over the seeds of each condition, conditions in their own order."""
    table = pd.DataFrame([row(one) for one in figures], dtype=float)
    conditions = pd.Index([one["bank"] for one in figures], name="condition")
    return table.set_axis(conditions).groupby(level=0, sort=False).mean()


def _counted(lists: Sequence[list[str]]) -> str:
    """Every name with the number of lists that hold it, the most frequent first; "none" where all are empty."""
    counts = Counter(name or "(no subset)" for names in lists for name in names)
    ranked = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return ", ".join(f"{name} {count}" for name, count in ranked) or "none"

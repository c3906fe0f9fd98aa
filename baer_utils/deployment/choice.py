"""How far the deployed head stays behind the better of a condition's own heads, and why it was not that one.

The gates choose on development data, so over split seeds the choice may be another head than the one that turns out
better on test. What they saw, what they refused and what that was worth is counted here; nothing is decided by it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from baer_utils.deployment.tables import best_head
from baer_utils.gates import GATED, HEADS, MIN_CALIBRATION_MARGIN, MIN_SELECTION_MARGIN, POOLED, margin
from baer_utils.metrics import paired_bootstrap

NEAR = 0.5  # points; behind by more than this, a choice is explained
LEAST = dict(zip(GATED, (MIN_SELECTION_MARGIN, MIN_CALIBRATION_MARGIN), strict=True))


def choice_table(figures: Sequence[dict]) -> pd.DataFrame:
    """The deployed head against the head that is better on test, per condition and over all split seeds.

    Returns
    -------
    frame indexed by condition. `better`: the evaluated head with the highest mean test accuracy; `behind`: by how many
    points the deployed head's mean is lower, with `low` and `high` (95 %; whole questions of all seeds are resampled,
    because the same question is in the test of several). `splits`, and in how many of them the better head was
    `deployed`; was `not_ahead` of the deployed one out of fold; was ahead and `held_back` because it did not clear both
    gates, `by_selection` and `by_calibration` (one split may do both), while the deployed head did not clear both
    either in `nor_deployed` of those; the rest selected nothing. `lead`: its pooled out-of-fold accuracy minus the
    deployed head's, mean points; `held_back_worth`: the points on test that it would have added where it was held back,
    NaN where it never was; `ungated`: test accuracy minus the deployed head's if the highest out-of-fold accuracy chose
    and no gate did; `questions`: of selection, mean.
    """
    rows = {}
    for condition in dict.fromkeys(one["bank"] for one in figures):
        mine = [one for one in figures if one["bank"] == condition]
        better = best_head(mine)
        rows[condition] = {"better": better, **_behind(mine, better), "splits": len(mine), **_gates(mine, better)}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("condition")


def choice_sentences(table: pd.DataFrame) -> list[str]:
    """For every condition more than `NEAR` points behind: by how much, whether luck could do that, and what the gates
    did. Made of a `choice_table` alone."""
    return [_sentence(row.Index, row) for row in table[table["behind"] > NEAR].itertuples()]


def _behind(mine: Sequence[dict], better: str) -> dict[str, float]:
    """Mean over seeds of the difference; every seed has one weight, whatever the size of its test."""
    size = np.mean([one["pairs"] for one in mine])
    first, second, groups = [], [], []
    for one in mine:
        weight, right = size / one["pairs"], one["right"]
        first.append(weight * np.array(right[better]))
        second.append(weight * np.array(right[one["head"]]))
        groups += right["question"]
    shares = paired_bootstrap(np.concatenate(first), np.concatenate(second), groups)
    return dict(zip(("behind", "low", "high"), (100 * share for share in shares), strict=True))


def _gates(mine: Sequence[dict], better: str) -> dict[str, float]:
    counts = dict.fromkeys(("deployed", "not_ahead", "held_back", *(f"by_{part}" for part in GATED), "nor_deployed"), 0)
    leads, worth, ungated = [], [], []
    for one in mine:
        heads = {head: found for head, found in one["development"]["heads"].items() if found}
        pooled = {head: heads[head]["accuracy"][POOLED] for head in HEADS if head in heads}
        deployed, highest = one["head"], max(pooled, key=pooled.get)
        leads.append(100 * (pooled[better] - pooled[deployed]))
        ungated.append(_on_test(one, highest, deployed))
        failed = {head: _failed(heads[head]["margin"]) for head in heads}
        if better == deployed:
            counts["deployed"] += 1
        elif not pooled[better] > pooled[deployed]:
            counts["not_ahead"] += 1
        elif failed[better] and one["selected"]:
            counts["held_back"] += 1
            counts["nor_deployed"] += bool(failed[deployed])
            worth.append(_on_test(one, better, deployed))
            for part in failed[better]:
                counts[f"by_{part}"] += 1
    means = {"lead": np.mean(leads), "held_back_worth": np.mean(worth) if worth else np.nan}
    questions = np.mean([one["development"]["questions"]["selection"] for one in mine])
    return counts | means | {"ungated": np.mean(ungated), "questions": questions}


def _failed(margins: dict[str, float | None]) -> list[str]:
    """The gates that a head did not clear; a split without pairs has no margin, and is not cleared."""
    return [part for part, least in LEAST.items() if margins[part] is None or not margins[part] > least]


def _on_test(one: dict, head: str, other: str) -> float:
    return margin(one["right"][head], one["right"][other])


def _sentence(condition: str, row) -> str:
    luck = (
        "the difference may be luck of these questions" if row.low <= 0 else "luck of the questions hardly explains it"
    )
    text = (
        f"{condition}: the deployed head is {row.behind:.2f} points behind {row.better} (95 % of resampled questions: "
        f"{row.low:+.2f} to {row.high:+.2f}, {luck}). {row.better.capitalize()} was deployed in {row.deployed} of "
        f"{row.splits} splits, and in {row.not_ahead} it was not ahead out of fold."
    )
    if row.held_back:
        text += (
            f" In {row.held_back} it was ahead and a gate held it back: its margin over the strongest expert of that "
            f"split did not pass on selection in {row.by_selection}, on calibration in {row.by_calibration} (one "
            f"of about {row.questions:.0f} selection questions is {100 / row.questions:.1f} points). The head deployed "
            f"in its place did not clear both gates in {row.nor_deployed} of them either: the stack needs none. On "
            f"those tests {row.better} would have been {row.held_back_worth:+.2f} points from it."
        )
    return (
        f"{text} Out of fold it led by {row.lead:+.2f} points on average; choosing by that accuracy alone, without "
        f"gates, would have changed the test by {row.ungated:+.2f} points."
    )

"""All tables over conditions and split seeds as one text: what `grid banks` prints and keeps.

It says in words only what a table holds; which figures they lay out is not its business.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from baer_utils.deployment.background import behind_table, calibration_table, development_table, zero_lines
from baer_utils.deployment.choice import NEAR, choice_sentences, choice_table
from baer_utils.deployment.figures import BOUNDED
from baer_utils.deployment.tables import (
    DECLARED,
    accuracy_table,
    leads_table,
    margin_table,
    summary_table,
    unseen_table,
)
from baer_utils.gates import ALPHA

REST = ["head", "baseline", "matched", "paper", "low", "high", "mean", "sd", "paper_mean"]  # no p: chosen after looking

Section = tuple[str, pd.DataFrame | str]


def rendered(figures: Sequence[dict]) -> str:
    """All tables as one text; a line is as long as its table is wide."""
    sections = [*_table_one(figures), *_behind(figures), *_choices(figures)]
    zeros = "\n".join(zero_lines(figures))
    sections.append(("Test pairs of which the deployed head says nothing (s = 0)", zeros))
    return "\n\n".join(f"{title}\n{_text(content)}" for title, content in sections)


def _table_one(figures: Sequence[dict]) -> list[Section]:
    seeds, sections = len({one["seed"] for one in figures}), []
    spread = f"mean ± sd over {seeds} split seeds [seed {DECLARED}]"
    for benchmark, mine in _by_benchmark(figures):
        for rule in ("matched", "paper"):
            sections.append((f"{benchmark}, {rule} rule: accuracy on test (%), {spread}", accuracy_table(mine, rule)))
    title = f"Column leads and margins (points) over the strongest expert on test: seed {DECLARED}, and {seeds} seeds"
    sections.append((title, leads_table(figures)))
    title = f"Deployed head against the strongest baseline, points: seed {DECLARED}; mean and sd over {seeds} seeds"
    sections.append((f"{title}. Star: Holm over the conditions below {ALPHA}", margin_table(figures)))
    return [*sections, ("Summary, means over seeds, matched rule", summary_table(figures))]


def _behind(figures: Sequence[dict]) -> list[Section]:
    sections: list[Section] = [("What a lead rests on (names with numbers of seeds)", behind_table(figures))]
    left = [one | one["without"] for one in figures if one["without"]]
    for benchmark, mine in _by_benchmark(left):
        title = f"{benchmark}, without the subsets that a seed's lead rests on (none: all pairs), matched rule"
        sections.append((f"{title}: accuracy (%) over the seeds in which pairs are left", accuracy_table(mine)))
    if left:
        sections.append(
            ("Deployed head against the strongest baseline, points, without them", margin_table(left)[REST])
        )
    sections.append(("Development: out of fold, and the transfer gap (points) to test", development_table(figures)))
    title = "Brier score and calibration error on test, of a head's probability (of the router: its chosen reliability)"
    return [*sections, (title, calibration_table(figures))]


def _choices(figures: Sequence[dict]) -> list[Section]:
    table = choice_table(figures)
    sections: list[Section] = [("The deployed head against the better of the condition's own heads", table)]
    said = "\n".join(choice_sentences(table)) or "none"
    sections.append((f"Conditions in which it is more than {NEAR} points behind", said))
    if len({one["bank"] for one in figures}) > 2:
        title = "Unseen condition: regret (points) of what label-free descriptors of it pick among"
        sections.append((f"{title} the heads", unseen_table(figures)))
        extra = (BOUNDED, "majority")
        sections.append((f"{title} the heads, {' and '.join(extra)}", unseen_table(figures, extra=extra)))
    return sections


def _by_benchmark(figures: Sequence[dict]) -> list[tuple[str, list[dict]]]:
    names = dict.fromkeys(one["bank"].partition(" / ")[0] for one in figures)
    return [(name, [one for one in figures if one["bank"].startswith(f"{name} / ")]) for name in names]


def _text(content: pd.DataFrame | str) -> str:
    return content if isinstance(content, str) else content.to_string(float_format="{:.3f}".format)

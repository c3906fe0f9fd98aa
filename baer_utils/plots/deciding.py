"""Figures about a head being judged: the gates, what a coin would show, the opened test.

Each function draws one figure from tables that others computed and returns it. Margins are in points (hundredths),
always with the line that a gate or a coin would draw.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from baer_utils.plots.look import (
    GREY,
    INK,
    PALE,
    BookFigure,
    decorate,
    legend_below,
    new_figure,
    reference,
    row_names,
    style,
)


def gate_margins(margins: pd.DataFrame) -> BookFigure:
    """A head's margin over the strongest baseline on each split, with its interval; it must clear zero on both.

    Parameters
    ----------
    margins : one row per head and split: head, split, margin, low, high, in points.
    """
    figure, (ax,) = new_figure(1.5 + 0.34 * len(margins))
    heads, splits = margins["head"].to_numpy(), margins["split"].to_numpy()
    for place, row in enumerate(margins.itertuples()):
        colour, mark = style(row.head)
        fill = colour if row.split == "calibration" else "white"
        ax.plot([row.low, row.high], [place, place], color=colour, linewidth=2, solid_capstyle="butt")
        ax.plot(row.margin, place, mark, color=colour, markersize=8, fillstyle="full", markerfacecolor=fill)
    reference(ax, x=0, text="gate: strictly above 0")
    row_names(ax, [f"{head}, {split}" for head, split in zip(heads, splits, strict=True)])
    decorate(ax, "margin over the strongest baseline (points)", "")
    legend_below(figure, ax)
    return figure


def gate_story(story: pd.DataFrame) -> BookFigure:
    """Heads by their margin on selection and on calibration; only the shaded corner passes both gates.

    Parameters
    ----------
    story : one row per head: head, selection and calibration (margins in points), advances (bool).
    """
    figure, (ax,) = new_figure(4.0, width=6.4)
    reach = 1.25 * max(1.0, float(np.nanmax(np.abs(story[["selection", "calibration"]].to_numpy(dtype=float)))))
    ax.fill_between([0, reach], 0, reach, color=PALE, zorder=0, linewidth=0, label="passes both gates")
    for row in story.itertuples():
        colour, mark = (INK, "o") if row.advances else (GREY, "X")
        ax.plot(row.selection, row.calibration, mark, color=colour, markersize=9, linestyle="none")
        ax.annotate(row.head, (row.selection, row.calibration), xytext=(0, 8), textcoords="offset points", ha="center",
                    fontsize=9, bbox={"color": "white", "alpha": 0.7, "pad": 1})  # fmt: skip
    reference(ax, x=0)
    reference(ax, y=0)
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach))
    decorate(ax, "margin on selection (points)", "margin on calibration (points)")
    legend_below(figure, ax)
    return figure


def coin_flip_rules(stars: pd.DataFrame, *, level: float) -> BookFigure:
    """How often a test calls a coin significantly better, by the share of ties and by scoring rule.

    Parameters
    ----------
    stars : frame indexed by the baseline's share of ties, one column of shares of runs per rule.
    level : what the test promises, the reference line.
    """
    figure, (ax,) = new_figure(3.2, width=6.2)
    looks = zip(stars.columns, ((INK, "^", "-"), (GREY, "o", "--")), strict=False)
    for name, (colour, mark, dash) in looks:
        ax.plot(100 * stars.index, 100 * stars[name], dash, color=colour, marker=mark, linewidth=1.8, label=name)
    reference(ax, y=100 * level, text="promised by the test")
    ax.set_ylim(-2, 102)
    decorate(ax, "pairs on which the baseline ties (%)", "coins called better (% of runs)")
    legend_below(figure, ax)
    return figure


def forest(methods: pd.DataFrame) -> BookFigure:
    """Accuracy of every method on the opened test under both rules, with 95 % intervals and the chance line.

    Parameters
    ----------
    methods : frame indexed by method, columns matched_rule, matched_rule_low, matched_rule_high, and the same three for
        paper_rule; shares. Rows whose column kind says reference are grey.
    """
    figure, (ax,) = new_figure(1.5 + 0.42 * len(methods))
    for place, (name, row) in enumerate(methods.iterrows()):
        colour, mark = (GREY, "o") if row.get("kind") == "reference" else style(str(name))
        _interval(ax, row, "matched_rule", place - 0.13, colour, mark, filled=True)
        _interval(ax, row, "paper_rule", place + 0.13, colour, mark, filled=False)
    ax.plot([], [], "o", color=INK, label="matched rule")
    ax.plot([], [], "o", color=INK, fillstyle="none", label="paper rule")
    reference(ax, x=50, text="chance")
    row_names(ax, [str(name) for name in methods.index])
    ax.set_xlim(-2, 102)
    decorate(ax, "accuracy on the test pairs (%)", "")
    legend_below(figure, ax)
    return figure


def _interval(ax: Axes, row: pd.Series, rule: str, place: float, colour: str, mark: str, *, filled: bool) -> None:
    low, value, high = (100 * row[name] for name in (f"{rule}_low", rule, f"{rule}_high"))
    ax.plot([low, high], [place, place], color=colour, linewidth=2.2 if filled else 1.1, solid_capstyle="butt")
    ax.plot(value, place, mark, color=colour, markersize=7, markerfacecolor=colour if filled else "white")

"""Figures about the bank's own bill: what experts cost, accuracy against tokens, and pairs that leave early.

Tokens are per pair, accuracies in per cent, always beside the coin's. Intervals are those that were handed in.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

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
    spoken,
    style,
)

LOOKS = ((INK, "o", "-"), (GREY, "s", "--"), ("#117733", "D", ":"), ("#882255", "X", "-."))
POINTS = ("^", "v", "P", "*", "h", "d", "<", ">")


def bank_prices(table: pd.DataFrame) -> BookFigure:
    """Tokens of each expert as separate prompts, and what it adds to those before it.

    Parameters
    ----------
    table : `BankPrices.table`: index expert, columns alone and added.
    """
    figure, (ax,) = new_figure(1.2 + 0.36 * len(table))
    for place, (name, row) in enumerate(table.iterrows()):
        colour, _ = style(str(name))
        ax.barh(place, row["alone"], color=PALE, edgecolor=GREY, height=0.72, linewidth=0.8)
        ax.barh(place, row["added"], color=colour, height=0.36)
    ax.barh(0, 0, color=PALE, edgecolor=GREY, label="alone, as separate prompts")
    ax.barh(0, 0, color=INK, label="added to the experts above it")
    row_names(ax, [str(name) for name in table.index])
    decorate(ax, "tokens per pair", "")
    legend_below(figure, ax)
    return figure


def accuracy_against_tokens(sizes: Mapping[str, pd.DataFrame], points: Mapping[str, pd.DataFrame]) -> BookFigure:
    """Accuracy of panels from one expert to all against their tokens, one panel of the figure per set of pairs.

    Parameters
    ----------
    sizes : {set: `over_splits` by policy and size}: a line per policy, its markers from small to large panels.
    points : {set: `over_splits` by policy}: single policies.
    """
    figure, axes = new_figure(4.4, len(sizes), width=4.6 * len(sizes) + 0.6, sharey=True)
    for ax, (title, table) in zip(axes, sizes.items(), strict=True):
        for number, policy in enumerate(table.index.unique(0)):
            colour, mark, dash = LOOKS[number % len(LOOKS)]
            _with_interval(
                ax, table.loc[policy], colour, mark, dash, f"{spoken(policy)}, 1 to {len(table.loc[policy])}"
            )
        for number, policy in enumerate(points[title].index):
            row = points[title].loc[[policy]]
            _with_interval(ax, row, LOOKS[2 + number % 2][0], POINTS[number % len(POINTS)], "", spoken(policy), size=9)
        reference(ax, y=50, text="a coin")
        decorate(ax, "tokens per pair", "accuracy (%)" if ax is axes[0] else "", spoken(title))
    legend_below(figure, axes[0], columns=4)
    return figure


def _with_interval(ax, table: pd.DataFrame, colour: str, mark: str, dash: str, label: str, size: float = 6) -> None:
    x, accuracy = table["tokens", "mean"].to_numpy(float), 100 * table["accuracy"]
    low, high = (np.nan_to_num(accuracy[end], nan=accuracy["mean"].mean()) for end in ("low", "high"))
    ax.vlines(x, low, high, color=colour, linewidth=1.0, alpha=0.6)
    ax.plot(x, accuracy["mean"], dash or "none", color=colour, marker=mark, markersize=size, linewidth=1.6, label=label)


def early_exit_tokens(asking: Mapping[str, pd.DataFrame], figures: Mapping[str, pd.DataFrame]) -> BookFigure:
    """How many pairs are still asked at each step, and what that leaves of the bill; a column per set of pairs.

    Parameters
    ----------
    asking : {set: share of pairs still asked, index step, a column per rule}.
    figures : {set: `over_splits` by rule}, with tokens.
    """
    figure, axes = new_figure(3.6, 2 * len(asking), width=4.3 * len(asking) + 3.4)
    for number, (title, shares) in enumerate(asking.items()):
        left, right = axes[2 * number : 2 * number + 2]
        for place, rule in enumerate(shares.columns):
            colour, mark, dash = LOOKS[place % len(LOOKS)]
            left.plot(shares.index, 100 * shares[rule], dash, color=colour, marker=mark, markersize=5, label=rule)
            tokens = figures[title].loc[rule, "tokens"]
            right.plot([tokens["low"], tokens["high"]], [place, place], color=colour, linewidth=2.2)
            right.plot(tokens["mean"], place, mark, color=colour, markersize=8, clip_on=False)
        left.set_ylim(-3, 103)
        right.set_xlim(left=0)
        row_names(right, list(shares.columns))
        decorate(left, "experts asked", "pairs still asked (%)", spoken(title))
        decorate(right, "tokens per pair", "")
    legend_below(figure, axes[0])
    return figure

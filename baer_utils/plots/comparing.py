"""Figures that lay experts or settings beside each other: agreement, what accuracy costs, what a threshold trades.

Each function draws one figure from tables that others computed and returns it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import ArrayLike

from baer_utils.plots.look import (
    GREY,
    INK,
    BookFigure,
    decorate,
    legend_below,
    new_figure,
    reference,
    spoken,
    style,
)


def agreement_matrix(share: ArrayLike, experts: Sequence[str]) -> BookFigure:
    """How often two experts that both have an opinion name the same winner; blue above a coin's half, red below.

    Parameters
    ----------
    share : array (K, K) as `metrics.agreement` gives it; NaN, left white, where two never have an opinion together.
    experts : K names.
    """
    share = np.asarray(share, dtype=float)
    figure, (ax,) = new_figure(max(3.9, 2.0 + 0.4 * len(experts)))
    image = ax.imshow(100 * share, cmap="RdBu", vmin=0, vmax=100, interpolation="nearest", aspect="auto")
    for row, column in np.argwhere(~np.isnan(share) & ~np.eye(len(share), dtype=bool)):
        dark = abs(share[row, column] - 0.5) > 0.35
        ax.text(column, row, f"{100 * share[row, column]:.0f}", ha="center", va="center", fontsize=9,
                color="white" if dark else INK)  # fmt: skip
    names = [spoken(name) for name in experts]
    ax.set_xticks(range(len(names)), names, rotation=35, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(names)), names)
    ax.grid(visible=False)
    decorate(ax, "expert", "expert")
    figure.colorbar(image, ax=ax, shrink=0.9, label="same winner (% of common opinions)")
    return figure


def price_of_accuracy(methods: pd.DataFrame) -> BookFigure:
    """What right answers cost: accuracy of every method, with its 95 % interval, against its tokens per pair.

    Parameters
    ----------
    methods : frame indexed by method, columns tokens (per pair, above 0), accuracy, low and high (shares).
    """
    figure, (ax,) = new_figure(3.8)
    for name, row in methods.iterrows():
        colour, mark = style(str(name))
        ax.plot([row["tokens"]] * 2, [100 * row["low"], 100 * row["high"]], color=colour, linewidth=1.6, alpha=0.8)
        ax.plot(row["tokens"], 100 * row["accuracy"], mark, color=colour, markersize=9, label=spoken(str(name)))
    reference(ax, y=50, text="chance")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_minor_locator(NullLocator())
    decorate(ax, "tokens per pair (logarithmic)", "accuracy (%)")
    legend_below(figure, ax)
    return figure


def tau_path(table: pd.DataFrame, *, chosen: float, cost: str = "cost per item") -> BookFigure:
    """Risk and cost of the plan at every threshold, and where the dial stands.

    Parameters
    ----------
    table : frame indexed by tau, columns risk and cost. chosen : the tau in use. cost : name and unit of the cost.
    """
    figure, axes = new_figure(3.2, 2)
    for ax, (column, text) in zip(axes, {"risk": "risk (share)", "cost": cost}.items(), strict=True):
        ax.step(range(len(table)), table[column], where="mid", color=GREY, linewidth=1.4)
        ax.plot(range(len(table)), table[column], "o", color=INK, markersize=4)
        reference(ax, x=list(table.index).index(chosen), text="tau in use")
        ax.set_xticks(range(len(table)), [f"{tau:g}" for tau in table.index], rotation=45)
        ax.margins(y=0.15)
        decorate(ax, "tau (least gain in risk)", text)
    legend_below(figure, axes[0])
    return figure

"""Figures about a head being fitted: the penalty, the weights, scores by weights that never saw the question.

Each function draws one figure from tables that others computed and returns it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from baer_utils.plots.look import (
    BAD,
    GOOD,
    GREY,
    INK,
    NEUTRAL,
    BookFigure,
    decorate,
    legend_below,
    new_figure,
    reference,
    row_names,
    spoken,
    style,
)
from baer_utils.scores import probability


def lambda_path(weights: pd.DataFrame, experts: Sequence[str], *, chosen: float) -> BookFigure:
    """Weights of the stack at every lambda: raw evidence solid, shrunk dashed, categories thin and grey.

    Parameters
    ----------
    weights : frame indexed by lambda, 2K + G columns in the order of Eq. 5.
    experts : K names. chosen : the lambda in use, the reference line.
    """
    figure, (ax,) = new_figure(3.6)
    n_experts = len(experts)
    for column in range(2 * n_experts, weights.shape[1]):
        text = "mean z in a category" if column == 2 * n_experts else None
        ax.plot(weights.index, weights.iloc[:, column], color="#b0b0b0", linewidth=0.8, label=text)
    for k, name in enumerate(experts):
        colour, mark = style(name)
        ax.plot(weights.index, weights.iloc[:, k], color=colour, marker=mark, markersize=5, label=spoken(name))
        ax.plot(weights.index, weights.iloc[:, n_experts + k], "--", color=colour, marker=mark, markersize=5)
    for dash, text in (("-", "raw z"), ("--", "shrunk z")):
        ax.plot([], [], dash, color=INK, label=text)
    ax.set_xscale("log")
    reference(ax, x=chosen, text="lambda chosen")
    reference(ax, y=0)
    decorate(ax, "lambda (penalty)", "weight of the scaled feature")
    legend_below(figure, ax)
    return figure


def lambda_choice(tried: pd.DataFrame, *, chosen: float) -> BookFigure:
    """Calibration accuracy and log-loss at every lambda, beside what a coin gets.

    Parameters
    ----------
    tried : frame with columns lam, accuracy (share) and log_loss (nats), as `stacking.lambda_table` counts them.
    chosen : the lambda in use.
    """
    figure, axes = new_figure(2.9, 2)
    coin = {"accuracy": 50.0, "log_loss": float(np.log(2))}
    units = {"accuracy": (100, "accuracy on calibration (%)"), "log_loss": (1, "log-loss on calibration (nats)")}
    for ax, (name, (factor, text)) in zip(axes, units.items(), strict=True):
        ax.plot(tried["lam"], factor * tried[name], color=INK, marker="o", markersize=5, linewidth=1.6)
        here = tried["lam"] == chosen
        ax.plot(tried.loc[here, "lam"], factor * tried.loc[here, name], "o", color=GREY, markersize=11,
                fillstyle="none", markeredgewidth=2, label="lambda chosen")  # fmt: skip
        ax.set_xscale("log")
        reference(ax, y=coin[name], text="a coin")
        decorate(ax, "lambda (penalty)", text)
    legend_below(figure, axes[0])
    return figure


def stack_weights(free: ArrayLike, held: ArrayLike, names: Sequence[str], *, most: int = 24) -> BookFigure:
    """Free weights against those held at or above zero, the largest first; a free weight left of zero inverts.

    Parameters
    ----------
    free, held : arrays (D,). names : of the D columns. most : rows to draw.
    """
    free, held = np.asarray(free, dtype=float), np.asarray(held, dtype=float)
    order = np.argsort(-np.maximum(np.abs(free), np.abs(held)), kind="stable")[:most]
    figure, (ax,) = new_figure(1.6 + 0.24 * len(order))
    places = np.arange(len(order))
    ax.hlines(places, free[order], held[order], color=GREY, linewidth=1)
    ax.plot(free[order], places, "o", color=INK, markersize=7, label="free")
    ax.plot(held[order], places, "s", color=GREY, markersize=9, fillstyle="none", label="held at or above 0")
    reference(ax, x=0)
    row_names(ax, [names[column] for column in order])
    decorate(ax, "weight of the scaled feature", "")
    legend_below(figure, ax)
    return figure


def out_of_fold_scores(table: pd.DataFrame, head: str) -> BookFigure:
    """Probability given to the right answer by weights that never saw the question; left of one half the head is wrong.

    Parameters
    ----------
    table : `Development.out_of_fold`. head : one of its columns of scores.
    """
    figure, axes = new_figure(2.7, 2, sharex=True)
    edges = np.linspace(0, 100, 22)  # an odd number of bins: scores of exactly 0 fall in the middle one
    for ax, split in zip(axes, ("selection", "calibration"), strict=True):
        toward = (table[head] * table["label"])[table["split"] == split].to_numpy(dtype=float)
        parts = {"right": (toward > 0, GOOD), "wrong": (toward < 0, BAD), "no opinion (s = 0)": (toward == 0, NEUTRAL)}
        values = [100 * probability(toward[those]) for those, _ in parts.values()]
        colours, hatches = zip(*(look for _, look in parts.values()), strict=True)
        ax.hist(
            values, edges, stacked=True, label=list(parts), color=colours, hatch=hatches, edgecolor=GREY, linewidth=0.5
        )
        reference(ax, x=50)
        decorate(ax, "probability of the right answer (%)", "pairs", f"{split} ({len(toward)})")
    legend_below(figure, axes[0])
    return figure

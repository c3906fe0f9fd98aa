"""Figures about the router: who speaks where, and whether a reliability means what it says.

Each function draws one figure from tables that others computed and returns it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from baer_utils.plots.look import GREY, INK, BookFigure, decorate, legend_below, new_figure, row_names, spoken, style


def route_map(spoke: pd.DataFrame) -> BookFigure:
    """On what share of each subset's pairs each expert speaks; a bar of one colour is a specialist.

    Parameters
    ----------
    spoke : numbers of pairs, subsets down, experts across; an expert that never speaks is left out of the legend.
    """
    figure, (ax,) = new_figure(1.7 + 0.36 * len(spoke))
    total = spoke.sum(axis=1).to_numpy(dtype=float)
    left, places = np.zeros(len(spoke)), np.arange(len(spoke))
    for name in spoke.columns[spoke.sum() > 0]:
        width = 100 * spoke[name].to_numpy(dtype=float) / np.where(total > 0, total, 1.0)
        ax.barh(places, width, left=left, height=0.66, color=style(name)[0], edgecolor="white", label=spoken(name))
        for place in np.flatnonzero(width >= 12):
            ax.text(left[place] + width[place] / 2, place, f"{spoke[name].iloc[place]:.0f}", ha="center", va="center",
                    fontsize=9, color=INK, bbox={"color": "white", "alpha": 0.75, "pad": 1})  # fmt: skip
        left += width
    row_names(ax, [f"{name or 'no subset'} ({n:.0f})" for name, n in zip(spoke.index, total, strict=True)])
    ax.set_xlim(0, 100)
    decorate(ax, "pairs on which the expert speaks (% of the subset)", "")
    legend_below(figure, ax)
    return figure


def reliability_diagram(curve: pd.DataFrame) -> BookFigure:
    """Reliability of experts against the share of them that was right; on the line it means what it says.

    Parameters
    ----------
    curve : `routing.reliability_curve`; the area of a mark grows with the answers behind it.
    """
    figure, (ax,) = new_figure(4.0, width=5.6)
    ax.plot([0, 100], [0, 100], color=GREY, linestyle=(0, (4, 3)), linewidth=1.2, label="means what it says")
    colour, mark = style("route")
    ax.plot(100 * curve["reliability"], 100 * curve["right"], color=colour, linewidth=1.2)
    size = 20 + 180 * curve["count"] / max(1, curve["count"].max())
    ax.scatter(100 * curve["reliability"], 100 * curve["right"], s=size, color=colour, marker=mark, alpha=0.8,
               label="answers of experts, in bins of ten points")  # fmt: skip
    ax.set(xlim=(-2, 102), ylim=(-2, 102))
    decorate(ax, "reliability out of fold (%)", "right (% of the experts' answers)")
    legend_below(figure, ax, columns=1)
    return figure

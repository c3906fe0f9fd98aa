"""The figure about the router: who speaks where, from a table that others computed."""

from __future__ import annotations

import numpy as np
import pandas as pd

from baer_utils.plots.look import INK, BookFigure, decorate, legend_below, new_figure, row_names, spoken, style


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

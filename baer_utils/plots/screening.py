"""Figures about evidence beside the nine: what the letters carry, and how screened heads fare at the gates.

Each function draws one figure from scores or margins and returns it; none asks a judge or compares an accuracy.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baer_utils.plots.look import GREY, INK, PALE, BookFigure, decorate, legend_below, new_figure, reference, row_names


def letters_exchanged(plain: NDArray, exchanged: NDArray) -> BookFigure:
    """Evidence for *a* under the usual letters against the same places under exchanged letters, a point per pair.

    Parameters
    ----------
    plain, exchanged : (N,) mean log-odds toward *a* over both display orders, the first response labelled A, and
        labelled B; NaN for no answer.
    """
    figure, (ax,) = new_figure(4.2, width=5.6)
    known = ~(np.isnan(plain) | np.isnan(exchanged))
    reach = 1.1 * max(0.1, *np.abs(plain[known]), *np.abs(exchanged[known])) if known.any() else 1.0
    for left, bottom in ((0, 0), (-reach, -reach)):
        ax.fill_between([left, left + reach], bottom, bottom + reach, color=PALE, linewidth=0, zorder=0)
    ax.scatter(plain[known], exchanged[known], s=20, facecolor="white", edgecolor=INK, linewidth=0.9, zorder=3)
    ax.plot([-reach, reach], [-reach, reach], color=GREY, linewidth=1, label="a label goes where its response goes")
    ax.plot(
        [-reach, reach], [reach, -reach], color=GREY, linewidth=1, linestyle=":", label="a label stays at its place"
    )
    reference(ax, x=0.0, y=0.0)
    ax.set_xlim(-reach, reach)
    ax.set_ylim(-reach, reach)
    ax.set_aspect("equal")
    decorate(ax, "evidence for a, first response is A (nats)", "the same, first response is B (nats)")
    legend_below(figure, ax, columns=1)
    return figure


def screening_margins(table: pd.DataFrame) -> BookFigure:
    """Margins of screened heads over the strongest baseline on selection and on calibration (BAER Figure 3).

    Parameters
    ----------
    table : what `gates.screen` returns; a head that was not asked about any selection pair says so.
    """
    figure, (ax,) = new_figure(1.5 + 0.36 * len(table))
    for place, (_, row) in enumerate(table.iterrows()):
        ends = row["selection_margin"], row["calibration_margin"]
        if np.isnan(ends[0]):
            ax.text(0, place, "not asked", ha="center", va="center", color=GREY, fontsize=9, backgroundcolor="white")
        ax.plot(ends, [place, place], color=GREY, linewidth=1, zorder=2)
        ax.plot(ends[0], place, "o", color=INK, markersize=7, fillstyle="none", zorder=3)
        ax.plot(ends[1], place, "o", color=INK, markersize=7, zorder=3)
    ax.plot([], [], "o", color=INK, fillstyle="none", label="selection")
    ax.plot([], [], "o", color=INK, label="calibration")
    reference(ax, x=0.0, text="gate")
    row_names(ax, [str(name) for name in table.index])
    decorate(ax, "margin over the strongest baseline (points)", "")
    legend_below(figure, ax)
    return figure

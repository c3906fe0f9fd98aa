"""Figures about when to trust an answer: is a probability meant as it is said, and what does abstaining buy.

Each function draws one figure from curves that `metrics` and `selective` counted and returns it.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from baer_utils.plots.look import GREY, BookFigure, decorate, legend_below, new_figure, reference, spoken, style

# what a curve is about -> the lowest probability in %, what is said, what it comes to
ABOUT = {
    "pairs": (50, "confidence (%)", "right (% of pairs)"),
    "answers": (0, "confidence in the answer (%)", "it is right (% of pairs)"),
    "experts": (0, "reliability of an expert (%)", "it is right (% of its answers)"),
    "first_shown": (0, "probability given to the response shown first (%)", "it is the better one (% of reads)"),
}


def reliability(curves: Mapping[str, pd.DataFrame], *, about: str = "pairs") -> BookFigure:
    """How often answers are right at each confidence; on the diagonal a probability means what it says.

    Parameters
    ----------
    curves : name of a head or expert -> `metrics.reliability_curve` of its probabilities.
    about : ``pairs`` for folded curves, over [1/2, 1]; over [0, 1] ``answers``, where a router's reliability stands
        beside them (`deployment.head_curves`), and for unfolded ones ``experts`` (all reliabilities of
        a router) or ``first_shown`` (single-order reads, about the response shown first, `metrics.first_shown`).
        The area of a mark grows with what is behind it.
    """
    figure, (ax,) = new_figure(4.0, width=6.4)
    for name, curve in curves.items():
        colour, mark = style(name)
        x, y = 100 * curve["confidence"], 100 * curve["accuracy"]
        ax.vlines(x, 100 * curve["accuracy_low"], 100 * curve["accuracy_high"], color=colour, linewidth=1.1, alpha=0.6)
        ax.plot(x, y, color=colour, linewidth=1.5)
        size = 20 + 140 * curve["pairs"] / curve["pairs"].max()
        ax.scatter(x, y, s=size, color=colour, marker=mark, alpha=0.8, label=spoken(name))
    low, said, came_true = ABOUT[about]
    ax.plot([low, 100], [low, 100], color=GREY, linestyle=(0, (4, 3)), linewidth=1.2, label="means what it says")
    ax.set(xlim=(low - 2, 102), ylim=(-2, 102))
    decorate(ax, said, came_true)
    legend_below(figure, ax)
    return figure


def risk_coverage(curves: Mapping[str, pd.DataFrame], *, alpha: float | None = None) -> BookFigure:
    """Errors among the pairs answered, as less sure answers are let in; low on the left is what confidence is for.

    Parameters
    ----------
    curves : name of a head -> `selective.risk_coverage` of its answers. alpha : a risk to hold, the reference line.
    """
    figure, (ax,) = new_figure(3.6, width=6.4)
    for name, curve in curves.items():
        colour, mark = style(name)
        ax.plot(100 * curve["coverage"], 100 * curve["risk"], color=colour, linewidth=1.8, label=spoken(name))
        last = curve.iloc[-1]
        ax.plot(100 * last["coverage"], 100 * last["risk"], mark, color=colour, markersize=7)
    if alpha is not None:
        reference(ax, y=100 * alpha, text=f"risk to hold: {100 * alpha:g} %")
    ax.set(xlim=(-2, 104), ylim=(-2, None))
    decorate(ax, "pairs answered, surest first (%)", "wrong among them (%)")
    legend_below(figure, ax)
    return figure

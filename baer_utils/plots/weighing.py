"""Figures about evidence and features: how far experts move, what that costs them, what a swap does to phi.

Each function draws one figure from arrays that others computed and returns it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from baer_utils.evidence import Evidence
from baer_utils.plots.look import (
    GREY,
    INK,
    PALE,
    BookFigure,
    decorate,
    legend_below,
    new_figure,
    panel_each,
    reference,
    spoken,
    style,
)

MOST_TOGETHER = 40  # pairs at one place beyond which a mark grows no further


def order_plane(L: NDArray, experts: Sequence[str]) -> BookFigure:
    """Preference for *a* in one display order against the other; off the two pale quadrants the verdict flips.

    Parameters
    ----------
    L : array (N, K, 2) of signed run log-odds, orders ``ab`` and ``ba``; pairs without both are left out.
    experts : K names.
    """
    names = ("preference, a shown first (probability)", "preference, b shown first (probability)")
    figure, axes = panel_each(experts, *names, height=2.0)
    for k, (ax, name) in enumerate(zip(axes, experts, strict=True)):
        for low, high in ((0.0, 0.5), (0.5, 1.0)):
            ax.fill_between([low, high], low, high, color=PALE, zorder=0, linewidth=0)
        ax.plot([0, 1], [0, 1], color=GREY, linestyle=(0, (4, 3)), linewidth=1.2, label="order changes nothing")
        _points(ax, expit(L[:, k, 0]), expit(L[:, k, 1]), name, titled=True)
        ax.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05))
    legend_below(figure, axes[0])
    return figure


def instability_against_confidence(evidence: Evidence) -> BookFigure:
    """How far an expert moves against how sure it is on average; above the line delta = 2 |p - 1/2| its verdict flips.

    Parameters
    ----------
    evidence : of K experts on N pairs; an expert without a verdict on a pair has no point there.
    """
    names = ("confidence |p - 1/2| (probability)", "instability delta (probability)")
    figure, axes = panel_each(evidence.experts, *names, height=1.75)
    sure = np.abs(evidence.p - 0.5)
    for k, (ax, name) in enumerate(zip(axes, evidence.experts, strict=True)):
        ax.fill_between([0, 0.25], [0, 0.5], [1, 0.5], color=PALE, linewidth=0, zorder=0)
        ax.plot([0, 0.5], [0, 1], color=GREY, linestyle=(0, (4, 3)), linewidth=1.2, label="verdict flips above")
        ax.plot([0, 0.5], [1, 0], color=GREY, linestyle=":", linewidth=1.2, label="as far as two orders can move")
        has = evidence.available[:, k]
        _points(ax, sure[has, k], evidence.delta[has, k], name, titled=True)
        ax.set(xlim=(-0.025, 0.525), ylim=(-0.05, 1.05))
    legend_below(figure, axes[0])
    return figure


def shrinkage(evidence: Evidence) -> BookFigure:
    """What the discount leaves of the evidence: shrunk against raw log-odds, between the whole and a fifth."""
    figure, (ax,) = new_figure(3.9, width=6.2)
    reach = 1.05 * max(1e-3, float(np.abs(evidence.z).max(initial=0.0)))
    line = np.concatenate([-np.geomspace(1e-3, reach, 60)[::-1], np.geomspace(1e-3, reach, 60)])
    ax.plot(line, line, color=GREY, linestyle=(0, (4, 3)), linewidth=1.2, label="nothing taken")
    ax.plot(line, line / 5, color=GREY, linestyle=":", linewidth=1.2, label="a fifth left")
    for k, name in enumerate(evidence.experts):
        has = evidence.available[:, k]
        _points(ax, evidence.z[has, k], evidence.z_shrunk[has, k], name)
    for scale in (ax.set_xscale, ax.set_yscale):
        scale("symlog", linthresh=0.1)
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_minor_locator(NullLocator())
    decorate(ax, "log-odds z toward a (nats, logarithmic beyond 0.1)", "shrunk log-odds (nats)")
    legend_below(figure, ax, columns=4)
    return figure


def clip_effect(loudness: pd.DataFrame, *, chosen: float) -> BookFigure:
    """Mean evidence of every expert under clips of different size.

    Parameters
    ----------
    loudness : frame indexed by clip (probabilities), one column of mean |z| per expert; NaN where it never answered.
    chosen : the clip in use, the reference line.
    """
    figure, (ax,) = new_figure(3.2, width=6.2)
    for name in loudness.columns[loudness.notna().any()]:
        colour, mark = style(name)
        ax.plot(loudness.index, loudness[name], color=colour, marker=mark, linewidth=1.8, label=spoken(name))
    ax.set_xscale("log")
    reference(ax, x=chosen, text="clip in use")
    ax.set_ylim(bottom=0)
    decorate(ax, "clip (probability)", "mean |z| (nats)")
    legend_below(figure, ax)
    return figure


def feature_plane(phi: ArrayLike, swapped_phi: ArrayLike, names: tuple[str, str]) -> BookFigure:
    """Two features of every pair and of its swap: each segment passes through the origin, or something is wrong.

    Parameters
    ----------
    phi, swapped_phi : arrays (N, 2), two columns of the features of the pairs and of the swapped pairs.
    names : of the two columns.
    """
    figure, (ax,) = new_figure(4.2, width=5.6)
    phi, swapped_phi = np.asarray(phi, dtype=float), np.asarray(swapped_phi, dtype=float)
    segments = np.stack([phi, swapped_phi, np.full_like(phi, np.nan)], axis=1).reshape(-1, 2)
    ax.plot(segments[:, 0], segments[:, 1], color=GREY, linewidth=0.5, alpha=0.5)
    ax.scatter(*phi.T, color=INK, s=26, zorder=3, label="x")
    ax.scatter(*swapped_phi.T, facecolor="white", edgecolor=INK, s=26, zorder=3, label="Tx")
    reference(ax, x=0)
    reference(ax, y=0)
    for axis, column in (("x", 0), ("y", 1)):
        reach = 1.1 * max(1e-3, float(np.abs(np.stack([phi, swapped_phi])[..., column]).max(initial=0.0)))
        getattr(ax, f"set_{axis}lim")(-reach, reach)
    decorate(ax, f"{spoken(names[0])} (nats)", f"{spoken(names[1])} (nats)")
    legend_below(figure, ax)
    return figure


def feature_map(phi: ArrayLike, swapped_phi: ArrayLike, names: Sequence[str]) -> BookFigure:
    """Whole feature rows of some pairs above those of their swaps; blue against red, each column by its own largest.

    Parameters
    ----------
    phi, swapped_phi : arrays (N, D). names : of the D columns.
    """
    both = np.stack([np.asarray(phi, dtype=float), np.asarray(swapped_phi, dtype=float)])
    largest = np.abs(both).max(axis=(0, 1))
    scaled = both / np.where(largest > 0, largest, 1.0)
    figure, axes = new_figure(2.2 + 0.3 * both.shape[1], rows=2, sharex=True)
    for ax, values, title in zip(axes, scaled, ("phi(x)", "phi(Tx)"), strict=True):
        image = ax.imshow(values, cmap="RdBu", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
        ax.set_xticks(range(len(names)), [spoken(name) for name in names], rotation=90, fontsize=8)
        ax.set_yticks([])
        ax.grid(visible=False)
        decorate(ax, "feature", "pair", title)
    figure.colorbar(image, ax=axes, shrink=0.8, label="value / largest of column")
    axes[0].set_xlabel("")
    return figure


def _points(ax: Axes, x: NDArray, y: NDArray, name: str, *, titled: bool = False) -> None:
    """One expert's points, a mark growing with the pairs that share its place; legend or title say where none are."""
    colour, mark = style(name)
    places = np.stack([x, y], axis=1)[~(np.isnan(x) | np.isnan(y))]
    text = spoken(name) if len(places) else f"{spoken(name)} (none)"
    places, count = np.unique(places.round(6), axis=0, return_counts=True)
    size = 18 * np.sqrt(np.minimum(count, MOST_TOGETHER))
    ax.scatter(*places.T, color=colour, marker=mark, s=size, alpha=0.75, linewidth=0, label=None if titled else text,
               clip_on=False)  # fmt: skip
    if titled:
        decorate(ax, ax.get_xlabel(), ax.get_ylabel(), text)

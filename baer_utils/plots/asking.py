"""Figures about answers as they come: one swap, what became of the calls, how sure of its labels a judge is.

Each function draws one figure from a run table or an array of run log-odds and returns it; none asks a judge, and none
sees a label.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from baer_utils.evidence import clip_limit, summarize
from baer_utils.metrics import wilson_interval
from baer_utils.plots.look import (
    BAD,
    CUT,
    GOOD,
    GREY,
    INK,
    MIXED,
    NEUTRAL,
    PALE,
    STYLES,
    BookFigure,
    decorate,
    in_order,
    legend_below,
    new_figure,
    reference,
    row_names,
    spoken,
    style,
)
from baer_utils.records import STATUSES

LOUD = 3.0  # log-odds beyond which an axis turns logarithmic, so that soft answers stay visible
STATUS_LOOK = dict(zip(STATUSES, (GOOD, MIXED, BAD, CUT, NEUTRAL), strict=True))  # status -> colour, hatch


def swap_picture(L: NDArray, swapped_L: NDArray, rows: Sequence[str], *, clip: float = 1e-4) -> BookFigure:
    """Two display orders and their mean log-odds, before and after the responses change places.

    Parameters
    ----------
    L, swapped_L : arrays (R, 2) of signed log-odds toward *a*, orders ``ab`` and ``ba``, of the pairs as they are and
        of the swapped pairs; NaN for no verdict, ±inf for a hard one (drawn at the clip).
    rows : R names, of experts or of pairs.
    clip : see `evidence.log_odds`.
    """
    figure, axes = new_figure(1.6 + 0.42 * len(rows), 2, sharey=True, sharex=True)
    limit = clip_limit(clip)
    for ax, runs, title in zip(axes, (L, swapped_L), ("the pair x", "the swapped pair Tx"), strict=True):
        evidence = summarize(np.asarray(runs, dtype=float)[:, None, :], clip=clip)
        _two_orders(ax, np.clip(runs, -limit, limit), evidence.z[:, 0], evidence.available[:, 0], rows)
        reference(ax, x=0.0)
        decorate(ax, "log-odds toward a (nats)", "", title)
        ax.grid(visible=False, axis="y")
    row_names(axes[0], rows)
    _mirrored(axes, max(0.1, float(np.nanmax(np.abs(np.clip([L, swapped_L], -limit, limit)), initial=0.0))))
    legend_below(figure, axes[0])
    return figure


def _mirrored(axes: Sequence[Axes], reach: float) -> None:
    """The same room on both sides of 0; loud and quiet answers in one picture need a logarithm."""
    for ax in axes:
        if reach > LOUD:
            ax.set_xscale("symlog", linthresh=0.1)
            ax.xaxis.set_minor_locator(NullLocator())
            ax.set_xlabel("log-odds toward a\n(nats, logarithmic beyond 0.1)")
        ax.set_xlim(-1.15 * reach, 1.15 * reach) if reach <= LOUD else ax.set_xlim(-2 * reach, 2 * reach)


def _two_orders(ax: Axes, runs: NDArray, z: NDArray, available: NDArray, rows: Sequence[str]) -> None:
    places = np.arange(len(z))
    for place, (first, second) in enumerate(np.asarray(runs)):
        ax.plot([first, second], [place, place], color=GREY, linewidth=1, zorder=2)
    ax.scatter(runs[:, 0], places, color=GREY, marker="<", s=46, zorder=3, label="a shown first")
    ax.scatter(runs[:, 1], places, facecolor="white", edgecolor=GREY, marker=">", s=46, zorder=3, label="b shown first")
    colours = [style(name)[0] if name in STYLES else INK for name in rows]
    ax.scatter(z[available], places[available], color=np.array(colours)[available], marker="D", s=34, zorder=4)
    ax.scatter([], [], color=INK, marker="D", s=34, label="both orders: z")
    for place in places[~available]:
        ax.text(0, place, "no verdict", ha="center", va="center", color=GREY, backgroundcolor="white", fontsize=9)


def status_bars(runs: pd.DataFrame) -> BookFigure:
    """Ledger of what became of every call: share of each status, one bar per protocol.

    Parameters
    ----------
    runs : run table with at least one row.
    """
    counts = pd.crosstab(runs["protocol"], runs["status"]).reindex(columns=list(STATUSES), fill_value=0)
    counts = counts.loc[in_order(runs["protocol"])]
    shares = 100 * counts.div(counts.sum(axis=1), axis=0)
    figure, (ax,) = new_figure(1.4 + 0.4 * len(shares))
    start = np.zeros(len(shares))
    for status in [name for name in STATUSES if counts[name].any()]:
        colour, hatch = STATUS_LOOK[status]
        width = shares[status].to_numpy()
        ax.barh(range(len(shares)), width, left=start, height=0.6, color=colour, hatch=hatch, edgecolor=GREY,
                label=status)  # fmt: skip
        start += width
    row_names(ax, [f"{name} ({n:,})" for name, n in counts.sum(axis=1).items()])
    ax.set_xlim(0, 100)
    decorate(ax, "share of calls (%)", "protocol (calls)")
    legend_below(figure, ax, columns=len(STATUSES))
    return figure


def label_mass(runs: pd.DataFrame, *, least: float) -> BookFigure:
    """How much of its probability a judge gives to the two labels: share of reads at or below each mass.

    Parameters
    ----------
    runs : run table; rows without a label mass (generated verdicts) are left out.
    least : mass under which a protocol is refused, the reference line.
    """
    figure, (ax,) = new_figure(3.0)
    reads = runs[runs["label_mass"].notna()]
    for name in in_order(reads["protocol"]):
        mass = np.sort(reads.loc[reads["protocol"] == name, "label_mass"].to_numpy())
        share = 100 * np.arange(1, len(mass) + 1) / len(mass)
        colour, mark = style(name)
        ax.step(100 * mass, share, where="post", color=colour, linewidth=1.8)
        every = max(1, len(mass) // 12)
        ax.plot(100 * mass[::every], share[::every], mark, color=colour, markersize=5, label=spoken(name))
    reference(ax, x=100 * least, text="refused below")
    ax.set_xlim(-2, 102)
    ax.set_ylim(0, 103)
    decorate(ax, "probability of both labels together (%)", "reads at or below (%)")
    legend_below(figure, ax)
    return figure


def position_preference(picked_first: pd.DataFrame) -> BookFigure:
    """Share of verdicts that name the response shown first, with 95 % Wilson intervals; half is no preference.

    Parameters
    ----------
    picked_first : frame indexed by expert, columns ``sum`` (verdicts for the first) and ``size`` (verdicts).
    """
    figure, (ax,) = new_figure(1.4 + 0.4 * max(2, len(picked_first)))
    for place, (name, row) in enumerate(picked_first.iterrows()):
        colour, mark = style(name)
        low, high = wilson_interval(row["sum"], row["size"])
        ax.plot([100 * low, 100 * high], [place, place], color=colour, linewidth=2.2, solid_capstyle="butt")
        ax.plot(100 * row["sum"] / row["size"], place, mark, color=colour, markersize=8)
    reference(ax, x=50, text="no preference for a position")
    row_names(ax, [f"{name} ({int(row['size']):,})" for name, row in picked_first.iterrows()])
    ax.set_xlim(-2, 102)
    ax.axvspan(0, 100, color=PALE, alpha=0.25, zorder=0)
    decorate(ax, "verdicts for the response shown first (%)", "expert (verdicts)")
    legend_below(figure, ax)
    return figure


def opinion_bar(shares: dict[str, float]) -> BookFigure:
    """Conflict against shared error: how often experts disagree, agree rightly, agree wrongly, or are silent.

    Parameters
    ----------
    shares : what `metrics.opinions` counts, four shares of pairs.
    """
    looks = {"agree_right": GOOD, "disagree": MIXED, "agree_wrong": BAD, "silent": NEUTRAL}
    figure, (ax,) = new_figure(1.7)
    start = 0.0
    for name, (colour, hatch) in looks.items():
        width = 100 * shares[name]
        ax.barh([0], [width], left=start, height=0.5, color=colour, hatch=hatch, edgecolor=GREY,
                label=f"{spoken(name)} {width:.0f} %")  # fmt: skip
        start += width
    ax.set_xlim(0, 100)
    ax.set_yticks([])
    ax.grid(visible=False, axis="y")
    decorate(ax, "share of pairs (%)", "")
    legend_below(figure, ax, columns=4)
    return figure

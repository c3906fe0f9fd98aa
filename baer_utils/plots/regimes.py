"""Figures about judge panels: what a call buys, who plays which role, which action a setting supports.

Each function draws one figure from tables that others measured and returns it. Risks are squared calibration risks.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.colors import TwoSlopeNorm
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from sklearn.isotonic import IsotonicRegression

from baer_utils.plots.look import (
    GREY,
    INK,
    BookFigure,
    decorate,
    legend_below,
    new_figure,
    reference,
    row_names,
    spoken,
)

# policy -> (colour, mark): one colour per kind of policy, one mark per policy, both told apart without the other
POLICIES = {
    "role": ("#000000", "D"),
    "stopped": ("#000000", "s"),
    "nobody_called": ("#AA4499", "x"),
    "single_best": ("#CC6677", "o"),
    "top_k": ("#117733", "^"),
    "correlation_diverse": ("#117733", "v"),
    "quality_diverse": ("#117733", "<"),
    "flat_all": ("#332288", "s"),
    "ridge_stack": ("#332288", "P"),
    "logistic_stack": ("#332288", "X"),
    "reliability_jury": ("#332288", "p"),
    "dawid_skene": ("#88CCEE", "h"),
    "one_coin": ("#88CCEE", "*"),
    "frugal_cascade": ("#999933", ">"),
    "two_judges": ("#999933", "d"),
    "trust_or_escalate": ("#999933", "8"),
}


def frontier(points: pd.DataFrame) -> BookFigure:
    """Risk of every policy against what it costs, with intervals, and the line that nobody undercuts (Panels Figure 2).

    Parameters
    ----------
    points : one row per policy: policy, cost (mean per item), risk, low, high (its interval over splits). Policies of
        nearly the same cost are moved apart, so that none hides another, and none below zero.
    """
    figure, (ax,) = new_figure(4.4)
    known = {**dict.fromkeys(points["policy"], (GREY, "o")), **POLICIES}
    points = points.sort_values("risk").assign(place=lambda p: _side_by_side(p["cost"]))
    for row in points.itertuples():
        colour, mark = known[row.policy]
        strong = row.policy in ("role", "stopped")
        ax.plot([row.place] * 2, [row.low, row.high], color=colour, linewidth=1.6 if strong else 0.9, zorder=2)
        ax.plot(row.place, row.risk, mark, color=colour, markersize=9 if strong else 7, zorder=3 + strong,
                linestyle="none", markerfacecolor=colour if row.policy != "stopped" else "white",
                label=spoken(row.policy))  # fmt: skip
    best = points.sort_values(["cost", "risk"])
    best = best[best["risk"] < best["risk"].cummin().shift(fill_value=np.inf)]
    ax.step([*best["place"], points["place"].max()], [*best["risk"], best["risk"].iloc[-1]], where="post", color=GREY,
            linewidth=1, linestyle=(0, (4, 3)), zorder=1, label="nobody cheaper is better")  # fmt: skip
    decorate(ax, "mean cost per item (marks of nearly the same cost are moved apart)", "risk (squared error)")
    legend_below(figure, ax, columns=4)
    return figure


def _side_by_side(cost: pd.Series) -> pd.Series:
    """Places as near to the costs as they can be, at least two hundredths of the range apart, none below zero."""
    cost = cost.sort_values(kind="stable")
    shifts = 0.02 * (float(np.ptp(cost)) or 1.0) * np.arange(len(cost))
    return IsotonicRegression(y_min=0).fit_transform(shifts, cost - shifts) + pd.Series(shifts, cost.index)


def role_profiles(gains: pd.DataFrame, *, tau_global: float, tau_slice: float) -> BookFigure:
    """What each judge adds to a panel, everywhere and in each slice; framed where it clears its threshold.

    Parameters
    ----------
    gains : frame of conditional gains (risk), a row per judge; its first column is the broad gain, the others slices.
        NaN where a slice has no gain to show.
    tau_global, tau_slice : the thresholds of the first and of the other columns, drawn on the colour bar.
    """
    shown = 1000 * gains.to_numpy(dtype=float)
    figure, (ax,) = new_figure(max(3.2, 1.9 + 0.33 * len(gains)), width=max(7.4, 2.8 + 0.75 * gains.shape[1]))
    reach = max(float(np.nanmax(np.abs(shown), initial=0.0)), 1500 * max(tau_global, tau_slice))
    picture = ax.imshow(shown, cmap="PuOr", norm=TwoSlopeNorm(0, -reach, reach), aspect="auto")
    for row, column in np.ndindex(shown.shape):
        value = shown[row, column]
        if np.isnan(value):
            ax.text(column, row, "–", ha="center", va="center", color=GREY)
            continue
        dark = abs(value) > 0.6 * reach
        ax.text(column, row, f"{value:.0f}", ha="center", va="center", fontsize=8.5, color="white" if dark else INK)
        if value > 1000 * (tau_slice if column else tau_global):
            frame = Rectangle((column - 0.47, row - 0.44), 0.94, 0.88, fill=False, edgecolor=INK, linewidth=2)
            frame.set_path_effects([withStroke(linewidth=4.5, foreground="white")])
            ax.add_patch(frame)
    ax.axvline(0.5, color="white", linewidth=4)
    ax.set_xticks(range(gains.shape[1]), [spoken(str(name)) for name in gains.columns], rotation=30, ha="right")
    row_names(ax, [str(name) for name in gains.index])
    ax.set_ylim(len(gains) - 0.5, -0.5)
    ax.grid(visible=False)
    bar = figure.colorbar(picture, ax=ax, fraction=0.05, pad=0.02)
    bar.set_label("gain in risk (thousandths)", color=INK)
    for tau, dash in ((tau_global, "-"), (tau_slice, (0, (2, 2)))):
        bar.ax.axhline(1000 * tau, color=INK, linewidth=1.6, linestyle=dash)
    ax.plot([], [], color=INK, label="threshold everywhere")
    ax.plot([], [], color=INK, linestyle=(0, (2, 2)), label="threshold in a slice")
    ax.plot([], [], "s", color=INK, fillstyle="none", markersize=10, markeredgewidth=2, label="clears its threshold")
    decorate(ax, "items on which the gain is measured", "")
    legend_below(figure, ax)
    return figure


def regime_chart(regimes: pd.DataFrame) -> BookFigure:
    """What policies gain over the single best judge, or over nobody where that judge is no better; and the action.

    Parameters
    ----------
    regimes : what `regimes.regime_map` returns: indexed by setting; action, lam, base, and single_gain (drawn where the
        base is nobody), stop_gain, role_gain and full_gain with their low and high: gains in risk less lam for every
        unit of cost.
    """
    figure, (ax,) = new_figure(1.4 + 0.75 * len(regimes))
    looks = {
        "single_gain": (-0.36, *POLICIES["single_best"], "single best judge, where the base is nobody"),
        "stop_gain": (-0.12, *POLICIES["stopped"], "stopped panel, nobody routed"),
        "role_gain": (0.12, *POLICIES["role"], "role policy"),
        "full_gain": (0.36, *POLICIES["ridge_stack"], "best full-call policy"),
    }
    for gain, (shift, colour, mark, text) in looks.items():
        shown = (regimes["base"] == "nobody").to_numpy() | (gain != "single_gain")
        places, drawn = np.flatnonzero(shown) + shift, regimes[shown]
        ax.hlines(places, drawn[f"{gain}_low"], drawn[f"{gain}_high"], color=colour, linewidth=1.6)
        ax.plot(drawn[gain], places, mark, color=colour, markersize=7, linestyle="none", label=text,
                markerfacecolor="white" if gain == "stop_gain" else colour)  # fmt: skip
    reference(ax, x=0, text="base")
    words = {"single": "single best judge", "nobody": "nobody"}
    names = [f"{name}\n{row['action']}\n(base: {words[row['base']]})" for name, row in regimes.iterrows()]
    row_names(ax, names)
    lam = regimes["lam"].iloc[0] if len(regimes) else 0
    decorate(ax, f"risk gained over the base, less {lam:g} per unit of cost", "")
    legend_below(figure, ax, columns=2)
    return figure


def conflict_against_shared_error(shares: pd.DataFrame) -> BookFigure:
    """Settings by how often judges conflict and how often all of them err: more calls can only help the first.

    Parameters
    ----------
    shares : frame indexed by setting: conflict, shared_error (shares of items), as `regimes.shared_errors` counts them.
    """
    figure, (ax,) = new_figure(4.0, width=6.4)
    for number, (name, row) in enumerate(shares.iterrows()):
        x, y = 100 * row["conflict"], 100 * row["shared_error"]
        mark, filled = "osD^vPX<>"[number % 9], "none" if number // 9 % 2 else "full"
        ax.plot(x, y, mark, color=INK, markersize=9, alpha=0.75, fillstyle=filled, label=spoken(str(name)))
    ax.set_xlim(-2, 102)
    top = max(1.0, 100 * float(shares["shared_error"].max()))
    ax.set_ylim(-0.06 * top, 1.15 * top)
    decorate(ax, "judges conflict (% of items)", "every judge is wrong (% of items)")
    legend_below(figure, ax, columns=3)
    return figure

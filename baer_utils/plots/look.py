"""The shared look of every figure: one colour and one mark per expert, labelled axes, captions that are claims.

Colours are Paul Tol's "muted" set, told apart under the common kinds of colour blindness; an expert also has a mark of
its own, so that no figure rests on colour alone. This file draws nothing by itself and knows nothing about data.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence

import matplotlib
from IPython.display import Markdown
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from baer_utils.records import unit_hash

DOTS_PER_INCH = 110
LEGEND_ROW = 0.21  # inches
INK, GREY, PALE = "#222222", "#6b6b6b", "#e9e9e9"
# what is no expert is pale or ink, never an expert's colour, and has a hatch of its own
GOOD, BAD, NEUTRAL, MIXED, CUT = (
    ("#9FCBB8", ""), ("#DDB0A0", "//"), ("#C9C9C9", "xx"), ("#E3D9A6", ".."), ("#B3CDE0", "\\\\"),
)  # fmt: skip
LOOK = {
    "font.size": 10, "axes.titlesize": 10.5, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": GREY, "axes.labelcolor": INK,
    "text.color": INK, "xtick.color": INK, "ytick.color": INK, "axes.axisbelow": True, "axes.grid": True,
    "grid.color": PALE, "grid.linewidth": 0.8, "legend.frameon": False, "legend.fontsize": 9, "hatch.linewidth": 0.6,
}  # fmt: skip

# expert -> (colour, mark); the nine in their fixed order, then the extra candidates, then the heads
STYLES = {
    "direct": ("#332288", "o"),
    "self_consistency": ("#88CCEE", "s"),
    "chain_of_thought": ("#CC6677", "^"),
    "rubric": ("#117733", "D"),
    "score_then_choose": ("#999933", "v"),
    "prepair": ("#44AA99", "P"),
    "pride": ("#882255", "X"),
    "calibraeval": ("#AA4499", "<"),
    "deliberate": ("#DDCC77", ">"),
    "pointwise": ("#E07B00", "d"),
    "likelihood_mean": ("#555555", "p"),
    "likelihood_sum": ("#888888", "h"),
    "likelihood_pmi": ("#AAAAAA", "8"),
    "orbit": ("#6699CC", "H"),
    "stack": ("#000000", "s"),
    "route": ("#004488", "D"),
    "reference": ("#BB5566", "P"),
}


class BookFigure(Figure):
    """A figure that a notebook shows by itself; it belongs to no window and to no global list of open figures."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=DOTS_PER_INCH)
        return buffer.getvalue()


def style(name: str) -> tuple[str, str]:
    """Colour and mark of an expert or head, such as direct or "BAER (stack)"; always the same for the same name."""
    known = next((word for word in re.findall(r"\w+", name) if word in STYLES), None)
    if known is not None:
        return STYLES[known]
    return list(STYLES.values())[int(unit_hash(name) * 9)]


def spoken(name: str) -> str:
    """A name as a reader says it: chain_of_thought becomes chain of thought."""
    return name.replace("_", " ")


def new_figure(
    height: float, panels: int = 1, *, rows: int = 1, width: float = 7.4, **settings
) -> tuple[BookFigure, list[Axes]]:
    """An empty figure in the book's look, its panels side by side in one row or several; sizes in inches."""
    with matplotlib.rc_context(LOOK):
        figure = BookFigure(figsize=(width, height), layout="constrained", facecolor="white")
        axes = figure.subplots(rows, panels, squeeze=False, **settings)
    return figure, list(axes.flat)


def panel_each(names: Sequence[str], xlabel: str, ylabel: str, *, height: float) -> tuple[BookFigure, list[Axes]]:
    """One small panel per name, up to three in a row, on common axes that are named once; `height` of a row, inches."""
    columns = min(3, max(1, len(names)))
    rows = max(1, -(-len(names) // columns))
    figure, axes = new_figure(max(3.2, 0.9 + height * rows), columns, rows=rows, sharex=True, sharey=True)
    for ax in axes[len(names) :]:
        ax.remove()
    for number, (ax, name) in enumerate(zip(axes, names, strict=False)):
        decorate(ax, "", "", spoken(name))
        ax.xaxis.set_tick_params(labelbottom=number + columns >= len(names))
    axes[min(len(names) - 1, (rows - 1) * columns + columns // 2)].set_xlabel(xlabel)
    axes[(rows // 2) * columns].set_ylabel(ylabel)
    return figure, axes[: len(names)]


def in_order(names: Iterable[str]) -> list[str]:
    """Names without repetition: those with a look of their own in the book's fixed order, the others behind them."""
    known = list(STYLES)
    return sorted(dict.fromkeys(names), key=lambda name: known.index(name) if name in known else len(known))


def decorate(ax: Axes, xlabel: str, ylabel: str, title: str = "") -> None:
    """Name both axes, with their units, and the panel where there are several."""
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    if title:
        ax.set_title(title, fontsize=LOOK["axes.titlesize"], fontweight="bold", loc="left")


def reference(ax: Axes, *, x: float | None = None, y: float | None = None, text: str = "") -> None:
    """A dashed line at parity, chance or a gate; `text` enters the legend."""
    line = {"color": GREY, "linestyle": (0, (4, 3)), "linewidth": 1.2, "zorder": 1.5, "label": text or None}
    if x is not None:
        ax.axvline(x, **line)
    if y is not None:
        ax.axhline(y, **line)


def row_names(ax: Axes, names: Sequence[str]) -> None:
    """Names down the vertical axis, the first on top, no grid across them."""
    ax.set_yticks(range(len(names)), [spoken(name) for name in names])
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.grid(visible=False, axis="y")


def legend_below(figure: Figure, ax: Axes, columns: int = 3) -> None:
    """One legend under the panels, so that it can hide nothing; the figure grows by its rows from the third on."""
    handles, labels = ax.get_legend_handles_labels()
    if handles:
        rows = -(-len(handles) // columns)
        figure.set_figheight(figure.get_figheight() + LEGEND_ROW * max(0, rows - 2))
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)


def caption(number: str, claim: str) -> Markdown:
    """The caption under a figure or table: its number, then what it shows as a sentence built from variables."""
    return Markdown(f"**{number}.** *{claim}*")

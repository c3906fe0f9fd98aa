"""Texts and tables as HTML that shows them and does nothing else.

Questions, responses and judgments are somebody else's text. None of it may become markup, a formula or a change of
writing direction; characters that a page would swallow are made visible. Everything that a view shows passes here.
"""

from __future__ import annotations

import base64
import html
import unicodedata
from collections.abc import Iterable, Sequence

from matplotlib.figure import Figure

HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # control, format (bidi marks among them), surrogates, line separators
JOINERS = "\u200c\u200d"  # scripts and emoji are spelled with them
PLAIN = "mathjax_ignore tex2jax_ignore"  # a dollar is a dollar
BOX = (
    "white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere;unicode-bidi:isolate;max-height:18em;overflow:auto;"
    "margin:.3em 0;padding:.5em .7em;font-size:13px;line-height:1.4;border-radius:4px;"
    "color:var(--jp-content-font-color1,#222);"
    "background:var(--jp-layout-color2,#f3f3f3);border:1px solid var(--jp-border-color2,#ddd)"
)
CELL = (
    "padding:.2em .7em;line-height:1.4;text-align:left;vertical-align:top;"
    "border-bottom:1px solid var(--jp-border-color2,#ddd)"
)


def escaped(text: str) -> str:
    """A text as HTML that shows it character by character, on one line or on several.

    Parameters
    ----------
    text : any text, half surrogate pairs included.

    Returns
    -------
    HTML without a tag or a quotation mark. Characters that cannot be seen (control, format and bidirectional marks,
    half surrogates) are written as ⟨U+202E⟩; line feeds, tabs and the two joiners stay, and so does the carriage return
    of a line end, as a line feed.
    """
    visible = "".join(_visible(letter) for letter in text.replace("\r\n", "\n"))
    return html.escape(visible, quote=True)


def _visible(letter: str) -> str:
    hidden = unicodedata.category(letter) in HIDDEN and letter not in "\n\t" + JOINERS
    return f"⟨U+{ord(letter):04X}⟩" if hidden else letter


def raw_text(text: str) -> str:
    """A text in a box of its own, every space and line end kept; the empty text says that it is empty."""
    body = escaped(text) or "<i>(empty)</i>"
    return f'<pre class="{PLAIN}" style="{BOX}">\n{body}</pre>'  # a page drops the first line feed of a box


def beside(left: str, right: str) -> str:
    """Two pieces of HTML side by side, one below the other where the page is narrow."""
    column = "flex:1 1 280px;min-width:0"
    return (f'<div style="display:flex;flex-wrap:wrap;gap:0 1em"><div style="{column}">{left}</div>'
            f'<div style="{column}">{right}</div></div>')  # fmt: skip


def heading(text: str) -> str:
    """A small heading."""
    return f'<div class="{PLAIN}" style="font-weight:600;line-height:1.4;margin:.6em 0 .1em">{escaped(text)}</div>'


def sentence(text: str) -> str:
    """A line of prose."""
    return f'<div class="{PLAIN}" style="margin:.4em 0;line-height:1.4">{escaped(text)}</div>'


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of texts, every cell escaped."""
    head = "".join(f'<th style="{CELL}">{escaped(str(name))}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(f'<td style="{CELL}">{escaped(str(value))}</td>' for value in row) + "</tr>" for row in rows
    )
    style = "border-collapse:collapse;font-size:13px;margin:.4em 0;display:block;overflow-x:auto"
    return f'<table class="{PLAIN}" style="{style}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def picture(figure: Figure, says: str) -> str:
    """A figure inside the page; `says` is read to those who cannot see it."""
    data = base64.b64encode(figure._repr_png_()).decode("ascii")
    return f'<img alt="{escaped(says)}" style="max-width:100%" src="data:image/png;base64,{data}">'

"""A notebook's cells as HTML that needs nothing but itself: Markdown, formulas, highlighted code, outputs, figures.

This file turns one cell after another into markup. It knows neither what a page looks like nor which pages there are.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from nbconvert.filters.ansi import ansi2html
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from baer_utils.batch.mathml import mathml

KINDS = ("text/html", "text/markdown", "image/svg+xml", "image/png", "image/jpeg", "text/latex", "text/plain")
CAPTION = re.compile(r"\*\*(Figure [\w.]+)\.\*\* \*(.*)\*\s*$", re.S)  # as `plots.caption` writes it

TABLE = re.compile(r'<table [^>]*class="dataframe">.*?</table>', re.S)
NUMBER = re.compile(
    r"[-+]?[\d.,]+(e[-+]?\d+)?%?|[-+]?inf|NaN|None|True|False|<NA>|&lt;NA&gt;|-?"
)  # what stands at the right


class _Renderer(IPythonRenderer):
    """Markdown to HTML: formulas as MathML, neighbouring notebooks as pages, other hosts as text."""

    def inline_math(self, body: str) -> str:
        return mathml(body)

    def block_math(self, body: str) -> str:
        return mathml(body, display=True)

    def latex_environment(self, name: str, body: str) -> str:
        return mathml(f"\\begin{{{name}}}{body}\\end{{{name}}}", display=True)

    def heading(self, text: str, level: int, **attrs: object) -> str:
        place = re.sub("<.*?>", "", text).replace(" ", "-")  # as JupyterLab names it, so that one link serves both
        return f'<h{level} id="{place}">{text}</h{level}>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        if re.match(r"[a-z]+:|//", url):
            place = re.sub(r"^[a-z]*:?//", "", url)
            return text if place in text or url in text else f"{text} ({html.escape(place)})"
        return f'<a href="{html.escape(re.sub(r"[.](ipynb|md)(?=#|$)", ".html", url))}">{text}</a>'


def markdown(source: str) -> str:
    """Markdown as HTML."""
    shown = MarkdownWithMath(renderer=_Renderer(escape=False, exclude_anchor_links=True)).render(source)
    return shown.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")


@cache
def _tools() -> tuple[Any, HtmlFormatter]:
    return get_lexer_by_name("ipython3"), HtmlFormatter(cssclass="source")


def code(source: str) -> str:
    """Python as highlighted HTML."""
    return highlight(source, *_tools())


def cell_html(cell: NotebookNode, alternatives: dict[int, str]) -> str:
    """One cell with its outputs; solutions are folded.

    Parameters
    ----------
    cell : Markdown or code; raw cells are left out.
    alternatives : id of an output -> what its image shows (`alternative_texts`).
    """
    if cell.cell_type == "markdown":
        shown = markdown(cell.source)
    elif cell.cell_type == "code":
        outputs = "".join(_output(output, alternatives) for output in cell.get("outputs", []))
        shown = code(cell.source) + (f'<div class="outputs">{outputs}</div>' if outputs else "")
    else:
        return ""
    if "solution" in cell.metadata.get("tags", []):
        return f'<details class="solution"><summary>Solution</summary>{shown}</details>\n'
    return f'<section class="{cell.cell_type}">{shown}</section>\n'


def alternative_texts(notebook: NotebookNode) -> dict[int, str]:
    """For each image the caption that follows it, in words; the section's heading where none does."""
    texts: dict[int, str] = {}
    waiting: list[int] = []
    heading = ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            headings = [line.lstrip("# ") for line in cell.source.splitlines() if line.startswith("#")]
            heading = headings[-1] if headings else heading
        for output in cell.get("outputs", []):
            said = CAPTION.search("".join(output.get("data", {}).get("text/markdown", "")))
            if said:
                texts |= dict.fromkeys(waiting, f"{said[1]}. {said[2]}")
                waiting = []
            elif _kind(output).startswith("image/"):
                texts[id(output)] = f"Figure: {heading}"
                waiting.append(id(output))
    return texts


def _kind(output: NotebookNode) -> str:
    return next((kind for kind in KINDS if kind in output.get("data", {})), "")


def _output(output: NotebookNode, alternatives: dict[int, str]) -> str:
    if output.output_type == "stream":
        return f'<pre class="{output.name}">{ansi2html("".join(output.text))}</pre>'
    if output.output_type == "error":
        return f'<pre class="stderr">{ansi2html(chr(10).join(output.traceback))}</pre>'
    return "".join(_data(_kind(output), output, alternatives))


def _data(kind: str, output: NotebookNode, alternatives: dict[int, str]) -> Iterator[str]:
    content = "".join(output.data[kind]) if kind else ""
    if kind == "text/html":
        yield f'<div class="wide">{TABLE.sub(_words_left, content)}</div>'
    elif kind == "text/markdown":
        yield f'<div class="said">{markdown(content)}</div>'
    elif kind == "text/latex":
        yield mathml(content.strip().strip("$"), display=True)
    elif kind.startswith("image/"):
        alt = html.escape(alternatives.get(id(output), ""), quote=True)
        if kind == "image/svg+xml":
            yield f'<figure role="img" aria-label="{alt}">{content}</figure>'
        else:
            yield f'<figure><img alt="{alt}" src="data:{kind};base64,{content.replace(chr(10), "")}"></figure>'
    elif kind:
        yield f"<pre>{ansi2html(content)}</pre>"


def _words_left(frame: re.Match[str]) -> str:
    """A frame as pandas writes it, the cells of columns that hold words marked `words`, their headings included."""
    body = re.findall(r"<tr[ >].*?</tr>", frame[0].partition("<tbody>")[2], re.S)
    columns = zip(*(re.findall(r"<td>(.*?)</td>", row, re.S) for row in body), strict=False)
    words = [not all(NUMBER.fullmatch(value) for value in column) for column in columns]

    def marked(row: re.Match[str]) -> str:
        start, *cells = re.split(r"(?=<t[dh][ >])", row[0])
        first = len(cells) - len(words)  # before it stand the names of the row
        return start + "".join(
            re.sub("^<t[dh]", r'\g<0> class="words"', cell) if number >= first >= 0 and words[number - first] else cell
            for number, cell in enumerate(cells)
        )

    return re.sub(r"<tr[ >].*?</tr>", marked, frame[0], flags=re.S)

"""The pages a finished run is read from: one per notebook, the page of symbols, and the contents.

This file only looks at executed copies and at what a run recorded about them; it runs nothing and knows no parameter.
Pages are plain files beside each other that refer to no other host, so the folder opens from disk and can be moved or
sent as a whole.
"""

from __future__ import annotations

import base64
import html
import re
from pathlib import Path
from typing import Any

import nbformat

from baer_utils.batch.markup import alternative_texts, cell_html, markdown
from baer_utils.batch.progress import spell_seconds
from baer_utils.batch.style import sheet

KEY_NUMBERS = "key_numbers"  # the entry of results.json that the contents show; without it, those at the top level
MOST_NUMBERS = 6  # and at most so many
NAVIGATION = re.compile(r"<nav>.*?</nav>", re.S)
SECTION = re.compile(r'<h[23] id="(.*?)">(.*?)</h[23]>')
ON_EVERY_PAGE = ("What we found", "Exercises")  # sections that the contents need not list
SYMBOLS = "symbols"  # name of the page of symbols, beside the notebooks as symbols.md


def write_page(copy: Path) -> None:
    """Write `<name>.html` beside an executed copy, and its figures to `<name>/figure_<n>.png`."""
    notebook = nbformat.read(copy, as_version=4)
    alternatives = alternative_texts(notebook)
    body = "".join(cell_html(cell, alternatives) for cell in notebook.cells)
    headings = [line[2:] for cell in notebook.cells for line in cell.source.splitlines() if line.startswith("# ")]
    _write(copy.with_suffix(".html"), headings[0] if headings else copy.stem, body)
    folder = copy.with_suffix("")
    folder.mkdir(exist_ok=True)
    for old in folder.glob("figure_*.png"):
        old.unlink()
    for number, image in enumerate(figures(notebook), 1):
        (folder / f"figure_{number}.png").write_bytes(image)


def figures(notebook: nbformat.NotebookNode) -> list[bytes]:
    """The PNG images among a notebook's outputs, in reading order."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    images = [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    return [base64.b64decode("".join(image)) for image in images]


def write_contents(out: Path, parameters: dict[str, Any], rows: list[dict[str, Any]], symbols: Path) -> None:
    """Write `index.html` and the page of symbols, and join all pages by their navigation.

    Parameters
    ----------
    out : folder of the run.
    parameters : name -> value of the run.
    rows : one dict per notebook, in reading order: name, title, question, status, seconds (None where it never ran),
        results (dict, may be empty; `key_numbers` among them, a dict from words to numbers, is what is shown).
    symbols : Markdown file with the symbols; left out where there is none.
    """
    settings = "".join(
        f"<tr><th>{_text(k)}</th><td><code>{_text(repr(v))}</code></td></tr>" for k, v in parameters.items()
    )
    listed = "".join(_row(out, row) for row in rows)
    more = ""
    if symbols.exists():
        shown = markdown(symbols.read_text(encoding="utf-8"))
        _write(out / f"{SYMBOLS}.html", "Symbols", f'<section class="markdown">{shown}</section>')
        more = f'<p><a href="{SYMBOLS}.html">Symbols</a>: the letters of the papers, and their words in the code.</p>'
    _write(
        out / "index.html",
        "A judge book that adapts its evidence",
        f"""<h1>A judge book that adapts its evidence</h1>
<p>Executed notebooks, in reading order. Beside each page lie the notebook itself, its figures and its results.json.</p>
<div class="wide"><table class="contents"><thead><tr><th>Notebook</th><th>State</th><th>Key numbers</th></tr></thead>
<tbody>{listed}</tbody></table></div>
{more}
<h2>Parameters of this run</h2><div class="wide"><table class="contents">{settings}</table></div>
""",
    )
    titles = {row["name"]: row["title"] for row in rows} | {SYMBOLS: "Symbols"}
    link_pages(out, {name: title for name, title in titles.items() if (out / f"{name}.html").exists()})


def link_pages(out: Path, titles: dict[str, str]) -> None:
    """Write the links to the previous page, the contents and the next page into all pages that are there."""
    names = list(titles)
    for number, name in enumerate(names):
        around = [
            _link(names[number - 1], "← " + titles[names[number - 1]]) if number else "<span></span>",
            _link("index", "Contents"),
            _link(names[number + 1], titles[names[number + 1]] + " →") if number + 1 < len(names) else "<span></span>",
        ]
        path = out / f"{name}.html"
        before = path.read_text(encoding="utf-8")
        bar = f"<nav>{' '.join(around)}</nav>"
        after = bar.join(NAVIGATION.split(before))
        if after != before:
            path.write_text(after, encoding="utf-8")


def _link(name: str, text: str) -> str:
    return f'<a href="{_text(name)}.html">{_text(text)}</a>'


def _write(path: Path, title: str, body: str) -> None:
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_text(title)}</title><link rel="icon" href="data:,"><style>{sheet()}</style></head><body>
<nav></nav>
<main>
{body}</main>
<nav></nav>
</body></html>
"""
    path.write_text(page, encoding="utf-8")


def _row(out: Path, row: dict[str, Any]) -> str:
    name, title = row["name"], _text(row["title"])
    if (out / f"{name}.html").exists():
        title = f'<a href="{_text(name)}.html">{title}</a> (<a href="{_text(name)}.ipynb">notebook</a>)'
    time = "" if row["seconds"] is None else f"<br>{spell_seconds(row['seconds'])}"
    results = row["results"].get(KEY_NUMBERS, row["results"])
    numbers = [(k, v) for k, v in results.items() if isinstance(v, int | float | str) and not isinstance(v, bool)]
    shown = "<br>".join(f"{_text(k)}: {_text(_short(v))}" for k, v in numbers[:MOST_NUMBERS])
    return (
        f"<tr><td>{title}{markdown(row['question'])}{_sections(out, name)}</td>"
        f'<td class="state">{_text(row["status"])}{time}</td><td class="numbers">{shown}</td></tr>\n'
    )


def _sections(out: Path, name: str) -> str:
    """Links to the sections of a page, so that the contents can be searched for what a reader wants to know."""
    path = out / f"{name}.html"
    found = SECTION.findall(path.read_text(encoding="utf-8")) if path.exists() else []
    own = [(place, text) for place, text in found if not text.startswith(ON_EVERY_PAGE)]
    links = [f'<a href="{_text(name)}.html#{place}">{text}</a>' for place, text in own]
    return f'<p class="sections">{" · ".join(links)}</p>' if links else ""


def _short(value: int | float | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value[:24]


def _text(value: object) -> str:
    return html.escape(str(value), quote=True)

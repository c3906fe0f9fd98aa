"""The pages a finished run is read from: one HTML page per notebook, its figures as files, and the index.

This file only looks at executed copies and at what a run recorded about them; it runs nothing and knows no parameter.
Pages are plain files beside each other, so that the folder opens from disk and can be moved or sent as a whole.
"""

from __future__ import annotations

import base64
import html
import logging
import re
from pathlib import Path
from typing import Any

import nbformat
from nbconvert import HTMLExporter

from baer_utils.batch.progress import spell_seconds

KEY_NUMBERS = 6  # the index shows at most this many results of a notebook
STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
.table { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { text-align: left; vertical-align: top; padding: .45rem .7rem; border-bottom: 1px solid #8886; }
code { overflow-wrap: anywhere; }
.numbers { font-size: .9em; }
"""


def write_page(copy: Path) -> None:
    """Write `<name>.html` beside an executed copy, and its figures to `<name>/figure_<n>.png`."""
    notebook = nbformat.read(copy, as_version=4)
    exporter = HTMLExporter()
    exporter.log = logging.getLogger("nbconvert.errors")  # its advice about alternative texts would fill the terminal
    exporter.log.setLevel(logging.ERROR)
    page, _ = exporter.from_notebook_node(notebook, resources={"metadata": {"name": copy.stem}})
    page = re.sub(r'href="(\d\d_\w+)\.ipynb', r'href="\1.html', page)  # neighbours: from page to page
    copy.with_suffix(".html").write_text(page, encoding="utf-8")
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


def write_index(out: Path, parameters: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Write `index.html`: the parameters and, in reading order, title, state, time and key numbers of each notebook.

    Parameters
    ----------
    out : folder of the run.
    parameters : name -> value of the run.
    rows : one dict per notebook: name, title, status, seconds (None where it never ran), results (dict, may be empty).
    """
    settings = "".join(
        f"<tr><th>{_text(k)}</th><td><code>{_text(repr(v))}</code></td></tr>" for k, v in parameters.items()
    )
    body = "".join(_row(out, row) for row in rows)
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>The judge book</title><style>{STYLE}</style></head><body>
<h1>The judge book</h1>
<p>Executed notebooks, in reading order. Beside each page lie the notebook itself, its figures and its results.json.</p>
<div class="table"><table><thead><tr><th>Notebook</th><th>State</th><th>Time</th><th>Key numbers</th></tr></thead>
<tbody>{body}</tbody></table></div>
<h2>Parameters of this run</h2><div class="table"><table>{settings}</table></div>
</body></html>
"""
    (out / "index.html").write_text(page, encoding="utf-8")


def _row(out: Path, row: dict[str, Any]) -> str:
    name, title = row["name"], _text(row["title"])
    if (out / f"{name}.html").exists():
        title = f'<a href="{_text(name)}.html">{title}</a> (<a href="{_text(name)}.ipynb">notebook</a>)'
    time = "" if row["seconds"] is None else spell_seconds(row["seconds"])
    numbers = [
        (k, v) for k, v in row["results"].items() if isinstance(v, int | float | str) and not isinstance(v, bool)
    ]
    shown = "<br>".join(f"{_text(k)}: {_text(_short(v))}" for k, v in numbers[:KEY_NUMBERS])
    return f'<tr><td>{title}</td><td>{_text(row["status"])}</td><td>{time}</td><td class="numbers">{shown}</td></tr>\n'


def _short(value: int | float | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value[:80]


def _text(value: object) -> str:
    return html.escape(str(value), quote=True)

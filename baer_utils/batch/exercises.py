"""Copies of the notebooks for readers who want to try first: the solutions are blanked, all else is as it is."""

from __future__ import annotations

from pathlib import Path

import nbformat

from baer_utils.batch.book import NOTEBOOKS, find_notebooks

BLANK = {"code": "# your solution", "markdown": "*Your answer:*"}


def write_exercises(out: Path, folder: Path = NOTEBOOKS) -> dict[str, int]:
    """Write the copies into a folder; a copy that somebody has begun to work in is left alone.

    Parameters
    ----------
    out : the folder; made if missing.
    folder : where the notebooks with their solutions are.

    Returns
    -------
    dict of notebook name -> number of blanked cells, for the copies that were written now.
    """
    out.mkdir(parents=True, exist_ok=True)
    written = {}
    for book in find_notebooks(folder):
        if (out / book.path.name).exists():
            continue
        notebook = nbformat.read(book.path, as_version=4)
        solutions = [cell for cell in notebook.cells if "solution" in cell.metadata.get("tags", [])]
        for cell in solutions:
            cell.source = BLANK[cell.cell_type]
            cell.metadata["tags"] = ["exercise"]
        nbformat.write(notebook, out / book.path.name)
        written[book.name] = len(solutions)
    return written

"""Copies for readers who try first, and the copy of the book that is checked in."""

from __future__ import annotations

import base64
import io

import matplotlib.pyplot as plt
import nbformat
from PIL import Image

from baer_utils.__main__ import main
from baer_utils.batch.book import NOTEBOOKS
from baer_utils.batch.exercises import BLANK, write_exercises
from baer_utils.batch.reference import COLOURS, make_small


def test_solutions_are_blanked_and_nothing_else_is(tmp_path):
    written = write_exercises(tmp_path)
    assert sorted(written) == [path.stem for path in sorted(NOTEBOOKS.glob("*.ipynb"))]
    for name, blanked in written.items():
        ours, theirs = (nbformat.read(place / f"{name}.ipynb", as_version=4) for place in (NOTEBOOKS, tmp_path))
        changed = [(old, new) for old, new in zip(ours.cells, theirs.cells, strict=True) if old != new]
        assert 2 <= len(changed) == blanked <= 4
        for old, new in changed:
            assert "solution" in old.metadata["tags"] and new.metadata["tags"] == ["exercise"]
            assert new.source == BLANK[new.cell_type] and (new.id, new.cell_type) == (old.id, old.cell_type)
        assert "solution" not in {tag for cell in theirs.cells for tag in cell.metadata.get("tags", [])}


def test_a_copy_in_which_somebody_works_is_left_alone(tmp_path, capsys):
    assert main(["exercises", "--out", str(tmp_path)]) == 0
    begun = next(tmp_path.glob("00_*.ipynb"))
    begun.write_text("mine")
    next(tmp_path.glob("02_*.ipynb")).unlink()
    assert list(write_exercises(tmp_path)) == ["02_order_instability"] and begun.read_text() == "mine"
    assert "blanked solutions were written to" in capsys.readouterr().out


def test_figures_of_the_checked_in_copy_keep_their_size_and_lose_colours(tmp_path):
    figure, ax = plt.subplots()
    ax.imshow([[number / 300 for number in range(300)]], aspect="auto")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    plt.close(figure)
    data = {"image/png": base64.b64encode(buffer.getvalue()).decode()}
    cell = nbformat.v4.new_code_cell("x", outputs=[nbformat.v4.new_output("display_data", data=data)])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "x.ipynb")
    make_small(tmp_path / "x.ipynb")
    small = base64.b64decode(nbformat.read(tmp_path / "x.ipynb", as_version=4).cells[0].outputs[0].data["image/png"])
    before, after = Image.open(buffer), Image.open(io.BytesIO(small))
    assert before.size == after.size and len(after.convert("RGB").getcolors()) <= COLOURS

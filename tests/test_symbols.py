"""The page of symbols: every row names something that is there, under the equation that it carries."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.test_layout import EQUATIONS, PACKAGE, TAG

PAGE = Path(__file__).parents[1] / "notebooks" / "symbols.md"
LINES = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| $")]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in LINES]
THERE = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}


def test_every_row_has_its_five_cells_and_every_equation_its_row():
    assert len(ROWS) >= 40 and {len(row) for row in ROWS} == {5}
    named = {row[4] for row in ROWS} - {""}
    assert named == {tag for tags in EQUATIONS.values() for tag in tags}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_a_row_names_is_defined_there_and_carries_its_equation(row):
    module, *names = row[3].strip("`").split(".")
    if module not in THERE:
        pytest.skip(f"baer_utils.{module} is not there yet")
    found = importlib.import_module(f"baer_utils.{module}")
    for name in names:
        found = getattr(found, name)
    if row[4]:
        tag = TAG.search(found.__doc__.strip().partition("\n")[0])
        assert row[4] == (tag and tag[1])

"""How a notebook reads, in numbers: `python -m tests.measure [notebook ...]`.

Cells are those that a reader is given: the solutions of the exercises come on top. Code is what runs, solutions too:
blank lines and lines of comment do not count, the parameters cell does. Prose is the words of the markdown cells that
hold a letter or a digit; formulas and addresses of links are left out.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$\n]+\$", re.DOTALL)
LINK = re.compile(r"\]\([^)]*\)")
NO_FIGURES = {"caption", "spoken", "style"}
LIMITS = {
    "cells": (15, 35), "median": (1, 5), "p90": (1, 15), "in_functions": (0.0, 0.10), "words_per_line": (5.0, 13.0),
}  # fmt: skip


@dataclass(frozen=True)
class Measure:
    """What one notebook measures; `bare` names the figures that no caption follows."""

    cells: int
    median: float
    p90: float
    in_functions: float
    words_per_line: float
    bare: tuple[str, ...]

    def outside(self) -> dict[str, float]:
        """The measures that lie outside their limits."""
        return {name: getattr(self, name) for name, (low, high) in LIMITS.items()
                if not low <= getattr(self, name) <= high}  # fmt: skip


def measure(path: Path) -> Measure:
    """Measure one notebook file."""
    cells = [cell | {"text": "".join(cell["source"])} for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    solutions = sum("solution" in cell.get("metadata", {}).get("tags", ()) for cell in cells)
    code = [cell["text"] for cell in cells if cell["cell_type"] == "code"]
    lengths = [len(code_lines(text)) for text in code]
    words = sum(count_words(cell["text"]) for cell in cells if cell["cell_type"] == "markdown")
    return Measure(
        cells=len(cells) - solutions,
        median=float(np.median(lengths)),
        p90=float(np.percentile(lengths, 90)),
        in_functions=sum(map(lines_in_functions, code)) / sum(lengths),
        words_per_line=words / sum(lengths),
        bare=tuple(bare_figures(code)),
    )


def code_lines(text: str) -> list[str]:
    """Lines that are neither blank nor only a comment."""
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def lines_in_functions(text: str) -> int:
    """Code lines inside functions and classes that a cell defines."""
    blocks = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    lines = text.splitlines()
    return sum(len(code_lines("\n".join(lines[node.lineno - 1 : node.end_lineno]))) for node in blocks)


def count_words(text: str) -> int:
    """Words of prose: tokens with a letter or a digit, formulas and the addresses of links left out."""
    plain = LINK.sub("]", FORMULA.sub(" ", text))
    return sum(any(letter.isalnum() for letter in word) for word in plain.split())


def bare_figures(code: list[str]) -> list[str]:
    """Figures with no `plots.caption` after them in the same code cell or the next one."""
    bare = []
    for number, text in enumerate(code):
        calls = [(node.lineno, node.func.attr) for node in ast.walk(ast.parse(text))
                 if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("plots.")]  # fmt: skip
        captions = [line for line, name in calls if name == "caption"]
        onward = "plots.caption(" in "".join(code[number + 1 : number + 2])
        bare += [name for line, name in calls
                 if name not in NO_FIGURES and not onward and line > max(captions, default=0)]  # fmt: skip
    return bare


if __name__ == "__main__":
    wanted = [path for path in sorted(NOTEBOOKS.glob("*.ipynb")) if not sys.argv[1:] or path.stem in sys.argv[1:]]
    found = {path.stem: measure(path) for path in wanted}
    for name, taken in found.items():
        print(f"{name:38} {taken.cells} cells  median {taken.median:.0f}  p90 {taken.p90:.1f}  in functions "
              f"{taken.in_functions:.0%}  words/line {taken.words_per_line:.1f}  {taken.outside() or ''} "
              f"{', '.join(taken.bare)}")  # fmt: skip
    sys.exit(any(taken.outside() or taken.bare for taken in found.values()))

"""A grid of runs of the book as a small YAML file says it: conditions x seeds x parameters, one run for each.

    conditions:                        # each a set of parameters that belong together; optional
      - {BENCHMARK: starter_correctness}
      - {BENCHMARK: starter_preference, N_PAIRS: 50}
    seeds: [0, 1]                      # values of SEED; optional
    parameters: {CLIP: [0.0001, 0.01]} # name: values, every one with every other; optional
    notebooks: ["00", "02"]            # all if absent
    workers: 2                         # runs at the same time; the number of cores if absent
    out: outputs/grids/clips           # outputs/grids/<name of the file> if absent

This file reads and checks such a file; it runs nothing.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from baer_utils.batch.book import NOTEBOOKS, choose, find_notebooks, run_name
from baer_utils.batch.parameters import Notebook, check_settings
from baer_utils.reports import repository_path

KEYS = ("conditions", "seeds", "parameters", "notebooks", "workers", "out")


@dataclass(frozen=True)
class Cell:
    """One run of a grid: its parameters and its folder."""

    values: dict[str, Any]  # what is given; all else has the notebooks' defaults
    out: Path

    @property
    def name(self) -> str:
        """Name of the folder: readable, and another one for other parameters."""
        return self.out.name


@dataclass(frozen=True)
class Grid:
    """What is run, where, and how many at the same time."""

    cells: tuple[Cell, ...]
    notebooks: tuple[Notebook, ...]
    out: Path
    workers: int
    folder: Path

    def __str__(self) -> str:
        names = ", ".join(notebook.name for notebook in self.notebooks)
        lines = [f"{len(self.cells)} runs of {names}, {self.workers} at a time, into {self.out}:"]
        return "\n".join(lines + [f"  {cell.name}  {spell_values(cell.values)}" for cell in self.cells])


def spell_values(values: Mapping[str, Any]) -> str:
    """Parameters in one line, as they are typed behind `--set`."""
    return " ".join(f"{name}={value}" for name, value in values.items()) or "defaults"


def read_grid(path: str | Path, *, folder: Path = NOTEBOOKS) -> Grid:
    """The grid that a YAML file describes (see above), refused before anything runs if any part of it is wrong.

    Parameters
    ----------
    path : the file.
    folder : where the notebooks are.

    Raises
    ------
    ValueError
        for an unknown key, parameter or notebook, a value of the wrong type, a parameter that is given twice, and
        runs that are the same.
    """
    path = Path(path)
    said = _read(path)
    notebooks = choose(find_notebooks(folder), tuple(map(str, _list(said, "notebooks", []))))
    workers = said.get("workers", os.cpu_count() or 1)
    if type(workers) is not int or workers < 1:
        raise ValueError(f"{path.name}: workers must be a whole number above 0; it is {workers!r}.")
    out = repository_path(said.get("out") or Path("outputs") / "grids" / path.stem)
    defaults = {name: value for n in notebooks for name, value in n.parameters.items() if name != "OUT_DIR"}
    cells = []
    for given in _combinations(said, path.name):
        checked = check_settings(given, notebooks)
        values = {name: checked[n.name][name] for n in notebooks for name in given if name in checked[n.name]}
        cells.append(Cell({name: values[name] for name in given}, out / run_name(defaults | values)))
    for name, count in Counter(cell.name for cell in cells).items():
        if count > 1:
            same = next(cell for cell in cells if cell.name == name)
            raise ValueError(
                f"{path.name}: the runs of a grid must differ; {count} are {spell_values(same.values)}. "
                "Leave one out, or look for a value that is the default written out."
            )
    return Grid(tuple(cells), tuple(notebooks), out, workers, folder)


def _read(path: Path) -> dict[str, Any]:
    try:
        said = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{path.name} must be YAML; reading it failed: {error}") from None
    if not isinstance(said, dict) or not said:
        raise ValueError(f"{path.name} must hold at least one of the keys {', '.join(KEYS)}; it holds {said!r}.")
    unknown = [str(key) for key in said if key not in KEYS]
    if unknown:
        raise ValueError(f"{path.name}: the keys must be of {', '.join(KEYS)}; {', '.join(unknown)} is not.")
    return said


def _combinations(said: dict[str, Any], name: str) -> list[dict[str, Any]]:
    conditions = _list(said, "conditions", [{}])
    parameters = said.get("parameters") or {}
    for part, where in [(parameters, "parameters"), *((c, "each of the conditions") for c in conditions)]:
        if not isinstance(part, dict):
            raise ValueError(f"{name}: {where} must be NAME: value; it is {part!r}.")
    axes = {key: _list(parameters, key, []) for key in parameters}
    if "seeds" in said:
        axes = {"SEED": _list(said, "seeds", [])} | axes if "SEED" not in axes else _twice("SEED", name)
    runs = []
    for condition in conditions:
        for clash in set(condition) & set(axes):
            _twice(clash, name)
        for values in itertools.product(*axes.values()):
            runs.append(condition | dict(zip(axes, values, strict=True)))
    if any("OUT_DIR" in run for run in runs):
        raise ValueError(f"{name}: OUT_DIR must not be given; every run has a folder of its own. Give `out`.")
    return runs


def _list(said: dict[str, Any], key: str, absent: list) -> list:
    value = said.get(key, absent)
    if not isinstance(value, list) or not (value or key not in said):
        raise ValueError(f"{key} must be a list with at least one value, like [0, 1]; it is {value!r}.")
    return value


def _twice(parameter: str, name: str) -> None:
    raise ValueError(f"{name}: {parameter} must be given in one place; it is given in two. Leave one out.")

"""What a notebook may be told: the parameters cell as data, and values from a command line checked against it.

A parameters cell is the first code cell, tagged `parameters`, and holds nothing but `NAME: type = literal` lines. This
file reads those lines without running them; it knows nothing about running a notebook or what a parameter means, except
that `SOURCE` names a place on disk.
"""

from __future__ import annotations

import ast
import difflib
import json
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PATHS = ("SOURCE",)  # parameters whose relative path means the caller's folder
KINDS = {bool: "True or False", int: "a whole number", float: "a finite number", str: "text"}


@dataclass(frozen=True)
class Notebook:
    """One notebook of the book as it stands on disk."""

    path: Path
    title: str
    question: str = ""  # the first paragraph below the title
    parameters: dict[str, Any] = field(default_factory=dict)  # name -> default, in the cell's order

    @property
    def name(self) -> str:
        """File name without its ending: also the name of its results."""
        return self.path.stem


def read_notebook(path: Path) -> Notebook:
    """Read a notebook's title and the defaults in its parameters cell.

    Raises
    ------
    ValueError
        where the file is no notebook, has no cell tagged `parameters`, or that cell holds more than literals.
    """
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path.name} must be a notebook (nbformat 4); reading it failed: {error}. Save it again."
        ) from None
    text = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    opening = next((source for source in text if source.startswith("# ")), "")
    title, _, below = opening.partition("\n")
    tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    if len(tagged) != 1:
        must = f"{path.name} must have exactly one code cell tagged 'parameters'"
        raise ValueError(f"{must}; it has {len(tagged)}. Tag the first code cell.")
    question = " ".join(below.strip().partition("\n\n")[0].split())
    parameters = literals("".join(tagged[0]["source"]), path.name)
    return Notebook(path, title.lstrip("# ").strip() or path.stem, question, parameters)


def literals(source: str, name: str) -> dict[str, Any]:
    """Names and values of a cell of `NAME = literal` lines, read without running it; `name` is used in errors."""
    values: dict[str, Any] = {}
    for statement in ast.parse(source).body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        try:
            values[target.id] = ast.literal_eval(statement.value)
        except (AttributeError, ValueError):
            raise ValueError(
                f"the parameters cell of {name} must hold only lines like N_PAIRS: int = 16; "
                f"line {statement.lineno} is {ast.unparse(statement)!r}. Move it to the next cell."
            ) from None
    return values


def split_setting(text: str) -> tuple[str, str]:
    """Name and value of one `NAME=VALUE`, as it is typed behind `--set`."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ValueError(f"a setting must look like NAME=VALUE; {text!r} does not. Example: N_PAIRS=24.")
    return name.strip(), value


def check_settings(settings: dict[str, Any], notebooks: Iterable[Notebook]) -> dict[str, dict[str, Any]]:
    """Values that each notebook gets, refused before anything runs if one of them is unknown or of the wrong type.

    Parameters
    ----------
    settings : name -> value; a text is read as the type of the notebook's own default.
    notebooks : the notebooks that will run.

    Returns
    -------
    dict of notebook name -> its values, only for the parameters that this notebook has.

    Raises
    ------
    ValueError
        naming the unknown parameter, the closest known one and all of them; or the value that has the wrong type.
    """
    notebooks = list(notebooks)
    known = sorted({name for notebook in notebooks for name in notebook.parameters})
    for name in settings:
        if name not in known:
            close = difflib.get_close_matches(name.upper(), known, n=1, cutoff=0.5)
            hint = f" Did you mean {close[0]}?" if close else ""
            raise ValueError(
                f"{name} is not a parameter of any notebook.{hint} The parameters are: {', '.join(known)}."
            )
    return {
        notebook.name: {
            name: read_value(name, settings[name], default)
            for name, default in notebook.parameters.items()
            if name in settings
        }
        for notebook in notebooks
    }


def read_value(name: str, value: Any, default: Any) -> Any:
    """One value in the type of its default; a path (`PATHS`) that exists in the caller's folder becomes absolute."""
    kind = type(default)
    if kind is str and isinstance(value, str):
        here = Path(os.path.expanduser(value))
        return str(here.resolve()) if name in PATHS and value and here.exists() else value
    if isinstance(value, str):
        value = _literal(value)
    if kind is float and type(value) is int:
        value = float(value)
    if default is None or (type(value) is kind and not (kind is float and not math.isfinite(value))):
        return value
    raise ValueError(f"{name} must be {KINDS.get(kind, f'a {kind.__name__}')}, like {default!r}; it is {value!r}.")


def _literal(text: str) -> Any:
    spelled = {"true": True, "false": False, "none": None}
    if text.strip().lower() in spelled:
        return spelled[text.strip().lower()]
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return text

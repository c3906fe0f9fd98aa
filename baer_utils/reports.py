"""What a notebook leaves behind: one `results.json` that two reruns can be compared by.

A notebook ends in `save_results(OUT_DIR, "03_symmetric_features", {...})`. The file holds the results, in an order that
never changes, and beside them (not among them) the versions of the packages that made them. This file knows nothing of
judges, heads or figures; and it refuses dates, paths and anything else that would make two equal runs look different.
"""

from __future__ import annotations

import json
import math
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGES = ("baer-utils", "numpy", "pandas", "scikit-learn", "scipy", "torch", "transformers")


def repository_path(path: str | Path) -> Path | None:
    """Where a path of a parameters cell points, whatever folder the kernel was started in.

    Parameters
    ----------
    path : text or Path
        `SOURCE` or `OUT_DIR` as written: absolute, `~/...`, or relative to the repository root. JupyterLab starts
        kernels in `notebooks/`, other tools elsewhere; this is the one rule that makes them all behave the same.

    Returns
    -------
    absolute Path, or None for the empty text, which means that nothing was given.
    """
    if str(path) == "":
        return None
    return REPOSITORY / os.path.expanduser(path)


def save_results(out_dir: str | Path, notebook: str, results: dict[str, Any]) -> None:
    """Write the results of a notebook to `<out_dir>/<notebook>/results.json`, whole or not at all.

    Parameters
    ----------
    out_dir : the notebook's `OUT_DIR` (see `repository_path`); made if missing.
    notebook : name of the notebook without its ending, such as `"00_start_here"`.
    results : dict with text keys. Values may be numbers, text, booleans, None, numpy and pandas scalars and arrays,
        frames, and lists and dicts of these. NaN becomes null, an infinity the text "inf" or "-inf". A frame with a
        plain 0, 1, 2 ... index becomes a list of rows, any other frame or series a dict by index.
        The entry `key_numbers`, a dict from words to numbers or text, is what the contents of the book show.

    Raises
    ------
    ValueError
        naming the entry that cannot be written (a date, a path, an object), or a key that occurs twice once it is text.
    """
    folder = repository_path(out_dir)
    if folder is None:
        raise ValueError("OUT_DIR must name a folder; it is empty. The default is 'outputs/scratch'.")
    if not isinstance(results, dict):
        raise ValueError(f"results must be a dict of named entries; it is a {type(results).__name__}.")
    content = {"notebook": notebook, "results": plain(results, "results"), "versions": versions()}
    write_json(folder / notebook / "results.json", content)


def load_results(out_dir: str | Path, notebook: str) -> dict[str, Any]:
    """Read back what `save_results` wrote, without the versions: the part that two reruns are compared by."""
    folder = repository_path(out_dir)
    path = (folder or REPOSITORY) / notebook / "results.json"
    if not path.exists():
        raise ValueError(f"{notebook} must have been run into {out_dir} first; there is no {path.name}. Run it.")
    return json.loads(path.read_text(encoding="utf-8"))["results"]


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on, without importing any of them."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write JSON with sorted keys, first beside the file and then in its place: a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text + "\n", encoding="utf-8")
    beside.replace(path)


def plain(value: Any, where: str = "value") -> Any:
    """The same value in JSON's own types (see `save_results`); `where` names the entry in an error."""
    if isinstance(value, dict):
        return _named(value.items(), where)
    if isinstance(value, pd.DataFrame):
        rows = value.to_dict("records")
        return _list(rows, where) if _numbered(value.index) else _named(zip(value.index, rows, strict=True), where)
    if isinstance(value, pd.Series):
        return _list(value, where) if _numbered(value.index) else _named(value.items(), where)
    if isinstance(value, (list, tuple, np.ndarray, pd.Index)) and getattr(value, "ndim", 1) > 0:
        return _list(value, where)
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.item(), where)
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, (str, bool, int, float)):
        return value
    raise ValueError(
        f"{where} must be a number, text, a boolean, None, an array, a frame, or a list or dict of these; "
        f"it is a {type(value).__name__}. Turn it into one of them, or leave it out (dates and paths differ by rerun)."
    )


def _numbered(index: pd.Index) -> bool:
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def _list(values: Any, where: str) -> list[Any]:
    return [plain(value, f"{where}[{number}]") for number, value in enumerate(values)]


def _named(items: Any, where: str) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for key, value in items:
        name = " / ".join(map(str, key)) if isinstance(key, tuple) else str(key)
        if name in named:
            raise ValueError(f"the keys of {where} must differ as text; {name!r} occurs twice. Rename one of them.")
        named[name] = plain(value, f"{where}[{name!r}]")
    return named

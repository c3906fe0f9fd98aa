"""What a grid found: one report to read and two tables to compute with, from what its runs left on disk.

`report.md` shows the runs by what differs between them, their failures and their plain results; `runs.csv` has one row
per run; `results.csv` has one row per number in any results.json. Only this file decides what a report looks like.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from baer_utils.batch.grids import Cell, Grid
from baer_utils.batch.progress import spell_seconds
from baer_utils.reports import load_results

SHOWN = 6  # results of a notebook that the page shows; the table has all of them


def state_of(cell: Cell, names: tuple[str, ...]) -> dict[str, Any]:
    """How far a run is: `status`, `seconds`, and of its first incomplete notebook `notebook`, `stopped` and `error`.

    The status is complete, failed, or not complete: where a run was interrupted or its process ended.
    """
    path = cell.out / "book.json"
    records = json.loads(path.read_text(encoding="utf-8"))["notebooks"] if path.exists() else {}
    mine = {name: records.get(name, {}) for name in names}
    state = {"status": "complete", "seconds": sum(record.get("seconds") or 0 for record in mine.values())}
    state |= {"notebook": "", "stopped": "", "error": "", "cut": sum(record.get("cut", 0) for record in mine.values())}
    bad = {name: record for name, record in mine.items() if record.get("status") != "complete"}
    failed = [name for name, record in bad.items() if record.get("status") == "failed"]
    if failed:
        first = bad[failed[0]]
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        return state | {
            "status": "failed", "notebook": failed[0] + more, "stopped": first.get("stopped", ""),
            "error": first.get("error", ""),
        }  # fmt: skip
    if bad:
        name, record = next(iter(bad.items()))
        said = record.get("status", "not run")
        return state | {"status": "not complete", "notebook": name, "error": f"{said}; see {cell.out / 'log.txt'}"}
    return state


def write_report(grid: Grid) -> Path:
    """Write `report.md`, `runs.csv` and `results.csv` into the grid's folder; returns the path of the first."""
    names = tuple(notebook.name for notebook in grid.notebooks)
    values = pd.DataFrame([cell.values for cell in grid.cells], index=[cell.name for cell in grid.cells])
    states = pd.DataFrame([state_of(cell, names) for cell in grid.cells], index=values.index)
    results = pd.DataFrame(
        [(cell.name, *row) for cell in grid.cells for row in _results(cell, names)],
        columns=["run", "notebook", "result", "value"],
    )
    grid.out.mkdir(parents=True, exist_ok=True)
    pd.concat([values, states], axis=1).to_csv(grid.out / "runs.csv", index_label="run")
    with_values = results.merge(values, left_on="run", right_index=True, how="left")
    with_values.to_csv(grid.out / "results.csv", index=False)
    page = "\n".join(_page(grid, values, states, results))
    (grid.out / "report.md").write_text(page + "\n", encoding="utf-8")
    return grid.out / "report.md"


def _page(grid: Grid, values: pd.DataFrame, states: pd.DataFrame, results: pd.DataFrame) -> Iterator[str]:
    differ = [name for name in values if values[name].astype(str).nunique() > 1]
    same = {name: values[name].iloc[0] for name in values if name not in differ}
    complete = (states["status"] == "complete").sum()
    yield f"# Grid {grid.out.name}\n\n{complete} of {len(states)} runs are complete, in "
    yield f"{spell_seconds(states['seconds'].sum())} of computing. " + (
        f"The same in all of them: {', '.join(f'`{k}={v}`' for k, v in same.items())}." if same else ""
    )
    cut = int(states["cut"].sum())
    if cut:
        yield f"\n{cut} large outputs were cut from executed copies."
    shown = values[differ].assign(state=states["status"], time=states["seconds"].map(spell_seconds))
    yield "\n## Runs\n\n" + table(shown)
    bad = states[states["status"] != "complete"]
    if len(bad):
        yield "\n## What failed\n\n" + table(bad[["notebook", "stopped", "error"]])
    for notebook, rows in results[~results["result"].str.contains(" / ")].groupby("notebook", sort=False):
        wide = rows.pivot(index="run", columns="result", values="value").reindex(values.index)
        first = list(dict.fromkeys(rows["result"]))[:SHOWN]
        yield f"\n## {notebook}\n\n" + table(values[differ].join(wide[first]))


def table(frame: pd.DataFrame) -> str:
    """A frame as a Markdown table, its index first."""
    head = ["run", *map(str, frame.columns)]
    body = [[str(index), *map(_short, row)] for index, row in zip(frame.index, frame.to_numpy(object), strict=True)]
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(text.replace("|", "\\|") for text in line) + " |" for line in lines)


def _results(cell: Cell, names: tuple[str, ...]) -> Iterator[tuple[str, str, Any]]:
    for name in names:
        with contextlib.suppress(ValueError):  # a run that failed before it saved anything
            yield from ((name, *entry) for entry in _leaves(load_results(cell.out, name)))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(inner, f"{path} / {key}" if path else str(key))
    elif value is not None:
        yield path, value


def _short(value: Any) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and value != value):
        return ""
    return f"{value:.4g}" if isinstance(value, float) else " ".join(str(value).split())[:100]

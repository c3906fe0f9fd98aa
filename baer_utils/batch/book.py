"""Runs the notebooks in order into one folder, and goes on where an earlier run of the same command stopped.

A run is a folder: `<name>.ipynb` (executed copy), `<name>.html`, `<name>/results.json` and figures for each notebook,
whatever the notebooks write themselves, `book.json` (what was run, from what), and `index.html`. A copy being made is
called `<name>.partial.ipynb` and takes its final name when the last cell has ended, so a killed run leaves nothing that
looks finished. This file knows nothing of what notebooks compute.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from baer_utils.batch.execution import NotebookFailed, execute
from baer_utils.batch.forking import Nursery, nursery
from baer_utils.batch.parameters import Notebook, check_settings, read_notebook
from baer_utils.batch.progress import Progress, spell_seconds
from baer_utils.batch.site import SYMBOLS, write_contents, write_page
from baer_utils.reports import REPOSITORY, load_results, repository_path, write_json

NOTEBOOKS = REPOSITORY / "notebooks"
PACKAGE = REPOSITORY / "baer_utils"  # a change of its code makes every notebook due


@dataclass
class Run:
    """One folder of executed notebooks and what is known about them (`book.json`)."""

    out: Path
    parameters: dict[str, Any]
    notebooks: list[Notebook]
    records: dict[str, dict[str, Any]] = field(default_factory=dict)  # name -> status, seconds, fingerprint

    def is_complete(self, notebook: Notebook, values: dict[str, Any]) -> bool:
        """Whether this notebook's executed copy is there, made from the same source, values and package."""
        record = self.records.get(notebook.name, {})
        same = record.get("status") == "complete" and record.get("fingerprint") == _fingerprint(notebook, values)
        return same and (self.out / f"{notebook.name}.ipynb").exists()

    def begin(self, notebook: Notebook) -> None:
        """Mark a notebook as running and those after it as due: they may read what this one leaves."""
        after = False
        for other in self.notebooks:
            if other is notebook:
                self.records[other.name] = {"status": "interrupted", "seconds": None}
            elif after and other.name in self.records:
                self.records[other.name]["status"] = "due again"
            after = after or other is notebook
        self.save()

    def save(self) -> None:
        """Write `book.json` and `index.html`."""
        write_json(self.out / "book.json", {"parameters": self.parameters, "notebooks": self.records})
        rows = []
        for notebook in self.notebooks:
            record = self.records.get(notebook.name, {"status": "not run", "seconds": None})
            results = {}
            with contextlib.suppress(ValueError):
                results = load_results(self.out, notebook.name)
            said = {"name": notebook.name, "title": notebook.title, "question": notebook.question}
            rows.append({**said, "results": results, **record})
        symbols = self.notebooks[0].path.with_name(f"{SYMBOLS}.md")
        write_contents(self.out, self.parameters, rows, symbols)


def find_notebooks(folder: Path = NOTEBOOKS) -> list[Notebook]:
    """The notebooks of a folder named `NN_...ipynb`, in reading order."""
    found = [read_notebook(path) for path in sorted(folder.glob("[0-9][0-9]_*.ipynb"))]
    if not found:
        raise ValueError(f"{folder} must hold notebooks named like 00_start_here.ipynb; it holds none.")
    return found


def run_book(
    settings: dict[str, Any],
    *,
    out: str | Path | None = None,
    only: tuple[str, ...] = (),
    keep_going: bool = False,
    folder: Path = NOTEBOOKS,
    stream: TextIO | None = None,
) -> Path:
    """Run the book, or what is missing of it, and return its folder.

    Parameters
    ----------
    settings : name -> value for the parameters to change (`check_settings`); `OUT_DIR` means the same as `out`.
    out : folder of the run, relative to the repository root; if not given, `outputs/<name>` with a name made from the
        parameters, so that the same command finds its own run again.
    only : numbers ("03") or names of the notebooks to run; all if empty.
    keep_going : whether the notebooks after a failing one are run all the same.
    folder : where the notebooks are. They run with this as their working directory, as they do in JupyterLab.
    stream : where progress goes; standard output if not given.

    Returns
    -------
    absolute path of the run. Notebooks whose copy is complete, from the same source, values and package code, are not
    run again; once one does run, those after it are due again, for they may read what it left.

    Raises
    ------
    ValueError
        before anything runs, for an unknown or ill-typed parameter or an unknown notebook.
    NotebookFailed
        at the first notebook that stops with an error; with `keep_going`, at the end if any did.
    """
    stream = stream or sys.stdout
    run, due = plan(settings, out=out, only=only, folder=folder)
    print(f"The book goes to {_relative(run.out)}; open {_relative(run.out / 'index.html')} to read it.", file=stream)
    failed = []
    with nursery(notebook.path for notebook, _ in due) as kernels:
        for notebook, given in due:
            label = f"[{run.notebooks.index(notebook) + 1}/{len(run.notebooks)}] {notebook.name}"
            try:
                _run_one(run, notebook, given, label, stream, kernels)
            except NotebookFailed as error:
                if not keep_going:
                    raise
                failed.append(str(error))
                print(f"{label}  failed", file=stream, flush=True)
    if failed:
        raise NotebookFailed("\n".join(failed))
    return run.out


def plan(
    settings: dict[str, Any], *, out: str | Path | None = None, only: tuple[str, ...] = (), folder: Path = NOTEBOOKS
) -> tuple[Run, list[tuple[Notebook, dict[str, Any]]]]:
    """The run that `run_book` would work on, and the chosen notebooks, each with the values it gets."""
    notebooks = find_notebooks(folder)
    settings = dict(settings)
    out = settings.pop("OUT_DIR", None) or out
    values = check_settings(settings, notebooks)
    parameters = {
        name: value for notebook in notebooks for name, value in notebook.parameters.items() if name != "OUT_DIR"
    }
    parameters |= {name: value for given in values.values() for name, value in given.items()}
    place = repository_path(out or Path("outputs") / run_name(parameters)) or REPOSITORY
    for notebook in notebooks:
        if "OUT_DIR" in notebook.parameters:
            values[notebook.name]["OUT_DIR"] = _relative(place)
    chosen = choose(notebooks, only)
    return Run(place, parameters, notebooks, _read_records(place)), [(n, values[n.name]) for n in chosen]


def run_name(parameters: dict[str, Any]) -> str:
    """Name of the run of these parameters: readable, and different as soon as one of them differs."""
    digest = hashlib.sha256(json.dumps(parameters, sort_keys=True).encode()).hexdigest()[:8]
    parts = [str(parameters[name]) for name in ("BENCHMARK", "BACKBONE") if name in parameters]
    parts += [f"n{parameters['N_PAIRS'] or 'all'}"] if "N_PAIRS" in parameters else []
    return "-".join([re.sub(r"[^A-Za-z0-9_.-]+", "_", part)[:40].strip("._") for part in parts] + [digest])


def _run_one(
    run: Run, notebook: Notebook, values: dict[str, Any], label: str, stream: TextIO, kernels: Nursery | None
) -> None:
    if run.is_complete(notebook, values):
        print(f"{label}  done before, in {spell_seconds(run.records[notebook.name]['seconds'])}", file=stream)
        return
    fingerprint = _fingerprint(notebook, values)  # of what is run now, whatever changes meanwhile
    run.begin(notebook)
    partial, copy = run.out / f"{notebook.name}.partial.ipynb", run.out / f"{notebook.name}.ipynb"
    with Progress(label, run.out / f".{notebook.name}.progress.json", stream) as progress:
        try:
            record = {"status": "complete", "cut": execute(notebook, values, partial, kernels)}
        except NotebookFailed as error:
            run.records[notebook.name] = {"status": "failed", "seconds": progress.seconds, **error.place}
            run.save()
            left = f"Its partial copy is {_relative(partial)}; the same command goes on with this notebook."
            raise NotebookFailed(f"{error}\n{left}", **error.place) from None
        partial.replace(copy)
        write_page(copy)
        record |= {"seconds": progress.seconds, "fingerprint": fingerprint}
    run.records[notebook.name] = record
    run.save()
    print(f"{label}  {spell_seconds(record['seconds'])}{_spell_cut(record['cut'])}", file=stream, flush=True)


def _spell_cut(count: int) -> str:
    return f"  ({count} large output{'s' * (count > 1)} cut from the copy)" if count else ""


def _fingerprint(notebook: Notebook, values: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode())
    for path in [notebook.path, *sorted(PACKAGE.rglob("*.py"))]:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _read_records(out: Path) -> dict[str, dict[str, Any]]:
    path = out / "book.json"
    return json.loads(path.read_text(encoding="utf-8"))["notebooks"] if path.exists() else {}


def choose(notebooks: list[Notebook], only: tuple[str, ...]) -> list[Notebook]:
    """Those of the notebooks whose number ("03") or name is among `only`; all of them if it is empty."""
    names = [notebook.name for notebook in notebooks]
    for wanted in only:
        if not any(wanted in (name, name[:2]) for name in names):
            raise ValueError(f"{wanted!r} must be the number or name of a notebook: {', '.join(names)}.")
    return [n for n in notebooks if not only or n.name in only or n.name[:2] in only]


def _relative(path: Path) -> str:
    return str(path.relative_to(REPOSITORY)) if path.is_relative_to(REPOSITORY) else str(path)

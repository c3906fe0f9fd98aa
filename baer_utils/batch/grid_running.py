"""Runs a grid: each run in a process of its own, some at a time, and none stopped by another one's failure.

A process ends with its run, so no memory is carried from one to the next, and papermill's working directory, which all
threads of a process share, is never shared. What a run prints goes to `log.txt` in its folder.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TextIO

from baer_utils.batch.book import NotebookFailed, plan, run_book
from baer_utils.batch.grid_report import state_of, write_report
from baer_utils.batch.grids import Cell, Grid
from baer_utils.batch.progress import Progress, spell_seconds

POLL = 0.1  # seconds


def run_grid(grid: Grid, stream: TextIO | None = None) -> int:
    """Run what is missing of a grid, write its report, and return how many of its runs have failed.

    Parameters
    ----------
    grid : what is run (`grids.read_grid`). Runs that are complete, from the same sources and values, are not repeated.
    stream : where progress goes, a line for every run that ends; standard output if not given.
    """
    stream = stream or sys.stdout
    names = tuple(notebook.name for notebook in grid.notebooks)
    done = [cell for cell in grid.cells if _is_complete(cell, names, grid.folder)]
    due = [cell for cell in grid.cells if cell not in done]
    print(f"{len(grid.cells)} runs, {len(done)} done before; they go to {grid.out}.", file=stream, flush=True)
    try:
        if due:
            _run_all(due, lambda cell: _start(cell, names, grid), grid, stream)
    finally:
        path = write_report(grid)
    failed = [cell for cell in grid.cells if state_of(cell, names)["status"] != "complete"]
    print(f"{len(grid.cells) - len(failed)} of {len(grid.cells)} runs are complete; the report is {path}.", file=stream)
    return len(failed)


def _run_all(due: list[Cell], start: Callable[[Cell], BaseProcess], grid: Grid, stream: TextIO) -> None:
    names = tuple(notebook.name for notebook in grid.notebooks)
    waiting, running, failed = list(due), {}, 0
    with Progress("", grid.out / ".grid.progress.json", stream) as progress:
        try:
            while waiting or running:
                while waiting and len(running) < grid.workers:
                    cell = waiting.pop(0)
                    running[cell.name] = cell, start(cell), time.monotonic()
                time.sleep(POLL)
                for cell, _, began in [entry for entry in running.values() if not entry[1].is_alive()]:
                    del running[cell.name]
                    state = state_of(cell, names)
                    failed += state["status"] != "complete"
                    number = len(due) - len(waiting) - len(running)
                    line = f"[{number}/{len(due)}] {cell.name}  {spell_seconds(time.monotonic() - began)}"
                    progress.say(line + (f"  {spell_failure(state)}" if state["status"] != "complete" else ""))
                progress.label = f"{len(running)} running, {len(waiting)} waiting, {failed} failed"
        finally:
            for _, process, _ in running.values():
                process.terminate()


def spell_failure(state: dict[str, Any]) -> str:
    """Which notebook of a run stopped, in which cell, and why; in one line."""
    where = ", ".join(filter(None, [state["notebook"], state["stopped"]]))
    return f"{state['status']}: {where}: {state['error']}" if where else f"{state['status']}: {state['error']}"


def _is_complete(cell: Cell, names: tuple[str, ...], folder: Path) -> bool:
    run, chosen = plan(cell.values, out=cell.out, only=names, folder=folder)
    return all(run.is_complete(notebook, values) for notebook, values in chosen)


def _start(cell: Cell, names: tuple[str, ...], grid: Grid) -> BaseProcess:
    threads = str(max(1, (os.cpu_count() or 1) // grid.workers))
    os.environ.setdefault("OMP_NUM_THREADS", threads)  # else every run would want all cores
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_run_cell, args=(cell, names, grid.folder), daemon=True)
    process.start()
    return process


def _run_cell(cell: Cell, names: tuple[str, ...], folder: Path) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    cell.out.mkdir(parents=True, exist_ok=True)
    with (cell.out / "log.txt").open("w", encoding="utf-8") as log, contextlib.redirect_stderr(log):
        try:
            run_book(cell.values, out=cell.out, only=names, keep_going=True, folder=folder, stream=log)
        except NotebookFailed as error:
            print(error, file=log)
            sys.exit(1)
        except BaseException:  # a full disk, Ctrl-C: told where the state of this run says to look
            traceback.print_exc(file=log)
            sys.exit(1)


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)

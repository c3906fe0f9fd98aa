"""Grids of runs: what a file may say, that one failure stops nothing, that a rerun does only what is missing."""

from __future__ import annotations

import io
import json
import textwrap
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from baer_utils.__main__ import main
from baer_utils.batch.execution import shorten_outputs
from baer_utils.batch.grid_report import table
from baer_utils.batch.grid_running import run_grid
from baer_utils.batch.grids import read_grid
from baer_utils.batch.progress import Progress

PARAMETERS = 'N_PAIRS: int = 8\nSEED: int = 0\nMODE: str = "good"\nOUT_DIR: str = "outputs/scratch"'
FIRST = """from baer_utils.reports import save_results
save_results(OUT_DIR, "00_first", {"double": 2 * N_PAIRS, "seed": SEED, "deep": {"half": N_PAIRS / 2}})
from pathlib import Path
_ = (Path(OUT_DIR) / "ran.txt").open("a").write("x")"""
SECOND = "assert MODE != 'bad', 'this mode is bad'\nimport os\nif MODE == 'dead': os.kill(os.getpid(), 9)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two small notebooks; the second fails in two of its modes, each in its own way."""
    place = tmp_path_factory.mktemp("notebooks")
    for name, source in (("00_first", FIRST), ("01_second", SECOND)):
        first = nbformat.v4.new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]})
        nbformat.write(
            nbformat.v4.new_notebook(cells=[first, nbformat.v4.new_code_cell(source)]), place / f"{name}.ipynb"
        )
    return place


@pytest.fixture(scope="module")
def finished(tmp_path_factory, folder):
    """A grid of three runs, two of them bad, its number of failures, and what it printed."""
    text = "conditions: [{MODE: good}, {MODE: bad}, {MODE: dead}]\nparameters: {N_PAIRS: [8]}\nworkers: 3"
    grid = grid_of(tmp_path_factory.mktemp("grid"), folder, text)
    stream = io.StringIO()
    return grid, run_grid(grid, stream), stream.getvalue()


def grid_of(tmp_path: Path, folder: Path, text: str):
    path = tmp_path / "grid.yml"
    path.write_text(textwrap.dedent(text) + f"\nout: {tmp_path / 'grid'}\n")
    return read_grid(path, folder=folder)


def test_one_bad_run_stops_nothing_and_is_reported_with_its_cell(finished):
    grid, failed, printed = finished
    states = pd.read_csv(grid.out / "runs.csv", index_col="MODE")
    assert failed == 2 and list(states["status"]) == ["complete", "failed", "failed"]
    assert states.loc["bad", "notebook"] == "01_second"
    assert states.loc["bad", "stopped"].startswith("code cell 3, which begins \"assert MODE != 'bad'")
    assert "AssertionError: this mode is bad" in states.loc["bad", "error"] and "died" in states.loc["dead", "error"]
    assert "failed: 01_second, code cell" in printed and "1 of 3 runs are complete" in printed


def test_the_report_gathers_what_differs_and_every_number_of_the_results(finished):
    grid, _, _ = finished
    results = pd.read_csv(grid.out / "results.csv")
    wide = results.pivot(index="MODE", columns="result", values="value")
    assert wide.loc["good"].to_dict() == {"double": 16, "seed": 0, "deep / half": 4} and len(wide) == 3
    page = (grid.out / "report.md").read_text()
    assert "1 of 3 runs are complete" in page and "`N_PAIRS=8`" in page and "## 00_first" in page
    assert "| run | MODE | state | time |" in page and "## What failed" in page and "this mode is bad" in page


def test_a_rerun_does_only_what_is_missing(finished):
    grid, _, _ = finished
    again = io.StringIO()
    assert run_grid(grid, again) == 2
    assert "1 done before" in again.getvalue() and grid.cells[0].name not in again.getvalue().split("\n", 1)[1]
    assert [len((cell.out / "ran.txt").read_text()) for cell in grid.cells] == [1, 1, 1]  # their first notebooks, too


def test_a_grid_is_every_condition_with_every_seed_and_every_value(tmp_path, folder):
    grid = grid_of(
        tmp_path, folder, "conditions: [{MODE: a}, {MODE: b, N_PAIRS: 3}]\nseeds: [0, 5]\nnotebooks: ['01_second']"
    )
    assert [cell.values for cell in grid.cells] == [
        {"MODE": mode, **more, "SEED": seed} for mode, more in (("a", {}), ("b", {"N_PAIRS": 3})) for seed in (0, 5)
    ]
    assert len({cell.name for cell in grid.cells}) == 4
    assert [notebook.name for notebook in grid.notebooks] == ["01_second"]
    assert "MODE=b N_PAIRS=3 SEED=5" in str(grid)


@pytest.mark.parametrize(
    "text, message",
    [
        ("parameters: {N_PAIR: [1]}", "N_PAIR is not a parameter of any notebook. Did you mean N_PAIRS"),
        ("parameters: {N_PAIRS: [many]}", "N_PAIRS must be a whole number"),
        ("parameters: {N_PAIRS: 3}", "N_PAIRS must be a list with at least one value"),
        ("parameters: [N_PAIRS]", "parameters must be NAME: value"),
        ("parameters: {OUT_DIR: [x]}", "OUT_DIR must not be given"),
        ("conditions: [good]", "each of the conditions must be NAME: value"),
        ("conditions: [{SEED: 1}]\nseeds: [0]", "SEED must be given in one place"),
        ("seeds: []", "seeds must be a list with at least one value"),
        ("seeds: [0, 0]", "the runs of a grid must differ; 2 are SEED=0"),
        ("seeds: [0]\nnotebooks: ['07']", "'07' must be the number or name of a notebook"),
        ("seeds: [0]\nworkers: 0", "workers must be a whole number above 0"),
        ("seed: [0]", "the keys must be of conditions, seeds"),
        ("seeds: [0", "must be YAML"),
        ("", "must hold at least one of the keys"),
    ],
)
def test_a_file_that_says_something_wrong_is_refused_before_anything_runs(tmp_path, folder, text, message):
    path = tmp_path / "grid.yml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        read_grid(path, folder=folder)


def test_the_command_lists_its_runs_refuses_the_unknown_and_exits_by_what_failed(tmp_path, capsys, monkeypatch):
    path = tmp_path / "clips.yml"
    path.write_text("parameters: {N_PAIRS: [16, 20], CLIP: [1e-4]}\nnotebooks: ['02']")
    assert main(["grid", "book", str(path), "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "2 runs of 02_order_instability" in printed and "N_PAIRS=20 CLIP=0.0001" in printed
    monkeypatch.setattr("baer_utils.batch.grid_running.run_grid", lambda grid: 1)
    assert main(["grid", "book", str(path)]) == 1
    assert "1 of 2 runs failed" in capsys.readouterr().err
    path.write_text("parameters: {CLAP: [1]}")
    assert main(["grid", "book", str(path)]) == 2 and "Did you mean CLIP" in capsys.readouterr().err
    assert main(["grid", "book", str(tmp_path / "absent.yml")]) == 2


def test_the_largest_outputs_are_cut_until_a_copy_is_small_and_that_is_said():
    cells = [
        nbformat.v4.new_code_cell("x", outputs=[nbformat.v4.new_output("stream", text="y" * n)])
        for n in (9, 5000, 3000)
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    assert shorten_outputs(notebook, limit=6000) == 1
    assert notebook.cells[0].outputs[0].text == "y" * 9 and len(notebook.cells[2].outputs[0].text) == 3000
    assert "was cut here" in notebook.cells[1].outputs[0].text and len(json.dumps(notebook)) < 6000
    assert shorten_outputs(notebook, limit=6000) == 0


def test_a_table_keeps_its_columns_whatever_the_text():
    lines = table(pd.DataFrame({"a": ["x|y", float("nan"), 0.123456], "b": ["two\nlines", 1, None]})).splitlines()
    assert lines[2:] == ["| 0 | x\\|y | two lines |", "| 1 |  | 1 |", "| 2 | 0.1235 |  |"]


def test_lines_come_above_the_one_that_renews_itself(tmp_path):
    stream = io.StringIO()
    with Progress("", tmp_path / "state.json", stream) as progress:
        progress.say("[1/2] done")
    assert stream.getvalue() == "[1/2] done\n"

"""The notebooks: what every one of them has, and what a run of the whole book leaves, from recorded answers."""

from __future__ import annotations

import ast
import html
import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from baer_utils import plots
from baer_utils.__main__ import main
from baer_utils.batch.book import NOTEBOOKS, find_notebooks
from baer_utils.batch.execution import LARGEST_COPY, NotebookFailed
from baer_utils.batch.parameters import literals
from baer_utils.batch.reference import FOLDER, differences
from baer_utils.batch.site import MOST_NUMBERS
from baer_utils.reports import load_results
from tests import measure
from tests.finished_book import finished_book, run_into

NAMES = [
    "00_start_here", "01_judging_protocols", "02_order_instability", "03_symmetric_features", "04_stacking_head",
    "05_routing_head", "06_reference_verification", "07_selection_and_calibration_gates", "08_frozen_test",
    "09_role_profiles", "10_stopped_panels", "11_regime_maps", "12_pruning_the_bank",
]  # fmt: skip
OPENING = "08_frozen_test"  # the only one that reads test labels
ANEW = {"swapped", "pairs.head(N_LIVE)"}  # asked again on purpose, to be compared with what is kept
SHARED = ["BENCHMARK", "SOURCE", "BACKBONE", "N_PAIRS", "SEED", "OUT_DIR"]


def code_cells(name: str) -> list[dict]:
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return [cell | {"text": "".join(cell["source"])} for cell in cells if cell["cell_type"] == "code"]


def without_live(out: Path, name: str) -> dict:
    """Results but for what was judged live, which another number of pairs changes."""
    return {key: value for key, value in load_results(out, name).items() if key != "live"}


def test_the_book_has_these_notebooks_and_no_others():
    assert [notebook.name for notebook in find_notebooks()] == NAMES
    assert [path.stem for path in sorted(NOTEBOOKS.glob("*.ipynb"))] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_first_code_cell_holds_the_shared_parameters_and_at_most_three_more(name):
    first = code_cells(name)[0]
    assert "parameters" in first["metadata"].get("tags", [])
    own = literals(first["text"], name)
    assert list(own)[:6] == SHARED and len(own) <= 9
    assert all(line.partition("#")[2].strip() for line in first["text"].splitlines() if ":" in line.partition("#")[0])


def test_shared_parameters_have_the_same_defaults_everywhere():
    books = find_notebooks()
    for name in SHARED:
        assert len({repr(book.parameters[name]) for book in books}) == 1, name


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_reads_in_short_cells_between_enough_prose_and_captions_every_figure(name):
    taken = measure.measure(NOTEBOOKS / f"{name}.ipynb")
    assert not taken.outside(), f"{name} lies outside {measure.LIMITS} in {taken.outside()}"
    assert not taken.bare, f"{name}: a plots.caption must follow {', '.join(taken.bare)}"


def test_the_measure_sees_long_cells_functions_missing_prose_and_a_bare_figure(tmp_path):
    code = ["def f():\n    return 1\n\n# only a comment\n", "x = 1\n" * 20, "display(plots.forest(x))", "y = 2"]
    cells = [{"cell_type": "code", "source": text} for text in code]
    cells += [{"cell_type": "markdown", "source": "Two [words](../a/long/address.html) $x + y$ and - 1"}]
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": cells}))
    taken = measure.measure(tmp_path / "n.ipynb")
    assert (taken.cells, taken.median, taken.in_functions, taken.words_per_line) == (5, 1.5, 2 / 24, 4 / 24)
    assert taken.bare == ("forest",) and set(taken.outside()) == {"cells", "words_per_line"}


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_ends_by_saving_its_results_under_its_own_name(name):
    cells = [cell for cell in code_cells(name) if "solution" not in cell["metadata"].get("tags", [])]
    call = ast.parse(cells[-1]["text"]).body[-1].value
    assert ast.unparse(call.func) == "save_results"
    assert [ast.unparse(argument) for argument in call.args[:2]] == ["OUT_DIR", repr(name)]
    assert sum(cell["text"].count("save_results(") for cell in cells) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_leaves_a_small_copy_with_results_and_without_noise(name):
    out = finished_book().out
    copy = out / f"{name}.ipynb"
    assert copy.stat().st_size < LARGEST_COPY
    outputs = [output for cell in json.loads(copy.read_text())["cells"] for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output["output_type"] == "error"]
    noise = ["".join(output["text"]) for output in outputs if output.get("name") == "stderr"]
    assert not noise, f"{name} writes to standard error: {noise[0][:300]}"
    assert not [output for output in outputs if any("widget" in kind for kind in output.get("data", {}))]
    assert load_results(out, name)


@pytest.mark.parametrize("name", NAMES)
def test_no_table_is_empty_and_the_contents_show_numbers_of_every_notebook(name):
    out = finished_book().out
    cells = json.loads((out / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    tables = ["".join(output.get("data", {}).get("text/html", "")) for output in outputs]
    assert not [table for table in tables if re.search(r"<tbody>\s*</tbody>", table)]
    numbers = load_results(out, name)["key_numbers"]
    assert 1 <= len(numbers) <= MOST_NUMBERS and not any(value is None for value in numbers.values())
    row = (out / "index.html").read_text(encoding="utf-8").split(f'href="{name}.html"')[1].partition("</tr>")[0]
    assert all(f"{html.escape(word)}: " in row for word in numbers)


@pytest.mark.parametrize("number, name", list(enumerate(NAMES)))
def test_a_notebook_begins_with_the_way_back_and_the_way_on(number, name):
    first = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"][0]["source"]
    linked = re.findall(r"\]\((\w+)\.ipynb\)", "".join(first))
    assert {*NAMES[max(number - 1, 0) : number], *NAMES[number + 1 : number + 2]} <= set(linked)


def test_no_notebook_pays_for_an_answer_twice():
    for name in NAMES:
        for node in (node for cell in code_cells(name) for node in ast.walk(ast.parse(cell["text"]))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "judge_pairs":
                kept = any(keyword.arg == "store" for keyword in node.keywords)
                assert kept or ast.unparse(node.args[0]) in ANEW, f"{name}: {ast.unparse(node)}"


def test_every_figure_of_the_module_is_drawn_in_a_notebook():
    drawn = {
        word for name in NAMES for cell in code_cells(name) for word in re.findall(r"plots\.(\w+)\(", cell["text"])
    }
    assert set(plots.__all__) - {"caption", "spoken", "style"} - drawn == {"tau_path"}, "the dial draws that one"


def test_the_run_can_be_read_from_its_index_and_holds_the_frozen_head():
    out = finished_book().out
    index = (out / "index.html").read_text(encoding="utf-8")
    places = [index.index(f'href="{name}.html"') for name in NAMES]
    assert places == sorted(places) and index.count('<td class="state">complete') == len(NAMES)
    assert list(out.rglob("deployment.json"))
    assert list(out.rglob("figure_1.png"))


def test_the_same_command_runs_only_what_is_missing_and_the_same_head_may_open_the_test_again():
    finished = finished_book()
    before = load_results(finished.out, OPENING)
    (finished.out / f"{OPENING}.ipynb").unlink()
    printed = run_into(finished.out, finished.store)
    assert printed.count("done before") == NAMES.index(OPENING)  # what comes after it may read what it leaves
    assert load_results(finished.out, OPENING) == before


def test_poisoned_test_labels_change_nothing_outside_the_notebook_that_opens_them_and_stop_that_one(tmp_path):
    finished = finished_book()
    store = Path(shutil.copytree(finished.store, tmp_path / "store"))
    sealed = list(store.rglob("sealed/*.parquet"))
    assert sealed
    for path in sealed:
        labels = pd.read_parquet(path)
        labels.assign(label=-labels["label"]).to_parquet(path)
    for log in store.rglob("sealed/*.openings.jsonl"):
        log.unlink()  # as if nobody had opened the test: an opened one keeps its report, and reads no label again
    with pytest.raises(NotebookFailed, match=f"{OPENING} stopped"):
        run_into(tmp_path / "run", store, keep_going=True, N_LIVE=0)
    for name in NAMES:
        if name != OPENING:
            assert without_live(tmp_path / "run", name) == without_live(finished.out, name)


@pytest.mark.parametrize("name", NAMES)
def test_a_rerun_finds_what_the_reference_found(name):
    if not (FOLDER / "small" / name).exists():
        pytest.skip(f"outputs/reference/small holds no results of {name}; `make reference` makes them")
    found = list(differences(load_results(FOLDER / "small", name), load_results(finished_book().out, name)))
    assert not found, "\n".join(found[:20])


def test_a_difference_is_named_with_its_place_unless_it_is_within_its_tolerance():
    expected = {"a": [1.0, {"b": 2}], "live": {"largest": 1e-5}, "sha256": "x", "c": True, "d": None, "e": "inf"}
    same = {"a": [1 + 1e-7, {"b": 2}], "live": {"largest": 5e-4}, "sha256": "y", "c": True, "d": None, "e": "inf"}
    assert not list(differences(expected, same))
    other = same | {"a": [1.001, {"b": 2}], "c": 1, "f": 0, "live": {"largest": 0.1}}
    assert [line.partition(":")[0] for line in differences(expected, other)] == ["a / 0", "live / largest", "c", "f"]


def test_an_unknown_parameter_is_refused_before_anything_runs(capsys, tmp_path):
    assert main(["book", "--set", "N_PAIR=16", "--out", str(tmp_path / "run")]) == 2
    assert "Did you mean N_PAIRS" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()

"""Kernels that are forked: each a process of its own, with nothing in it but imports, and gone with its notebook."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from pathlib import Path

import nbformat
import pytest

from baer_utils.batch import forking
from baer_utils.batch.book import run_book
from baer_utils.batch.forking import Nursery, import_statements
from baer_utils.reports import load_results

CELL = """import json, os, sys
from baer_utils.reports import save_results
seen = {"pid": os.getpid(), "parent": os.getppid(), "left": getattr(json, "left", None), "argv": len(sys.argv)}
json.left = N
kernel = get_ipython().kernel.parent
seen |= {"transport": kernel.transport, "place": os.path.dirname(kernel.connection_file)}
save_results(OUT_DIR, NAME, seen | {"loaded": "colorsys" in sys.modules, "cwd": os.getcwd()})"""
needs_forks = pytest.mark.skipif(not forking.CAN_FORK, reason="processes are not forked on this system")


def book(folder: Path, n: int = 3) -> Path:
    folder.mkdir()
    for number in range(n):
        name = f"{number:02d}_x"
        first = nbformat.v4.new_code_cell(
            f'NAME: str = "{name}"\nN: int = {number}\nOUT_DIR: str = "outputs/scratch"',
            metadata={"tags": ["parameters"]},
        )
        cells = [first, nbformat.v4.new_code_cell(CELL)]
        cells += [nbformat.v4.new_code_cell("import colorsys")] if number == 2 else []
        nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / f"{name}.ipynb")
    return folder


@needs_forks
def test_each_notebook_has_a_process_of_its_own_with_the_imports_of_all_and_nothing_else(tmp_path):
    out = run_book({}, out=tmp_path / "run", folder=book(tmp_path / "books"), stream=io.StringIO())
    seen = [load_results(out, f"{number:02d}_x") for number in range(3)]
    assert len({entry["pid"] for entry in seen}) == 3 and len({entry["parent"] for entry in seen}) == 1
    assert os.getpid() not in {entry["parent"] for entry in seen}
    assert [entry["left"] for entry in seen] == [None] * 3 and all(entry["loaded"] for entry in seen)
    assert not [entry["pid"] for entry in seen if Path(f"/proc/{entry['pid']}").exists()]


def test_where_processes_cannot_be_forked_kernels_start_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(forking, "CAN_FORK", False)
    out = run_book({}, out=tmp_path / "run", folder=book(tmp_path / "books", 1), stream=io.StringIO())
    assert load_results(out, "00_x")["parent"] == os.getpid()
    assert load_results(out, "00_x")["transport"] == ("tcp" if sys.platform == "win32" else "ipc")


@needs_forks
def test_kernels_never_compete_for_a_port(tmp_path, monkeypatch):
    out = run_book({}, out=tmp_path / "run", folder=book(tmp_path / "books"), stream=io.StringIO())
    seen = [load_results(out, f"{number:02d}_x") for number in range(3)]
    assert {entry["transport"] for entry in seen} == {"ipc"} and len({entry["place"] for entry in seen}) == 3
    assert not [entry["place"] for entry in seen if Path(entry["place"]).exists()]  # nothing is left behind
    deep = tmp_path / ("a long name " * 8)  # of temporary files: more than a socket's path can hold
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    out = run_book({}, out=tmp_path / "again", folder=book(tmp_path / "more", 1), stream=io.StringIO())
    assert load_results(out, "00_x")["transport"] == "tcp"


def test_only_plain_imports_at_the_top_level_are_made_ahead(tmp_path):
    cells = [
        nbformat.v4.new_markdown_cell("import this"), nbformat.v4.new_code_cell("%matplotlib inline\nimport that"),
        nbformat.v4.new_code_cell("import json as j\nfrom os import path, sep\nif True:\n    import heapq"),
    ]  # fmt: skip
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "x.ipynb")
    assert import_statements(tmp_path / "x.ipynb") == ["import json as j", "from os import path, sep"]


@needs_forks
def test_an_import_that_fails_is_left_to_its_notebook_and_a_nursery_that_died_is_said_to_have():
    nursery = Nursery(["import no_such_module", "raise SystemExit"])
    with pytest.raises(RuntimeError, match="the process that forks kernels has ended"):
        nursery.fork(["-f", "nowhere.json"], os.getcwd(), dict(os.environ))
    nursery.close()


def test_a_nursery_that_never_forked_never_started(monkeypatch):
    monkeypatch.setattr(forking.subprocess, "Popen", None)
    Nursery(["import json"]).close()

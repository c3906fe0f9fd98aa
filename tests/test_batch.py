"""The book runner: what it refuses, what it runs, where it goes on after a stop, what it shows."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baer_utils.__main__ import main
from baer_utils.batch.book import run_book, run_name
from baer_utils.batch.execution import NotebookFailed
from baer_utils.batch.parameters import Notebook, check_settings, literals, read_notebook, read_value, split_setting
from baer_utils.batch.progress import Progress, spell_seconds
from baer_utils.reports import REPOSITORY, load_results

COUNT = "from pathlib import Path\nlog = Path(OUT_DIR) / 'log.txt'\nlog.open('a').write('{name} ')"
FIRST = """import os, sys
from baer_utils.reports import save_results
save_results(OUT_DIR, "00_first", {"python": sys.executable, "cwd": os.getcwd(), "n": N_PAIRS, "source": SOURCE})"""
FIGURE = """import matplotlib.pyplot as plt
fig, ax = plt.subplots(figsize=(1, 1))
plt.show()"""


def write(folder: Path, name: str, parameters: str, *cells: str, title: str = "") -> Path:
    """A small notebook that first notes that it ran, then does what its cells say."""
    first = nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})
    text = nbformat.v4.new_markdown_cell(f"# {title or name}\nWhat is asked. [Next](01_second.ipynb)")
    code = [nbformat.v4.new_code_cell(source) for source in (COUNT.format(name=name), *cells)]
    path = folder / f"{name}.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[text, first, *code]), path)
    return path


@pytest.fixture(autouse=True)
def package(tmp_path, monkeypatch):
    """A stand-in for the package's code, so that only this test changes it."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "module.py").write_text("A = 1")
    monkeypatch.setattr("baer_utils.batch.book.PACKAGE", tmp_path / "package")
    return tmp_path / "package"


@pytest.fixture
def folder(tmp_path):
    """Three notebooks in a folder whose name needs care: a space, and braces that papermill takes for a template."""
    place = tmp_path / "my {book}"
    place.mkdir()
    shared = 'BENCHMARK: str = "b"\nSOURCE: str = ""\nN_PAIRS: int = 0\nOUT_DIR: str = "outputs/scratch"'
    write(place, "00_first", shared, FIRST, title="0 · First & foremost")
    write(place, "01_second", shared + "\nCLIP: float = 1e-4", FIGURE, "assert CLIP > 0, 'the clip must be positive'")
    write(place, "02_third", 'OUT_DIR: str = ""')
    return place


def ran(out: Path) -> list[str]:
    return (out / "log.txt").read_text().split()


# ---------------------------------------------------------------- what it may be told


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.text())
def test_a_value_is_read_back_from_how_it_is_typed(value):
    typed = value if isinstance(value, str) else repr(value)
    read = read_value("NAME", split_setting(f"NAME={typed}")[1], type(value)())
    assert read == value and type(read) is type(value)


@pytest.mark.parametrize(
    "default, typed, message",
    [
        (0, "abc", "N_PAIRS must be a whole number, like 0; it is 'abc'"),
        (0, "1.5", "must be a whole number"),
        (0, "True", "must be a whole number"),
        (0, "", "must be a whole number"),
        (0.5, "nan", "must be a finite number"),
        (0.5, "1e999", "must be a finite number"),
        (True, "1", "must be True or False"),
        ([1], "(1,)", "must be a list"),
        ("text", 3, "must be text"),
    ],
)
def test_a_value_of_another_type_is_refused_with_the_one_expected(default, typed, message):
    with pytest.raises(ValueError, match=message):
        read_value("N_PAIRS", typed, default)


def test_a_whole_number_serves_where_a_fraction_is_expected():
    assert read_value("CLIP", "1", 0.5) == 1.0 and type(read_value("CLIP", "1", 0.5)) is float


def test_a_relative_source_becomes_absolute_from_the_callers_folder(tmp_path, monkeypatch):
    (tmp_path / "pairs.csv").write_text("")
    monkeypatch.chdir(tmp_path)
    assert read_value("SOURCE", "pairs.csv", "") == str((tmp_path / "pairs.csv").resolve())
    assert read_value("SOURCE", "not/there", "") == "not/there"
    assert read_value("SOURCE", "", "") == ""
    assert read_value("BENCHMARK", "pairs.csv", "") == "pairs.csv"


def test_an_unknown_parameter_is_refused_with_the_closest_one_and_all_of_them():
    books = [Notebook(Path("a.ipynb"), "a", "", {"N_PAIRS": 0}), Notebook(Path("b.ipynb"), "b", "", {"CLIP": 0.1})]
    with pytest.raises(ValueError, match="N_PAIR is not a parameter of any.*Did you mean N_PAIRS.*CLIP, N_PAIRS"):
        check_settings({"N_PAIR": "3"}, books)
    with pytest.raises(ValueError, match="Did you mean N_PAIRS"):
        check_settings({"n_pairs": "3"}, books)


def test_a_parameter_of_some_notebooks_goes_to_those_only():
    books = [Notebook(Path("a.ipynb"), "a", "", {"N_PAIRS": 0}), Notebook(Path("b.ipynb"), "b", "", {"CLIP": 0.1})]
    assert check_settings({"CLIP": "0.5"}, books) == {"a": {}, "b": {"CLIP": 0.5}}


@pytest.mark.parametrize("source", ["A = f(1)", "import os", "A, B = 1, 2", "A = B", "print(1)", "A: int"])
def test_a_parameters_cell_holds_nothing_but_literals(source):
    with pytest.raises(ValueError, match="must hold only lines like"):
        literals(f"N: int = 1\n{source}", "x.ipynb")


def test_a_notebook_without_its_parameters_cell_is_refused(tmp_path):
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("A = 1")]), tmp_path / "00_x.ipynb")
    with pytest.raises(ValueError, match="exactly one code cell tagged 'parameters'; it has 0"):
        read_notebook(tmp_path / "00_x.ipynb")
    (tmp_path / "00_x.ipynb").write_text("{}")
    with pytest.raises(ValueError, match="must be a notebook"):
        read_notebook(tmp_path / "00_x.ipynb")


def test_nothing_runs_when_one_setting_is_refused(folder, tmp_path):
    for settings in ({"N_PAIRS": "3", "CLIPP": "1"}, {"N_PAIRS": "x"}):
        with pytest.raises(ValueError):
            run_book(settings, out=tmp_path / "run", folder=folder)
    with pytest.raises(ValueError, match="'07' must be the number or name of a notebook: 00_first"):
        run_book({}, out=tmp_path / "run", only=("07",), folder=folder)
    with pytest.raises(ValueError, match="must hold notebooks"):
        run_book({}, out=tmp_path / "run", folder=tmp_path)
    assert not (tmp_path / "run").exists()


def test_bad_input_on_the_command_line_is_one_line_and_exit_code_2(capsys):
    assert main(["book", "--set", "N_PAIRS"]) == 2
    assert main(["judge", "--experts", "oracle", "direct"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and "must look like NAME=VALUE" in lines[0] and "oracle is not" in lines[1]


def test_a_run_is_named_after_its_parameters():
    base = {"BENCHMARK": "judgebench", "BACKBONE": "hf:org/model?dtype=bfloat16", "N_PAIRS": 0, "SEED": 0}
    assert run_name(base).startswith("judgebench-hf_org_model_dtype_bfloat16-nall-")
    assert run_name(base) == run_name(dict(reversed(base.items())))
    others = [{"BENCHMARK": "llmbar"}, {"BACKBONE": "hf:org/model"}, {"N_PAIRS": 24}, {"SEED": 1}]
    assert len({run_name(base | other) for other in [{}, *others]}) == 5


# ---------------------------------------------------------------- what it runs


def test_a_run_holds_copies_pages_figures_results_and_an_index_in_reading_order(folder, tmp_path, monkeypatch):
    other = tmp_path / "jupyter" / "kernels" / "python3"  # an installed kernel of that name is not this interpreter
    other.mkdir(parents=True)
    (other / "kernel.json").write_text('{"argv": ["false"], "display_name": "Other", "language": "python"}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    stream = io.StringIO()
    out = run_book({"N_PAIRS": "24"}, out=tmp_path / "run", folder=folder, stream=stream)
    assert ran(out) == ["00_first", "01_second", "02_third"]
    results = load_results(out, "00_first")
    assert results == {"python": sys.executable, "cwd": str(folder), "n": 24, "source": ""}
    assert (out / "01_second" / "figure_1.png").read_bytes().startswith(b"\x89PNG")
    index = (out / "index.html").read_text()
    assert 0 < index.index('href="00_first.html"') < index.index('href="01_second.html"') < index.index("02_third.html")
    assert "0 · First &amp; foremost" in index and "n: 24" in index and index.count("complete") == 3
    assert 'href="01_second.html"' in (out / "00_first.html").read_text()
    assert not list(out.glob("*.partial.ipynb")) and not list(out.glob(".*"))
    assert str(folder) not in (out / "02_third.ipynb").read_text()
    lines = stream.getvalue().splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [
        ["[1/3]", "00_first"],
        ["[2/3]", "01_second"],
        ["[3/3]", "02_third"],
    ]


def test_the_same_command_again_runs_only_what_changed_and_what_comes_after_it(folder, tmp_path, package):
    stream = io.StringIO()
    out = run_book({}, out=tmp_path / "run", folder=folder, stream=stream)
    run_book({}, out=tmp_path / "run", folder=folder, stream=stream)
    assert len(ran(out)) == 3 and stream.getvalue().count("done before") == 3
    write(folder, "01_second", 'OUT_DIR: str = ""')
    run_book({}, out=tmp_path / "run", only=("01",), folder=folder, stream=stream)
    assert "due again" in (out / "index.html").read_text()
    run_book({}, out=tmp_path / "run", folder=folder, stream=stream)
    assert ran(out)[3:] == ["01_second", "02_third"]
    (out / "02_third.ipynb").unlink()
    run_book({}, out=tmp_path / "run", folder=folder, stream=stream)
    assert ran(out)[5:] == ["02_third"]
    (package / "module.py").write_text("A = 2")
    run_book({}, out=tmp_path / "run", only=("00_first",), folder=folder, stream=stream)
    assert ran(out)[6:] == ["00_first"]


def test_a_failing_notebook_is_named_with_cell_error_and_copy_and_the_next_command_goes_on_there(folder, tmp_path):
    with pytest.raises(NotebookFailed) as caught:
        run_book({"CLIP": "-1.0"}, out=tmp_path / "run", folder=folder, stream=io.StringIO())
    message = str(caught.value)
    assert "01_second stopped in its code cell" in message and "AssertionError: the clip must be positive" in message
    assert "01_second.partial.ipynb" in message and (tmp_path / "run" / "01_second.partial.ipynb").exists()
    assert not (tmp_path / "run" / "01_second.ipynb").exists()
    assert "failed" in (tmp_path / "run" / "index.html").read_text()
    write(folder, "01_second", 'OUT_DIR: str = ""\nCLIP: float = 1.0')
    out = run_book({"CLIP": "-1.0"}, out=tmp_path / "run", folder=folder, stream=io.StringIO())
    assert ran(out) == ["00_first", "01_second", "01_second", "02_third"]


def test_a_kernel_that_dies_is_said_to_have_died(folder, tmp_path):
    write(folder, "00_first", 'OUT_DIR: str = ""', "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(NotebookFailed, match="00_first stopped: its kernel died"):
        run_book({}, out=tmp_path / "run", folder=folder, stream=io.StringIO())


@pytest.mark.parametrize("how, code", [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_stopped_run_goes_on_where_it_was_and_leaves_no_kernel_behind(folder, tmp_path, package, how, code):
    wait = "import os, time\n(Path(OUT_DIR) / 'kernel').write_text(str(os.getpid()))\ntime.sleep(600 * SLOW)"
    write(folder, "01_second", 'OUT_DIR: str = ""\nSLOW: int = 1', wait)
    out = tmp_path / "run"
    program = f"""
import functools, pathlib, sys
from baer_utils import __main__
from baer_utils.batch import book
book.PACKAGE = pathlib.Path({str(package)!r})
book.run_book = functools.partial(book.run_book, folder=pathlib.Path({str(folder)!r}))
sys.exit(__main__.main(["book", "--out", {str(out)!r}]))"""
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not (out / "kernel").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    kernel = int((out / "kernel").read_text())
    child.send_signal(how)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == code
    assert how is signal.SIGKILL or "The same command goes on from here" in errors
    while Path(f"/proc/{kernel}").exists() and "Z" not in status(kernel) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not Path(f"/proc/{kernel}").exists() or "Z" in status(kernel)
    assert not (out / "01_second.ipynb").exists()
    write(folder, "01_second", 'OUT_DIR: str = ""\nSLOW: int = 0', wait)
    run_book({}, out=out, folder=folder, stream=io.StringIO())
    assert ran(out) == ["00_first", "01_second", "01_second", "02_third"]


def status(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


# ---------------------------------------------------------------- what it shows


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_progress_shows_the_judging_state_of_another_process(tmp_path, monkeypatch, stream):
    monkeypatch.setattr("baer_utils.batch.progress.SECONDS_IN_TERMINAL", 0.02)
    monkeypatch.setattr("baer_utils.batch.progress.SECONDS_ELSEWHERE", 0.02)
    with Progress("[1/7] 01_judging", tmp_path / "state.json", stream) as progress:
        state = {"pairs_done": 40, "pairs": 1500, "tokens_per_second": 1820.4, "seconds_left": 185}
        Path(os.environ["BAER_PROGRESS"]).write_text(json.dumps(state))
        time.sleep(0.2)
        assert progress.line() == "[1/7] 01_judging  0 s  40 of 1,500 pairs judged, 1,820 tokens/s, 3 min 05 s left"
        (tmp_path / "state.json").write_text(json.dumps(state | {"share_done": 0.31}))
        assert "  40 of 1,500 pairs judged (31% done), 1,820 tokens/s" in progress.line()
        (tmp_path / "state.json").write_text("{")  # half a file is no reason to stop
        assert progress.line() == "[1/7] 01_judging  0 s"
    assert "40 of 1,500 pairs judged" in stream.getvalue()
    assert ("\n" in stream.getvalue()) != stream.isatty()
    assert "BAER_PROGRESS" not in os.environ and not (tmp_path / "state.json").exists()


@pytest.mark.parametrize("seconds, text", [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (3725, "1 h 02 min")])
def test_durations_are_spelled_as_people_say_them(seconds, text):
    assert spell_seconds(seconds) == text


def test_a_run_inside_the_repository_is_told_its_place_from_the_root(tmp_path):
    cell = "from baer_utils.reports import save_results\nsave_results(OUT_DIR, '00_x', {'out': OUT_DIR})"
    parameters = nbformat.v4.new_code_cell('OUT_DIR: str = "outputs/scratch"', metadata={"tags": ["parameters"]})
    notebook = nbformat.v4.new_notebook(cells=[parameters, nbformat.v4.new_code_cell(cell)])
    nbformat.write(notebook, tmp_path / "00_x.ipynb")
    place = f"outputs/test-{os.getpid()}"
    try:
        run_book({"OUT_DIR": place}, folder=tmp_path, stream=io.StringIO())
        assert load_results(place, "00_x") == {"out": place}
    finally:
        shutil.rmtree(REPOSITORY / place, ignore_errors=True)

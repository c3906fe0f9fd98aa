"""save_results: what is written can be compared between reruns, and what cannot be is refused."""

from __future__ import annotations

import datetime
import json
import math
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baer_utils.reports import REPOSITORY, load_results, plain, repository_path, save_results

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
trees = st.recursive(
    leaves, lambda node: st.lists(node, max_size=3) | st.dictionaries(st.text(), node, max_size=3), max_leaves=8
)


@given(st.dictionaries(st.text(), trees, max_size=4))
def test_results_come_back_as_they_were(tmp_path_factory, results):
    folder = tmp_path_factory.mktemp("run")
    save_results(folder, "00_start_here", results)
    assert load_results(folder, "00_start_here") == results


@given(st.permutations(["a", "b", "c", "d"]))
def test_the_order_in_which_results_are_named_changes_no_byte(tmp_path_factory, names):
    folder = tmp_path_factory.mktemp("run")
    save_results(folder, "x", {name: ord(name) for name in sorted(names)})
    first = (folder / "x" / "results.json").read_bytes()
    save_results(folder, "x", {name: ord(name) for name in names})
    assert (folder / "x" / "results.json").read_bytes() == first


def test_numpy_and_pandas_values_become_plain_ones(tmp_path):
    frame = pd.DataFrame({"head": ["stack", "route"], "accuracy": [0.5, np.nan]})
    results = {
        "count": np.int64(3),
        "share": np.float64(0.25),
        "passed": np.bool_(True),
        "array": np.array([[1, 2], [3, 4]]),
        "scalar_array": np.array(7.0),
        "rows": frame,
        "by_head": frame.set_index("head"),
        "series": pd.Series([1, 2], index=["x", "y"]),
        "counts": frame["head"].value_counts(),
        "pairs": pd.Series([1.5], index=pd.MultiIndex.from_tuples([("ab", "ba")])),
        "missing": [np.nan, pd.NA, pd.NaT, None],
        "endless": [math.inf, -math.inf],
        "tuple": (1, "two"),
    }
    save_results(tmp_path, "x", results)
    assert load_results(tmp_path, "x") == {
        "count": 3,
        "share": 0.25,
        "passed": True,
        "array": [[1, 2], [3, 4]],
        "scalar_array": 7.0,
        "rows": [{"head": "stack", "accuracy": 0.5}, {"head": "route", "accuracy": None}],
        "by_head": {"stack": {"accuracy": 0.5}, "route": {"accuracy": None}},
        "series": {"x": 1, "y": 2},
        "counts": {"stack": 1, "route": 1},
        "pairs": {"ab / ba": 1.5},
        "missing": [None] * 4,
        "endless": ["inf", "-inf"],
        "tuple": [1, "two"],
    }
    assert isinstance(plain(np.float32(0.5)), float) and isinstance(plain(np.bool_(False)), bool)


@pytest.mark.parametrize(
    "value", [datetime.date(2024, 1, 1), pd.Timestamp("2024-01-01"), Path("here"), {1, 2}, object(), b"x", 1j, len]
)
def test_what_would_differ_between_reruns_or_has_no_json_is_refused_by_name(tmp_path, value):
    with pytest.raises(ValueError, match=r"results\['table'\]\[1\] must be a number"):
        save_results(tmp_path, "x", {"table": [0, value]})
    assert not (tmp_path / "x").exists()


def test_keys_that_are_the_same_text_are_refused(tmp_path):
    with pytest.raises(ValueError, match="'1' occurs twice"):
        save_results(tmp_path, "x", {"counts": {1: "a", "1": "b"}})
    with pytest.raises(ValueError, match="must be a dict"):
        save_results(tmp_path, "x", [1])


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    save_results(tmp_path, "x", {"n": 1})
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        save_results(tmp_path, "x", {"n": 2})
    assert load_results(tmp_path, "x") == {"n": 1}


def test_versions_are_written_beside_the_results_and_nothing_that_depends_on_the_day(tmp_path):
    save_results(tmp_path, "x", {"n": 1})
    content = json.loads((tmp_path / "x" / "results.json").read_text())
    assert set(content) == {"notebook", "results", "versions"}
    assert content["versions"]["numpy"] == np.__version__


def test_relative_paths_mean_the_repository_root_whatever_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert repository_path("outputs/scratch") == REPOSITORY / "outputs" / "scratch"
    assert repository_path(tmp_path) == tmp_path
    assert repository_path("~/x") == Path(os.path.expanduser("~")) / "x"
    assert repository_path("") is None
    with pytest.raises(ValueError, match="OUT_DIR must name a folder"):
        save_results("", "x", {})


def test_reading_results_that_nobody_wrote_says_what_to_run(tmp_path):
    with pytest.raises(ValueError, match="07_gates must have been run"):
        load_results(tmp_path, "07_gates")

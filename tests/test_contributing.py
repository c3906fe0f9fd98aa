"""The contributor's page: each of its three additions is made, as it is printed there, and works."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from baer_utils import benchmarks, protocols, screening
from baer_utils.backbones import open_backbone
from baer_utils.benchmarks import load_pairs
from baer_utils.deployment import baselines_of
from baer_utils.evidence import native_decisions, run_array
from baer_utils.gates import screen
from baer_utils.judging import judge_pairs
from baer_utils.prompts import words
from baer_utils.records import swap_pairs, swap_runs

PAGE = (Path(__file__).parents[1] / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
PLACES = (words.TEMPLATES, protocols.PROTOCOLS, benchmarks.BENCHMARKS, screening.HEADS)


@pytest.fixture
def added(monkeypatch):
    """Runs the block that holds a word; what it adds to the module's tables is gone after the test."""
    kept = [dict(place) for place in PLACES]
    yield lambda word: exec(next(block for block in BLOCKS if word in block), {})
    for place, before in zip(PLACES, kept, strict=True):
        place.clear()
        place.update(before)


def test_each_addition_takes_fewer_than_ten_lines():
    sizes = [len([line for line in block.splitlines() if line.strip()]) for block in BLOCKS]
    assert len(sizes) == 3 and max(sizes) < 10


def test_an_added_protocol_judges_pairs_and_a_swap_negates_its_answers(added, embedded):
    added("kinder")
    pairs = load_pairs("starter_preference", n_pairs=3).head(2)
    runs, _ = judge_pairs(pairs, embedded, ("kinder",), progress=False)
    again, _ = judge_pairs(swap_pairs(pairs), embedded, ("kinder",), progress=False)
    L, swapped = (run_array(table, ["kinder"], pairs["pair_id"]) for table in (runs, again))
    assert np.isfinite(L).all() and np.allclose(swapped[..., ::-1], -L, atol=1e-4)


def test_an_added_benchmark_loads_and_its_order_does_not_name_a(added, tmp_path):
    added("quizzes")
    rows = [{"question": f"What is {n} plus 1?", "right": str(n + 1), "wrong": str(n)} for n in range(40)]
    (tmp_path / "quiz.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pairs = load_pairs("quizzes", tmp_path)
    assert len(pairs) == 40 and 8 < (pairs["label"] > 0).sum() < 32
    with pytest.raises(ValueError, match="the field 'wrong' must be there"):
        (tmp_path / "quiz.jsonl").write_text('{"question": "?", "right": "1"}')
        load_pairs("quizzes", tmp_path)


def test_an_added_head_is_odd_to_the_last_bit_and_goes_through_the_gates(added):
    added("alone_twice")
    pairs = load_pairs("starter_correctness", n_pairs=40)
    runs, _ = judge_pairs(
        pairs, open_backbone("replay:smollm2-135m"), ("direct", "pointwise", "reference"), progress=False
    )
    s = screening.screened_score(runs, pairs["pair_id"], "alone_twice")
    assert np.isfinite(s).any()
    assert np.array_equal(
        screening.screened_score(swap_runs(runs), pairs["pair_id"], "alone_twice"), -s, equal_nan=True
    )
    table = screen(pairs, {"alone_twice": s}, native_decisions(runs, pairs, baselines_of(["direct"])))
    assert table.loc["alone_twice", "verdict"] in ("advances", "does not advance", "not evaluated")

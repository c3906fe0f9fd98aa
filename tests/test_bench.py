"""The bench: both sides ask the same prompts and get the same answers; only their seconds may differ."""

from __future__ import annotations

import json

import pytest

from baer_utils.bench import judge as bench
from baer_utils.bench.pairing import side_by_side
from baer_utils.bench.plain import PlainBackbone
from baer_utils.bench.reading import SETTINGS, ask_reads, read_calls
from baer_utils.bench.workload import BANK, long_pairs
from baer_utils.judging import judge_pairs
from baer_utils.protocols import DERIVED, EXPERTS, Settings
from baer_utils.records import check_pairs


@pytest.fixture(scope="module")
def plain(tiny_folder):
    return PlainBackbone(tiny_folder)


def test_the_bank_that_is_timed_is_every_expert_that_asks_something():
    assert set(BANK) == {*EXPERTS, "pointwise", "reference"} - (set(DERIVED) - {"calibraeval"})


def test_long_pairs_are_legal_distinct_and_of_the_length_asked_for(tiny):
    pairs = check_pairs(long_pairs(tiny, 40))
    sizes = [sum(map(tiny.count, (p.instruction, p.response_a, p.response_b))) for p in pairs.itertuples()]
    assert pairs["instruction"].is_unique and long_pairs(tiny, 40).equals(long_pairs(tiny, 40))
    assert min(sizes) > 300 and max(sizes) < 600 and 380 < sum(sizes) / len(sizes) < 460


def test_the_reads_are_eleven_different_prompts_a_pair_and_both_sides_read_the_same(tiny, plain):
    pairs = long_pairs(tiny, 2, tokens=60)
    calls = read_calls(tiny, pairs)
    assert len(calls) == 22 == len({(tuple(tiny.render(call.prompt)), call.labels) for call in calls})
    budgets = [len(call.prompt.continue_ids) for call in calls if call.prompt.continue_ids]
    assert budgets == [SETTINGS.max_new_tokens] * 4
    together, alone = ask_reads(tiny, calls), ask_reads(plain, calls)
    assert max(abs(a.log_odds - b.log_odds) for a, b in zip(together, alone, strict=True)) < 1e-4
    assert sum(a.cached_tokens for a in together) > 0 == sum(a.cached_tokens for a in alone)


def test_plain_judging_gives_the_same_run_table_but_for_sampled_texts(tiny, plain):
    pairs, experts = long_pairs(tiny, 2, tokens=60), tuple(name for name in BANK if name != "self_consistency")
    tables = [judge_pairs(pairs, judge, experts, settings=Settings(12), progress=False)[0] for judge in (tiny, plain)]
    exact = ["pair_id", "protocol", "view", "stage", "trial", "status", "prompt_tokens", "new_tokens", "text"]
    assert tables[0][exact].equals(tables[1][exact])
    odds = [table["log_odds"].replace([float("inf"), float("-inf")], [99.0, -99.0]).fillna(0.0) for table in tables]
    assert (odds[0] - odds[1]).abs().max() < 1e-4


def test_a_ratio_is_theirs_over_ours_and_the_order_alternates():
    order = []
    times = {"ours": [1.0, 2.0, 4.0], "theirs": [6.0, 6.0, 6.0]}

    def side(name):
        return lambda number: order.append(name) or times[name][number]

    result = side_by_side(side("ours"), side("theirs"), 3)
    assert (result["ratio"], result["least"], result["most"]) == (3.0, 1.5, 6.0)
    assert order == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]


def test_a_section_is_kept_with_its_machine_and_a_broken_promise_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "RESULTS", tmp_path / "bench.json")
    monkeypatch.setitem(bench.SECTIONS, "reads", lambda pairings: {"ratio": 2.0, "at_least": 2.5, "holds": False})
    monkeypatch.setitem(bench.SECTIONS, "server", lambda pairings: {"not_measured": "start one", "holds": None})
    assert bench.bench_judge(1, ("server",))
    assert not bench.bench_judge(1, ("reads", "server"))
    kept = json.loads((tmp_path / "bench.json").read_text())
    assert kept["reads"]["ratio"] == 2.0 and "versions" in kept["reads"] and kept["server"]["holds"] is None
    with pytest.raises(ValueError, match="section must be one of"):
        bench.bench_judge(1, ("speed",))

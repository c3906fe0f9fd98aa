"""The bench: both sides ask the same prompts and get the same answers; only their seconds may differ."""

from __future__ import annotations

import functools
import json

import pytest

from baer_utils.backbones.local import TransformersBackbone
from baer_utils.bench import estimating, reading, sitting
from baer_utils.bench import judge as bench
from baer_utils.bench.pairing import side_by_side
from baer_utils.bench.plain import PlainBackbone
from baer_utils.bench.reading import SETTINGS, ask_reads, read_calls
from baer_utils.bench.sitting import Sitting
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


# ---------------------------------------------------------------- sittings


@pytest.fixture
def small(tiny, tiny_folder, plain, tmp_path, monkeypatch):
    """The bench on the tiny judge, with one pair where it has many, and its files in a folder of the test."""
    judges = {("float32", False): tiny, ("float32", True): plain}
    judges["bfloat16", False] = TransformersBackbone(tiny_folder, dtype="bfloat16")
    least = Settings(max_new_tokens=4, criteria_tokens=4, reference_tokens=4, letter_tokens=4, trials=1)
    for module in (bench, reading, estimating):
        for name, value in {"OURS": 2, "PLAIN": 1, "FULL": 1, "SETTINGS": least}.items():
            monkeypatch.setattr(module, name, value, raising=False)
        monkeypatch.setattr(module, "long_pairs", functools.partial(long_pairs, tokens=60))
    for module in (bench, reading):
        monkeypatch.setattr(module, "backbone", lambda dtype="float32", plain=False: judges[dtype, plain])
    monkeypatch.delenv("BAER_BENCH_SERVER", raising=False)
    monkeypatch.setattr(sitting, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(bench, "RESULTS", tmp_path / "bench.json")
    return tmp_path


def test_a_ratio_is_theirs_over_ours_and_the_order_alternates(small):
    order = []
    times = {"ours": [1.0, 2.0, 4.0], "theirs": [6.0, 6.0, 6.0]}

    def side(name):
        return lambda number: order.append(name) or times[name][number]

    result = side_by_side(side("ours"), side("theirs"), 3, Sitting("reads", {}))
    assert (result["ratio"], result["least"], result["most"]) == (3.0, 1.5, 6.0)
    assert order == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]


def test_a_section_that_was_stopped_goes_on_from_its_whole_pairings_and_says_which_these_are(small, monkeypatch):
    measured = []

    def side(stops_at):
        def measure(number):
            if number == stops_at:
                raise KeyboardInterrupt
            measured.append(number)
            return 1.0 + number

        return measure

    with pytest.raises(KeyboardInterrupt):  # in the second half of the second pairing, which is begun anew
        side_by_side(side(1), side(9), 3, Sitting("reads", {"pairs": 2}))
    assert measured == [0, 0, 1]
    later = Sitting("reads", {"pairs": 2})
    result = side_by_side(side(9), side(9), 3, later)
    assert measured[3:] == [1, 1, 2, 2] and result["ours_seconds"] == [1.0, 2.0, 3.0]
    assert later.told["from_earlier_sittings"] == ["pairing 1"] and len(later.told["dates"]) == 1
    for other in (Sitting("reads", {"pairs": 3}), Sitting("bank", {"pairs": 2})):
        assert not other.steps and other.path != later.path
    monkeypatch.setattr(sitting, "code", lambda: "other code")
    assert not Sitting("reads", {"pairs": 2}).steps


@pytest.mark.parametrize("name", ["precision", "reads", "arithmetic", "trials", "bank"])
def test_a_section_measures_only_what_no_sitting_has(name, small, monkeypatch, capsys):
    assert bench.bench_judge(1, (name,)) in (True, False)  # a tiny judge on a busy machine promises nothing
    first = json.loads((small / "bench.json").read_text())[name]
    assert not first["from_earlier_sittings"] and first["pairings"] == 1
    one = bench.open_sitting(name).steps
    bench.bench_judge(2, (name,))
    both = bench.open_sitting(name).steps
    pairings = {step for step in one if "pairing" in step}
    assert pairings and pairings < set(both) and {step: both[step] for step in one} == one
    again = json.loads((small / "bench.json").read_text())[name]
    assert set(again["from_earlier_sittings"]) == (pairings if name == "precision" else set(one))
    monkeypatch.setitem(reading.__dict__, "ask_reads", None)  # nothing is asked once all is kept
    monkeypatch.setattr(bench, "judge_pairs", None)
    bench.bench_judge(2, (name,))
    kept = json.loads((small / "bench.json").read_text())[name]
    told = ("from_earlier_sittings", "dates")
    assert {k: v for k, v in kept.items() if k not in told} == {k: v for k, v in again.items() if k not in told}
    assert set(kept["from_earlier_sittings"]) == (
        set(both) if name != "precision" else set(both) - (set(one) - pairings)
    )
    assert "0 s; " in capsys.readouterr().out.rsplit("About how long", 1)[1]  # nothing is left


def test_the_arithmetic_counted_is_that_of_the_weights_on_every_token_once(small, tiny):
    done = reading.arithmetic(1, bench.open_sitting("arithmetic"))["float32"]
    embedding = tiny.model.get_input_embeddings().weight
    assert done["weights"] == sum(p.numel() for p in tiny.model.parameters()) - embedding.numel()
    pairs = reading.long_pairs(tiny, 1)
    answers = ask_reads(tiny, read_calls(tiny, pairs))
    assert done["unique_tokens"] == sum(a.prompt_tokens - a.cached_tokens for a in answers) > 0
    gigaflops = 2 * done["weights"] * done["tokens_per_second"] / 1e9
    assert done["share"] == pytest.approx(gigaflops / done["matrix_gigaflops"], rel=0.2)


def test_an_estimate_grows_with_the_workload_and_follows_what_was_measured(small, tiny):
    estimate = estimating.Estimate(tiny)
    seconds = {name: estimate.seconds(bench.open_sitting(name), 2) for name in bench.SECTIONS}
    assert all(seconds[name] > 0 for name in seconds if name not in ("harness", "server"))
    assert estimate.seconds(bench.open_sitting("bank"), 4) == pytest.approx(2 * seconds["bank"])
    assert seconds["bank"] > max(seconds["trials"], seconds["reads"]) and seconds["server"] == 0
    begun = bench.open_sitting("bank")
    begun.once("pairing 1", lambda: {})
    begun.steps["pairing 1"]["seconds"] = 30.0
    assert estimate.seconds(begun, 5) == 120.0
    assert estimating.spelled(59) == "59 s" and estimating.spelled(150) == "2 min"


def test_a_section_is_kept_with_its_machine_and_a_broken_promise_is_told(small, monkeypatch, capsys):
    failing = {"ratio": 2.0, "at_least": 2.5, "holds": False}
    monkeypatch.setitem(bench.SECTIONS, "reads", lambda pairings, sitting: dict(failing))
    monkeypatch.setitem(bench.SECTIONS, "server", lambda pairings, sitting: {"not_measured": "start", "holds": None})
    assert bench.bench_judge(1, ("server",))
    assert not bench.bench_judge(1, ("reads", "server"))
    kept = json.loads((small / "bench.json").read_text())
    assert kept["reads"]["ratio"] == 2.0 and "versions" in kept["reads"] and kept["server"]["holds"] is None
    out = capsys.readouterr().out
    assert out.index("About how long") < out.index("together") < out.index('"not_measured"')
    with pytest.raises(ValueError, match="section must be one of"):
        bench.bench_judge(1, ("speed",))

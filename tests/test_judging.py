"""Running the bank: the same rows whatever was stored, killed or swapped; what does not fit is counted, never lost."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from baer_utils.backbones.base import Failure
from baer_utils.backbones.local import TransformersBackbone
from baer_utils.judging import judge_pairs
from baer_utils.judging.planning import BLOCK_PAIRS, blocks
from baer_utils.judging.progress import Progress
from baer_utils.protocols import Settings
from baer_utils.records import RUN_COLUMNS, RUN_KEY, swap_pairs, swap_runs
from baer_utils.store import open_store
from tests.conftest import make_pairs

BANK = ("direct", "chain_of_thought", "pointwise")
SHORT = Settings(max_new_tokens=12)
COMPARED = [name for name in RUN_COLUMNS if name not in ("seconds", "cached_tokens")]


def judged(pairs, judge, store=None, bank=BANK, **options):
    return judge_pairs(pairs, judge, bank, store=store, settings=SHORT, progress=False, **options)


@pytest.fixture
def store(tmp_path, tiny):
    return open_store(tiny.name, "made", root=tmp_path)


def test_every_expert_fills_its_rows_for_every_pair(tiny, sums):
    runs, report = judged(sums, tiny)
    views = runs.groupby(["pair_id", "protocol"])["view"].agg(tuple)
    assert set(views.xs("direct", level=1)) == set(views.xs("chain_of_thought", level=1)) == {("ab", "ba")}
    assert set(views.xs("pointwise", level=1)) == {("a", "b")}
    assert len(runs) == report.runs == 6 * len(sums) and report.pairs == len(sums)
    reads = runs["protocol"] != "chain_of_thought"
    assert np.isfinite(runs.loc[reads, "log_odds"]).all() and runs.loc[reads, "label_mass"].between(0, 1).all()
    texts = runs[~reads]
    assert (np.isinf(texts["log_odds"]) == (texts["status"] == "ok")).all()
    assert (texts["new_tokens"] <= 12).all() and (runs["prompt_sha"].str.len() == 64).all()


def test_judging_again_finds_every_call_and_gives_the_same_table(tiny, sums, store):
    first, made = judged(sums, tiny, store)
    second, found = judged(sums, tiny, store)
    pd.testing.assert_frame_equal(first, second)
    assert (made.found, found.made) == (0, 0) and made.made == found.found == made.distinct
    assert made.distinct < made.calls  # the pair with identical responses asks each question once


def test_a_run_that_lost_any_of_its_answers_ends_with_the_same_bits(tiny, sums, store):
    whole, _ = judged(sums, tiny, store)
    files = sorted((store.folder / "calls").glob("*.parquet"))
    for lost in (files[::2], files[1::2], files):
        for file in lost:
            file.unlink(missing_ok=True)
        again, report = judged(sums, tiny, store)
        pd.testing.assert_frame_equal(whole[COMPARED], again[COMPARED], check_exact=True)
        assert report.made > 0


def test_a_batch_with_a_missing_row_is_computed_whole_and_only_that_row_is_kept(tiny, sums, store):
    import pyarrow.parquet as pq

    whole, _ = judged(sums, tiny, store)
    file = max((store.folder / "calls").glob("*.parquet"), key=lambda f: f.stat().st_size)
    pq.write_table(pq.read_table(file).slice(1), file)
    again, report = judged(sums, tiny, store)
    assert report.made == 1
    pd.testing.assert_frame_equal(whole[COMPARED], again[COMPARED], check_exact=True)
    rows = [key for f in (store.folder / "calls").glob("*.parquet") for key in pq.read_table(f)["key"].to_pylist()]
    assert len(rows) == len(set(rows))


@pytest.mark.parametrize("judge", ["tiny", "embedded"])
def test_judging_the_swapped_pairs_afresh_gives_the_swapped_table_to_the_last_bit(judge, request, sums):
    backbone = request.getfixturevalue(judge)
    pairs = sums.tail(6) if judge == "embedded" else sums
    one, _ = judged(pairs, backbone)
    other, _ = judged(swap_pairs(pairs), backbone)
    back = swap_runs(other).sort_values(RUN_KEY).reset_index(drop=True)
    pd.testing.assert_frame_equal(one[COMPARED], back[COMPARED], check_exact=True)


def test_the_order_of_the_rows_of_a_pair_table_changes_nothing(tiny, sums):
    one, _ = judged(sums, tiny)
    other, _ = judged(sums.sample(frac=1, random_state=1).reset_index(drop=True), tiny)
    pd.testing.assert_frame_equal(one[COMPARED], other[COMPARED], check_exact=True)


def test_a_pair_of_identical_responses_gives_opposite_runs_and_equal_pointwise_reads(tiny, embedded, sums):
    for judge in (tiny, embedded):
        runs, _ = judged(sums[sums["instruction"] == "Say yes."], judge)
        odds = runs.set_index(["protocol", "view"])["log_odds"]
        assert odds["direct", "ab"] == -odds["direct", "ba"]
        assert odds["pointwise", "a"] == odds["pointwise", "b"]
        said = odds["chain_of_thought", "ab"], odds["chain_of_thought", "ba"]
        assert said[0] == -said[1] or np.isnan(said).all()


def test_blocks_depend_on_texts_alone_and_hold_every_pair_once(sums):
    cut = list(blocks(sums))
    assert [len(block) for block in cut] == [BLOCK_PAIRS, len(sums) - BLOCK_PAIRS]
    again = list(blocks(swap_pairs(sums).sample(frac=1, random_state=3)))
    assert [[p.pair_id for p in block] for block in cut] == [[p.pair_id for p in block] for block in again]
    long = make_pairs([(f"q{n}", "x" * 25_000, "y" * 5_000) for n in range(5)])
    assert [len(block) for block in blocks(long)] == [2, 2, 1]


# ---------------------------------------------------------------- what does not fit


def test_both_responses_are_cut_at_one_length_in_every_protocol_and_counted(tiny):
    pairs = make_pairs(
        [("Which is longer?", "yes " * 900, "no " * 5), ("Short?", "a", "b"), ("Both?", "x " * 700, "y " * 700)]
    )
    runs, report = judged(pairs, tiny)
    assert report.cut_responses == 3 and report.errors == 0
    assert (runs["prompt_tokens"] + 12 <= tiny.context).all()
    lone = make_pairs([("Which is longer?", "yes " * 5000, "no " * 5)])
    again, _ = judged(lone, tiny)
    same = runs[runs["pair_id"] == "made/0000"].reset_index(drop=True)
    pd.testing.assert_series_equal(again["log_odds"], same["log_odds"], check_exact=False, atol=1e-4)
    # the cut does not depend on the other response: c is read off the longest template of the run
    assert (
        again.set_index(["protocol", "view"])["prompt_tokens"]["pointwise", "a"]
        == (same.set_index(["protocol", "view"])["prompt_tokens"]["pointwise", "a"])
    )


def test_an_instruction_that_leaves_no_room_makes_errors_and_loses_no_other_pair(tiny, sums):
    pairs = make_pairs([("why " * 600, "a", "b"), ("What is 1 plus 1?", "2", "3")])
    runs, report = judged(pairs, tiny)
    assert report.errors == 6 and (runs["status"] == "error").sum() == 6
    assert runs.loc[runs["status"] == "error", "text"].str.contains("at least 32 tokens").all()
    assert (runs.loc[runs["pair_id"] == "made/0001", "status"] != "error").all()


def test_a_failed_call_is_a_row_with_its_reason_and_is_asked_again_next_time(tiny, sums, store):
    class Flaky(TransformersBackbone):
        broken = True

        def read(self, prompts, labels=("A", "B")):
            answers = super().read(prompts, labels)
            return [Failure("the server said 503") if self.broken and n % 3 == 0 else a for n, a in enumerate(answers)]

    judge = Flaky(tiny._source["pretrained_model_name_or_path"])
    runs, report = judged(sums, judge, store)
    failed = runs["status"] == "error"
    assert failed.sum() == report.errors > 0 and (runs.loc[failed, "text"] == "the server said 503").all()
    judge.broken = False
    again, repaired = judged(sums, judge, store)
    whole, _ = judged(sums, tiny)
    assert repaired.errors == 0 and 0 < repaired.made < repaired.distinct
    pd.testing.assert_frame_equal(again[COMPARED], whole[COMPARED], check_exact=True)


def test_a_protocol_whose_labels_the_judge_never_says_is_refused_with_the_reason(tiny_folder, sums, tmp_path):
    judge = TransformersBackbone(tiny_folder)
    correct = judge.label_ids(("correct", "incorrect"))
    import torch

    with torch.no_grad():
        judge.model.lm_head.weight[[i for ids in correct for i in ids]] = 0
    runs, report = judged(sums, judge)
    assert set(report.refused) == {"pointwise"} and "median is 0.0" in report.refused["pointwise"]
    assert set(runs["protocol"]) == {"direct", "chain_of_thought"} and "Refused: pointwise" in str(report)
    with pytest.raises(ValueError, match="every protocol was refused"):
        judged(sums, judge, bank=("pointwise",))


def test_limits_stop_after_the_first_block_where_asked_and_only_warn_otherwise(tiny, sums):
    _, report = judged(sums, tiny)
    assert any("verdicts parsed" in text for text in report.warnings)
    with pytest.raises(RuntimeError, match="stopped after the first block.*chain_of_thought"):
        judged(sums, tiny, stop_below=0.99)
    with pytest.raises(RuntimeError, match="ran out of budget"):
        judge_pairs(sums, tiny, BANK, settings=Settings(max_new_tokens=1), progress=False, stop_cut_above=0.1)


def test_a_cut_text_is_no_verdict_even_if_it_looks_like_one(tiny, sums):
    runs, _ = judge_pairs(sums, tiny, BANK, settings=Settings(max_new_tokens=1), progress=False)
    texts = runs[runs["protocol"] == "chain_of_thought"]
    cut = texts["status"] == "truncated"
    assert cut.any() and texts.loc[cut, "log_odds"].isna().all()


def test_bad_input_is_refused_before_anything_is_asked(tiny, sums):
    with pytest.raises(ValueError, match="experts must be among direct"):
        judged(sums, tiny, bank=("direct", "astrology"))
    with pytest.raises(ValueError, match="must have exactly the columns"):
        judged(sums.drop(columns="split"), tiny)


# ---------------------------------------------------------------- progress


def test_progress_counts_pairs_and_tokens_and_foresees_the_end(tmp_path, monkeypatch):
    monkeypatch.setenv("BAER_PROGRESS", str(tmp_path / "progress.json"))
    shown = Progress(10, 100.0)
    assert shown.state()["seconds_left"] is None
    shown.update(5, 50.0, 0)
    assert shown.state()["seconds_left"] is None  # all found: nothing is known about speed yet
    shown.update(3, 25.0, 1000)
    state = json.loads((tmp_path / "progress.json").read_text())
    assert (state["pairs_done"], state["pairs"]) == (8, 10) and state["tokens_per_second"] > 0
    now = shown.state()
    assert now["seconds_left"] == pytest.approx(1000 / now["tokens_per_second"], rel=0.2)


def test_a_silent_run_prints_nothing(tiny, sums, capfd):
    judged(sums.head(4), tiny)
    out, err = capfd.readouterr()
    assert out == "" and "pair" not in err

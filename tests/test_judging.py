"""Running the bank: the same rows whatever was stored, killed or swapped; what does not fit is counted, never lost."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import baer_utils.judging as judging
from baer_utils import prompts
from baer_utils.backbones.base import Failure, Generation, Read
from baer_utils.backbones.labels import label_tokens
from baer_utils.backbones.local import TransformersBackbone
from baer_utils.backbones.replay import ReplayBackbone
from baer_utils.judging import answering, judge_pairs, planning
from baer_utils.judging.planning import BLOCK_PAIRS, blocks
from baer_utils.judging.progress import Progress
from baer_utils.prompts import Key
from baer_utils.protocols import Call, Settings, run_row
from baer_utils.records import RUN_COLUMNS, RUN_KEY, swap_pairs, swap_runs, unit_hash
from baer_utils.store import open_store, seal
from tests.conftest import make_pairs

BANK = ("direct", "chain_of_thought", "pointwise")
SHORT = Settings(max_new_tokens=12)
COMPARED = [name for name in RUN_COLUMNS if name not in ("seconds", "cached_tokens")]


def judged(pairs, judge, store=None, bank=BANK, **options):
    return judge_pairs(pairs, judge, bank, store=store, settings=SHORT, progress=False, **options)


class Touchy:
    """A judge whose every answer depends on all that shares its batch: what the last bits do, made plain to see."""

    name, context = "touchy", 2000

    def __init__(self, failing: float = 0.0):
        self.failing, self.asked = failing, 0

    def render(self, prompt):
        cut = [s.text[: prompt.cut] if n in prompt.responses else s.text for n, s in enumerate(prompt.segments)]
        return list("|".join([*cut, prompt.stub]).encode())

    def count(self, text):
        return len(text)

    def share(self, prompts):
        pass

    def _hashes(self, asked):
        self.asked += 1
        rows = [self.render(prompt) for prompt in asked]
        return [unit_hash(json.dumps([row, rows])) for row in rows]

    def _failures(self, asked, answers):
        return [Failure("503") if unit_hash(p.sha) < self.failing else a for p, a in zip(asked, answers, strict=True)]

    def read(self, asked, labels=("A", "B")):
        return self._failures(asked, [Read(8 * u - 4, 0.9, len(asked)) for u in self._hashes(asked)])

    def generate(self, asked, *, max_new_tokens, temperature=0.0, top_p=1.0, seeds=None):
        said = ["A" if u < 0.4 else "B" if u < 0.8 else "neither" for u in self._hashes(asked)]
        answers = [Generation(f"The better response is {w}", (1, 2), "stop", len(asked), new_tokens=2) for w in said]
        return self._failures(asked, answers)


@pytest.fixture
def store(tmp_path, tiny):
    return open_store(tiny.name, "made", root=tmp_path)


@pytest.fixture
def knotty(monkeypatch):
    """Pairs whose calls coincide within and across blocks: same texts under other ids, swapped, alike, one too long."""
    monkeypatch.setattr(planning, "BLOCK_PAIRS", 4)
    monkeypatch.setattr(answering, "BATCH_ROWS", 5)
    texts = [(f"q{n % 4}", f"answer {n % 3}", f"reply {n % 5}") for n in range(9)]
    texts += [(q, b, a) for q, a, b in texts[:3]] + [("q1", "same", "same"), ("", "", ""), ("q2", "x" * 3000, "y")]
    return make_pairs(texts + texts[4:6])


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


def test_a_report_says_how_many_prompt_tokens_were_computed_of_what_separate_prompts_would_cost(tiny, sums):
    runs, report = judged(sums, tiny)
    assert report.prompt_tokens > report.prompt_tokens - report.cached_tokens > 0 and report.distinct == report.made
    computed = report.prompt_tokens - report.cached_tokens
    told = f"Of the {report.prompt_tokens:,} tokens of separate prompts, {computed:,} were computed"
    assert told in str(report) and report.computed == computed + report.new_tokens
    once = runs.drop_duplicates(["prompt_sha", "trial"])
    assert once["prompt_tokens"].sum() == report.prompt_tokens


def test_what_prompts_shared_is_let_go_when_the_run_ends(tiny, sums, monkeypatch):
    held = []
    monkeypatch.setattr(tiny._prefixes, "cached", lambda *row: held.append(len(tiny._prefixes._held)) or 0)
    judged(sums, tiny)
    assert held and min(held) > 0 and not tiny._prefixes._held


def test_judging_again_finds_every_call_and_gives_the_same_table(tiny, sums, store):
    first, made = judged(sums, tiny, store)
    second, found = judged(sums, tiny, store)
    pd.testing.assert_frame_equal(first, second)
    assert (made.found, found.made) == (0, 0) and made.made == found.found == made.distinct
    assert made.distinct < made.calls  # the pair with identical responses asks each question once


def test_a_run_that_lost_any_of_its_answers_ends_with_the_same_bits(tiny, sums, store):
    whole, _ = judged(sums, tiny, store)
    for lost in (slice(None, None, 2), slice(1, None, 2), slice(None)):
        for file in sorted((store.folder / "calls").glob("*.parquet"))[lost]:
            file.unlink()
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
    pairs = sums.iloc[37:39] if judge == "embedded" else sums
    one, _ = judged(pairs, backbone)
    other, _ = judged(swap_pairs(pairs), backbone)
    back = swap_runs(other).sort_values(RUN_KEY).reset_index(drop=True)
    pd.testing.assert_frame_equal(one[COMPARED], back[COMPARED], check_exact=True)


def test_the_order_of_the_rows_of_a_pair_table_changes_nothing(tiny, sums):
    one, _ = judged(sums, tiny)
    other, _ = judged(sums.sample(frac=1, random_state=1).reset_index(drop=True), tiny)
    pd.testing.assert_frame_equal(one[COMPARED], other[COMPARED], check_exact=True)


def test_a_pair_of_identical_responses_gives_opposite_runs_and_equal_pointwise_reads(tiny, embedded, sums):
    alike = sums["instruction"] == "Say yes."
    for judge, pairs in ((tiny, sums), (embedded, sums[alike])):
        runs, _ = judged(pairs, judge)
        runs = runs[runs["pair_id"].isin(sums.loc[alike, "pair_id"])]
        odds = runs.set_index(["protocol", "view"])["log_odds"]
        assert odds["direct", "ab"] == -odds["direct", "ba"]
        assert odds["pointwise", "a"] == odds["pointwise", "b"]
        said = odds["chain_of_thought", "ab"], odds["chain_of_thought", "ba"]
        assert said[0] == -said[1] or np.isnan(said).all()


def test_whatever_answers_are_lost_the_run_that_goes_on_makes_the_same_batches(knotty, tmp_path):
    store = open_store("touchy", "made", root=tmp_path)
    expected, first = judged(knotty, Touchy(), store)
    answers = [row for _, row in sorted(store.calls().items())]
    for seed in range(8):
        for file in (store.folder / "calls").glob("*.parquet"):
            file.unlink()
        kept = np.random.default_rng(seed).random(len(answers)) < (0.1, 0.5, 0.9)[seed % 3]
        store.add_calls([row for row, keep in zip(answers, kept, strict=True) if keep])
        again, report = judged(knotty, Touchy(), store)
        pd.testing.assert_frame_equal(again[COMPARED], expected[COMPARED], check_exact=True)
        assert (report.found, report.made) == (kept.sum(), first.distinct - kept.sum())
        rows = [len(pd.read_parquet(file)) for file in (store.folder / "calls").glob("*.parquet")]
        assert sum(rows) == len(store.calls()) == first.distinct  # nothing is kept twice


@pytest.mark.parametrize("finished", [1, 4, 9])
def test_a_run_that_dies_has_kept_every_batch_that_it_had_finished(knotty, tmp_path, finished):
    class Dying(Touchy):
        sizes = ()

        def _hashes(self, asked):
            if self.asked == finished:
                raise KeyboardInterrupt
            self.sizes += (len(asked),)
            return super()._hashes(asked)

    expected, whole = judged(knotty, Touchy())
    judge = Dying()
    with pytest.raises(KeyboardInterrupt):
        judged(knotty, judge, open_store("touchy", "made", root=tmp_path))
    store = open_store("touchy", "made", root=tmp_path)
    assert len(store.calls()) == sum(judge.sizes) < whole.distinct
    again, report = judged(knotty, Touchy(), store)
    pd.testing.assert_frame_equal(again[COMPARED], expected[COMPARED], check_exact=True)
    assert report.found == sum(judge.sizes)


def test_swapping_pairs_and_reordering_rows_leave_every_batch_as_it_was(knotty):
    expected, _ = judged(knotty, Touchy())
    other, _ = judged(swap_pairs(knotty).sample(frac=1, random_state=2), Touchy())
    back = swap_runs(other).sort_values(RUN_KEY).reset_index(drop=True)
    pd.testing.assert_frame_equal(expected[COMPARED], back[COMPARED], check_exact=True)


def test_calls_that_failed_are_repaired_into_the_batches_they_belong_to(knotty, tmp_path):
    expected, _ = judged(knotty, Touchy())
    store = open_store("touchy", "made", root=tmp_path)
    runs, report = judged(knotty, Touchy(failing=0.5), store)
    failed = runs["status"] == "error"
    assert failed.sum() == report.errors > 5 and len(store.calls()) < report.made == report.distinct
    again, repaired = judged(knotty, Touchy(), store)
    assert repaired.errors == 0 and repaired.found == len(store.calls()) - repaired.made
    pd.testing.assert_frame_equal(again[COMPARED], expected[COMPARED], check_exact=True)


def test_an_answer_that_was_found_is_not_replaced_when_its_batch_is_made_again(knotty, tmp_path):
    store = open_store("touchy", "made", root=tmp_path)
    expected, _ = judged(knotty, Touchy(), store)
    answers = list(store.calls().values())
    for file in (store.folder / "calls").glob("*.parquet"):
        file.unlink()
    store.add_calls(answers[1:])
    runs, report = judged(knotty, Touchy(failing=1.0), store)
    assert report.made == 1 and 1 <= report.errors < 5
    good = runs["status"] != "error"
    pd.testing.assert_frame_equal(runs.loc[good, COMPARED], expected.loc[good, COMPARED], check_exact=True)


def test_pairs_with_the_same_texts_under_other_ids_are_asked_once_and_answered_alike(knotty):
    runs, report = judged(knotty, Touchy())
    rows = runs.set_index(["pair_id", "protocol", "view"])["log_odds"]
    for one, other in (("made/0004", "made/0015"), ("made/0005", "made/0016")):
        assert rows[one].equals(rows[other])
    assert rows["made/0000", "direct", "ab"] == -rows["made/0009", "direct", "ba"]  # the same pair, swapped
    assert report.distinct < report.calls == 6 * len(knotty)


def test_a_call_is_named_by_judge_verb_labels_budget_trial_and_tokens_and_by_no_protocol(sums):
    pair = next(sums.itertuples(index=False))

    def name(verb="read", judge="j", ids=(1, 2), trial=0, protocol="direct", pair_id="p", **options):
        key = Key(pair_id, protocol, "ab", "verdict", trial)
        return planning.call_key(judge, Call(verb, prompts.two_responses(pair, "ab", "direct", key), **options), ids)

    others = [name(judge="k"), name(ids=(1, 3)), name(ids=(1, 2, 0)), name(trial=1), name(labels=("B", "A"))]
    others += [name("generate", max_new_tokens=n) for n in (4, 5)]
    assert len({name(), *others}) == 8
    assert name() == name(protocol="pride", pair_id="another")


def test_blocks_depend_on_texts_alone_and_hold_every_pair_once(sums):
    cut = list(blocks(sums))
    assert [len(block) for block in cut] == [BLOCK_PAIRS, len(sums) - BLOCK_PAIRS]
    again = list(blocks(swap_pairs(sums).sample(frac=1, random_state=3)))
    assert [[p.pair_id for p in block] for block in cut] == [[p.pair_id for p in block] for block in again]
    long = make_pairs([(f"q{n}", "x" * 24_000, "y" * 5_000) for n in range(5)])
    assert [len(block) for block in blocks(long)] == [2, 2, 1]


# ---------------------------------------------------------------- rows


ANSWERS = [
    (Read(2.0, 0.9, 3), "ok", 2.0, 0.9),
    (Read(0.0, 0.9, 3), "tie", 0.0, 0.9),
    (Generation("The better response is A", (1,), "stop", 3), "ok", np.inf, np.nan),
    (Generation("The better response is B", (1,), "stop", 3), "ok", -np.inf, np.nan),
    (Generation("I cannot tell.", (1,), "stop", 3), "unparsed", np.nan, np.nan),
    (Generation("The better response is A", (1,), "length", 3), "truncated", np.nan, np.nan),
    (Failure("503"), "error", np.nan, np.nan),
]


@pytest.mark.parametrize("answer, status, odds, mass", ANSWERS)
@pytest.mark.parametrize("view, sign", [("ab", 1), ("ba", -1), ("ab_BA", -1), ("ba_BA", 1)])
def test_an_answer_becomes_a_row_toward_a_with_its_status(answer, status, odds, mass, view, sign, sums):
    pair = next(sums.itertuples(index=False))
    prompt = prompts.two_responses(pair, view, "direct", Key(pair.pair_id, "direct", view))
    row = run_row(Call("read", prompt, parse=prompts.final_verdict), answer, "judge")
    assert row["status"] == status and row["view"] == view and row["prompt_sha"] == prompt.sha
    assert np.array_equal([row["log_odds"], row["label_mass"]], [sign * odds, mass], equal_nan=True)
    assert row["text"] == getattr(answer, "text", getattr(answer, "reason", ""))


def test_a_recorded_run_is_found_not_made(tiny, sums):
    runs, _ = judged(sums.head(4), tiny)
    _, report = judged(sums.head(4), ReplayBackbone(runs))
    assert (report.found, report.made, report.prompt_tokens) == (24, 0, 0) and "24 found, 0 made" in str(report)


def test_no_pairs_make_an_empty_run_table(tiny, sums):
    runs, report = judged(sums.head(0), tiny)
    assert list(runs.columns) == list(RUN_COLUMNS) and len(runs) == report.calls == 0


# ---------------------------------------------------------------- run tables of more than one set of pairs


def test_two_tables_with_the_same_ids_in_one_store_never_answer_for_each_other(tmp_path, sums):
    mine, theirs = sums.head(6), sums.head(6).assign(response_a="Something else.")
    stores = [open_store("touchy", "table", root=tmp_path) for _ in "12"]
    runs = [judged(seal(pairs, store), Touchy(), store)[0] for pairs, store in zip((mine, theirs), stores, strict=True)]
    for own, store in zip(runs, stores, strict=True):
        pd.testing.assert_frame_equal(store.runs(SHORT.tag), own)
    assert not runs[0]["log_odds"].equals(runs[1]["log_odds"])


def test_judging_swapped_pairs_in_a_sealed_store_finds_the_answers_and_leaves_the_run_table_alone(tmp_path, sums):
    store = open_store("touchy", "table", root=tmp_path)
    pairs = seal(sums.head(6), store)
    runs, _ = judged(pairs, Touchy(), store)
    _, report = judged(pd.concat([swap_pairs(pairs.head(2)), pairs.tail(2)]), Touchy(), store)
    assert report.made == 0
    pd.testing.assert_frame_equal(store.runs(SHORT.tag), runs)


def test_other_words_or_budgets_never_find_the_runs_of_these(monkeypatch):
    words = prompts.TEMPLATES["direct"]
    tags = [Settings().tag, Settings(max_new_tokens=49).tag]
    monkeypatch.setitem(prompts.TEMPLATES, "direct", words._replace(question="Which one?"))
    tags.append(Settings().tag)
    monkeypatch.setattr("baer_utils.protocols.calls.SYSTEM", "You judge.")
    tags.append(Settings().tag)
    assert len(set(tags)) == 4


# ---------------------------------------------------------------- what does not fit


def test_both_responses_are_cut_at_one_length_in_every_protocol_and_counted(tiny, monkeypatch):
    monkeypatch.setattr(judging, "LEAST_LABEL_MASS", 0.0)  # the tiny judge has little to say after long texts
    pairs = make_pairs(
        [("Which is longer?", "yes " * 900, "no " * 5), ("Short?", "a", "b"), ("Both?", "x " * 700, "y " * 700)]
    )
    runs, report = judged(pairs, tiny)
    assert report.cut_responses == 3 and report.errors == 0
    # what the judge saw of each response can be told: the tokens shown are the same in every prompt of a pair
    assert set(report.shown) == {"made/0000", "made/0002"}
    prompts = runs[runs["protocol"] == "pointwise"].set_index(["pair_id", "view"])["prompt_tokens"]
    for pair in pairs[pairs["pair_id"].isin(report.shown)].itertuples():
        counts = tiny.count(pair.response_a), tiny.count(pair.response_b)
        seen_a, seen_b = (min(count, report.shown[pair.pair_id]) for count in counts)
        assert prompts[pair.pair_id, "a"] - seen_a == prompts[pair.pair_id, "b"] - seen_b and max(counts) > seen_a
    least = min(report.shown.values())
    assert f"3 responses cut (in 2 pairs; the shortest to {least:,} tokens, in " in str(report)
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


def test_a_protocol_whose_labels_are_no_tokens_of_the_judge_is_refused_and_the_others_go_on(tiny_folder, sums):
    class Wordless(TransformersBackbone):
        def label_ids(self, labels):
            return label_tokens(
                self.tokenizer, [f"{label} beyond doubt" if len(label) > 1 else label for label in labels]
            )

    runs, report = judged(sums, Wordless(tiny_folder))
    assert set(report.refused) == {"pointwise"} and "'correct beyond doubt'" in report.refused["pointwise"]
    assert set(runs["protocol"]) == {"direct", "chain_of_thought"} and len(report.judge) > 1
    with pytest.raises(ValueError, match="every protocol was refused. labels must be single, distinct tokens"):
        judged(sums, Wordless(tiny_folder), bank=("pointwise",))


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
    with pytest.raises(ValueError, match="chain_of_thought takes .* of a context of 512 before any content, 400 of"):
        judge_pairs(sums, tiny, BANK, settings=Settings(max_new_tokens=400), progress=False)
    with pytest.raises(ValueError, match="max_new_tokens must be at least 1"):
        Settings(max_new_tokens=0)
    with pytest.raises(ValueError, match="experts must be among direct"):
        judged(sums, tiny, bank=("direct", "astrology"))
    with pytest.raises(ValueError, match="must have exactly the columns"):
        judged(sums.drop(columns="split"), tiny)


def test_a_record_can_be_asked_about_the_pairs_that_have_every_expert_and_a_live_judge_about_all(tiny, sums):
    runs, _ = judged(sums.head(6), tiny, bank=("direct", "pointwise"))
    partly = runs[(runs["protocol"] == "direct") | (runs["pair_id"] != sums["pair_id"][1])]
    record = ReplayBackbone(partly)
    known = list(sums["pair_id"][:6])
    assert list(judging.answerable(sums, record, ("direct",))["pair_id"]) == known
    both = judging.answerable(sums, record, ("direct", "pointwise"))
    assert list(both["pair_id"]) == [known[0], *known[2:]] and list(both.index) == list(range(5))
    assert judging.answerable(sums, record, ("rubric",)).empty
    assert judging.answerable(sums, tiny, ("rubric",)) is sums


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


def test_work_and_tokens_are_shown_before_their_pairs_are_finished_and_counted_once():
    shown = Progress(10, 100.0, show=False)
    shown.advance(10.0, 300)
    shown.advance(5.0, 500)
    shown.advance(5.0, 0, found=True)
    assert (shown.done, shown.tokens) == (0, 800) and shown.state()["share_done"] == 0.2
    assert shown.state()["seconds_left"] == pytest.approx(80 / 15 * 800 / shown.state()["tokens_per_second"], rel=0.5)
    shown.update(3, 25.0, 1000)
    assert (shown.done, shown.tokens) == (3, 1000) and shown.state()["share_done"] == 0.25
    shown.update(1, 10.0, 0)
    assert (shown.done, shown.tokens) == (4, 1000) and shown.state()["share_done"] == 0.35
    shown.advance(65.0, 1)
    assert shown.state()["share_done"] == 0.99  # nothing is whole before its last pair is
    shown.update(6, 65.0, 2)
    assert shown.state()["share_done"] == 1.0


class Looked(Progress):
    """Writes down every look at where a run stands, instead of showing it."""

    looks: list = []

    def _show(self):
        self.looks.append(self.state() | {"worked": self._worked})


def followed(monkeypatch, pairs, judge, store=None, bank=BANK) -> list[dict]:
    monkeypatch.setattr("baer_utils.judging.progress.RENEWED_SECONDS", 0.0)
    monkeypatch.setattr(judging, "Progress", Looked)
    monkeypatch.setattr(Looked, "looks", [])
    judge_pairs(pairs, judge, bank, store=store, settings=SHORT)
    return Looked.looks


def test_one_block_of_pairs_moves_with_every_batch_and_never_back(tiny, sums, store, monkeypatch):
    pairs = sums.head(24)
    assert len(list(blocks(pairs))) == 1
    looks = followed(monkeypatch, pairs, tiny, store)
    shares = [look["share_done"] for look in looks]
    assert shares == sorted(shares) and shares[-1] == 1.0 and looks[-1]["pairs_done"] == 24
    within = [look for look in looks if look["pairs_done"] == 0]
    assert len(within) >= 4 and len({look["share_done"] for look in within}) >= 4
    assert 0 < within[0]["share_done"] < 0.5 and within[-1]["share_done"] > 0.8  # the bank has no calls in common
    assert within[0]["tokens_per_second"] == 0 < within[-1]["tokens_per_second"]  # what is shared comes first
    assert all(look["seconds_left"] is not None for look in within)
    again = followed(monkeypatch, pairs, tiny, store)
    assert again[-1]["share_done"] == 1.0 and all(look["seconds_left"] is None for look in again)
    assert all(look["worked"] == 0 for look in again)  # all was found: nothing is known about speed


def test_the_progress_of_a_judge_that_shares_nothing_counts_its_calls_alone(sums, monkeypatch):
    looks = followed(monkeypatch, sums.head(24), Touchy())
    shares = [look["share_done"] for look in looks]
    calls = np.cumsum([2 * (32 + 12), 2 * 32, 2 * 32])  # of a pair: two texts of at most 12 tokens, then four reads
    assert shares == [*np.minimum(0.99, np.floor(100 * calls / calls[-1]) / 100), 1.0]


def test_a_part_of_a_block_is_told_now_and_then_and_the_end_always(tmp_path, monkeypatch):
    monkeypatch.setenv("BAER_PROGRESS", str(tmp_path / "progress.json"))
    shown = Progress(2, 100.0)
    for _ in range(1000):
        shown.advance(0.05, 1)
    assert json.loads((tmp_path / "progress.json").read_text())["share_done"] == 0.0  # within half a second
    shown.update(2, 100.0, 1000)
    assert json.loads((tmp_path / "progress.json").read_text())["share_done"] == 1.0


def test_a_progress_file_that_cannot_be_written_is_refused_at_once_and_never_ends_a_run(tmp_path, monkeypatch):
    monkeypatch.setenv("BAER_PROGRESS", str(tmp_path / "missing" / "progress.json"))
    with pytest.raises(FileNotFoundError, match="missing"):
        Progress(10, 100.0)
    monkeypatch.setenv("BAER_PROGRESS", str(tmp_path / "progress.json"))
    shown = Progress(10, 100.0)
    assert json.loads((tmp_path / "progress.json").read_text())["pairs_done"] == 0
    monkeypatch.setattr(shown, "_file", str(tmp_path / "gone" / "progress.json"))
    shown.update(3, 25.0, 1000)
    assert shown.done == 3


def test_a_silent_run_prints_nothing(tiny, sums, capfd):
    judged(sums.head(4), tiny)
    out, err = capfd.readouterr()
    assert out == "" and "pair" not in err

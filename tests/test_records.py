"""Pair and run tables: hashes, splits, the part that is kept, the checks, the swap."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baer_utils.records import (
    PAIR_COLUMNS,
    RUN_COLUMNS,
    SPLITS,
    STATUSES,
    SWAPPED_VIEW,
    about,
    check_pairs,
    check_runs,
    content_id,
    first_is_a,
    question_group,
    split_of,
    swap_pairs,
    swap_runs,
    take_pairs,
    unit_hash,
)


def pair_table(questions: list[str], labels: list[float] | None = None, seed: int = 0) -> pd.DataFrame:
    groups = [question_group(question) for question in questions]
    return pd.DataFrame(
        {
            "pair_id": [f"p{number}" for number in range(len(questions))],
            "group_id": groups,
            "benchmark": "table",
            "subset": "all",
            "task_type": "all",
            "instruction": questions,
            "response_a": [f"a{number}" for number in range(len(questions))],
            "response_b": [f"b{number}" for number in range(len(questions))],
            "label": labels if labels is not None else [1.0] * len(questions),
            "split": [split_of(group, seed) for group in groups],
        }
    )


def run_table(views: list[str], log_odds: list[float]) -> pd.DataFrame:
    columns = dict.fromkeys(("backbone", "protocol", "prompt_sha", "text"), "x")
    columns |= dict.fromkeys(("prompt_tokens", "cached_tokens", "new_tokens"), 0)
    return pd.DataFrame(
        {
            "pair_id": "p",
            "stage": "verdict",
            "view": views,
            "trial": range(len(views)),
            "log_odds": log_odds,
            "status": "ok",
            "label_mass": 0.5,
            "seconds": 0.1,
            **columns,
        }
    )[list(RUN_COLUMNS)]


question_lists = st.lists(st.integers(0, 12).map(lambda number: f"question {number}"), min_size=1, max_size=40)
labels = st.sampled_from([1.0, -1.0, np.nan])
evidence = st.one_of(st.floats(-50, 50), st.sampled_from([np.inf, -np.inf, np.nan, 0.0, -0.0]))
run_lists = st.lists(st.tuples(st.sampled_from(list(SWAPPED_VIEW)), evidence), max_size=12)


# ---------------------------------------------------------------- hashes


# Computed by hand with sha256sum: printf 'what is 2+2?' | sha256sum, and so on.
def test_hashes_are_the_ones_of_the_design():
    def digest(text):
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    assert (
        unit_hash("abc") == 0xBA7816BF8F01CFEA / 2**64
    )  # FIPS 180-2, appendix B.1: sha256("abc") = ba7816bf 8f01cfea ...
    assert question_group("  What IS\n 2+2? ") == digest("what is 2+2?")
    assert content_id("q", "z", "b") == content_id("q", "b", "z") == digest("q\x1fb\x1fz")
    assert first_is_a("llmbar", "Natural/0000") == (int(digest("orient|llmbar|Natural/0000"), 16) < 2**63)
    u = int(digest("7|split|g"), 16) / 2**64
    assert split_of("g", 7) == ("selection" if u < 0.2 else "calibration" if u < 0.6 else "test")


def test_one_question_in_two_unicode_forms_is_one_group():
    assert question_group("cafe\u0301 au lait") == question_group("CAF\u00c9\u00a0au  lait")
    assert question_group("a b") != question_group("ab")


def test_orientation_is_a_fair_coin_and_another_benchmark_tosses_it_again():
    tosses = np.array([[first_is_a(name, f"pair-{i}") for i in range(4000)] for name in ("x", "y")])
    assert np.all(abs(tosses.mean(axis=1) - 0.5) < 3 * 0.5 / np.sqrt(4000))
    assert abs((tosses[0] == tosses[1]).mean() - 0.5) < 3 * 0.5 / np.sqrt(4000)


# BAER section 3.1: selection / calibration / test of RewardBench, JudgeBench, HH-RLHF, UltraFeedback.
PUBLISHED = {
    2985: (588, 1234, 1163),
    620: (136, 238, 246),
    8552: (1717, 3335, 3500),
    63603: (12598, 25406, 25599),
}


@pytest.mark.parametrize("total", PUBLISHED)
def test_our_split_and_the_published_one_are_both_within_three_sd_of_20_40_40(total):
    shares = np.array([0.2, 0.4, 0.4])
    sd = np.sqrt(total * shares * (1 - shares))
    ours = pd.Series([split_of(question_group(f"{total} {i}")) for i in range(total)]).value_counts()
    assert sum(PUBLISHED[total]) == total
    for sizes in (PUBLISHED[total], [ours[split] for split in SPLITS]):
        assert np.all(abs(np.array(sizes) - total * shares) < 3 * sd)


def test_another_seed_splits_otherwise():
    groups = [f"g{i}" for i in range(300)]
    assert [split_of(g, 0) for g in groups] != [split_of(g, 1) for g in groups]
    assert [split_of(g) for g in groups] == [split_of(g, 0) for g in groups]


# ---------------------------------------------------------------- the part that is kept


@settings(max_examples=60, deadline=None)
@given(question_lists, st.integers(1, 40), st.randoms())
def test_what_is_kept_is_whole_questions_and_does_not_depend_on_the_order_of_rows(questions, n, random):
    pairs = pair_table(questions)
    kept = take_pairs(pairs, n)
    groups = set(kept["group_id"])
    assert list(kept["pair_id"]) == list(pairs.loc[pairs["group_id"].isin(groups), "pair_id"])
    order = random.sample(range(len(pairs)), len(pairs))
    assert set(take_pairs(pairs.iloc[order].reset_index(drop=True), n)["pair_id"]) == set(kept["pair_id"])


@settings(max_examples=60, deadline=None)
@given(question_lists, st.integers(1, 39))
def test_a_larger_number_keeps_what_a_smaller_one_kept_and_no_split_is_emptied(questions, n):
    pairs = pair_table(questions)
    small, large = take_pairs(pairs, n), take_pairs(pairs, n + 1)
    assert set(small["pair_id"]) <= set(large["pair_id"])
    assert set(small["split"]) == set(pairs["split"])


@settings(max_examples=60, deadline=None)
@given(question_lists, st.integers(1, 40))
def test_a_split_stops_with_the_first_question_in_hash_order_that_reaches_its_number(questions, n):
    pairs = pair_table(questions)
    kept = take_pairs(pairs, n)
    numbers = dict(zip(SPLITS, (round(0.2 * n), round(0.4 * n), n - round(0.2 * n) - round(0.4 * n)), strict=True))
    for split, part in pairs.groupby("split"):
        sizes = part.groupby("group_id").size()
        order = sorted(sizes.index, key=lambda g: hashlib.sha256(f"take|{g}".encode()).hexdigest())
        before = np.cumsum([0, *sizes[order]])[:-1]
        expected = {g for at, g in enumerate(order) if at == 0 or before[at] < numbers[split]}
        assert set(kept.loc[kept["split"] == split, "group_id"]) == expected


def test_zero_keeps_all_and_a_negative_number_is_refused():
    pairs = pair_table(["a", "b", "c"])
    assert take_pairs(pairs, 0) is pairs
    with pytest.raises(ValueError, match="n_pairs must be 0 .* it is -3"):
        take_pairs(pairs, -3)


# ---------------------------------------------------------------- checks


def test_checked_tables_have_the_columns_in_order_and_their_types():
    pairs = check_pairs(pair_table(["a", "b", "c"], [1, -1, None])[list(reversed(PAIR_COLUMNS))])
    assert tuple(pairs.columns) == PAIR_COLUMNS and pairs["label"].dtype == float
    runs = check_runs(run_table(["ab", "q"], [None, np.inf])[list(reversed(RUN_COLUMNS))])
    assert tuple(runs.columns) == RUN_COLUMNS
    assert runs[["trial", "prompt_tokens", "cached_tokens", "new_tokens"]].dtypes.eq(int).all()
    assert runs[["log_odds", "label_mass", "seconds"]].dtypes.eq(float).all()


@pytest.mark.parametrize("column", [[1, None], pd.array([1, None], "Int64"), pd.Series([1, pd.NA], dtype=object)])
def test_a_null_label_is_nan_whatever_kind_of_null_it_was(column):
    assert check_pairs(pair_table(["a", "b"]).assign(label=column))["label"].tolist()[0] == 1
    assert np.isnan(check_pairs(pair_table(["a", "b"]).assign(label=column))["label"].tolist()[1])


PAIR_FAULTS = {
    "label": (0, "label must be .1 .*row 1 .pair p1. is 0"),
    "label ": ("1", "label must be .1 .*row 1 .pair p1. is '1'"),
    "split": ("train", "split must be one of selection, calibration, test; row 1"),
    "pair_id": ("p0", "pair_id must be unique; row 1"),
    "response_b": (None, r"response_b must be text; row 1 .pair p1. is .* \(1 such\)"),
    "instruction": (7, "instruction must be text; row 1"),
}


@pytest.mark.parametrize("column", PAIR_FAULTS)
def test_a_faulty_pair_is_refused_by_name_and_row(column):
    value, message = PAIR_FAULTS[column]
    pairs = pair_table(["a", "b", "c"]).astype(object)
    pairs.loc[1, column.strip()] = value
    with pytest.raises(ValueError, match=message):
        check_pairs(pairs)


def test_a_question_in_two_splits_is_refused():
    pairs = pair_table(["a", "a"])
    pairs["split"] = ["selection", "test"]
    with pytest.raises(ValueError, match="split must be the same for all pairs of a question"):
        check_pairs(pairs)


RUN_FAULTS = {
    "view": ("AB", "view must be one of ab, ba"),
    "status": ("fine", "status must be one of ok, tie"),
    "trial": (0.5, "trial must be a whole number; row 1 .pair p. is 0.5"),
    "new_tokens": (None, "new_tokens must be a whole number"),
    "log_odds": ("high", "log_odds must be a number or null; row 1 .* is 'high'"),
    "label_mass": (1.5, "label_mass must lie in"),
    "text": (None, "text must be text"),
}


@pytest.mark.parametrize("column", RUN_FAULTS)
def test_a_faulty_run_is_refused_by_name_and_row(column):
    value, message = RUN_FAULTS[column]
    runs = run_table(["ab", "ba", "q"], [0.1, 0.2, np.nan]).astype(object)
    runs.loc[1, column] = value
    with pytest.raises(ValueError, match=message):
        check_runs(runs)


def test_a_repeated_run_and_a_missing_or_foreign_column_are_refused():
    runs = run_table(["ab", "ab"], [0.1, 0.1])
    runs["trial"] = 0
    with pytest.raises(ValueError, match="must be unique with backbone, protocol, view, stage and trial"):
        check_runs(runs)
    check_runs(runs.assign(backbone=["x", "y"]))
    with pytest.raises(ValueError, match="missing: label; not known: gold"):
        check_pairs(pair_table(["a"]).rename(columns={"label": "gold"}))


def test_an_empty_table_passes():
    assert len(check_pairs(pair_table([]))) == 0
    assert len(check_runs(run_table([], []))) == 0


# ---------------------------------------------------------------- the swap


@given(st.lists(labels, min_size=1, max_size=8))
def test_swapping_pairs_twice_changes_nothing_and_the_checks_accept_the_swap(column):
    pairs = check_pairs(pair_table([f"q{i}" for i in range(len(column))], column))
    swapped = check_pairs(swap_pairs(pairs))
    pd.testing.assert_frame_equal(swap_pairs(swapped), pairs)
    assert list(swapped["response_a"]) == list(pairs["response_b"])
    np.testing.assert_array_equal(swapped["label"], -pairs["label"])


@given(run_lists)
def test_swapping_runs_twice_changes_nothing_and_the_checks_accept_the_swap(rows):
    runs = check_runs(run_table([view for view, _ in rows], [value for _, value in rows]))
    swapped = check_runs(swap_runs(runs))
    pd.testing.assert_frame_equal(swap_runs(swapped), runs)
    for before, after in zip(runs.itertuples(), swapped.itertuples(), strict=True):
        sign = 1 if before.view in ("a", "b", "q") else -1
        np.testing.assert_array_equal(after.log_odds, sign * before.log_odds)
        assert {before.view, after.view} in ({"ab", "ba"}, {"ab_BA", "ba_BA"}, {"a", "b"}, {"q"}, {"net"})


def test_every_view_has_one_partner_and_statuses_are_the_five_of_the_design():
    assert all(SWAPPED_VIEW[SWAPPED_VIEW[view]] == view for view in SWAPPED_VIEW)
    assert set(SWAPPED_VIEW) == {"ab", "ba", "ab_BA", "ba_BA", "a", "b", "q", "net"}
    assert STATUSES == ("ok", "tie", "unparsed", "truncated", "error")


@pytest.mark.parametrize("column", ["instruction", "response_a", "pair_id"])
def test_half_a_surrogate_pair_is_refused_by_row(column):
    pairs = pair_table(["one", "two"]).astype(object)
    pairs.loc[1, column] = "half \ud83d of it"
    with pytest.raises(ValueError, match=f"{column} must be valid Unicode; .*row 1"):
        check_pairs(pairs)


@given(st.lists(st.sampled_from("pqrs"), max_size=12), st.lists(st.sampled_from("pqrst"), max_size=6))
def test_the_rows_about_some_pairs_are_those_that_name_one_of_them(named, ids):
    runs = pd.DataFrame({"pair_id": pd.Series(named, dtype="str")})
    assert about(runs, ids).tolist() == [name in ids for name in named]

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import rankdata

from baer_utils.debias import debiased_runs, fit_debias
from baer_utils.evidence import NATIVE, native_decisions
from baer_utils.prompts import LABEL_SIGN
from baer_utils.protocols import EXPERTS
from baer_utils.records import swap_pairs, swap_runs, unit_hash
from tests.strategies import banks, make_pairs, run_rows, same

A, B, TIE, NONE = np.inf, -np.inf, 0.0, np.nan
HARD = ("chain_of_thought", "rubric", "score_then_choose", "prepair")
THREE = ("ab", "ba_BA", "ba")  # prompts 1A, 2A, 2B


def read_in(views, n: int, seed: int = 0, *, bias: float = 1.5) -> tuple[pd.DataFrame, pd.DataFrame]:
    """n pairs of distinct texts and direct reads of a judge that likes the label A and, less, what stands first."""
    rng = np.random.default_rng(seed)
    pairs = make_pairs(n, seed).assign(
        response_a=[f"one {i}" for i in range(n)], response_b=[f"two {i}" for i in range(n)]
    )
    pairs["split"] = np.resize(["test", "selection", "calibration"], n)
    rows = [
        (pair_id, "direct", view, 0, worth + LABEL_SIGN[view] * bias + (0.5 if view[0] == "a" else -0.5) + rng.normal())
        for pair_id, worth in zip(pairs["pair_id"], rng.normal(size=n), strict=True)
        for view in views
    ]
    return pairs, run_rows(rows)


def decide(runs: pd.DataFrame, pairs: pd.DataFrame, method: str, **options) -> np.ndarray:
    return native_decisions(runs, pairs, [method], **options)[method].to_numpy()


def test_the_eight_external_methods_have_a_rule_and_the_papers_own_has_none():
    assert set(NATIVE) == set(EXPERTS) - {"deliberate"} and len(NATIVE) == 8


@settings(max_examples=25)
@given(banks(max_experts=9))
def test_every_decision_negates_with_the_swap_and_is_a_verdict_a_tie_or_missing(bank):
    pairs, runs, _ = bank
    here = native_decisions(runs, pairs, list(NATIVE))
    assert same(native_decisions(swap_runs(runs), swap_pairs(pairs), list(NATIVE)), -here)
    assert here.isin([-1, 0, 1, np.nan]).all(axis=None)


# ---------------------------------------------------------------- hard verdicts over two orders


@pytest.mark.parametrize("method", HARD)
@pytest.mark.parametrize(
    "ab, ba, verdict",
    [
        (A, A, 1), (B, B, -1), (A, B, 0), (B, A, 0), (A, NONE, 1), (NONE, B, -1), (NONE, NONE, np.nan),
        (TIE, TIE, 0), (TIE, A, 0), (TIE, NONE, 0), (0.3, 7.0, 1), (-0.3, 7.0, 0), (-0.3, NONE, -1),
    ],
)  # fmt: skip
def test_verdicts_that_agree_count_one_parsed_counts_and_two_that_disagree_are_a_tie(method, ab, ba, verdict):
    pairs = make_pairs(1)
    runs = run_rows([(pairs["pair_id"][0], method, *run) for run in (("ab", 0, ab), ("ba", 0, ba))])
    assert same(decide(runs, pairs, method), [verdict])


def test_rubrics_hard_letter_is_the_sign_of_its_read_so_a_loud_order_does_not_outvote_the_other():
    pairs = make_pairs(1)
    rows = [(pairs["pair_id"][0], name, view, 0, x) for view, x in (("ab", 9.0), ("ba", -0.1)) for name in EXPERTS]
    decisions = native_decisions(run_rows(rows), pairs, ["direct", "rubric"])
    assert decisions.iloc[0].tolist() == [1, 0]


# ---------------------------------------------------------------- votes


@settings(max_examples=40)
@given(*[st.lists(st.sampled_from([A, B, TIE, NONE]), max_size=5)] * 2)
def test_self_consistency_takes_the_majority_of_all_parsed_votes_of_both_orders(ab, ba):
    pairs = make_pairs(2)
    rows = [(pairs["pair_id"][1], "self_consistency", "ab", trial, vote) for trial, vote in enumerate(ab)]
    rows += [(pairs["pair_id"][1], "self_consistency", "ba", trial, vote) for trial, vote in enumerate(ba)]
    votes = [*ab, *ba]
    for_a, for_b, parsed = votes.count(A), votes.count(B), sum(vote == vote for vote in votes)
    majority = np.nan if not parsed else (for_a > for_b) - (for_b > for_a)
    assert same(decide(run_rows(rows), pairs, "self_consistency"), [np.nan, majority])


def test_five_votes_against_five_are_a_tie_and_a_missing_vote_breaks_it():
    pairs = make_pairs(1)
    rows = [
        (pairs["pair_id"][0], "self_consistency", view, t, A if view == "ab" else B)
        for view in ("ab", "ba")
        for t in range(5)
    ]
    assert decide(run_rows(rows), pairs, "self_consistency").tolist() == [0]
    assert decide(run_rows(rows[:-1]), pairs, "self_consistency").tolist() == [1]
    failed = run_rows(rows, status=["ok"] * 9 + ["unparsed"])  # whatever value the row holds
    assert decide(failed, pairs, "self_consistency").tolist() == [1]


def test_votes_are_pooled_over_the_orders_not_order_by_order():
    """Four against one and nought against two: the orders disagree, five of seven votes do not."""
    pairs = make_pairs(1)
    votes = [("ab", A)] * 4 + [("ab", B)] + [("ba", B)] * 2
    rows = [(pairs["pair_id"][0], "self_consistency", view, trial, vote) for trial, (view, vote) in enumerate(votes)]
    assert decide(run_rows(rows), pairs, "self_consistency").tolist() == [1]


def test_votes_of_two_backbones_are_refused():
    pairs = make_pairs(1)
    rows = [(pairs["pair_id"][0], "self_consistency", "ab", 0, A)] * 2
    with pytest.raises(ValueError, match="must occur once"):
        decide(run_rows(rows, backbone=["one", "two"]), pairs, "self_consistency")


# ---------------------------------------------------------------- PriDe


def test_pride_reads_one_order_the_one_whose_first_text_has_the_smaller_hash_after_subtracting_the_prior():
    pairs, runs = read_in(("ab", "ba"), 90)
    prior = fit_debias(runs, pairs).prior
    shift = np.log(prior / (1 - prior))
    value = runs.set_index(["pair_id", "view"])["log_odds"]
    wanted = []
    for pair_id, a, b in pairs[["pair_id", "response_a", "response_b"]].itertuples(index=False):
        a_first = unit_hash(a) < unit_hash(b)
        label_a = value[pair_id, "ab"] if a_first else -value[pair_id, "ba"]
        wanted.append(np.sign(label_a - shift) * (1 if a_first else -1))
    decisions = decide(pd.concat([runs, debiased_runs(runs, pairs)]), pairs, "pride")
    assert same(decisions, wanted)
    direct = decide(runs, pairs, "direct")
    assert (direct != decisions).any()  # one order is another method than two
    raw = runs.assign(protocol="pride")
    assert not same(decide(raw, pairs, "pride"), decisions)  # and the prior matters


def test_a_pair_and_its_swap_are_read_in_the_same_prompt_so_pride_negates():
    pairs, runs = read_in(("ab", "ba"), 60)
    swapped, there = swap_pairs(pairs), swap_runs(runs)
    here = decide(pd.concat([runs, debiased_runs(runs, pairs)]), pairs, "pride")
    assert same(decide(pd.concat([there, debiased_runs(there, swapped)]), swapped, "pride"), -here)
    assert {-1, 1} <= set(here)


def test_pride_ignores_the_other_order_and_is_missing_where_its_own_order_is():
    pairs = make_pairs(1).assign(response_a="one", response_b="two")
    own, other = ("ab", "ba") if unit_hash("one") < unit_hash("two") else ("ba", "ab")
    for said in (-5.0, 5.0, NONE):
        rows = [(pairs["pair_id"][0], "pride", own, 0, 0.1), (pairs["pair_id"][0], "pride", other, 0, said)]
        assert decide(run_rows(rows), pairs, "pride").tolist() == [1]
    assert np.isnan(decide(run_rows(rows[1:]), pairs, "pride"))[0]


@pytest.mark.parametrize("said, verdict", [(4.0, 0), (NONE, np.nan)])
def test_two_equal_texts_are_a_tie_for_pride(said, verdict):
    pairs = make_pairs(1).assign(response_a="same", response_b="same")
    rows = [(pairs["pair_id"][0], "pride", "ab", 0, said), (pairs["pair_id"][0], "pride", "ba", 0, -said)]
    assert same(decide(run_rows(rows), pairs, "pride"), [verdict])


# ---------------------------------------------------------------- CalibraEval


def test_calibraeval_weighs_three_prompts_under_its_own_ranks_of_the_non_test_pairs():
    pairs, runs = read_in(THREE, 90)
    wide = runs.assign(p=expit(runs["view"].map(LABEL_SIGN) * runs["log_odds"])).pivot(
        index="pair_id", columns="view", values="p"
    )
    p = wide.loc[pairs["pair_id"], list(THREE)].to_numpy()
    fit = p[(pairs["split"] != "test").to_numpy()]
    knots, ranks = np.sort(fit.ravel()), rankdata(np.sort(fit.ravel()), method="dense") / (fit.size + 1)
    g = np.interp(p, knots, ranks)
    mean = (g[:, 0] + g[:, 1] + 1 - g[:, 2]) / 3
    decisions = decide(runs, pairs, "calibraeval")
    assert same(decisions, np.sign(np.round(mean - 0.5, 12)))
    assert (decisions != decide(runs, pairs, "direct")).any()
    two = pd.concat([runs, debiased_runs(runs, pairs)])  # the expert's rows are another method, and change nothing
    assert same(decide(two, pairs, "calibraeval"), decisions)


def test_a_frozen_map_decides_test_pairs_alone_as_in_the_whole_table():
    pairs, runs = read_in(THREE, 90)
    test, fitted = pairs[pairs["split"] == "test"], fit_debias(runs, pairs)
    whole = decide(runs, pairs, "calibraeval")[(pairs["split"] == "test").to_numpy()]
    assert same(decide(runs, test, "calibraeval", debias=fitted), whole)
    assert same(decide(runs, pairs, "calibraeval", debias=fitted), decide(runs, pairs, "calibraeval"))
    optimised = fit_debias(runs, pairs, "optimised", epochs=200)
    assert not same(decide(runs, pairs, "calibraeval", debias=optimised), decide(runs, pairs, "calibraeval"))


def test_test_pairs_alone_are_not_fitted_on_without_asking():
    pairs, runs = read_in(THREE, 30)
    test = pairs[pairs["split"] == "test"]
    with pytest.raises(ValueError, match=r"views ab, ba_BA, ba; the pair table has none. Pass debias="):
        decide(runs, test, "calibraeval")
    two_views = fit_debias(runs[runs["view"] != "ba_BA"], pairs)
    with pytest.raises(ValueError, match=r"debias has none"):
        decide(runs, test, "calibraeval", debias=two_views)


@pytest.mark.parametrize("lost", THREE)
def test_a_pair_without_one_of_its_three_reads_is_missing_for_calibraeval(lost):
    pairs, runs = read_in(THREE, 30)
    one = pairs["pair_id"][4]
    gone = runs[~((runs["pair_id"] == one) & (runs["view"] == lost))]
    assert np.flatnonzero(np.isnan(decide(gone, pairs, "calibraeval"))).tolist() == [4]
    assert np.isnan(decide(runs[runs["view"] != lost], pairs, "calibraeval")).all()  # nothing to decide: no error


def test_a_mean_of_exactly_one_half_is_a_tie():
    """Three distinct reads have the ranks 1/4, 2/4, 3/4: 1/4 + 3/4 + 1 - 2/4 is three halves."""
    pairs = make_pairs(1).assign(split="selection")
    reads = {"ab": -1.0, "ba_BA": 3.0, "ba": -0.5}  # log-odds of label A: -1, 3 and 0.5
    runs = run_rows([(pairs["pair_id"][0], "direct", view, 0, value) for view, value in reads.items()])
    assert decide(runs, pairs, "calibraeval").tolist() == [0]

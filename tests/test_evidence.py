import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baer_utils.evidence import (
    NATIVE,
    log_odds,
    mean_preference,
    native_decisions,
    order_free_sum,
    order_instability,
    run_array,
    shrunk_log_odds,
    summarize,
)
from baer_utils.records import check_pairs, check_runs, swap_pairs, swap_runs
from tests.strategies import banks, log_odds_arrays, make_pairs, make_runs, run_rows, same

LIMIT = math.log(0.9999 / 0.0001)


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


# ---------------------------------------------------------------- invariants


@settings(max_examples=60)
@given(banks())
def test_the_random_tables_of_these_tests_are_legal_ones(bank):
    pairs, runs, _ = bank
    check_pairs(pairs)
    check_runs(runs)


@settings(max_examples=60)
@given(banks())
def test_swapping_the_run_table_negates_the_array_and_exchanges_the_orders(bank):
    pairs, runs, experts = bank
    L = run_array(runs, experts, pairs["pair_id"])
    assert L.shape == (len(pairs), len(experts), 2)
    assert same(run_array(swap_runs(runs), experts, swap_pairs(pairs)["pair_id"]), -L[:, :, ::-1])


@settings(max_examples=60)
@given(banks())
def test_swapping_negates_the_evidence_and_keeps_the_instability_bit_for_bit(bank):
    pairs, runs, experts = bank
    here = summarize(run_array(runs, experts, pairs["pair_id"]), experts)
    there = summarize(run_array(swap_runs(runs), experts, pairs["pair_id"]), experts)
    assert same(there.z, -here.z) and same(there.z_shrunk, -here.z_shrunk)
    assert same(there.delta, here.delta) and same(there.available, here.available)
    assert np.allclose(there.p, 1 - here.p, rtol=0, atol=1e-15)


@given(log_odds_arrays)
def test_swapping_exchanges_the_two_mean_preferences_bit_for_bit(L):
    p_a, p_b = mean_preference(L)
    swapped_a, swapped_b = mean_preference(-L[:, :, ::-1])
    assert same(swapped_a, p_b) and same(swapped_b, p_a)


@given(log_odds_arrays, st.randoms(use_true_random=False))
def test_the_order_of_the_runs_changes_no_bit(L, random):
    order = list(range(L.shape[-1]))
    random.shuffle(order)
    here, there = summarize(L), summarize(L[:, :, order])
    assert all(same(getattr(here, name), getattr(there, name)) for name in ("p", "delta", "z", "z_shrunk", "available"))


@settings(max_examples=40)
@given(banks(), st.randoms(use_true_random=False))
def test_permuting_rows_runs_and_experts_permutes_the_evidence_and_changes_no_bit(bank, random):
    pairs, runs, experts = bank
    rows, columns = list(range(len(pairs))), list(range(len(experts)))
    random.shuffle(rows)
    random.shuffle(columns)
    here = summarize(run_array(runs, experts, pairs["pair_id"]))
    shuffled = runs.sample(frac=1, random_state=random.randrange(10**6))
    there = summarize(run_array(shuffled, [experts[k] for k in columns], pairs["pair_id"].iloc[rows]))
    for name in ("p", "delta", "z", "z_shrunk", "available"):
        assert same(getattr(there, name), getattr(here, name)[np.ix_(rows, columns)])


def test_evidence_of_a_pair_does_not_depend_on_the_pairs_beside_it():
    L = np.random.default_rng(0).normal(size=(1000, 9, 2)) * 5
    whole = summarize(L)
    for rows in (slice(0, 1), slice(3, 10), slice(998, 1000), slice(None, None, 7)):
        part = summarize(L[rows])
        assert same(part.z, whole.z[rows]) and same(part.delta, whole.delta[rows])


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_an_order_free_sum_has_the_same_bits_in_any_order(terms, random):
    shuffled = random.sample(terms, len(terms))
    assert order_free_sum(np.array(terms)) == order_free_sum(np.array(shuffled))
    assert math.isclose(order_free_sum(np.array(terms)), math.fsum(terms), abs_tol=1e-6)


# ---------------------------------------------------------------- agreement with plain Python


@settings(max_examples=60)
@given(log_odds_arrays)
def test_evidence_is_the_papers_mean_spread_and_shrunk_logit(L):
    evidence = summarize(L)
    for i, k in np.ndindex(L.shape[:2]):
        u = [sigmoid(x) for x in L[i, k] if not math.isnan(x)]
        p = math.fsum(u) / len(u) if u else 0.5
        delta = max(u) - min(u) if u else 0.0
        q = math.fsum(sigmoid(-x) for x in L[i, k] if not math.isnan(x)) / len(u) if u else 0.5
        z = min(max((math.log(p) if p else -math.inf) - (math.log(q) if q else -math.inf), -LIMIT), LIMIT)
        assert math.isclose(evidence.p[i, k], p, abs_tol=1e-12)
        assert math.isclose(evidence.delta[i, k], delta, abs_tol=1e-12)
        assert math.isclose(evidence.z[i, k], z, abs_tol=1e-9)
        assert math.isclose(evidence.z_shrunk[i, k], z / (1 + 4 * delta), abs_tol=1e-9)
        assert evidence.available[i, k] == bool(u)


def test_missing_evidence_is_neutral_and_a_single_run_is_stable():
    evidence = summarize(np.array([[[np.nan, np.nan], [1.5, np.nan], [0.0, 0.0]]]), ["gone", "once", "tied"])
    assert same(evidence.p[0], [0.5, sigmoid(1.5), 0.5])
    assert same(evidence.delta[0], [0, 0, 0])
    assert np.allclose(evidence.z[0], [0, 1.5, 0], atol=1e-15) and evidence.z[0, 0] == 0 == evidence.z[0, 2]
    assert evidence.available[0].tolist() == [False, True, True]
    assert evidence.experts == ("gone", "once", "tied")


@pytest.mark.parametrize("clip", [1e-4, 0.01, 0.2])
def test_only_the_clip_makes_a_hard_verdict_finite_and_it_is_symmetric(clip):
    L = np.array([[[np.inf, np.inf], [-np.inf, -np.inf], [np.inf, -np.inf], [np.inf, np.nan]]])
    limit = math.log((1 - clip) / clip)
    evidence = summarize(L, clip=clip)
    assert np.allclose(evidence.z[0], [limit, -limit, 0, limit], rtol=1e-15)
    assert same(evidence.p[0], [1, 0, 0.5, 1])
    assert same(evidence.delta[0], [0, 0, 1, 0])
    assert evidence.z_shrunk[0, 2] == 0


def test_log_odds_are_not_lost_where_one_minus_p_would_lose_them():
    p_a, p_b = mean_preference(np.array([[[40.0, 38.0]]]))
    assert math.isclose(
        log_odds(p_a, p_b, clip=1e-30)[0, 0], -math.log((math.exp(-40) + math.exp(-38)) / 2), rel_tol=1e-12
    )


def test_the_discount_of_a_judge_that_always_moves_is_a_fifth():
    assert shrunk_log_odds([2.0, 2.0, -2.0], [0.0, 1.0, 0.25]).tolist() == [2.0, 0.4, -1.0]


@pytest.mark.parametrize("clip", [0.0, 0.5, -0.1, 1e-4 - 1])
def test_a_clip_outside_its_range_is_refused(clip):
    with pytest.raises(ValueError, match="strictly between 0 and 1/2"):
        log_odds(0.5, 0.5, clip=clip)


def test_instability_and_mean_refuse_an_array_without_the_axis_of_runs():
    for function in (mean_preference, order_instability, summarize):
        with pytest.raises(ValueError, match="axes pairs, experts, runs"):
            function(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="2 columns of L; 1 names"):
        summarize(np.zeros((3, 2, 2)), ["direct"])


# ---------------------------------------------------------------- run tables to arrays


def test_rows_follow_the_pair_ids_asked_for_and_by_default_the_sorted_ones():
    runs = run_rows([("q", "direct", "ab", 0, 1.0), ("p", "direct", "ba", 0, -2.0), ("p", "rubric", "ab", 0, 3.0)])
    expected = [[[np.nan, -2.0], [3.0, np.nan]], [[1.0, np.nan], [np.nan, np.nan]]]
    assert same(run_array(runs, ["direct", "rubric"]), expected)
    assert same(run_array(runs, ["direct"], ["q", "absent"]), [[[1.0, np.nan]], [[np.nan, np.nan]]])
    assert run_array(runs, ["never ran"]).shape == (2, 1, 2) and np.isnan(run_array(runs, ["never ran"])).all()


def test_only_verdicts_that_saw_both_responses_in_their_own_labels_enter():
    views = ("ab", "ba_BA", "ab_BA", "a", "b", "q")
    runs = run_rows([("p", "direct", view, 0, 1.0 if view == "ab" else 7.0) for view in views])
    analysis = run_rows([("p", "direct", "ba", 0, 5.0)], stage="analysis")
    assert same(run_array(pd.concat([runs, analysis]), ["direct"]), [[[1.0, np.nan]]])


def test_failed_runs_carry_no_verdict_whatever_value_they_hold():
    runs = run_rows([("p", "direct", "ab", 0, 0.0), ("p", "direct", "ba", 0, 2.0)], status=["error", "truncated"])
    assert same(run_array(runs, ["direct"]), [[[np.nan, 2.0]]])


@given(st.lists(st.sampled_from([np.inf, -np.inf, 0.0, np.nan, 0.7]), max_size=7))
def test_self_consistency_votes_become_one_smoothed_value_per_order(votes):
    runs = run_rows([("p", "self_consistency", "ba", trial, value) for trial, value in enumerate(votes)])
    n_a, n_b = sum(v > 0 for v in votes), sum(v < 0 for v in votes)
    parsed = any(not math.isnan(v) for v in votes)
    expected = math.log((n_a + 0.5) / (n_b + 0.5)) if parsed else np.nan
    L = run_array(runs, ["self_consistency"], ["p"])
    assert L.shape == (1, 1, 2) and np.isnan(L[0, 0, 0])
    assert np.isclose(L[0, 0, 1], expected, rtol=1e-14, atol=1e-14, equal_nan=True)


def test_exchanged_votes_give_the_negated_value_to_the_last_bit():
    """Up to nine votes for each side; log(x / y) alone is not the negative of log(y / x) for all of them."""
    rows = [
        (f"{n_a}-{n_b}", "self_consistency", "ab", trial, np.inf if trial < n_a else -np.inf)
        for n_a, n_b in np.ndindex(10, 10)
        for trial in range(n_a + n_b)
    ]
    ids = [f"{n_a}-{n_b}" for n_a, n_b in np.ndindex(10, 10)]
    value = run_array(run_rows(rows), ["self_consistency"], ids)[:, 0, 0].reshape(10, 10)
    assert same(value, -value.T)


def test_five_votes_do_not_give_the_other_experts_five_runs():
    rows = [("p", "self_consistency", "ab", trial, np.inf) for trial in range(5)] + [("p", "direct", "ab", 0, 1.0)]
    assert run_array(run_rows(rows), ["direct", "self_consistency"]).shape == (1, 2, 2)


def test_repeated_trials_of_another_judge_are_runs_of_their_own():
    rows = [("p", "judge", view, trial, float(trial)) for view in ("ab", "ba") for trial in (1, 7)]
    assert same(run_array(run_rows(rows), ["judge"]), [[[1.0, 1.0, 7.0, 7.0]]])


def test_a_net_verdict_is_a_single_run_and_cannot_stand_beside_its_orders():
    net = run_rows([("p", "judge", "net", 0, -np.inf)])
    assert same(run_array(net, ["judge"]), [[[-np.inf, np.nan]]])
    assert summarize(run_array(net, ["judge"])).delta[0, 0] == 0
    with pytest.raises(ValueError, match="judge has both on pair p"):
        run_array(pd.concat([net, run_rows([("p", "judge", "ba", 0, 1.0)])]), ["judge"])


def test_runs_of_two_backbones_and_repeated_names_are_refused():
    runs = run_rows([("p", "direct", "ab", 0, 1.0)] * 2, backbone=["one", "two"])
    with pytest.raises(ValueError, match=r"must occur once.*'direct', 'ab'.*one backbone"):
        run_array(runs, ["direct"])
    for experts, pair_ids in ((["direct", "direct"], ["p"]), (["direct"], ["p", "p"])):
        with pytest.raises(ValueError, match="a name repeats"):
            run_array(runs.iloc[:1], experts, pair_ids)


# ---------------------------------------------------------------- baselines under their own rule

A, B, TIE, NONE = np.inf, -np.inf, 0.0, np.nan


@pytest.mark.parametrize(
    "ab, ba, verdict",
    [
        (A, A, 1), (B, B, -1), (A, B, 0), (B, A, 0), (A, NONE, 1), (NONE, B, -1), (NONE, NONE, np.nan),
        (TIE, TIE, 0), (TIE, A, 0), (B, TIE, 0), (TIE, NONE, 0),
    ],
)  # fmt: skip
def test_chain_of_thought_keeps_only_verdicts_that_agree_over_the_orders(ab, ba, verdict):
    pairs = make_pairs(1)
    runs = run_rows([(pairs["pair_id"][0], "chain_of_thought", *run) for run in (("ab", 0, ab), ("ba", 0, ba))])
    assert same(native_decisions(runs, pairs, ["chain_of_thought"]), [[verdict]])


@pytest.mark.parametrize(
    "ab, ba, verdict",
    [(2.0, -1.0, 1), (1.0, -2.0, -1), (1.0, -1.0, 0), (0.5, NONE, 1), (NONE, NONE, np.nan), (9.0, 0.0, 1)],
)
def test_direct_judging_decides_by_the_sign_of_its_mean_preference(ab, ba, verdict):
    pairs = make_pairs(1)
    runs = run_rows([(pairs["pair_id"][0], "direct", *run) for run in (("ab", 0, ab), ("ba", 0, ba))])
    assert same(native_decisions(runs, pairs, ["direct"]), [[verdict]])


@settings(max_examples=40)
@given(banks())
def test_native_decisions_follow_the_pair_table_and_negate_with_the_swap(bank):
    pairs, runs, _ = bank
    here, there = (
        native_decisions(runs, pairs, list(NATIVE)),
        native_decisions(swap_runs(runs), swap_pairs(pairs), list(NATIVE)),
    )
    assert list(here.index) == list(pairs["pair_id"]) and list(here.columns) == list(NATIVE)
    assert same(there, -here)


def test_a_method_without_a_native_rule_is_refused():
    pairs = make_pairs(3)
    with pytest.raises(ValueError, match=r"native rule \(direct, .*chain_of_thought.*\); not known: deliberate"):
        native_decisions(make_runs(pairs, ["direct"]), pairs, ["direct", "deliberate"])

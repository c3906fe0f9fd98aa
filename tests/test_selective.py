"""Abstention: thresholds that hold a risk, a rule that does not, halves by question, risk against coverage."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from baer_utils import scores, selective
from baer_utils.deployment import describe_condition, develop, fit_heads, freeze, open_test
from baer_utils.gates import select_head
from baer_utils.metrics import wilson_interval
from baer_utils.records import unit_hash
from baer_utils.selective import (
    aurc,
    binomial_p,
    confidence_grid,
    confidence_of,
    fewest_accepted,
    fit_threshold,
    one_per_question,
    reported_half,
    risk_coverage,
    scope_threshold,
    selective_table,
)
from tests.strategies import same
from tests.test_deployment import condition_in

answers = st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=40)
GRID = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0])


# ---------------------------------------------------------------- Learn then Test


@given(
    st.integers(0, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.05, 0.1, 0.3])
)
def test_the_p_value_is_scipys_one_sided_binomial_test(counts, alpha):
    expected = binomtest(*counts, alpha, alternative="less").pvalue if counts[1] else 1.0
    assert abs(binomial_p(*counts, alpha) - expected) < 1e-9


@given(answers, st.sampled_from([0.1, 0.3, 0.5]), st.sampled_from([0.1, 0.4]))
def test_the_deployed_threshold_is_the_last_of_an_unbroken_row_of_rejections(rows, alpha, delta):
    confidence, wrong = np.array([c / 6 for c, _ in rows]), np.array([w for _, w in rows])
    found, value = fit_threshold(confidence, wrong, GRID, alpha=alpha, delta=delta), np.inf
    for t in GRID:  # by hand, from the definition
        kept = confidence > t
        if kept.sum() == 0 or binom.cdf((kept & wrong).sum(), kept.sum(), alpha) > delta:
            break
        value = t
    assert found.value == value
    assert found.accepts(confidence).sum() == (confidence > value).sum()
    assert not found.accepts(0.0) and not found.accepts(np.nan)
    assert found.steps["certified"].iloc[:-1].all()


def violations(risk_of_cell, simulations, n, alpha, delta, rule):
    """Share of simulations in which the *true* risk of what a rule accepts is above alpha; confidence is uniform."""
    rng, cells, failed = np.random.default_rng(0), len(risk_of_cell), 0
    for _ in range(simulations):
        cell = rng.integers(0, cells, n)
        wrong = rng.random(n) < np.asarray(risk_of_cell)[cell]
        lowest = rule((cell + 1) / cells, wrong, alpha, delta)
        accepted = [risk for number, risk in enumerate(risk_of_cell) if (number + 1) / cells >= lowest]
        failed += bool(accepted) and np.mean(accepted) > alpha
    return failed / simulations


def learn_then_test(confidence, wrong, alpha, delta):
    value = fit_threshold(confidence, wrong, GRID, alpha=alpha, delta=delta).value
    return value + 1e-9  # accepted is what lies above the threshold


def scope(confidence, wrong, alpha, delta):
    return scope_threshold(confidence, wrong, alpha=alpha)


@pytest.mark.parametrize(
    "risks", [[0.11] * 10, [0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1, 0.08, 0.05, 0.02], [0.0] * 9 + [0.11]],
    ids=["everywhere just above", "falling", "only the surest err"],
)  # fmt: skip
def test_the_risk_of_what_is_accepted_exceeds_alpha_no_more_often_than_promised(risks):
    simulations, delta = 600, 0.1
    share = violations(risks, simulations, 300, 0.1, delta, learn_then_test)
    assert share * simulations <= binom.ppf(0.999, simulations, delta)


def test_a_guarantee_that_is_nearly_used_up_shows_that_the_simulation_can_fail():
    boundary = violations([0.1 + 1e-9] * 10, 600, 300, 0.1, 0.1, learn_then_test)
    assert 0.03 < boundary <= binom.ppf(0.999, 600, 0.1) / 600
    assert violations([0.11] * 10, 600, 300, 0.1, 0.1, scope) > 0.2  # where SCOPE's rule breaks it


def test_the_smallest_number_that_can_be_certified_with_two_errors_is_found():
    for alpha in (0.05, 0.1, 0.2, 0.5):
        n = fewest_accepted(alpha)
        assert n >= 25 and binom.cdf(2, n, alpha) <= 0.1
        assert n == 25 or binom.cdf(2, n - 1, alpha) > 0.1


@settings(max_examples=40)
@given(st.lists(st.integers(0, 5), max_size=60), st.integers(0, 400), st.sampled_from([0.05, 0.2]))
def test_a_grid_falls_to_zero_and_begins_where_enough_would_be_accepted(sizes, n, alpha):
    confidence = np.array(sizes, dtype=float)
    grid = confidence_grid(confidence, n, alpha=alpha)
    assert grid[-1] == 0 and (np.diff(grid) < 0).all()
    share = min(fewest_accepted(alpha), n) / max(n, 1)
    if (confidence > 0).mean() >= share if len(confidence) else False:
        assert (confidence > grid[0]).mean() >= share - 1e-9  # equal confidences never leave the first step empty


def test_wrong_input_is_refused_with_what_to_do():
    with pytest.raises(ValueError, match="finite and 0 or more; 1 are not"):
        fit_threshold([0.5, np.nan], [0, 1], GRID, alpha=0.1)
    with pytest.raises(ValueError, match="fall strictly"):
        fit_threshold([0.5], [0], GRID[::-1], alpha=0.1)
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        fit_threshold([0.5], [0], GRID, alpha=0.0)
    with pytest.raises(ValueError, match="chosen expert's reliability"):
        confidence_of([1.0, -1.0], "route")
    with pytest.raises(ValueError, match="1 confidences are missing"):
        risk_coverage([0.5, np.nan], [0, 1])


# ---------------------------------------------------------------- SCOPE


@given(answers, st.sampled_from([0.1, 0.3, 0.5]))
def test_scopes_threshold_is_the_lowest_confidence_at_which_its_sum_is_low_enough(rows, alpha):
    confidence, wrong = np.array([float(c) for c, _ in rows]), np.array([w for _, w in rows])
    low_enough = [c for c in set(confidence) if round((wrong[confidence >= c] - alpha).sum(), 9) <= -1]
    expected = min(low_enough, default=np.inf)
    assert scope_threshold(confidence, wrong, alpha=alpha) == (0 if expected == confidence.min() else expected)


# Derived in this project: ten pairs, alpha = .1, one confidence, a true error rate of .2. The rule accepts iff all ten
# are right, which happens with probability .8^10 = .107, and what it accepts then errs at .2.
def test_scopes_counterexample_accepts_in_one_case_of_ten_and_then_errs_at_twice_the_risk():
    probability = 0.0
    for errors in range(11):
        wrong = np.arange(10) < errors
        accepts = np.isfinite(scope_threshold(np.ones(10), wrong, alpha=0.1))
        assert accepts == (errors == 0)
        probability += accepts * binom.pmf(errors, 10, 0.2)
    assert abs(probability - 0.8**10) < 1e-12 and round(probability, 3) == 0.107
    assert np.isinf(fit_threshold(np.ones(10), np.zeros(10), GRID, alpha=0.1).value)  # ten right answers prove nothing


# ---------------------------------------------------------------- halves and confidences


def test_halves_hold_whole_questions_and_follow_the_hash():
    groups = [f"q{i % 40}" for i in range(100)]
    half = reported_half(groups, seed=3)
    assert half.tolist() == [unit_hash(f"3|selective|{group}") >= 0.5 for group in groups]
    assert 0.3 < half.mean() < 0.7 and not same(half, reported_half(groups, seed=4))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_one_pair_stands_for_each_question_whatever_the_order_of_rows(numbers, random):
    rows = [(f"pair {i}", f"q{number}") for i, number in enumerate(numbers)]
    chosen = {pair for (pair, _), one in zip(rows, one_per_question(*zip(*rows, strict=True)), strict=True) if one}
    assert len(chosen) == len(set(numbers))
    random.shuffle(rows)
    again = one_per_question(*zip(*rows, strict=True))
    assert {pair for (pair, _), one in zip(rows, again, strict=True) if one} == chosen


def test_a_head_without_an_opinion_has_no_confidence_and_a_swap_changes_none():
    s = np.array([2.0, -3.0, 0.0, np.nan])
    assert confidence_of(s).tolist() == confidence_of(-s).tolist() == [2, 3, 0, 0]
    reliability = np.array([0.9, 0.6, 0.7, 0.8])
    assert confidence_of(s, "route", reliability).tolist() == [0.9, 0.6, 0, 0]
    assert confidence_of(s, "reference").tolist() == [2, 3, 0, 0]


# ---------------------------------------------------------------- the table


def opened(n=600, seed=0):
    """A made test: some questions repeat, the head is right more often where it is surer."""
    rng = np.random.default_rng(seed)
    pairs = pd.DataFrame({"group_id": [f"q{i}" for i in rng.integers(0, n, n)]}, index=[f"p{i}" for i in range(n)])
    s = rng.normal(0, 2, n)
    return pairs, np.abs(s), rng.random(n) > 1 / (1 + np.exp(-np.abs(s)))


def test_thresholds_see_the_labels_of_one_half_and_figures_those_of_the_other():
    pairs, confidence, wrong = opened()
    table = selective_table(pairs, confidence, wrong, confidence[::2])
    half = reported_half(pairs["group_id"])
    fitted = ~half & one_per_question(pairs.index, pairs["group_id"])
    other = selective_table(pairs, confidence, np.where(half, ~wrong, wrong), confidence[::2])
    assert same(table[["threshold", "fit_errors", "p"]], other[["threshold", "fit_errors", "p"]])
    moved = selective_table(pairs, confidence, np.where(~half & ~fitted, ~wrong, wrong), confidence[::2])
    pd.testing.assert_frame_equal(moved, table)  # other pairs of a fitted question have no say
    assert (table["fit_pairs"] == fitted.sum()).all() and (table["pairs"] == half.sum()).all()
    assert list(table["rule"][:2]) == ["learn then test", "SCOPE"] and len(table) == 2 * len(selective.ALPHAS)
    row = table[(table["rule"] == "learn then test") & (table["alpha"] == 0.2)].iloc[0]
    kept = half & (confidence > row["threshold"])
    assert row["accepted"] == kept.sum() > 50 and row["coverage"] == kept.sum() / half.sum()
    assert row["risk"] == wrong[kept].mean() and row["risk_low"] < row["risk"] < row["risk_high"]
    assert row["p"] <= 0.1 and row["guarantee"].startswith("risk at most 0.2 over questions, with probability 0.9")
    assert (table.loc[table["rule"] == "SCOPE", "guarantee"].str.startswith("none")).all()


def test_a_preview_shows_the_same_figures_and_promises_nothing():
    pairs, confidence, wrong = opened(seed=1)
    test = selective_table(pairs, confidence, wrong, confidence)
    preview = selective_table(pairs.reset_index(names="pair_id"), confidence, wrong, confidence, preview=True)
    pd.testing.assert_frame_equal(preview.drop(columns="guarantee"), test.drop(columns="guarantee"))
    assert (preview["guarantee"] == selective.PREVIEW).all() and "none" in selective.PREVIEW


def test_a_head_no_better_than_a_coin_abstains_always_and_the_table_says_so():
    pairs, confidence, _ = opened(200)
    wrong = np.random.default_rng(2).random(200) < 0.5
    table = selective_table(pairs, confidence, wrong, confidence, alphas=[0.1])
    assert np.isinf(table["threshold"]).all() and (table["accepted"] == 0).all()
    assert table["risk"].isna().all() and (table["p"] == 1).all()


def test_an_opened_test_and_development_scores_before_it_go_into_the_same_table(tmp_path):
    c = condition_in(tmp_path, 300, skill=2.0)
    decision = select_head(develop(c.pairs, c.runs, c.experts, heads=("stack",)))
    heads = fit_heads(c.pairs, c.runs, decision, describe_condition(c.store, c.experts))
    frozen = freeze(decision, heads, tmp_path / "frozen")
    before = decision.development.out_of_fold
    sure = confidence_of(before["stack"])
    early = selective_table(before, sure, scores.decision(before["stack"]) != before["label"], sure, preview=True)
    own = confidence_of(frozen.score_runs(c.pairs[c.pairs["split"] != "test"], c.runs))
    report = open_test(frozen, c.store)
    s = report.pairs["s"]
    sure = confidence_of(s, report.head, report.pairs.get("route_reliability"))
    table = selective_table(report.pairs, sure, scores.decision(s) != report.pairs["label"], own)
    assert list(early.columns) == list(table.columns)
    assert (early["guarantee"] == selective.PREVIEW).all() and not (table["guarantee"] == selective.PREVIEW).any()
    kept = table[(table["rule"] == "learn then test") & (table["alpha"] == 0.25)].iloc[0]
    assert kept["accepted"] > 0 and kept["fit_pairs"] + kept["pairs"] <= len(report.pairs)


# ---------------------------------------------------------------- risk against coverage


@given(answers)
def test_a_risk_coverage_curve_ends_at_the_error_rate_and_counts_what_lies_at_or_above(rows):
    confidence, wrong = np.array([float(c) for c, _ in rows]), np.array([w for _, w in rows])
    curve = risk_coverage(confidence, wrong)
    assert curve["coverage"].iloc[-1] == 1 and curve["risk"].iloc[-1] == wrong.mean()
    for point in curve.itertuples():
        kept = confidence >= point.confidence
        assert (point.accepted, point.errors) == (kept.sum(), wrong[kept].sum())


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=6))
def test_the_area_is_the_mean_over_every_order_of_pairs_of_equal_confidence(rows):
    confidence, wrong = np.array([float(c) for c, _ in rows]), np.array([w for _, w in rows], dtype=float)
    areas = [
        np.mean(wrong[list(order)].cumsum() / np.arange(1, len(rows) + 1))
        for order in itertools.permutations(range(len(rows)))
        if (np.diff(confidence[list(order)]) <= 0).all()
    ]
    found = aurc(confidence, wrong)
    assert abs(found["aurc"] - np.mean(areas)) < 1e-12
    best = [np.mean(np.sort(wrong).cumsum() / np.arange(1, len(rows) + 1))]
    assert abs(found["perfect"] - best[0]) < 1e-12 and found["perfect"] <= found["aurc"] + 1e-12
    assert abs(aurc(np.ones(len(rows)), wrong)["aurc"] - found["random"]) < 1e-12


def test_an_interval_of_lone_questions_is_wilsons():
    pairs, confidence, wrong = opened(seed=3)
    pairs["group_id"] = pairs.index
    row = selective_table(pairs, confidence, wrong, confidence, alphas=[0.25]).iloc[0]
    errors = round(row["risk"] * row["accepted"])
    assert np.allclose(wilson_interval(errors, row["accepted"]), row[["risk_low", "risk_high"]].astype(float))
    assert row["question_risk"] == row["risk"]

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from baer_utils.records import swap_runs
from baer_utils.verification import pointwise_evidence, pointwise_score, reference_score, yes_share
from tests.strategies import log_odds_values, run_rows, same

LIMIT = math.log(0.9999 / 0.0001)
reads = arrays(float, 7, elements=log_odds_values)
shares = arrays(float, 7, elements=st.floats(0, 1) | st.sampled_from([0.0, 1.0, 0.5, np.nan]))


@given(reads, reads)
def test_exchanging_the_responses_negates_the_pointwise_score_bit_for_bit(yes_a, yes_b):
    assert same(pointwise_score(yes_b, yes_a), -pointwise_score(yes_a, yes_b))
    assert same(pointwise_score(yes_a, yes_a)[~np.isnan(yes_a)], np.zeros((~np.isnan(yes_a)).sum()))


@given(shares, shares)
def test_exchanging_the_responses_negates_the_reference_score_bit_for_bit(v_a, v_b):
    assert same(reference_score(v_b, v_a), -reference_score(v_a, v_b))


def test_each_logit_is_clipped_and_never_their_difference():
    assert np.allclose(
        pointwise_score([50, 3, -np.inf, np.nan], [-50, 1, np.inf, 0]),
        [2 * LIMIT, 2, -2 * LIMIT, np.nan],
        equal_nan=True,
    )
    assert np.allclose(reference_score([1.0, 0.5, 0.0], [0.0, 0.25, 0.0]), [2 * LIMIT, math.log(3), 0], rtol=1e-14)
    assert np.allclose(pointwise_score([9.0], [0.0], clip=0.1), math.log(9))


@given(st.floats(-600, 0), st.floats(-600, 0))
def test_the_share_of_yes_is_what_normalising_the_two_labels_gives(log_yes, log_no):
    top = max(log_yes, log_no)
    yes, no = math.exp(log_yes - top), math.exp(log_no - top)
    assert math.isclose(yes_share(log_yes, log_no), yes / (yes + no), rel_tol=1e-12)


def test_an_absent_label_leaves_the_share_defined_and_two_absent_labels_do_not():
    assert same(yes_share([-1.0, -np.inf, -np.inf], [-np.inf, -1.0, -np.inf]), [1, 0, np.nan])


@given(st.floats(-9, 9), st.floats(-9, 9))
def test_both_forms_of_the_evidence_agree_inside_the_clip(yes_a, yes_b):
    v_a, v_b = yes_share(yes_a, 0.0), yes_share(yes_b, 0.0)
    assert math.isclose(reference_score(v_a, v_b), pointwise_score(yes_a, yes_b), abs_tol=1e-9)


@settings(max_examples=50)
@given(st.lists(st.tuples(log_odds_values, log_odds_values), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_pointwise_runs_give_scores_in_the_order_asked_for_that_negate_with_the_swap(values, random):
    rows = [
        (f"p{i}", "pointwise", view, 0, value)
        for i, pair in enumerate(values)
        for view, value in zip("ab", pair, strict=True)
    ]
    ids = [f"p{i}" for i in range(len(values))]
    random.shuffle(rows)
    runs = run_rows(rows)
    assert same(pointwise_evidence(runs, ids), pointwise_score(*np.transpose(values)))
    assert same(pointwise_evidence(swap_runs(runs), ids[::-1]), -pointwise_evidence(runs, ids)[::-1])


def test_a_response_that_was_not_read_leaves_no_score():
    runs = run_rows([("p", "pointwise", "a", 0, 1.0), ("q", "pointwise", "a", 0, 1.0), ("q", "pointwise", "b", 0, 0.0)])
    others = run_rows([("p", "direct", "b", 0, 9.0), ("p", "pointwise", "ab", 0, 9.0)])
    failed = run_rows([("p", "pointwise", "b", 0, 0.0)], status="error")
    assert same(pointwise_evidence(pd.concat([runs, others, failed]), ["q", "p", "r"]), [1.0, np.nan, np.nan])


def test_two_reads_of_one_response_are_refused():
    runs = run_rows([("p", "pointwise", "a", 0, 1.0), ("p", "pointwise", "a", 1, 2.0)])
    with pytest.raises(ValueError, match="view a of pair p occurs again"):
        pointwise_evidence(runs, ["p"])

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from baer_utils.scores import antisymmetry_gap, decision, probability
from tests.strategies import same

scores = arrays(
    float, st.integers(0, 20), elements=st.floats(-1e4, 1e4) | st.sampled_from([0.0, np.inf, -np.inf, np.nan])
)


@given(scores)
def test_a_negated_score_gives_the_complementary_probability(score):
    assert np.allclose(probability(-score), 1 - probability(score), rtol=0, atol=1e-15, equal_nan=True)


@given(scores)
def test_decisions_negate_with_the_score_except_at_zero_where_both_are_a(score):
    flipped = np.where(score == 0, 1, -decision(score))
    assert same(decision(-score), flipped)


def test_probability_is_the_textbook_sigmoid_and_never_overflows():
    score = np.array([-3.0, 0.0, 2.5])
    assert np.allclose(probability(score), 1 / (1 + np.exp(-score)), rtol=1e-15)
    assert same(probability([-1e300, 1e300, -np.inf, np.inf, np.nan]), [0, 1, 0, 1, np.nan])


def test_decision_is_plus_one_from_zero_up_and_zero_only_for_nan():
    assert decision([2.0, 0.0, -0.0, -1e-300, np.nan, np.inf, -np.inf]).tolist() == [1, 1, 1, -1, 0, 1, -1]


@given(scores)
def test_the_gap_of_an_antisymmetric_score_is_exactly_zero(score):
    assert antisymmetry_gap(score, -score) == 0.0


def test_the_gap_is_the_largest_miss_and_a_score_lost_in_the_swap_is_infinite():
    assert antisymmetry_gap([1.0, 2.0], [-1.0, -2.5]) == 0.5
    assert antisymmetry_gap([1.0], [1.0]) == 2.0
    assert antisymmetry_gap([np.inf], [np.inf]) == np.inf
    assert antisymmetry_gap([1.0, np.nan], [-1.0, 3.0]) == np.inf


def test_the_gap_refuses_scores_of_different_pairs():
    with pytest.raises(ValueError, match=r"one score per pair.*\(2,\) and \(3,\)"):
        antisymmetry_gap([1, 2], [1, 2, 3])

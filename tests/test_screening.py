"""Scores of the screened heads: odd to the last bit, and what their formulas say on rows made by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baer_utils.records import swap_pairs, swap_runs
from baer_utils.screening import HEADS, fourth_orbit_score, screened_score
from tests.test_protocols import calls_and_rows, pair_of


@given(st.text(alphabet="abc AB", max_size=8), st.text(alphabet="xyz .", max_size=8), st.sampled_from(sorted(HEADS)))
def test_every_screened_head_negates_under_the_swap_to_the_last_bit(a, b, head):
    _, rows = calls_and_rows(head, pair_of("q", a, b))
    _, swapped_rows = calls_and_rows(head, pair_of("q", b, a))
    score = screened_score(rows, ["p"], head)[0]
    assert np.isfinite(score)
    assert screened_score(swap_runs(rows), ["p"], head)[0] == -score
    assert screened_score(swapped_rows, ["p"], head)[0] == -score
    if a == b:
        assert score == 0


@pytest.mark.parametrize("head", sorted(HEADS))
def test_a_missing_read_makes_no_score(head):
    _, rows = calls_and_rows(head, pair_of("q", "one", "two"))
    asked = rows[rows["stage"].isin(["verdict", "claim"])].index
    assert np.isnan(screened_score(rows.drop(index=asked[-1]), ["p"], head)[0])
    assert np.isnan(screened_score(rows, ["elsewhere"], head)[0])


def test_the_orbit_is_the_mean_of_four_canonical_reads():
    _, rows = calls_and_rows("orbit", pair_of("q", "one", "two"))
    assert screened_score(rows, ["p"], "orbit")[0] == pytest.approx(rows["log_odds"].mean(), abs=1e-15)


def test_a_belief_multiplies_along_everything_that_a_claim_rests_on():
    text = " One.\n2. Two [1].\n3. Three [1, 2]."
    _, rows = calls_and_rows("claim_graph", pair_of("q", "one", "two"))
    made = rows[rows["stage"] == "claims"].assign(text=text)
    base = rows[rows["stage"] == "claim"].iloc[[0]]
    odds = {"a": [2.0, 1.0, 0.5], "b": [0.0, -1.0, 3.0]}
    reads = [base.assign(view=v, trial=n, log_odds=x) for v, xs in odds.items() for n, x in enumerate(xs)]
    score = screened_score(pd.concat([made, *reads]), ["p"], "claim_graph")[0]

    def logit_of_last(values):
        p = [1 / (1 + math.exp(-x)) for x in values]
        first, second = p[0], p[1] * p[0]
        last = p[2] * first * second
        return math.log(last / (1 - last))

    assert score == pytest.approx(logit_of_last(odds["a"]) - logit_of_last(odds["b"]), abs=1e-12)


def test_an_unknown_head_is_refused():
    with pytest.raises(ValueError, match="must be one of cf, orbit"):
        screened_score(pd.DataFrame(), [], "tarot")


# ---------------------------------------------------------------- CalibraEval on its full orbit

VIEWS = ("ab", "ba_BA", "ab_BA", "ba")
reads = st.lists(
    st.tuples(
        *[st.floats(-6, 6).map(lambda x: round(x, 3))] * 4, st.sampled_from(["selection", "calibration", "test"])
    ),
    min_size=2,
    max_size=12,
)


def orbit_tables(values):
    """A run table of the orbit's reads, toward a, and the pairs they belong to."""
    _, rows = calls_and_rows("orbit", pair_of("q", "one", "two"))
    base = rows.iloc[0]
    runs = pd.DataFrame(
        [
            {**base, "pair_id": f"p{n}", "view": view, "log_odds": value, "status": "tie" if value == 0 else "ok"}
            for n, (*four, _) in enumerate(values)
            for view, value in zip(VIEWS, four, strict=True)
        ]
    )
    columns = {"group_id": "g", "benchmark": "t", "subset": "s", "task_type": "t", "instruction": "q"}
    pairs = pd.DataFrame({"pair_id": [f"p{n}" for n in range(len(values))], "split": [row[-1] for row in values]})
    return runs, pairs.assign(**columns, response_a="one", response_b="two", label=1.0)


@given(reads)
def test_the_fourth_orbit_negates_under_the_swap_and_never_looks_at_the_test(values):
    runs, pairs = orbit_tables(values)
    score = fourth_orbit_score(runs, pairs)
    assert np.array_equal(fourth_orbit_score(swap_runs(runs), swap_pairs(pairs)), -score, equal_nan=True)
    fitted = pairs["split"] != "test"
    moved = runs["log_odds"].where(runs["pair_id"].isin(pairs.loc[fitted, "pair_id"]), 5.0)
    again = fourth_orbit_score(runs.assign(log_odds=moved), pairs)
    assert np.array_equal(again[fitted], score[fitted], equal_nan=True)
    assert np.isnan(score).all() or fitted.any()


def test_the_fourth_orbit_sees_a_judge_that_binds_labels_and_is_blind_to_one_that_likes_a_place():
    bound = [(2.0, 2.0, 2.0, 2.0, "selection"), (-1.0, -1.0, -1.0, -1.0, "calibration"), (0.5, 0.5, 0.5, 0.5, "test")]
    assert (np.sign(fourth_orbit_score(*orbit_tables(bound))) == [1, -1, 1]).all()
    place = [(x, -x, x, -x, "selection") for x in (3.0, 1.0, 0.25)]  # always the response shown first
    assert (fourth_orbit_score(*orbit_tables(place)) == 0).all()


def test_the_fourth_orbit_without_a_read_has_no_score():
    runs, pairs = orbit_tables([(1.0, 2.0, 3.0, 4.0, "selection"), (1.0, 0.5, 2.0, 1.0, "test")])
    assert np.isnan(fourth_orbit_score(runs.iloc[:-1], pairs)[1])
    assert np.isnan(fourth_orbit_score(runs, pairs.assign(split="test"))).all()

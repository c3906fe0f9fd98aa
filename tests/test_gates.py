"""The gates: strict margins, one baseline per split, one head per condition."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baer_utils import gates
from baer_utils.gates import Development, HeadFigures, advance, margin, select_head, strongest_baseline

SPLITS = ("selection", "calibration", "pooled")
zero_one = st.lists(st.integers(0, 1), min_size=1, max_size=30)


def figures(selection: float, calibration: float, pooled: float = 0.0, accuracy: float = 0.5) -> HeadFigures:
    margins = dict(zip(SPLITS, (selection, calibration, pooled), strict=True))
    same = dict.fromkeys(SPLITS, accuracy)
    return HeadFigures(same, margins, margins, dict.fromkeys(SPLITS, (0, 0)), dict.fromkeys(SPLITS, 1.0), 0.0, 0)


def development(questions: int = 50, **heads: HeadFigures | None) -> Development:
    table = {name: heads.get(name) for name in gates.HEADS}
    counts = {"selection": questions, "calibration": 100, "pooled": questions + 100}
    return Development(table, counts, counts, dict.fromkeys(SPLITS, "direct"), {"matched": {}, "paper": {}})


# ---------------------------------------------------------------- two gates


# Published: BAER (seed 000) section 3.4. Claim graph, independent pointwise likelihood, candidate-blind reference.
@pytest.mark.parametrize("selection, calibration, passes", [(2.2, -14.3, False), (5.9, -5.0, False), (3.7, 6.3, True)])
def test_the_gate_story_of_the_paper_comes_out_as_published(selection, calibration, passes):
    verdict = advance(selection, calibration)
    assert bool(verdict) is passes
    assert ("does not advance" in str(verdict)) is not passes


# The same three stories from counts: 3 and -34, 8 and -12, 5 and 15 net pairs of 136 and 238 (rounded as published).
@pytest.mark.parametrize(
    "net, size, points", [(3, 136, 2.2), (-34, 238, -14.3), (8, 136, 5.9), (5, 136, 3.7), (15, 238, 6.3)]
)
def test_margins_in_points_reproduce_the_published_roundings(net, size, points):
    base = np.repeat([1, 0], [40, size - 40])
    head = np.repeat([1, 0], [40 + net, size - 40 - net])
    assert round(margin(head, base), 1) == points


@pytest.mark.parametrize("margins", [(0.0, 5.0), (5.0, 0.0), (0.0, 0.0), (math.nan, 5.0), (5.0, math.nan)])
def test_parity_and_an_empty_split_never_pass_a_gate(margins):
    assert not advance(*margins)


def test_raised_thresholds_are_strict_too():
    assert not advance(2.0, 2.0, min_selection=2.0)
    assert not advance(2.0, 2.0, min_calibration=2.0)
    assert advance(2.1, 2.1, min_selection=2.0, min_calibration=2.0)


# ---------------------------------------------------------------- margins and baselines


@given(zero_one, st.randoms(use_true_random=False))
def test_a_margin_is_antisymmetric_and_blind_to_the_order_of_pairs(head, random):
    base = [random.randint(0, 1) for _ in head]
    order = list(range(len(head)))
    random.shuffle(order)
    assert margin(head, base) == -margin(base, head)
    assert margin(head, base) == margin([head[i] for i in order], [base[i] for i in order])
    assert math.isclose(margin(head, base), 100 * (np.mean(head) - np.mean(base)), abs_tol=1e-12)


def test_a_margin_over_no_pairs_is_unknown_not_zero():
    assert math.isnan(margin([], []))


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=3), st.lists(st.booleans(), min_size=4, max_size=4), min_size=1)
)
def test_no_baseline_beats_the_strongest_and_equals_go_by_name(correct):
    name = strongest_baseline(correct)
    best = max(sum(values) for values in correct.values())
    assert name == min(other for other, values in correct.items() if sum(values) == best)
    assert name == strongest_baseline(pd.DataFrame(dict(reversed(correct.items()))))


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: strongest_baseline({}), "at least one baseline"),
        (lambda: strongest_baseline({"x": [1, 0], "y": [1]}), "same pairs"),
        (lambda: strongest_baseline({"x": [1, np.nan]}), "row 1 is nan.*as_answers"),
        (lambda: margin([1, 0], [1]), "same pairs"),
        (lambda: margin([1, 0.5], [1, 1]), "0 or 1"),
    ],
)
def test_wrong_counts_are_refused_with_what_to_do(call, says):
    with pytest.raises(ValueError, match=says):
        call()


# ---------------------------------------------------------------- the choice of a head


def test_the_stack_is_deployed_whatever_its_margins():
    decision = select_head(development(stack=figures(-20.0, -20.0, -20.0)))
    assert decision.head == "stack" and decision.selected
    assert "does not beat the strongest baseline" in str(decision)
    assert "not evaluated" in str(decision)


@pytest.mark.parametrize(
    "route, head",
    [
        (figures(1.0, 1.0, accuracy=0.61), "route"),
        (figures(1.0, 1.0, accuracy=0.60), "stack"),  # equal accuracy: not strictly higher
        (figures(0.0, 9.0, accuracy=0.90), "stack"),  # parity on selection
        (figures(9.0, -0.1, accuracy=0.90), "stack"),  # reverses on calibration
    ],
)
def test_route_needs_strictly_more_accuracy_and_both_gates(route, head):
    assert select_head(development(stack=figures(-1.0, -1.0, -1.0, 0.60), route=route)).head == head


@pytest.mark.parametrize(
    "reference, head",
    [
        (figures(1.0, 1.0, 3.1), "reference"),
        (figures(1.0, 1.0, 3.0), "stack"),
        (figures(-1.0, 9.0, 9.0), "stack"),
    ],
)
def test_reference_needs_both_gates_and_a_strictly_higher_pooled_margin(reference, head):
    assert select_head(development(stack=figures(5.0, 5.0, 3.0), reference=reference)).head == head


def test_reference_is_compared_with_the_current_choice_not_with_the_stack():
    route = figures(4.0, 4.0, 4.0, accuracy=0.7)
    between = figures(2.0, 2.0, 2.0)
    assert select_head(development(stack=figures(0, 0, 1.0), route=route, reference=between)).head == "route"
    above = figures(2.0, 2.0, 4.5)
    assert select_head(development(stack=figures(0, 0, 1.0), route=route, reference=above)).head == "reference"


margins = st.floats(-10, 10)


@settings(max_examples=60)
@given(st.lists(st.tuples(margins, margins, margins, st.floats(0, 1)), min_size=3, max_size=3))
def test_a_head_other_than_the_stack_has_always_passed_both_gates(numbers):
    heads = dict(zip(gates.HEADS, (figures(*row) for row in numbers), strict=True))
    decision = select_head(development(**heads))
    assert decision.head == "stack" or decision.verdicts[decision.head]
    assert decision.development.heads == heads


@pytest.mark.parametrize("questions, selected", [(19, False), (20, True)])
def test_under_twenty_questions_nothing_is_selected_and_the_report_says_why(questions, selected):
    winner = figures(9.0, 9.0, 9.0, accuracy=0.9)
    decision = select_head(development(questions, stack=figures(-1, -1, -1), route=winner, reference=winner))
    assert decision.selected is selected
    assert decision.head == ("route" if selected else "stack")
    assert ("largest lambda" in str(decision)) is not selected


def test_selecting_without_the_default_head_is_refused():
    with pytest.raises(ValueError, match="needs the stack"):
        select_head(development(route=figures(1, 1)))


def test_the_table_shows_every_evaluated_head_on_every_split():
    table = development(stack=figures(1, 2, 3), reference=figures(4, 5, 6)).table()
    assert list(table["method"]) == ["stack"] * 3 + ["reference"] * 3
    assert list(table["margin"]) == [1, 2, 3, 4, 5, 6]
    assert replace(development(stack=None)).table().empty


# ---------------------------------------------------------------- screened heads


def screened_tables():
    splits = ["selection"] * 4 + ["calibration"] * 4 + ["test"] * 2
    pairs = pd.DataFrame({"split": splits, "label": [1.0, 1, -1, -1, 1, 1, -1, -1, np.nan, np.nan]})
    native = pd.DataFrame({"direct": [1.0, 0, 1, 1, 1, 1, -1, 1, 1, 1], "rubric": [-1.0, 1, -1, np.nan, 1] + [1.0] * 5})
    return pairs, native


def test_a_screened_head_meets_the_strongest_baseline_of_exactly_its_own_pairs():
    pairs, native = screened_tables()
    s = {
        "right": pairs["label"].fillna(1).to_numpy(),
        "asked on two": np.array([1.0, 2, np.nan, np.nan] + [np.nan] * 6),
        "half": np.array([1.0, 1, -1, -1] + [np.nan] * 6),
        "silent": np.full(10, np.nan),
    }
    table = gates.screen(pairs, s, native)
    # selection: direct answers a, a (a tie), a, a: 2 of 4 right; rubric b, a, b, a (missing): 2 of 4; ties by name
    assert table.loc["right", ["selection_pairs", "selection_baseline", "selection_margin"]].tolist() == [
        4,
        "direct",
        50,
    ]
    assert table.loc["right", ["calibration_baseline", "calibration_margin"]].tolist() == ["direct", 25]
    assert table.loc["asked on two", ["selection_pairs", "selection_margin"]].tolist() == [2, 0]
    assert table["verdict"].tolist() == ["advances", "does not advance", "not evaluated", "does not advance"]
    assert np.isnan(table.loc["silent", "selection_margin"]) and table.loc["silent", "selection_baseline"] == ""


def test_screening_never_looks_at_a_test_row():
    pairs, native = screened_tables()
    s = {"head": np.arange(10.0) - 4}
    poisoned = (
        pairs.assign(label=pairs["label"].fillna(-1)),
        native.assign(direct=native["direct"].where(lambda d: d.index < 8, -1)),
    )
    assert gates.screen(pairs, s, native).equals(gates.screen(poisoned[0], s, poisoned[1]))

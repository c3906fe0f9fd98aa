import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baer_utils.benchmarks import CATEGORIES
from baer_utils.evidence import Evidence, run_array, summarize
from baer_utils.features import (
    category_columns,
    mean_evidence,
    reliability_features,
    reliability_names,
    stack_features,
)
from baer_utils.records import swap_pairs, swap_runs
from tests.strategies import EXPERTS, banks, make_pairs, make_runs, same


def evidence_of(pairs, runs, experts):
    return summarize(run_array(runs, experts, pairs["pair_id"]), experts)


def evidence_from(z, experts=None):
    z = np.atleast_2d(np.asarray(z, dtype=float))
    return Evidence(1 / (1 + np.exp(-z)), np.zeros_like(z), z, z, z != 0, tuple(experts or "abcdefghi"[: z.shape[1]]))


def column(features, name, experts, categories=()):
    return features[:, :, reliability_names(experts, categories).index(name)]


# ---------------------------------------------------------------- signed features


@settings(max_examples=60)
@given(banks())
def test_swapping_the_records_negates_every_stack_feature_bit_for_bit(bank):
    pairs, runs, experts = bank
    swapped_pairs, swapped_runs = swap_pairs(pairs), swap_runs(runs)
    here, there = evidence_of(pairs, runs, experts), evidence_of(swapped_pairs, swapped_runs, experts)
    categories, swapped = category_columns(pairs, "table"), category_columns(swapped_pairs, "table")
    assert categories.equals(swapped)
    phi = stack_features(here.z, here.z_shrunk, categories)
    assert phi.shape == (len(pairs), 2 * len(experts) + categories.shape[1]) and phi.flags.c_contiguous
    assert same(stack_features(there.z, there.z_shrunk, swapped), -phi)


@settings(max_examples=60)
@given(banks(max_experts=9, max_pairs=3), st.randoms(use_true_random=False))
def test_permuting_the_experts_permutes_columns_and_changes_no_bit_of_the_mean(bank, random):
    pairs, runs, experts = bank
    order = random.sample(range(len(experts)), len(experts))
    here, there = evidence_of(pairs, runs, experts), evidence_of(pairs, runs, [experts[k] for k in order])
    categories = category_columns(pairs, "table")
    phi = stack_features(here.z, here.z_shrunk, categories)
    K = len(experts)
    columns = [*order, *(K + k for k in order), *range(2 * K, phi.shape[1])]
    assert same(stack_features(there.z, there.z_shrunk, categories), phi[:, columns])


@given(st.lists(st.floats(-9.3, 9.3), min_size=1, max_size=12))
def test_mean_evidence_is_the_mean_over_all_experts_and_exactly_odd(z):
    assert math.isclose(mean_evidence([z])[0], math.fsum(z) / len(z), abs_tol=1e-14)
    assert mean_evidence([z])[0] == -mean_evidence([[-x for x in z]])[0]


def test_a_missing_expert_counts_as_zero_in_the_mean():
    assert mean_evidence([[3.0, 0.0, 0.0]]).tolist() == [1.0]


def test_stack_features_are_z_then_shrunk_z_then_the_mean_in_each_active_category():
    phi = stack_features([[2.0, 4.0]], [[1.0, 4.0]], [[1, 0, 1]])
    assert phi.tolist() == [[2, 4, 1, 4, 3, 0, 3]]
    assert stack_features([[2.0]], [[1.0]], np.zeros((1, 0))).shape == (1, 2)
    blocks = [np.asfortranarray(np.ones((5, 3)))] * 3
    assert stack_features(*blocks).flags.c_contiguous  # row-wise sums keep their bits only on such arrays


@pytest.mark.parametrize("shapes", [((2, 3), (2, 2), (2, 1)), ((2, 3), (2, 3), (3, 1)), ((2, 0), (2, 0), (2, 1))])
def test_features_of_different_pairs_or_experts_are_refused(shapes):
    with pytest.raises(ValueError, match="of the same pairs; the shapes are"):
        stack_features(*(np.zeros(shape) for shape in shapes))


# ---------------------------------------------------------------- categories


# Published: BAER section 2.2, the stack's feature dimensions with K = 9 experts.
@pytest.mark.parametrize(
    "name, size", [("rewardbench", 44), ("judgebench", 36), ("hh_rlhf", 20), ("ultrafeedback", 28)]
)
def test_the_published_feature_dimensions_come_out_for_any_part_of_a_benchmark(name, size):
    pairs = make_pairs(2).assign(subset="helpful", task_type="helpful")
    categories = category_columns(pairs, name)
    assert list(categories.columns) == list(CATEGORIES[name])
    assert stack_features(np.zeros((2, 9)), np.zeros((2, 9)), categories).shape[1] == size


def test_a_pair_activates_its_subset_and_its_task_type():
    pairs = make_pairs(3).assign(subset=["mmlu-pro-law", "livebench-math", "?"], task_type=["knowledge", "math", "?"])
    categories = category_columns(pairs, "judgebench")
    active = [set(categories.columns[row > 0]) for row in categories.to_numpy()]
    assert active == [{"mmlu-pro-law", "knowledge"}, {"livebench-math"}, set()]
    assert categories.attrs["unknown"] == {"?": 2}
    assert list(categories.index) == list(pairs["pair_id"])


def kinds(*rows):
    """Pairs from (subset, task type, split)."""
    subset, task_type, split = zip(*rows, strict=True)
    return make_pairs(len(rows)).assign(subset=subset, task_type=task_type, split=split)


def test_own_pairs_give_the_names_of_their_development_pairs_and_no_coinciding_ones():
    pairs = kinds(
        ("sums", "math", "selection"), ("fractions", "math", "calibration"), ("safety", "safety", "selection"),
        ("jokes", "chat", "selection"), ("secret", "hidden", "test"), ("", "", "selection"),
    )  # fmt: skip
    categories = category_columns(pairs, "table")
    assert list(categories.columns) == [
        "fractions",
        "jokes",
        "safety",
        "sums",
        "math",
    ]  # chat is jokes under another name
    assert categories.attrs["unknown"] == {"hidden": 1, "secret": 1}
    frozen = category_columns(pairs.tail(2), "table", categories=categories.columns)
    assert list(frozen.columns) == list(categories.columns) and frozen.to_numpy().sum() == 0


def test_task_types_are_kept_where_there_is_one_subset_or_none():
    assert list(category_columns(kinds(("all", "math", "selection"), ("all", "chat", "selection")), "table")) == [
        "all", "chat", "math",
    ]  # fmt: skip
    assert list(category_columns(kinds(("", "math", "selection"), ("", "chat", "selection")), "table")) == [
        "chat",
        "math",
    ]
    assert category_columns(kinds(("", "", "selection")), "table").shape == (1, 0)


@settings(max_examples=30)
@given(banks())
def test_labels_and_test_pairs_cannot_reach_the_category_list(bank):
    pairs, _, _ = bank
    changed = pairs.assign(label=np.nan)
    changed.loc[changed["split"] == "test", ["subset", "task_type"]] = "poison"
    assert list(category_columns(changed, "table")) == list(category_columns(pairs, "table"))


# ---------------------------------------------------------------- reliability features


@settings(max_examples=60)
@given(banks(max_experts=6))
def test_every_reliability_feature_is_the_same_for_a_pair_and_its_swap_to_the_last_bit(bank):
    pairs, runs, experts = bank
    categories = category_columns(pairs, "table")
    here = reliability_features(evidence_of(pairs, runs, experts), pairs, categories)
    swapped = swap_pairs(pairs)
    there = reliability_features(evidence_of(swapped, swap_runs(runs), experts), swapped, categories)
    assert here.tobytes() == there.tobytes()
    assert here.shape == (len(pairs), len(experts), len(reliability_names(experts, categories.columns)))
    assert np.isfinite(here).all() and same(here, np.round(here, 9))


def test_a_value_on_the_edge_of_the_rounding_does_not_tell_a_pair_from_its_swap():
    """p and 1 - p differ in the last bit, which decides on which side of an edge of 1e-9 they fall."""
    share = 0.5 + (np.arange(20_000) + 0.5) * 1e-9
    L, pairs = np.log(share / (1 - share))[:, None, None], make_pairs(20_000)
    here = reliability_features(summarize(L), pairs, np.zeros((20_000, 0)))
    there = reliability_features(summarize(-L), swap_pairs(pairs), np.zeros((20_000, 0)))
    assert here.tobytes() == there.tobytes()


@settings(max_examples=30)
@given(banks(), st.randoms(use_true_random=False))
def test_permuting_rows_and_experts_permutes_the_reliability_features(bank, random):
    pairs, runs, experts = bank
    rows = random.sample(range(len(pairs)), len(pairs))
    order = random.sample(range(len(experts)), len(experts))
    shuffled, renamed = pairs.iloc[rows].reset_index(drop=True), [experts[k] for k in order]
    names = category_columns(pairs, "table").columns
    here = reliability_features(evidence_of(pairs, runs, experts), pairs, category_columns(pairs, "table"))
    there = reliability_features(
        evidence_of(shuffled, runs, renamed), shuffled, category_columns(shuffled, "table", categories=names)
    )
    columns = [*order, *range(len(experts), here.shape[2])]
    assert same(there, here[np.ix_(rows, order, columns)])


@settings(max_examples=40)
@given(banks(max_experts=6, max_pairs=3))
def test_agreement_and_rank_are_what_counting_one_by_one_gives(bank):
    pairs, runs, experts = bank
    evidence = evidence_of(pairs, runs, experts)
    features = reliability_features(evidence, pairs, np.zeros((len(pairs), 0)))
    family = [name for name in ("direct", "pride", "calibraeval") if name in experts]
    weight = [1 / len(family) if name in family else 1.0 for name in experts]
    for i, k in np.ndindex(evidence.z.shape):
        z, me = evidence.z[i], np.sign(evidence.z[i, k])
        others = [j for j in range(len(experts)) if j != k]
        voting = sum(weight[j] for j in others if z[j] != 0)
        siding = sum(weight[j] for j in others if me != 0 and np.sign(z[j]) == me)
        share = siding / voting if voting and me else 0.5
        mean = sum(weight[j] * me * np.sign(z[j]) for j in others) / sum(weight[j] for j in others) if others else 0
        rank = sum((abs(z[j]) < abs(z[k])) + (abs(z[j]) == abs(z[k])) / 2 for j in others) / max(len(others), 1)
        spread = max(abs(z)) - min(abs(z))
        found = [
            column(features, n, experts)[i, k]
            for n in ("agreeing_share", "agreement", "confidence_rank", "confidence_spread")
        ]
        assert np.allclose(found, [share, mean, rank, spread], rtol=0, atol=1.1e-9)


def test_each_reliability_feature_holds_what_its_name_says():
    pairs = make_pairs(1).assign(
        response_a="one\n```py\nx = 1\n```\n- item 2\n* item\n3) third",
        response_b="```\nunclosed 3.5",
    )  # fmt: skip
    experts, categories = ("direct", "rubric", "prepair"), ["math"]
    evidence = summarize(np.array([[[1.0, 2.0], [-3.0, np.nan], [np.nan, np.nan]]]), experts)
    features = reliability_features(evidence, pairs, [[1.0]])
    names = reliability_names(experts, categories)
    table = pd.DataFrame(features[0], columns=names, index=experts)
    long, short = len(pairs["response_a"][0]), len(pairs["response_b"][0])
    assert table[["is_direct", "is_rubric", "is_prepair"]].to_numpy().tolist() == np.eye(3).tolist()
    assert np.allclose(table["confidence"], np.abs(evidence.z[0]), atol=1e-9)
    assert np.allclose(table["distance_from_half"], np.abs(evidence.p[0] - 0.5), atol=1e-9)
    assert np.allclose(table["delta"], evidence.delta[0], atol=1e-9)
    assert table["agreeing_share"].tolist() == [0, 0, 0.5] and table["agreement"].tolist() == [-0.5, -0.5, 0]
    assert table["confidence_rank"].tolist() == [0.5, 1, 0]
    assert table["sides_with_longer"].tolist() == [1, -1, 0]
    expected = {
        "length_min": short, "length_max": long, "length_difference": long - short, "code_blocks_min": 1,
        "length_log_ratio": round(math.log((long + 1) / (short + 1)), 9), "code_blocks_max": 1, "list_items_min": 0,
        "list_items_max": 3, "numbers_min": 1, "numbers_max": 3, "category_math": 1,
    }  # fmt: skip
    assert {name: table[name].unique().tolist() for name in expected} == {n: [v] for n, v in expected.items()}


def test_experts_that_read_one_template_share_one_vote_in_the_agreement():
    experts = ("direct", "pride", "calibraeval", "rubric", "deliberate")
    features = reliability_features(evidence_from([[1, 1, 1, -1, 1]], experts), make_pairs(1), np.zeros((1, 0)))
    assert np.allclose(
        column(features, "agreeing_share", experts)[0, 4], 1 / 2, atol=1e-9
    )  # one vote of two, not 3 of 4


@pytest.mark.parametrize("signs", [*itertools.product([-1, 0, 1], repeat=2)])
def test_one_expert_alone_and_silent_banks_give_finite_features(signs):
    for z in ([[signs[0]]], [list(signs)]):
        assert np.isfinite(reliability_features(evidence_from(z), make_pairs(1), np.zeros((1, 0)))).all()


def test_rows_that_do_not_belong_together_are_refused():
    pairs = make_pairs(3)
    evidence = evidence_of(pairs, make_runs(pairs, EXPERTS[:2]), EXPERTS[:2])
    with pytest.raises(ValueError, match="they have 3, 2 and 3 rows"):
        reliability_features(evidence, pairs.head(2), np.zeros((3, 1)))
    with pytest.raises(ValueError, match="they have 3, 3 and 1 rows"):
        reliability_features(evidence, pairs, np.zeros((1, 1)))

"""Pruning our own bank and leaving it early: exact symmetry, honest prices, exits that keep their promise."""

from __future__ import annotations

import itertools
from collections import defaultdict
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binom

from baer_utils import early_exit
from baer_utils.benchmarks import load_pairs
from baer_utils.calibrators import Audit, split_audit
from baer_utils.costs import SharedCalls, price
from baer_utils.costs.together import _kinds
from baer_utils.debias import bank_runs, fit_debias
from baer_utils.early_exit import (
    BankPrices,
    PrunedBank,
    SymmetricPolicy,
    Terms,
    ask_until_settled,
    bank_of,
    bin_evidence,
    changed_answers,
    compare_policies,
    compare_sizes,
    evidence_limits,
    exit_grid,
    exit_order,
    exit_scores,
    exit_steps,
    exit_study,
    exit_tokens,
    fit_exit,
    over_splits,
    savings,
    stack_terms,
)
from baer_utils.early_exit.exits import expert_weights, term_limits
from baer_utils.evidence import run_array, summarize
from baer_utils.features import stack_features
from baer_utils.juries import FixedPanel, FlatAll, FrugalCascade, LogisticStack, RidgeStack, SingleBest, TopK
from baer_utils.panels import RolePolicy, Search, build_policy, evaluate
from baer_utils.protocols import DERIVED, EXPERTS
from baer_utils.records import swap_pairs, swap_runs
from baer_utils.stacking import Stack
from tests.strategies import banks, log_odds_values, make_pairs, make_runs, same

ASKED = tuple(name for name in EXPERTS if name not in DERIVED)


class FlatPrices:
    """Made-up prices: alone what is said, together with one listed discount per pair of experts."""

    def __init__(self, alone, discount=None):
        self.alone, self.discount = alone, discount or {}

    def of(self, panel):
        saved = sum(self.discount.get(frozenset(two), 0.0) for two in itertools.combinations(panel, 2))
        return sum(self.alone[name] for name in panel) - saved

    def added(self, panel, expert):
        return self.of([*panel, expert]) - self.of(panel)


def doubled(Z: np.ndarray, y: np.ndarray, groups=None) -> Audit:
    """An audit of signed outputs in which every item stands beside its swap."""
    groups = np.arange(len(y)) if groups is None else groups
    both = np.vstack([Z, -Z]).astype(int).astype(object)
    names = tuple(f"j{place}" for place in range(Z.shape[1]))
    return Audit(both, np.concatenate([y, 1 - y]), names, None, np.tile(groups, 2))


@st.composite
def symmetric_parts(draw):
    """Fit and validation audits with swaps, and outputs to predict, patterns among them that no fit item has."""
    judges, n = draw(st.integers(1, 4)), draw(st.integers(3, 14))
    outputs = arrays(int, (3 * n, judges), elements=st.integers(-2, 2))
    Z, y = draw(outputs), draw(arrays(float, 3 * n, elements=st.sampled_from([0.0, 1.0])))
    return doubled(Z[:n], y[:n]), doubled(Z[n : 2 * n], y[n : 2 * n]), Z[2 * n :].astype(object)


def policies(judges: tuple[str, ...]) -> dict[str, object]:
    prices = FlatPrices(dict.fromkeys(judges, 1.0))
    return {
        "pruned": PrunedBank(prices), "path": PrunedBank(prices, size=len(judges)), "role": RolePolicy(),
        "smoothed": RolePolicy(search=Search(smoothing=1.3), tau_global=-1.0), "flat": FlatAll(),
        "cascade": FrugalCascade(),
    }  # fmt: skip


# ---------------------------------------------------------------- symmetry, bit for bit


@patch("baer_utils.early_exit.bank.BankPrices")  # takes most of the time, and nothing is asked of prices here
@settings(max_examples=10)
@given(banks())
def test_the_swapped_bank_is_the_same_audit_with_its_halves_exchanged(_, tables):
    pairs, runs, experts = tables
    experts = tuple(name for name in experts if name not in DERIVED)
    assume(experts)
    one = bank_of(pairs, runs, experts, slices="subset").audit
    other = bank_of(swap_pairs(pairs), swap_runs(runs), experts, slices="subset").audit
    n = len(pairs)
    for first, second in ((one, other), (other, one)):
        assert same(first.Z[:n], second.Z[n:]) and same(first.y[:n], second.y[n:])
    assert same(one.Z[:n], -one.Z[n:].astype(float)) and same(one.y[:n], 1 - one.y[n:])
    assert list(one.groups) == [*pairs["group_id"], *pairs["group_id"]] and list(one.slices[:n]) == list(one.slices[n:])


@settings(max_examples=15)
@given(symmetric_parts(), st.integers(0, 2**14 - 1))
def test_answers_for_a_pair_and_its_swap_add_up_to_one_at_the_same_calls_whichever_response_is_called_a(parts, mask):
    fit, validation, Z = parts
    n = len(fit) // 2
    turned = np.array([mask >> place & 1 for place in range(n)], dtype=bool)
    order = np.concatenate(
        [np.where(turned, np.arange(n) + n, np.arange(n)), np.where(turned, np.arange(n), np.arange(n) + n)]
    )
    for name, policy in policies(fit.judges).items():
        p, called = SymmetricPolicy(policy).fit(fit, validation).predict(Z)
        q, called_swapped = SymmetricPolicy(policy).predict(-Z)
        assert (p + q == 1.0).all() and ((p >= 0) & (p <= 1)).all(), name
        assert np.array_equal(called, called_swapped), name
        assert (p[(Z == 0).all(axis=1)] == 0.5).all(), name
        after = SymmetricPolicy(policy).fit(fit.take(order), validation).predict(Z)
        assert np.array_equal(p, after[0]) and np.array_equal(called, after[1]), name


@settings(max_examples=20)
@given(symmetric_parts())
def test_making_a_policy_symmetric_moves_a_table_by_its_rounding_only_and_an_unseen_pattern_gets_one_half(parts):
    fit, validation, Z = parts
    flat = SymmetricPolicy(FlatAll()).fit(fit, validation)
    p, _ = flat.predict(Z)
    by_itself = flat.policy.predict(Z)[0]
    np.testing.assert_allclose(p, by_itself, rtol=0, atol=1e-15)
    assert (by_itself + flat.policy.predict(-Z)[0] == 1.0).all()
    seen = {tuple(row) for audit in (fit, validation) for row in audit.Z.tolist()}
    unseen = np.array([tuple(row) not in seen for row in Z.tolist()])
    assert (p[unseen] == 0.5).all()


@settings(max_examples=20)
@given(symmetric_parts(), st.integers(1, 3))
def test_bins_of_evidence_negate_and_keep_the_decision(parts, bins):
    fit, validation, _ = parts
    first, second = bin_evidence(fit, validation, bins=bins)
    for audit, cut in ((fit, first), (validation, second)):
        n = len(audit) // 2
        assert same(cut.Z[:n], -cut.Z[n:]) and np.abs(cut.Z.astype(int)).max() <= bins
        assert same(np.sign(cut.Z.astype(int)), np.sign(audit.Z.astype(int)))


@pytest.mark.parametrize("kind", [LogisticStack, RidgeStack])
@pytest.mark.parametrize("experts", [3, 9])
def test_a_stack_with_an_intercept_of_its_own_is_made_symmetric_too_whatever_is_asked_beside_a_pair(kind, experts):
    rng = np.random.default_rng(2)
    Z, y = rng.integers(-1, 2, (60, experts)), rng.integers(0, 2, 60).astype(float)
    stack = SymmetricPolicy(kind()).fit(doubled(Z[:30], y[:30]), doubled(Z[30:], y[30:]))
    p, q = (stack.predict(side.astype(object))[0] for side in (Z, -Z))
    assert (p + q == 1.0).all() and len(set(p)) > 3
    assert [stack.predict(-row[None].astype(object))[0][0] for row in Z] == q.tolist()


def test_calls_that_either_of_the_two_answers_needs_are_made_and_paid():
    class Lopsided(FixedPanel):
        """Calls a second expert where the first says *a*, and nowhere else."""

        def fit(self, fit, validation, *, costs=None, seed=0):
            return self

        def predict(self, Z, slices=None):
            first = Z[:, 0].astype(int)
            return 0.5 + 0.1 * first, np.stack([np.ones(len(Z), dtype=bool), first > 0], axis=1)

    Z = np.array([[1, 1], [-1, 1], [0, 1]], dtype=object)
    p, called = SymmetricPolicy(Lopsided()).predict(Z)
    assert p.tolist() == [0.6, 0.4, 0.5] and called.tolist() == [[True, True], [True, True], [True, False]]


def test_a_symmetric_policy_still_pays_for_its_route_key_and_shows_its_plan():
    rng = np.random.default_rng(5)
    y, hard = rng.integers(0, 2, 300).astype(float), np.arange(300) % 2 == 0
    Z = np.stack([2 * y - 1, rng.choice([-1, 1], 300)], axis=1) * np.where(hard, 1, rng.choice([-1, 1], 300))[:, None]
    audit = doubled(Z, y)
    audit = Audit(
        audit.Z, audit.y, audit.judges, np.tile(np.where(hard, "hard", "easy").astype(object), 2), audit.groups
    )
    role, costs = RolePolicy(tau_global=1.0, route_key="topic"), {"j0": 1.0, "j1": 1.0, "topic": 0.25}
    table = evaluate(audit, {"role": role, "symmetric": SymmetricPolicy(role)}, costs=costs, seeds=[0]).set_index(
        "policy"
    )
    assert table.at["symmetric", "plan"] == table.at["role", "plan"] == '[["hard", "j0"]]'
    assert table.at["symmetric", "cost"] == table.at["role", "cost"] > 0.25


def test_outputs_of_experts_that_are_not_called_are_never_read():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 80).astype(float)
    Z = np.stack([2 * y - 1, rng.choice([-1, 1], 80), rng.choice([-1, 1], 80)], axis=1)
    fit, validation = doubled(Z[:40], y[:40]), doubled(Z[40:], y[40:])
    pruned = SymmetricPolicy(PrunedBank(FlatPrices(dict.fromkeys(fit.judges, 1.0)))).fit(fit, validation)
    p, called = pruned.predict(fit.Z)
    assert called.sum(axis=0).tolist() == [80, 0, 0]
    assert np.array_equal(pruned.predict(np.where(called, fit.Z, "garbage"))[0], p)


# ---------------------------------------------------------------- prices


@pytest.fixture(scope="module", params=["starter_correctness", "starter_preference"])
def recorded(request):
    """Pairs, recorded runs and corrections of a starter set."""
    from baer_utils.backbones.replay import FOLDER
    from baer_utils.benchmarks import load_pairs

    runs = pd.read_parquet(FOLDER / "smollm2-135m" / f"{request.param}.parquet")
    pairs = load_pairs(request.param)
    pairs = pairs[pairs["pair_id"].isin(runs["pair_id"])].reset_index(drop=True)
    return pairs, runs, fit_debias(runs, pairs)


def price_by_hand(runs: pd.DataFrame, experts) -> tuple[int, int, int]:
    """Calls, unique prompt tokens and new tokens of a set, in total, counted row by row."""
    names = {"direct" if name in DERIVED else name for name in experts}
    shared, calls = defaultdict(list), {}
    kinds = _kinds()
    for row in runs.itertuples():
        decoding, content = kinds.get((row.protocol, row.stage, row.view), ("", ""))
        shared[row.pair_id, content].append((row.cached_tokens, row.prompt_tokens))
        if row.protocol in names:
            text = row.text if decoding.startswith("likelihood") else ""
            calls.setdefault((row.prompt_sha, decoding, row.trial, text), (row, content))
    prompts, contents, unique = defaultdict(list), {}, 0
    for (sha, _, trial, _), (row, content) in calls.items():
        prompts[row.pair_id, content, sha].append((trial, row.prompt_tokens))
    for (pair, content, _), made in prompts.items():
        took = [cached for cached, _ in shared[pair, content] if cached > 0]
        held = min([*took, min(size for _, size in shared[pair, content]) - 1]) if content and took else 0
        tokens = made[0][1]
        several = len({trial for trial, _ in made}) > 1
        unique += (tokens - held + len(made) - 1 if several else len(made) * (tokens - held)) if held else sum(
            size for _, size in made)  # fmt: skip
        contents[pair, content] = held
    return len(calls), unique + sum(contents.values()), sum(row.new_tokens for row, _ in calls.values())


def test_every_set_of_experts_is_priced_as_counting_by_hand_prices_it(recorded):
    pairs, runs, _ = recorded
    few = pairs["pair_id"].iloc[[0, 1, -1]].tolist()
    small = runs[runs["pair_id"].isin(few)]
    calls = SharedCalls(runs, EXPERTS)
    for size in range(1, len(ASKED) + 1):
        for chosen in itertools.islice(itertools.combinations(ASKED, size), 4):
            bill = calls.price(chosen, few)
            by_hand = price_by_hand(small, chosen)
            assert [round(3 * bill[name]) for name in ("calls", "unique_tokens", "new_tokens")] == list(by_hand)
        assert price(small, chosen) == bill


def test_what_is_added_step_by_step_is_the_price_of_the_whole_in_any_order(recorded):
    pairs, runs, _ = recorded
    prices = BankPrices(runs, EXPERTS, pairs["pair_id"])
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(EXPERTS).tolist()
        table = prices.table(order)
        assert table["added"].sum() == pytest.approx(prices.of(EXPERTS), abs=1e-9)
        assert (table["added"] <= table["alone"] + 1e-9).all()
    assert prices.added(["direct"], "pride") == 0 == prices.added(["calibraeval"], "direct")
    assert prices.added(["direct"], "chain_of_thought") < prices.alone["chain_of_thought"] / 2
    assert prices.of([]) == 0 and sum(prices.alone.values()) > 2 * prices.of(EXPERTS)
    with pytest.raises(ValueError, match="experts must be among"):
        prices.of(["nobody"])


def test_a_candidate_is_charged_what_it_adds_and_not_what_it_costs_alone():
    """Two equally good seconds: the one dearer alone shares with the first, and is the cheaper second."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400).astype(float)
    noisy = [np.where(rng.random(400) < right, 2 * y - 1, 1 - 2 * y) for right in (0.85, 0.75)]
    Z = np.stack([*noisy, noisy[1]], axis=1)
    fit, validation = doubled(Z[:200], y[:200]), doubled(Z[200:], y[200:])
    alone = {"j0": 1.0, "j1": 2.0, "j2": 3.0}
    shares = FlatPrices(alone, {frozenset({"j0", "j2"}): 2.5})
    assert PrunedBank(FlatPrices(alone), lam=0.001).fit(fit, validation).panel_[:2] == ("j0", "j1")
    pruned = PrunedBank(shares, lam=0.001).fit(fit, validation)
    assert pruned.panel_[:2] == ("j0", "j2")
    assert [step.added for step in pruned.steps_[:2]] == [1.0, 0.5] and pruned.steps_[1].alone == 3.0
    assert sum(step.added for step in pruned.steps_) == shares.of(pruned.panel_)


@settings(max_examples=20)
@given(symmetric_parts())
def test_where_tokens_are_free_the_pruned_bank_is_the_global_panel_of_the_role_policy(parts):
    fit, validation, _ = parts
    pruned = PrunedBank(FlatPrices(dict.fromkeys(fit.judges, 7.0))).fit(fit, validation)
    plan = build_policy(fit, validation, slices=())
    assert pruned.panel_ == plan.global_panel
    assert [step.gain for step in pruned.steps_] == [step.gain for step in plan.steps]
    assert PrunedBank(pruned.prices, size=99).fit(fit, validation).panel_[: len(pruned.panel_)] == pruned.panel_
    left = pruned.stopped_by_
    assert (left is None) == (len(pruned.panel_) == len(fit.judges)) and not (left and left.adjusted > 0.005)


# ---------------------------------------------------------------- comparing


@pytest.fixture(scope="module")
def planted():
    """Six experts, one sure and alone in what it knows: two others echo it, three toss coins."""
    pairs = make_pairs(400, seed=3).assign(subset="all")
    runs = make_runs(pairs, ASKED[:1], seed=1, skill=1.5, bias=0.2)
    echoes = [runs.assign(protocol=name) for name in ASKED[1:3]]
    coins = make_runs(pairs, ASKED[3:6], seed=2, skill=0.0)
    runs = pd.concat([runs, *echoes, coins], ignore_index=True).assign(prompt_tokens=50)
    runs = runs[runs["protocol"].isin(ASKED)].drop_duplicates(["pair_id", "protocol", "view"])
    return bank_of(pairs, runs.assign(trial=0), ASKED[:6])


def test_pruning_keeps_the_accuracy_at_a_third_of_the_tokens_where_one_expert_knows_it_all(planted):
    table = compare_policies(planted, {"pruned": PrunedBank(planted.prices), "flat": FlatAll()}, seeds=range(6))
    assert set(table.loc[table["policy"] == "pruned", "panel"].map(len)) == {1}
    gain = savings(table, "pruned", "flat")
    assert gain.loc["tokens_saved", "low"] > 2 / 3 and gain.loc["tokens_alone_saved", "low"] > 2 / 3
    assert gain.loc["accuracy_lost", "high"] < 0
    assert table.loc[table["policy"] == "pruned", "accuracy"].mean() > 0.9


def test_sizes_run_from_one_expert_to_all_and_end_in_the_same_flat_panel(planted):
    orders = {"role": PrunedBank(planted.prices, size=6), "top k": TopK(6)}
    sizes = compare_sizes(planted, orders, seeds=range(2))
    assert sorted(sizes["size"].unique()) == [1, 2, 3, 4, 5, 6] and len(sizes) == 2 * 2 * 6
    last = sizes[sizes["size"] == 6].set_index(["policy", "seed"])[["accuracy", "risk", "tokens"]]
    np.testing.assert_allclose(last.loc["role"], last.loc["top k"], atol=1e-12)
    flat = compare_policies(planted, {"flat": FlatAll()}, seeds=range(2))
    np.testing.assert_allclose(last.loc["role"], flat[["accuracy", "risk", "tokens"]], atol=1e-12)
    assert (sizes.groupby(["policy", "seed"])["tokens"].diff().dropna() > 0).all()


def test_intervals_over_splits_are_those_of_the_paper_and_the_wide_ones_allow_for_overlap():
    frame = pd.DataFrame({"policy": "p", "accuracy": [0.5, 0.6, 0.8, 0.7], "n_test": 20, "n_construction": 20})
    row = over_splits(frame, measures=["accuracy"]).loc["p", "accuracy"]
    half = 3.182446305284263 * np.std([0.5, 0.6, 0.8, 0.7], ddof=1)  # t(.975, 3)
    assert row["mean"] == pytest.approx(0.65) and row["high"] - row["mean"] == pytest.approx(half / 2)
    assert row["wide_high"] - row["mean"] == pytest.approx(half * np.sqrt(1 / 4 + 1))


def test_labels_of_the_test_pairs_change_no_panel_and_no_bill(planted):
    split = split_audit(planted.audit, 0)
    test = planted.pairs_of(split.test)
    y = planted.audit.y.copy()
    y[test], y[test + len(planted.pair_ids)] = 1 - y[test], 1 - y[test + len(planted.pair_ids)]
    audit = Audit(planted.audit.Z, y, planted.audit.judges, None, planted.audit.groups)
    poisoned = type(planted)(audit, planted.pair_ids, planted.evidence, planted.prices, planted.silent)
    chosen = {"pruned": PrunedBank(planted.prices), "cascade": FrugalCascade(), "role": RolePolicy()}
    before, after = (compare_policies(bank, chosen, seeds=[0]) for bank in (planted, poisoned))
    assert before[["panel", "tokens"]].equals(after[["panel", "tokens"]])
    np.testing.assert_allclose(before["accuracy"], 1 - after["accuracy"], atol=1e-12)


# ---------------------------------------------------------------- leaving early


@st.composite
def stacks(draw):
    """Runs of a few pairs, a stack over them, their categories and an order of asking."""
    experts = tuple(draw(st.permutations(ASKED))[: draw(st.integers(1, 5))])
    n, n_categories = draw(st.integers(1, 6)), draw(st.integers(0, 2))
    L = draw(arrays(float, (n, len(experts), 2), elements=log_odds_values))
    if "self_consistency" in experts:  # pooled votes, as `run_array` makes them
        place = experts.index("self_consistency")
        L[:, place] = np.clip(np.nan_to_num(L[:, place]), -np.log(11), np.log(11))
    categories = draw(arrays(float, (n, n_categories), elements=st.sampled_from([0.0, 1.0])))
    columns = 2 * len(experts) + n_categories
    weights = draw(arrays(float, columns, elements=st.floats(-2, 2)))
    scale = draw(arrays(float, columns, elements=st.floats(0.1, 4)))
    return L, Stack(weights, scale, 1.0), categories, experts, tuple(draw(st.permutations(experts)))


@settings(max_examples=25)
@given(stacks(), st.floats(0, 5))
def test_terms_add_up_to_the_stacks_score_and_a_pair_and_its_swap_exit_at_the_same_step_with_negated_scores(
    case, threshold
):
    L, stack, categories, experts, order = case
    evidence, swapped = (summarize(side, experts) for side in (L, -L))
    one, other = (stack_terms(stack, part, categories, order) for part in (evidence, swapped))
    score = stack.score(stack_features(evidence.z, evidence.z_shrunk, categories))
    np.testing.assert_allclose(one.partial[:, -1], score, rtol=1e-9, atol=1e-9)
    assert same(one.partial, -other.partial) and same(one.rest, other.rest)
    for value in (threshold, np.inf):
        steps = exit_steps(one, value)
        assert np.array_equal(steps, exit_steps(other, value))
        assert same(exit_scores(one, steps), -exit_scores(other, steps))


@settings(max_examples=25)
@given(stacks(), st.randoms(use_true_random=False))
def test_after_a_certain_exit_no_answer_of_the_experts_left_out_can_turn_the_decision(case, rnd):
    L, stack, categories, experts, order = case
    terms = stack_terms(stack, summarize(L, experts), categories, order)
    steps = exit_steps(terms)
    assert not changed_answers(terms, np.inf).any()
    for extreme in (np.inf, -np.inf, None):
        other = L.copy()
        for row, step in enumerate(steps):
            for name in order[step + 1 :]:
                value = extreme if extreme is not None else rnd.choice([np.inf, -np.inf, 0.0, rnd.uniform(-9, 9)])
                limit = np.log(11) if name == "self_consistency" else np.inf
                other[row, experts.index(name)] = np.clip(value, -limit, limit)
        again = stack_terms(stack, summarize(other, experts), categories, order)
        early = steps < len(order) - 1
        assert same(np.sign(again.partial[early, -1]), np.sign(exit_scores(terms, steps)[early]))


@settings(max_examples=25)
@given(stacks(), st.sampled_from([0.0, 0.5, 2.0, np.inf]))
def test_asking_one_by_one_takes_the_same_steps_to_the_same_bits_and_asks_nobody_after_the_exit(case, threshold):
    L, stack, categories, experts, order = case
    evidence = summarize(L, experts)
    terms = stack_terms(stack, evidence, categories, order)
    steps = exit_steps(terms, threshold)
    for row, (step, score) in enumerate(zip(steps, exit_scores(terms, steps), strict=True)):
        asked = []

        def ask(name, row=row, asked=asked):
            asked.append(name)
            place = experts.index(name)
            return evidence.z[row, place], evidence.z_shrunk[row, place]

        left = ask_until_settled(stack, experts, order, ask, categories[row], threshold=threshold)
        assert left.score == score and left.asked == order[: step + 1] == tuple(asked)
        assert left.certain == (abs(score) > terms.rest[row, step] or step == len(order) - 1)


def test_the_most_that_an_expert_can_add_is_reached_at_one_of_two_ends_of_its_instability():
    rng = np.random.default_rng(0)
    stack, categories = Stack(rng.normal(size=8), np.ones(8), 1.0), rng.integers(0, 2, (50, 2)).astype(float)
    raw, shrunk = expert_weights(stack, categories, 3)
    reach = np.max([np.abs(raw + shrunk / (1 + 4 * delta)) for delta in np.linspace(0, 1, 101)], axis=0)
    np.testing.assert_allclose(term_limits(stack, categories, np.array([1.0, 2.0, 3.0])), reach * [1, 2, 3])
    at_both = [np.isclose(np.abs(raw + shrunk / end), reach).any() for end in (1, 5)]
    assert at_both == [True, True]  # so neither end may be left out


def test_many_categories_of_a_pair_add_up_to_the_same_bits_alone_and_in_the_columns_of_a_frame():
    rng = np.random.default_rng(0)
    experts, evidence = ("direct", "rubric"), summarize(rng.normal(size=(40, 2, 2)), ("direct", "rubric"))
    categories = pd.DataFrame({f"kind {place}": rng.integers(0, 2, 40) for place in range(12)})
    stack = Stack(rng.normal(size=16), np.ones(16), 1.0)
    terms = stack_terms(stack, evidence, categories.to_numpy(float), experts)
    for row, kinds in enumerate(categories.to_numpy(float)):
        answers = dict(zip(experts, zip(evidence.z[row], evidence.z_shrunk[row], strict=True), strict=True))
        left = ask_until_settled(stack, experts, experts, answers.get, kinds)
        assert left.score == terms.partial[row, len(left.asked) - 1]


def test_votes_bound_self_consistency_and_evidence_beyond_its_bound_is_refused():
    limits = evidence_limits(["direct", "self_consistency"], trials=5)
    assert limits[0] == pytest.approx(np.log(9999)) and limits[1] == pytest.approx(np.log(11))
    stack = Stack(np.ones(2), np.ones(2), 1.0)
    L = np.full((1, 1, 2), 5.0)
    with pytest.raises(ValueError, match="no exit is exact"):
        stack_terms(stack, summarize(L, ["self_consistency"]), np.zeros((1, 0)), ["self_consistency"])
    with pytest.raises(ValueError, match="answers 5.0"):
        ask_until_settled(stack, ["self_consistency"], ["self_consistency"], lambda name: (5.0, 5.0), [])
    with pytest.raises(ValueError, match="order must name each"):
        ask_until_settled(stack, ["direct"], ["rubric"], lambda name: (0.0, 0.0), [])
    with pytest.raises(ValueError, match="order must name each"):
        stack_terms(stack, summarize(L, ["direct"]), np.zeros((1, 0)), ["rubric"])
    with pytest.raises(ValueError, match="columns"):
        stack_terms(stack, summarize(L, ["direct"]), np.zeros((1, 1)), ["direct"])


def test_votes_of_real_runs_stay_within_their_bound(recorded):
    pairs, runs, debias = recorded
    z = summarize(run_array(bank_runs(runs, EXPERTS, debias), EXPERTS, pairs["pair_id"]), EXPERTS).z
    assert (np.abs(z).max(axis=0) <= evidence_limits(EXPERTS) * (1 + 1e-12)).all()


def random_terms(rng: np.random.Generator, n: int, steps: int = 5) -> Terms:
    terms = rng.normal(size=(n, steps)) + rng.normal(size=(n, 1))
    return Terms(tuple("abcde"[:steps]), np.cumsum(terms, axis=1), np.full((n, steps), np.inf))


def test_the_share_of_changed_answers_is_held_as_often_as_promised():
    rng = np.random.default_rng(4)
    grid, world = exit_grid(random_terms(rng, 500)), random_terms(rng, 20_000)
    risk = {value: changed_answers(world, value).mean() for value in grid} | {np.inf: 0.0}
    found = [fit_exit(random_terms(rng, 80), grid, alpha=0.1, delta=0.1).value for _ in range(300)]
    broken = np.mean([risk[value] > 0.1 for value in found])
    assert broken <= binom.ppf(0.999, 300, 0.1) / 300
    assert np.mean(np.isfinite(found)) > 0.9  # and the promise is not kept by never leaving early


def test_thresholds_are_tested_from_the_strictest_down_until_one_fails():
    terms = Terms(("x", "y"), np.array([[3.0, 3.0]] * 30 + [[1.0, -1.0]] * 10), np.full((40, 2), [np.inf, 0.0]))
    found = fit_exit(terms, [4.0, 2.0, 0.5, 0.0], alpha=0.2, delta=0.1)
    assert found.value == 2.0 and found.steps["certified"].tolist() == [True, True, False]
    assert found.steps["changed"].tolist() == [0, 0, 10]
    np.testing.assert_allclose(found.steps["p"], binom.cdf([0, 0, 10], 40, 0.2))
    assert fit_exit(terms.take(np.arange(5)), [2.0, 0.0], alpha=0.2).value == np.inf  # five pairs certify nothing
    turning = Terms(("x", "y", "z"), np.array([[1.0, -3.0, 2.0]] * 40), np.array([[np.inf, np.inf, 0.0]] * 40))
    assert fit_exit(turning, [4.0, 2.0, 0.5]).value == 4.0  # 0.5 changes nothing, but 2 comes first and fails
    for wrong in ({"grid": [1.0, 2.0]}, {"grid": [1.0, 0.0], "alpha": 1.0}):
        with pytest.raises(ValueError, match="strictly"):
            fit_exit(terms, **wrong)


def test_pairs_pay_for_the_experts_that_were_asked_before_they_left(recorded):
    pairs, runs, _ = recorded
    ids, order = pairs["pair_id"].tolist()[:20], ("direct", "chain_of_thought", "rubric")
    prices = BankPrices(runs, order, pairs["pair_id"])
    terms = Terms(order, np.zeros((20, 3)), np.zeros((20, 3)))
    assert exit_tokens(terms, np.full(20, 2), prices, ids) == pytest.approx(prices.of(order, ids))
    steps = np.repeat([0, 2], 10)
    both = 10 * prices.of(order[:1], ids[:10]) + 10 * prices.of(order, ids[10:])
    assert exit_tokens(terms, steps, prices, ids) == pytest.approx(both / 20)


def test_the_order_of_asking_takes_the_most_reach_per_token_and_what_is_free_at_once():
    prices = FlatPrices({"a": 4.0, "b": 1.0, "c": 0.0}, {})
    assert exit_order(np.array([[4.0, 2.0, 0.1]]), ("a", "b", "c"), prices) == ("c", "b", "a")
    shares = FlatPrices({"a": 4.0, "b": 1.0, "c": 3.0}, {frozenset({"a", "b"}): 3.5})
    assert exit_order(np.array([[4.0, 2.0, 4.0]]), ("a", "b", "c"), shares) == ("b", "a", "c")


# ---------------------------------------------------------------- the recorded bank


def test_the_recorded_bank_is_compared_and_left_early_on_development_pairs(recorded):
    pairs, runs, debias = recorded
    development = pairs[pairs["split"] != "test"].reset_index(drop=True)
    bank = bank_of(development, runs, EXPERTS, debias=debias, slices="subset")
    assert len(bank.audit) == 2 * len(development) and not (bank.audit.coding.codes < 0).any()
    assert bank.silent["direct"] == 0
    table = compare_policies(bank, {"role": RolePolicy(), "flat": FlatAll()}, seeds=range(2))
    flat = table[table["policy"] == "flat"]
    assert (flat["experts"] == 9).all() and (flat["tokens_alone"] > 2 * flat["tokens"]).all()
    figures, asking = exit_study(bank, development, seeds=range(2))
    by = figures.set_index(["policy", "seed"])
    assert (by.loc["certain", "changed"] == 0).all() and (by.loc["certain", "tokens"] <= by.loc["full", "tokens"]).all()
    assert (by.loc["controlled", "tokens"] <= by.loc["certain", "tokens"]).all()
    assert by.loc["full", "accuracy"].equals(by.loc["certain", "accuracy"])
    assert (asking.groupby(["policy", "seed"])["share"].diff().dropna() <= 0).all()


def test_pairs_without_labels_and_meaningless_settings_are_refused(planted):
    pairs = make_pairs(4).assign(label=[1.0, np.nan, -1.0, 1.0])
    with pytest.raises(ValueError, match="1 have no label"):
        bank_of(pairs, make_runs(pairs, ["direct"]), ["direct"])
    with pytest.raises(ValueError, match="bins must be at least 1"):
        bin_evidence(planted.audit, bins=0)
    with pytest.raises(ValueError, match="must be among"):
        savings(compare_policies(planted, {"single": SingleBest()}, seeds=[0]), "single", "flat")
    assert isinstance(PrunedBank(planted.prices), FixedPanel)


@pytest.mark.parametrize("parts", [1, 4])
def test_a_signal_joins_a_bank_with_its_swap_and_no_opinion_where_it_has_none(parts):
    rng = np.random.default_rng(parts)
    audit = doubled(rng.choice([-1.0, 0.0, 1.0], (parts, 2)), rng.integers(0, 2, parts).astype(float))
    score = np.where(np.arange(parts) == 0, np.nan, rng.normal(size=parts))
    grown = early_exit.with_signals(audit, {"signal": score})
    assert grown.judges == (*audit.judges, "signal") and (grown.Z[:, :2] == audit.Z).all()
    mine = grown.Z[:, 2].astype(float)
    assert mine[0] == 0 and np.array_equal(mine[parts:], 0 - mine[:parts])
    with pytest.raises(ValueError, match="one number for each of"):
        early_exit.with_signals(audit, {"signal": np.zeros(parts + 1)})


def test_our_own_judge_as_a_setting_shows_development_pairs_alone_each_beside_its_swap(tmp_path, monkeypatch):
    monkeypatch.setenv("BAER_STORE", str(tmp_path))
    setting = early_exit.own_setting("starter_correctness", backbone="replay:smollm2-135m", n_pairs=16)
    audit, pairs = setting.audit, load_pairs("starter_correctness", n_pairs=16)
    half, development = len(audit) // 2, pairs[pairs["split"] != "test"]
    assert half == len(development) and set(audit.groups) == set(development["group_id"])
    assert audit.judges == (*EXPERTS, *early_exit.ALONE) and set(setting.costs) == {*audit.judges, "task_type"}
    Z = audit.Z.astype(int)
    assert set(np.unique(Z)) <= {-1, 0, 1} and (Z[half:] == -Z[:half]).all()
    assert (audit.y[half:] == 1 - audit.y[:half]).all()
    assert audit.y[:half].tolist() == ((development["label"] + 1) / 2).tolist()
    assert setting.costs["task_type"] == 0  # known with the question
    assert all(0 < setting.costs[name] < 10 for name in audit.judges)  # thousands of tokens

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import approx_fprime
from scipy.special import expit, logit
from scipy.stats import rankdata

from baer_utils.debias import (
    EXPERT,
    FULL_ORBIT,
    THREE_PROMPTS,
    Debias,
    IncreasingMap,
    debiased_runs,
    direct_reads,
    fit_debias,
    fit_map,
    fit_three_prompts,
    item_prior,
    label_reads,
    loss,
    mean_prior,
    prior_sample,
    probability_excess,
    subtract_prior,
)
from baer_utils.debias.objective import gradient, map_values
from baer_utils.evidence import run_array, summarize
from baer_utils.prompts import LABEL_SIGN
from baer_utils.records import RUN_COLUMNS, check_runs, swap_pairs, swap_runs, unit_hash
from tests.strategies import log_odds_values, make_pairs, run_rows, same

ORBITS = {"expert": EXPERT, "three prompts": THREE_PROMPTS, "full orbit": FULL_ORBIT}
VIEWS = FULL_ORBIT.views
ONE_A, TWO_A, ONE_B, TWO_B = range(4)  # columns of the full orbit
FEW = settings(max_examples=25)

on_a_grid = st.integers(-192, 192).map(lambda k: k / 16)  # far enough apart that rounding decides nothing


@st.composite
def read_tables(draw, values=log_odds_values, *, max_pairs: int = 8, complete: bool = False, label_views=VIEWS):
    """(pairs, runs): direct reads in some views, shuffled, some missing; the first pair is in selection, read whole."""
    pairs = make_pairs(draw(st.integers(1, max_pairs)), draw(st.integers(0, 10**6)))
    pairs.loc[pairs["group_id"] == pairs["group_id"][0], "split"] = "selection"
    rows = []
    for row, (pair_id, a, b) in enumerate(pairs[["pair_id", "response_a", "response_b"]].itertuples(index=False)):
        whole = complete or row == 0
        number = values.filter(lambda x: x == x) if whole else values
        said = {view: draw(number) for view in label_views if whole or draw(st.integers(0, 5))}
        if a == b:  # ab and ba are one prompt, and so are ab_BA and ba_BA
            for view, other in (("ab", "ba"), ("ab_BA", "ba_BA")):
                if view in said and other in label_views:
                    said[other] = -said[view]
                else:
                    said.pop(other, None)
        rows += [(pair_id, "direct", view, 0, value) for view, value in said.items()]
    runs = run_rows(rows)
    return pairs, runs.iloc[draw(st.permutations(range(len(runs))))].reset_index(drop=True)


def tables_equal(x: pd.DataFrame, y: pd.DataFrame) -> bool:
    """Equal to the last bit in every column, row by row."""
    return all(
        same(x[name], y[name]) if x[name].dtype == float else list(x[name]) == list(y[name]) for name in RUN_COLUMNS
    )


def biased_reads(n: int, seed: int = 0, *, bias: float = 2.0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """n pairs read in four prompts by a judge with a liking for the label A; nothing is missing."""
    rng = np.random.default_rng(seed)
    pairs = make_pairs(n, seed)
    worth = rng.normal(size=n)
    rows = [
        (pair_id, "direct", view, 0, LABEL_SIGN[view] * (LABEL_SIGN[view] * w + bias + rng.normal() / 2))
        for pair_id, w in zip(pairs["pair_id"], worth, strict=True)
        for view in VIEWS
    ]
    return pairs, run_rows(rows)


# ---------------------------------------------------------------- the swap


@pytest.mark.parametrize("how", [("ecdf",), ("optimised", 5)], ids=lambda how: how[0])
def test_exchanging_the_responses_leaves_every_parameter_as_it_was_and_negates_every_row_bit_for_bit(how):
    @FEW
    @given(read_tables())
    def check(table):
        pairs, runs = table
        options = {"mode": how[0]} | ({"epochs": how[1]} if len(how) > 1 else {})
        here, there = fit_debias(runs, pairs, **options), fit_debias(swap_runs(runs), swap_pairs(pairs), **options)
        assert here.prior == there.prior and here.prior_pairs == there.prior_pairs
        assert here.expert == there.expert
        assert tables_equal(there.apply(swap_runs(runs)), swap_runs(here.apply(runs)))

    check()


@FEW
@given(read_tables())
def test_exchanging_only_some_pairs_leaves_the_parameters_as_they_were(table):
    pairs, runs = table
    some = runs["pair_id"].isin(pairs["pair_id"][::2])
    mixed = pd.concat([swap_runs(runs[some]), runs[~some]])
    here, there = (fit_debias(r, pairs, "optimised", epochs=3) for r in (runs, mixed))
    assert (here.prior, here.expert) == (there.prior, there.expert)


@FEW
@given(read_tables(), st.randoms(use_true_random=False))
def test_the_order_of_pairs_and_runs_leaves_no_trace(table, random):
    pairs, runs = table
    shuffled = pairs.sample(frac=1, random_state=random.randrange(10**6))
    again = runs.sample(frac=1, random_state=random.randrange(10**6))
    assert fit_debias(runs, pairs, "optimised", epochs=3) == fit_debias(again, shuffled, "optimised", epochs=3)


# ---------------------------------------------------------------- what the corrections cannot change


increasing_maps = st.lists(st.integers(1, 50), min_size=3, max_size=9).map(
    lambda steps: IncreasingMap(
        tuple(np.linspace(0, 1, len(steps) - 1).tolist()), tuple((np.cumsum(steps)[:-1] / sum(steps)).tolist())
    )
)


@settings(max_examples=80)
@given(read_tables(on_a_grid, complete=True, label_views=("ab", "ba")), st.floats(1e-4, 1 - 1e-4), increasing_maps)
def test_with_both_orders_averaged_any_prior_and_any_increasing_map_decide_as_direct_judging_does(table, prior, g):
    """Protocols A.8, finding 3: g(p1) + 1 - g(p3) >= 1 where p1 >= p3."""
    pairs, runs = table
    rows = Debias(prior, (), g, None, "ecdf", 0, 0.0).apply(runs)
    experts = ["direct", "pride", "calibraeval"]
    z = summarize(run_array(pd.concat([runs, rows]), experts, pairs["pair_id"])).z
    assert same(np.sign(z[:, 1]), np.sign(z[:, 0])) and same(np.sign(z[:, 2]), np.sign(z[:, 0]))


def test_the_fitted_corrections_decide_as_direct_judging_does_on_the_pairs_they_were_fitted_on():
    pairs, runs = biased_reads(300)
    pairs["split"] = "calibration"
    for mode in ("ecdf", "optimised"):
        table = pd.concat([runs, fit_debias(runs, pairs, mode, epochs=20).apply(runs)])
        z = summarize(run_array(table, ["direct", "pride", "calibraeval"], pairs["pair_id"])).z
        assert len(set(map(tuple, np.sign(z)))) == 2 and (np.sign(z) == np.sign(z[:, :1])).all()


def test_beyond_the_reads_it_was_fitted_on_a_map_is_flat_so_two_louder_reads_tie():
    g = IncreasingMap((0.2, 0.5), (0.3, 0.6))
    assert g([0.0, 0.2, 0.35, 0.5, 0.9, np.nan]).tolist()[:5] == pytest.approx([0.3, 0.3, 0.45, 0.6, 0.6])
    assert math.isnan(g([np.nan])[0]) and g(0.7) == g(0.8)


def test_labels_change_nothing():
    pairs, runs = biased_reads(60)
    for labels in (-pairs["label"], np.nan, 1.0):
        other = pairs.assign(label=labels)
        assert fit_debias(runs, other, "optimised", epochs=3) == fit_debias(runs, pairs, "optimised", epochs=3)
        assert tables_equal(debiased_runs(runs, other), debiased_runs(runs, pairs))


@pytest.mark.parametrize("poison", ["value", "repeat", "gone"])
def test_a_poisoned_test_row_changes_no_parameter(poison):
    pairs, runs = biased_reads(60)
    pairs["split"] = ["test", "selection", "calibration"] * 20
    test = runs["pair_id"].isin(pairs.loc[pairs["split"] == "test", "pair_id"])
    clean = fit_debias(runs, pairs, "optimised", epochs=3)
    if poison == "value":
        runs.loc[test, "log_odds"] = np.resize([-99.0, np.inf, np.nan, 0.0], test.sum())
    runs = pd.concat([runs, runs[test]]) if poison == "repeat" else runs[~test] if poison == "gone" else runs
    assert fit_debias(runs, pairs, "optimised", epochs=3) == clean
    assert fit_three_prompts(runs, pairs, "optimised", epochs=3) == clean.three_prompts


def test_every_non_test_pair_read_in_both_orders_is_used_and_no_other():
    pairs, runs = biased_reads(60)
    pairs["split"] = ["test", "selection", "calibration"] * 20
    lost = pairs["pair_id"][1]
    runs = runs[~((runs["pair_id"] == lost) & (runs["view"] == "ba_BA"))]
    fitted = fit_debias(runs, pairs)
    used = set(pairs.loc[pairs["split"] != "test", "pair_id"])
    assert set(fitted.prior_pairs) == set(fitted.expert.pairs) == used
    assert set(fitted.three_prompts.pairs) == used - {lost}


# ---------------------------------------------------------------- PriDe


@FEW
@given(log_odds_values, log_odds_values)
def test_an_items_prior_is_the_softmax_over_labels_of_its_mean_log_probability(l_ab, l_ba):
    """The released code's rule written out (its floor of 1e-10 kept), from probabilities, for two options."""
    prior = float(item_prior(l_ab, l_ba))
    assert same(prior, item_prior(l_ba, l_ab))
    if math.isnan(l_ab) or math.isnan(l_ba):
        assert math.isnan(prior)
        return
    mean = [
        np.mean([np.log(expit(sign * read) + 1e-10) for read in (l_ab, l_ba)]) for sign in (1, -1)
    ]  # of label A, of label B
    assert prior == pytest.approx(np.exp(mean[0]) / np.exp(mean).sum(), abs=1e-7)


def test_a_judge_that_only_likes_the_label_a_has_that_liking_as_its_prior_and_nothing_left():
    liking = 1.7
    pairs = make_pairs(12).assign(split="selection")
    runs = run_rows(
        [(p, "direct", view, 0, LABEL_SIGN[view] * liking) for p in pairs["pair_id"] for view in VIEWS[::3]]
    )
    fitted = fit_debias(runs, pairs)
    assert fitted.prior == pytest.approx(expit(liking), abs=1e-15)
    rows = fitted.apply(runs)
    assert np.abs(rows.loc[rows["protocol"] == "pride", "log_odds"]).max() < 1e-14


def test_the_prior_is_the_mean_of_probabilities_not_of_log_odds():
    assert mean_prior(expit([4.0, -1.0])) == pytest.approx((expit(4.0) + expit(-1.0)) / 2)
    assert mean_prior(expit([4.0, -1.0])) != pytest.approx(expit(1.5), abs=0.01)
    assert mean_prior([0.1] * 10) == 0.1  # 0.1 added ten times is not 1 in floating point
    with pytest.raises(ValueError, match="at least one item"):
        mean_prior([])


@pytest.mark.parametrize("n, size", [(1, 1), (99, 99), (101, 100), (2000, 100), (2001, 101), (5000, 250)])
def test_the_estimation_set_is_a_hundred_pairs_or_a_twentieth_or_all_in_hash_order(n, size):
    ids = [f"p{i}" for i in range(n)]
    sample = prior_sample(ids)
    assert len(sample) == size == len(set(sample)) and sample == prior_sample(ids[::-1])
    rest = set(ids) - set(sample)
    if rest:
        assert max(unit_hash(f"prior|{p}") for p in sample) < min(unit_hash(f"prior|{p}") for p in rest)


def test_a_condition_with_many_pairs_estimates_its_prior_on_the_sample_only():
    pairs, runs = biased_reads(150)
    pairs["split"] = "calibration"
    fitted = fit_debias(runs, pairs)
    assert list(fitted.prior_pairs) == sorted(prior_sample(list(pairs["pair_id"]))) and len(fitted.prior_pairs) == 100
    others = ~runs["pair_id"].isin(fitted.prior_pairs)
    assert fit_debias(runs.assign(log_odds=runs["log_odds"] + 3.0 * others), pairs).prior == fitted.prior


def test_subtracting_a_prior_is_bayes_rule_and_a_certain_prior_stays_finite():
    p, prior = np.array([0.2, 0.5, 0.9]), 0.7
    debiased = (p / prior) / (p / prior + (1 - p) / (1 - prior))
    assert expit(subtract_prior(logit(p), prior)) == pytest.approx(debiased, abs=1e-15)
    for certain, sign in ((1.0, -1), (0.0, 1)):
        assert subtract_prior(0.0, certain) == pytest.approx(sign * math.log(1e10), abs=1e-6)
    assert same(subtract_prior([np.inf, -np.inf, np.nan], 0.3), [np.inf, -np.inf, np.nan])


# ---------------------------------------------------------------- CalibraEval: the map


@settings(max_examples=60)
@given(arrays(float, st.tuples(st.integers(1, 12), st.just(2)), elements=log_odds_values.filter(lambda x: x == x)))
def test_mode_ecdf_is_the_rank_of_each_distinct_probability_over_their_number_plus_one(reads):
    g = fit_map(reads, EXPERT)
    p = expit(reads)
    assert same(g(p).ravel(), rankdata(p.ravel(), method="dense") / (len(np.unique(p)) + 1))


def test_mode_ecdf_puts_the_threshold_at_the_pooled_median():
    reads = np.random.default_rng(1).normal(3, 1, (101, 1)) + np.array([[0.0, 0.7, -0.4]])
    g = fit_map(reads, THREE_PROMPTS)
    assert g(np.median(expit(reads))) == pytest.approx(0.5)


@FEW
@given(st.integers(1, 10), st.sampled_from(list(ORBITS)), st.floats(0.01, 1e6), st.integers(0, 10**6))
def test_optimising_never_raises_the_loss_and_keeps_the_map_strictly_increasing(k, name, rate, seed):
    orbit = ORBITS[name]
    reads = np.random.default_rng(seed).normal(1, 3, (k, len(orbit.views)))
    p, before = expit(reads), math.inf
    for epochs in (0, 1, 2, 30):
        g = fit_map(reads, orbit, mode="optimised", epochs=epochs, learning_rate=rate)
        assert g == fit_map(reads, orbit, mode="optimised", epochs=epochs, learning_rate=rate)
        assert (np.diff([0.0, *g.values, 1.0]) > 0).all() and (np.diff(g.knots) > 0).all()
        now = loss(g(p), orbit)
        assert now <= before + 1e-15
        before = now
    assert fit_map(reads, orbit, mode="optimised", epochs=0) == fit_map(reads, orbit)


@pytest.mark.parametrize("name", ORBITS)
def test_the_order_of_the_fitted_pairs_and_exchanging_responses_in_a_closed_orbit_change_no_bit_of_the_map(name):
    orbit, rng = ORBITS[name], np.random.default_rng(5)
    reads = np.round(rng.normal(1, 3, (60, len(orbit.views))))  # reads that repeat, so that sums have many terms
    there = rng.permutation(reads)
    if orbit.closed:
        there[::2] = there[::2, ::-1]
    assert orbit.closed == (orbit is not THREE_PROMPTS)
    assert fit_map(there, orbit, mode="optimised", epochs=20) == fit_map(reads, orbit, mode="optimised", epochs=20)


def test_optimising_brings_a_biased_judges_two_orders_to_complement_each_other():
    reads = label_reads(biased_reads(200)[1], biased_reads(200)[0]["pair_id"], THREE_PROMPTS.views)
    p = expit(reads)
    ranks, best = fit_map(reads, THREE_PROMPTS), fit_map(reads, THREE_PROMPTS, mode="optimised", learning_rate=30)
    assert loss(best(p), THREE_PROMPTS) < 0.5 * loss(ranks(p), THREE_PROMPTS)
    moved = np.abs(np.array(best.values) - ranks.values).max()
    assert moved > 0.1  # a batch of 64, 500 epochs and the true gradient: by 0.2 to 0.3 (protocols A.8, finding 2)


# ---------------------------------------------------------------- CalibraEval: the objective


def brute_loss(g: np.ndarray, orbit, lam: float) -> float:
    """The published three-term loss, and its versions for two and four prompts, written out pair by pair."""
    total = 0.0
    for row in g.tolist():
        if orbit is EXPERT:
            p1, p3 = row
            total += (p1 + p3 - 1) ** 2 - lam * (p1 - p3) ** 2
        elif orbit is THREE_PROMPTS:
            p1, p2, p3 = row
            total += (p1 + p3 - 1) ** 2 + (p1 - p2) ** 2 - lam * (p1 - p3) ** 2
        else:
            for_a, for_b = row[:2], row[2:]
            total += sum((i + j - 1) ** 2 for i in for_a for j in for_b) / 4
            total += ((row[ONE_A] - row[TWO_A]) ** 2 + (row[ONE_B] - row[TWO_B]) ** 2) / 2
            total -= lam / 4 * sum((i - j) ** 2 for i in for_a for j in for_b)
    return total / len(g)


@pytest.mark.parametrize("name", ORBITS)
def test_the_loss_is_the_published_one_written_out_and_its_gradient_that_of_finite_differences(name):
    orbit, rng = ORBITS[name], np.random.default_rng(3)
    for lam in (0.05, 0.7):
        for knots in (1, 2, 9):
            theta = rng.normal(size=knots + 1)
            items = rng.integers(0, knots, (7, len(orbit.views)))

            def at(theta, items=items, lam=lam):
                return brute_loss(map_values(theta)[items], orbit, lam)

            assert loss(map_values(theta)[items], orbit, lam=lam) == pytest.approx(at(theta), abs=1e-14)
            central = (approx_fprime(theta, at, 1e-6) + approx_fprime(theta, at, -1e-6)) / 2
            assert gradient(theta, items, orbit, lam=lam) == pytest.approx(central, abs=1e-8)


def test_the_gradient_is_the_chain_rule_over_every_knot_and_parameter():
    rng, lam = np.random.default_rng(4), 0.05
    theta, items = rng.normal(size=6), rng.integers(0, 5, (9, 3))
    g, share = map_values(theta), np.exp(theta) / np.exp(theta).sum()
    by_knot = np.zeros(5)
    for one, two, three in items:  # the three partial derivatives of the published loss
        by_knot[one] += 2 * (g[one] + g[three] - 1) + 2 * (g[one] - g[two]) - 2 * lam * (g[one] - g[three])
        by_knot[two] -= 2 * (g[one] - g[two])
        by_knot[three] += 2 * (g[one] + g[three] - 1) + 2 * lam * (g[one] - g[three])
    wanted = [sum(by_knot[m] * share[n] * ((n <= m) - g[m]) for m in range(5)) / 9 for n in range(6)]
    assert gradient(theta, items, THREE_PROMPTS, lam=lam) == pytest.approx(wanted, abs=1e-14)
    assert gradient(theta + 3.0, items, THREE_PROMPTS, lam=lam) == pytest.approx(wanted, abs=1e-14)
    assert sum(wanted) == pytest.approx(0, abs=1e-14)  # adding a constant to theta changes nothing


@FEW
@given(read_tables(complete=True), st.sampled_from(["ecdf", "optimised"]))
def test_the_full_orbit_has_one_map_for_a_pair_and_its_swap_and_an_exactly_odd_mean(table, mode):
    pairs, runs = table
    here, there = (label_reads(r, pairs["pair_id"], VIEWS) for r in (runs, swap_runs(runs)))
    g, h = (fit_map(reads, FULL_ORBIT, mode=mode, epochs=3) for reads in (here, there))
    assert g == h
    ours, theirs = g(expit(here)), g(expit(there))
    assert same(probability_excess(theirs, FULL_ORBIT), -probability_excess(ours, FULL_ORBIT))
    assert loss(theirs, FULL_ORBIT) == pytest.approx(loss(ours, FULL_ORBIT), abs=1e-15)
    written_out = (ours[:, ONE_A] + ours[:, TWO_A] + (1 - ours[:, ONE_B]) + (1 - ours[:, TWO_B])) / 4
    assert probability_excess(ours, FULL_ORBIT) + 0.5 == pytest.approx(written_out, abs=1e-15)


def test_the_native_mean_of_three_prompts_is_the_published_one_and_no_odd_function_of_the_pair():
    g = np.array([[0.9, 0.6, 0.3], [0.5, 0.5, 0.5], [0.2, np.nan, 0.1]])
    excess = probability_excess(g, THREE_PROMPTS)
    assert excess[0] == pytest.approx((0.9 + 0.6 + 1 - 0.3) / 3 - 0.5)
    assert excess[1] == 0 and math.isnan(excess[2])


# ---------------------------------------------------------------- the rows


@FEW
@given(read_tables())
def test_the_rows_are_legal_cost_nothing_and_follow_the_direct_reads_they_come_from(table):
    pairs, runs = table
    runs = runs.assign(label_mass=0.25, prompt_sha=[f"sha{i}" for i in range(len(runs))], backbone="judge")
    fitted, reads = fit_debias(runs, pairs), direct_reads(runs).reset_index(drop=True)
    rows = check_runs(fitted.apply(runs))
    assert tables_equal(rows, debiased_runs(runs, pairs)) and set(reads["view"]) <= {"ab", "ba"}
    for name in ("pride", "calibraeval"):
        own = rows[rows["protocol"] == name].reset_index(drop=True)
        for column in ("pair_id", "backbone", "stage", "view", "trial", "label_mass", "prompt_sha", "text"):
            assert list(own[column]) == list(reads[column])
        assert not own[["prompt_tokens", "cached_tokens", "new_tokens", "seconds"]].to_numpy().any()
        assert same(own["log_odds"].isna(), reads["log_odds"].isna())
        assert list(own["status"] == "unparsed") == list(reads["status"] == "unparsed")
        assert list(own["status"] == "tie") == list(own["log_odds"] == 0)
        label = (reads["view"].map(LABEL_SIGN) * reads["log_odds"]).to_numpy()
        wanted = label - logit(fitted.prior) if name == "pride" else logit(fitted.expert(expit(label)))
        with np.errstate(invalid="ignore"):
            assert np.allclose(own["view"].map(LABEL_SIGN) * own["log_odds"], wanted, atol=1e-9, equal_nan=True)


def test_a_failed_read_stays_without_a_value_keeps_its_reason_and_is_not_fitted_on():
    pairs = make_pairs(3).assign(split="selection")
    p, q, r = pairs["pair_id"]
    reads = [(p, "ab", 2.0), (p, "ba", 1.0), (q, "ab", 9.0), (q, "ba", 9.0), (r, "ab", 0.5)]
    runs = run_rows([(i, "direct", view, 0, value) for i, view, value in reads])
    runs["status"], runs["text"] = ["ok", "ok", "error", "ok", "truncated"], ["", "", "timed out", "", ""]
    fitted = fit_debias(runs, pairs)
    assert fitted.prior_pairs == fitted.expert.pairs == (p,)
    rows = fitted.apply(runs)
    assert list(rows["status"]) == list(runs["status"]) * 2 and list(rows["text"]) == list(runs["text"]) * 2
    assert list(rows["log_odds"].isna()) == [False, False, True, False, False] * 2


def test_only_direct_verdicts_in_the_two_display_orders_are_corrected():
    pairs, runs = biased_reads(20)
    others = [runs.assign(protocol="rubric"), runs.assign(stage="audit"), runs.assign(trial=1)]
    rows = debiased_runs(pd.concat([runs, *others]), pairs)
    assert tables_equal(rows, debiased_runs(runs, pairs))
    again = pd.concat([runs, rows])  # rows already corrected are not corrected twice
    assert tables_equal(debiased_runs(again, pairs), rows)


def test_new_pairs_are_corrected_with_the_frozen_parameters_alone():
    pairs, runs = biased_reads(60)
    fitted = fit_debias(runs, pairs)
    new = run_rows([("new", "direct", "ab", 0, 1.0), ("new", "direct", "ba", 0, np.nan)])
    together = fitted.apply(pd.concat([runs, new]))
    assert tables_equal(fitted.apply(new), together[together["pair_id"] == "new"])


@pytest.mark.parametrize("views", [VIEWS, ("ab", "ba")])
def test_json_keeps_every_bit_and_the_hash_of_what_was_fitted(views):
    pairs, runs = biased_reads(40)
    runs = runs[runs["view"].isin(views)]
    for mode in ("ecdf", "optimised"):
        fitted = fit_debias(runs, pairs, mode, epochs=2)
        again = Debias.from_json(fitted.to_json())
        assert again == fitted and again.to_json() == fitted.to_json() and (again.mode, again.epochs)[0] == mode
        assert tables_equal(again.apply(runs), fitted.apply(runs))
        assert json.loads(fitted.to_json())["epochs"] == (2 if mode == "optimised" else 0)
        assert (fitted.three_prompts is None) == (views == ("ab", "ba"))


def test_the_exchanged_labels_may_be_read_under_either_name_and_direct_judging_counts_first():
    rows = [("p", "direct", "ab", 0, 1.0), ("p", "direct", "ba", 0, 2.0), ("p", "calibraeval", "ba_BA", 0, 3.0)]
    corrected = [("p", "calibraeval", "ab", 0, 9.0), ("p", "calibraeval", "ba", 0, 9.0)]
    assert same(label_reads(run_rows(rows + corrected), ["p"], THREE_PROMPTS.views), [[1.0, 3.0, -2.0]])
    both = run_rows([*rows, ("p", "direct", "ba_BA", 0, 4.0)])
    assert same(label_reads(both, ["p", "absent"], ["ba_BA"]), [[4.0], [np.nan]])


# ---------------------------------------------------------------- small and odd conditions


@pytest.mark.parametrize("mode", ["ecdf", "optimised"])
def test_one_pair_is_enough_and_equal_reads_give_a_map_that_says_nothing(mode):
    pairs = make_pairs(1).assign(split="selection")
    runs = run_rows([(pairs["pair_id"][0], "direct", view, 0, LABEL_SIGN[view] * 1.5) for view in VIEWS])
    fitted = fit_debias(runs, pairs, mode)
    assert fitted.prior == pytest.approx(expit(1.5))
    assert fitted.expert.values == (0.5,) == fitted.three_prompts.values
    rows = fitted.apply(runs)
    assert list(rows.loc[rows["protocol"] == "calibraeval", "log_odds"]) == [0, 0]
    assert list(rows.loc[rows["protocol"] == "calibraeval", "status"]) == ["tie", "tie"]


@pytest.mark.parametrize("toward_a", [1, -1])
def test_a_judge_without_any_doubt_gives_a_finite_prior_and_finite_calibrated_values(toward_a):
    pairs = make_pairs(5).assign(split="selection")
    runs = run_rows(
        [(p, "direct", view, 0, toward_a * LABEL_SIGN[view] * np.inf) for p in pairs["pair_id"] for view in VIEWS]
    )
    fitted = fit_debias(runs, pairs, "optimised", epochs=3)
    assert fitted.prior == pytest.approx((1 - 1e-10) if toward_a == 1 else 1e-10, rel=1e-6)
    rows = fitted.apply(runs)
    assert np.isfinite(rows.loc[rows["protocol"] == "calibraeval", "log_odds"]).all()
    assert np.isinf(rows.loc[rows["protocol"] == "pride", "log_odds"]).all()
    z = summarize(run_array(rows, ["pride", "calibraeval"], pairs["pair_id"])).z
    assert not z.any()  # it always picks the same label: no opinion about the responses


@pytest.mark.parametrize("lacking", ["pairs", "order", "direct"])
def test_without_a_non_test_pair_read_in_both_orders_nothing_is_fitted_and_the_error_says_so(lacking):
    pairs, runs = biased_reads(10)
    pairs["split"] = "test" if lacking == "pairs" else "selection"
    runs = {"pairs": runs, "order": runs[runs["view"] != "ba"], "direct": runs.assign(protocol="rubric")}[lacking]
    with pytest.raises(ValueError, match=r"read in both orders; of (0|10) such pairs none was. Judge them"):
        debiased_runs(runs, pairs)


def test_two_backbones_an_unknown_mode_and_missing_reads_are_refused():
    pairs, runs = biased_reads(10)
    two = pd.concat([runs, runs.assign(backbone="other")])
    with pytest.raises(ValueError, match=r"must occur once; pair p\d+, view \w+ occurs again \(.*one backbone"):
        fit_debias(two, pairs)
    with pytest.raises(ValueError, match=r"must occur once"):
        fit_debias(runs, pairs).apply(two)
    with pytest.raises(ValueError, match="name each pair once; 'p' occurs again"):
        label_reads(runs, ["p", "p"], ["ab"])
    with pytest.raises(ValueError, match="mode must be one of ecdf, optimised; it is 'best'"):
        fit_debias(runs, pairs, "best")
    for reads in (np.zeros((0, 2)), np.zeros((3, 3)), np.array([[1.0, np.nan]]), np.zeros(2)):
        with pytest.raises(ValueError, match="in each of the views ab, ba"):
            fit_map(reads, EXPERT)

"""Every baseline: exact where something exact exists, blind where it must be, and close to the published pools."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logit
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures

from baer_utils import juries
from baer_utils.calibrators import Audit, PatternCalibrator, audit_from_tables, split_audit
from baer_utils.juries.cascades import prefix_tables, stopping_place
from baer_utils.juries.em import dawid_skene
from baer_utils.juries.outputs import codes_like, construction, one_hot, own_tables, standalone_risk
from baer_utils.juries.stacks import Design
from tests.conftest import SHARED

TIDY = SHARED / "tidy"
POLICIES = juries.standard_policies()
BASELINES = [name for name in POLICIES if name not in ("role", "stopped")]


def made_audit(n=120, n_judges=5, seed=0, *, split=0.1, slices=True) -> Audit:
    """Judges of different skill on items of two slices, a third symbol now and then."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    skill = np.linspace(0.6, 0.85, n_judges)
    right = rng.random((n, n_judges)) < skill
    Z = np.array(["b", "a"], dtype=object)[np.where(right, y[:, None], 1 - y[:, None])]
    Z[rng.random(Z.shape) < split] = "split"
    labels = np.where(rng.random(n) < 0.4, "hard", "easy").astype(object) if slices else None
    return Audit(Z, y, tuple(f"judge{j}" for j in range(n_judges)), labels)


def fitted(policy, audit, seed=0, costs=None):
    parts = split_audit(audit, seed)
    return policy.fit(parts.fit, parts.validation, costs=costs, seed=seed), parts


@pytest.mark.parametrize("name", BASELINES)
def test_an_uncalled_judge_can_say_anything(name):
    audit = made_audit()
    policy, parts = fitted(juries.standard_policies()[name], audit)
    guess, called = policy.predict(parts.test.Z, parts.test.slices)
    assert guess.shape == (len(parts.test),) and called.shape == parts.test.Z.shape and called.dtype == bool
    assert ((guess >= 0) & (guess <= 1)).all()
    poisoned = np.where(called, parts.test.Z, np.array("garbage", dtype=object))
    again, called_again = policy.predict(poisoned, parts.test.slices)
    np.testing.assert_array_equal(again, guess)
    np.testing.assert_array_equal(called_again, called)


@pytest.mark.parametrize("name", BASELINES)
def test_labels_and_outputs_of_test_rows_reach_no_policy(name):
    audit = made_audit()
    parts = split_audit(audit, 0)
    changed = Audit(audit.Z.copy(), audit.y.copy(), audit.judges, audit.slices)
    test_rows = ~np.isin(np.arange(len(audit)), np.concatenate([parts.fit.groups, parts.validation.groups]))
    changed.y[test_rows] = 1 - changed.y[test_rows]
    changed.Z[test_rows] = "never seen before"
    changed = Audit(changed.Z, changed.y, changed.judges, changed.slices)
    first = fitted(juries.standard_policies()[name], audit)[0].predict(parts.test.Z, parts.test.slices)
    second = fitted(juries.standard_policies()[name], changed)[0].predict(parts.test.Z, parts.test.slices)
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])


@pytest.mark.parametrize("name", BASELINES)
def test_order_of_judges_and_of_items_has_no_say(name):
    audit = made_audit()
    guess, called = _predict(juries.standard_policies()[name], audit, range(5), range(len(audit)))
    rng = np.random.default_rng(1)
    judges, items = rng.permutation(5), rng.permutation(len(audit))
    other, called_other = _predict(juries.standard_policies()[name], audit, judges, items)
    np.testing.assert_allclose(other, guess, atol=1e-6)
    np.testing.assert_array_equal(called_other[:, np.argsort(judges)], called)


def _predict(policy, audit, judges, items):
    """Predictions on the test rows in their original order, from an audit whose rows and columns are permuted."""
    judges, items = list(judges), np.asarray(items)
    moved = Audit(
        audit.Z[items][:, judges], audit.y[items], tuple(audit.judges[j] for j in judges), audit.slices[items],
        audit.groups[items],
    )  # fmt: skip
    policy, parts = fitted(policy, moved)
    back = np.argsort(parts.test.groups, kind="stable")
    guess, called = policy.predict(parts.test.Z, parts.test.slices)
    return guess[back], called[back]


@pytest.mark.parametrize("name", BASELINES)
def test_one_judge_one_label_and_soft_labels_are_legal(name):
    audit = made_audit(60, 1)
    for y in (audit.y, np.ones(60), np.random.default_rng(0).random(60)):
        policy, parts = fitted(juries.standard_policies()[name], Audit(audit.Z, y, audit.judges, audit.slices))
        guess, called = policy.predict(parts.test.Z, parts.test.slices)
        assert np.isfinite(guess).all() and ((guess >= 0) & (guess <= 1)).all() and called.shape == (30, 1)


def test_top_k_ranks_by_validation_risk_of_own_tables():
    parts = split_audit(made_audit(), 0)
    risks = {}
    for column, judge in enumerate(parts.fit.judges):
        table = PatternCalibrator([column]).fit(parts.fit.Z, parts.fit.y)
        risks[judge] = np.mean((table.predict(parts.validation.Z) - parts.validation.y) ** 2)
    expected = sorted(risks, key=risks.get)
    assert juries.TopK(3).fit(parts.fit, parts.validation).panel_ == tuple(expected[:3])
    assert juries.SingleBest().fit(parts.fit, parts.validation).panel_ == (expected[0],)
    assert juries.FlatAll().fit(parts.fit, parts.validation).panel_ == tuple(expected)
    np.testing.assert_allclose(
        standalone_risk(construction(parts.fit, parts.validation)), [risks[j] for j in parts.fit.judges], atol=1e-12
    )


def test_k_is_the_role_policys_calls_on_construction_rounded_half_up():
    parts = split_audit(made_audit(400), 0)
    role = juries.standard_policies()["role"].fit(parts.fit, parts.validation, costs=None, seed=0)
    calls = [role.predict(part.Z, part.slices)[1].sum(axis=1) for part in (parts.fit, parts.validation)]
    policy = juries.TopK().fit(parts.fit, parts.validation)
    assert policy.matched_calls_ == np.concatenate(calls).mean()
    assert len(policy.panel_) == int(policy.matched_calls_ + 0.5)
    with pytest.raises(ValueError, match="at least 0"):
        juries.TopK(-1)


@pytest.mark.parametrize(("first", "second", "k"), [(1, 2, 2), (1, 1, 1), (2, 3, 3), (0, 0, 0), (0, 1, 1)])
def test_a_budget_of_a_half_is_rounded_up(first, second, k):
    class Alternating:
        """Calls `first` judges on even rows and `second` on odd ones."""

        def fit(self, *parts, **rest):
            return self

        def predict(self, Z, slices):
            wanted = np.where(np.arange(len(Z)) % 2 == 0, first, second)
            return np.zeros(len(Z)), np.arange(Z.shape[1]) < wanted[:, None]

    parts = split_audit(made_audit(160), 0)  # 40 fit and 40 validation items
    assert len(juries.TopK(role=Alternating()).fit(parts.fit, parts.validation).panel_) == k


def test_correlation_does_not_buy_a_copy_of_the_best_judge_and_quality_alone_does():
    audit = made_audit(400, 4)
    parts = split_audit(audit, 0)
    best = juries.SingleBest().fit(parts.fit, parts.validation).panel_[0]
    column = audit.Z[:, [audit.judges.index(best)]]
    copied = split_audit(Audit(np.hstack([audit.Z, column]), audit.y, (*audit.judges, f"{best}#copy1")), 0)
    assert juries.SingleBest().fit(copied.fit, copied.validation).panel_ == (best,)
    assert juries.TopK(2).fit(copied.fit, copied.validation).panel_ == (best, f"{best}#copy1")
    panels = [juries.CorrelationDiverse(2).fit(part.fit, part.validation).panel_ for part in (parts, copied)]
    assert panels[0] == panels[1] and panels[0][0] == best
    for kind in (juries.CorrelationDiverse, juries.QualityDiverse):
        assert {*kind(9).fit(copied.fit, copied.validation).panel_} == {*copied.fit.judges}


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("n", [24, 400])
def test_stacks_agree_with_scikit_learn_on_explicit_columns(pairs, n):
    audit = made_audit(n, 4)
    parts = split_audit(audit, 0)
    levels = [["a", "b", "split"]] * 4
    encoder = OneHotEncoder(categories=levels, sparse_output=False, handle_unknown="ignore")
    products = PolynomialFeatures(2, interaction_only=True, include_bias=False)
    train, test = encoder.fit_transform(parts.fit.Z), encoder.fit_transform(parts.test.Z)
    if pairs:
        train, test = products.fit_transform(train), products.fit_transform(test)
    owner = np.repeat(np.arange(4), 3)
    design = Design(one_hot(parts.fit.coding.codes, [3] * 4), owner, pairs=pairs)
    inside, outside = (design.coordinates(one_hot(p.coding.codes, [3] * 4)) for p in (parts.fit, parts.test))
    for ours, theirs in (
        (juries.RidgeStack, Ridge(alpha=3.0, solver="svd")),
        (juries.LogisticStack, LogisticRegression(C=1 / 3.0, solver="newton-cg", tol=1e-10, max_iter=1000)),
    ):
        model = ours._train(inside, parts.fit.y, 3.0)
        theirs.fit(train, parts.fit.y)
        expected = theirs.predict_proba(test)[:, 1] if hasattr(theirs, "predict_proba") else theirs.predict(test)
        np.testing.assert_allclose(ours._predict(model, outside), np.clip(expected, 0, 1), atol=1e-5)


def test_a_stack_takes_the_variant_and_penalty_with_the_lowest_validation_risk():
    rng = np.random.default_rng(0)
    Z = rng.integers(0, 2, (800, 3)).astype(object)
    y = (Z[:, 0] ^ Z[:, 1]).astype(float)  # only the pair knows
    parts = split_audit(Audit(Z, y, ("left", "right", "noise")), 0)
    for stack in (juries.RidgeStack(), juries.LogisticStack()):
        stack.fit(parts.fit, parts.validation)
        assert stack.pairs_ and stack.validation_risk_ < 0.01
        assert np.mean((stack.predict(parts.test.Z)[0] - parts.test.y) ** 2) < 0.01


def test_the_reliability_jury_is_bayes_rule_on_counted_rates():
    parts = split_audit(made_audit(80, 3), 0)
    jury = juries.ReliabilityJury(smoothing=0.5).fit(parts.fit, parts.validation)
    Z, y = np.vstack([parts.fit.Z, parts.validation.Z]), np.concatenate([parts.fit.y, parts.validation.y])
    row = parts.test.Z[0]
    weight = {}
    for label in (0, 1):
        weight[label] = ((y == label).sum() + 0.5) / (len(y) + 1)
        for judge in range(3):
            said = ((Z[:, judge] == row[judge]) & (y == label)).sum()
            weight[label] *= (said + 0.5) / ((y == label).sum() + 0.5 * len({*Z[:, judge]}))
    assert jury.predict(parts.test.Z)[0][0] == pytest.approx(weight[1] / (weight[0] + weight[1]), abs=1e-12)


def test_a_duplicated_judge_counts_twice_in_the_reliability_jury():
    parts = split_audit(made_audit(200, 1), 0)
    once = juries.ReliabilityJury().fit(parts.fit, parts.validation)
    audit = made_audit(200, 1)
    twice = split_audit(Audit(np.hstack([audit.Z] * 2), audit.y, ("one", "two"), audit.slices), 0)
    both = juries.ReliabilityJury().fit(twice.fit, twice.validation)
    prior = logit(once.rates_.prior)
    evidence, doubled = (logit(jury.predict(p.test.Z)[0]) - prior for jury, p in ((once, parts), (both, twice)))
    np.testing.assert_allclose(doubled, 2 * evidence, atol=1e-12)


def test_missing_and_unseen_outputs_are_no_evidence():
    parts = split_audit(made_audit(), 0)
    nothing = np.full((2, 5), None, dtype=object)
    nothing[1] = "never seen"
    for jury in (juries.ReliabilityJury(), juries.DawidSkene(), juries.DawidSkene(one_coin=True)):
        guess = jury.fit(parts.fit, parts.validation).predict(nothing)[0]
        prior = jury.rates_.prior
        np.testing.assert_allclose(guess, 1 - prior if getattr(jury, "flipped_", False) else prior)


def made_votes(seed, n=60, n_judges=5):
    """Votes of judges of different skill, a tenth missing; somebody votes on every item."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    votes = np.where(rng.random((n, n_judges)) < np.linspace(0.55, 0.9, n_judges), truth[:, None], 1 - truth[:, None])
    votes = np.where(rng.random(votes.shape) < 0.1, np.nan, votes)
    votes[:, 0] = np.where(np.isnan(votes).all(axis=1), 1, votes[:, 0])
    return votes


def em_in_loops(votes, one_coin, rounds):
    """Dawid-Skene for two classes, item by item."""
    posterior = np.nanmean(votes, axis=1)
    for _ in range(rounds):
        prior = posterior.mean()
        new = []
        for row in votes:
            weight = [1 - prior, prior]
            for j, vote in enumerate(row):
                if np.isnan(vote):
                    continue
                heard = ~np.isnan(votes[:, j])
                v, t = votes[heard, j], posterior[heard]
                right = [((1 - v) * (1 - t)).sum() / (1 - t).sum(), (v * t).sum() / t.sum()]
                if one_coin:
                    right = [np.where(v == 1, t, 1 - t).mean()] * 2
                weight = [weight[c] * (right[c] if vote == c else 1 - right[c]) for c in (0, 1)]
            new.append(weight[1] / sum(weight))
        posterior = np.array(new)
    return posterior


@pytest.mark.parametrize("one_coin", [False, True])
def test_dawid_skene_agrees_with_em_in_plain_loops(one_coin):
    votes = made_votes(0, n=25, n_judges=4)
    ours = dawid_skene(votes, one_coin=one_coin, rounds=6, tol=-np.inf)
    np.testing.assert_allclose(ours, em_in_loops(votes, one_coin, 6), atol=1e-9)


@pytest.mark.parametrize("one_coin", [False, True])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_dawid_skene_agrees_with_crowd_kit(one_coin):
    aggregation = pytest.importorskip("crowdkit.aggregation")
    votes = made_votes(1)
    task, worker = np.nonzero(~np.isnan(votes))
    answers = pd.DataFrame({"task": task, "worker": worker, "label": votes[task, worker].astype(int)})
    model = (aggregation.OneCoinDawidSkene if one_coin else aggregation.DawidSkene)(n_iter=12, tol=-np.inf)
    theirs = model.fit_predict_proba(answers)[1].sort_index()
    np.testing.assert_allclose(dawid_skene(votes, one_coin=one_coin, rounds=12, tol=-np.inf), theirs, atol=1e-6)


@settings(max_examples=30)
@given(st.integers(0, 50), st.booleans())
def test_the_classes_of_dawid_skene_are_exchangeable_and_silence_is_the_prior(seed, one_coin):
    votes = made_votes(seed)
    p = dawid_skene(votes, one_coin=one_coin)
    np.testing.assert_allclose(dawid_skene(1 - votes, one_coin=one_coin), 1 - p, atol=1e-9)
    silent = dawid_skene(np.vstack([votes, np.full(5, np.nan)]), one_coin=one_coin)
    np.testing.assert_allclose(silent[:-1], p, atol=1e-12)
    assert silent[-1] == pytest.approx(p.mean())
    assert (dawid_skene(np.full((3, 2), 0.5)) == 0.5).all()


def test_dawid_skene_finds_labels_that_nobody_told_it():
    audit = made_audit(240, 6)
    policy, parts = fitted(juries.DawidSkene(), audit)
    assert ((policy.predict(parts.test.Z)[0] >= 0.5) == parts.test.y).mean() > 0.8 and not policy.flipped_


def test_dawid_skene_uses_labels_only_to_tell_its_classes_apart():
    audit = made_audit(200, 5)
    turned = Audit(audit.Z, 1 - audit.y, audit.judges)
    (one, parts), (other, turned_parts) = fitted(juries.DawidSkene(), audit), fitted(juries.DawidSkene(), turned)
    assert not one.flipped_ and other.flipped_
    np.testing.assert_allclose(one.predict(parts.test.Z)[0], 1 - other.predict(turned_parts.test.Z)[0], atol=1e-12)


def test_one_coin_is_antisymmetric_where_every_row_enters_with_its_swap():
    audit = made_audit(100, 4)
    swapped = np.where(audit.Z == "a", "b", np.where(audit.Z == "b", "a", audit.Z))
    both = Audit(np.vstack([audit.Z, swapped]), np.concatenate([audit.y, 1 - audit.y]), audit.judges,
                 groups=np.tile(np.arange(100), 2))  # fmt: skip
    for jury in (juries.DawidSkene(one_coin=True), juries.DawidSkene()):
        policy, _ = fitted(jury, both)
        np.testing.assert_allclose(policy.predict(audit.Z)[0], 1 - policy.predict(swapped)[0], atol=1e-9)


@pytest.mark.parametrize("symbols", [("unsafe", "safe"), (-3, 4), (0.2, 0.7), (False, True)])
def test_words_and_scores_vote_too(symbols):
    plain = made_audit(120, 4, split=0)
    renamed = Audit(np.array(symbols, dtype=object)[(plain.Z == "a").astype(int)], plain.y, plain.judges)
    (policy, parts), (other, others) = (fitted(juries.DawidSkene(one_coin=True), a) for a in (plain, renamed))
    np.testing.assert_allclose(other.predict(others.test.Z)[0], policy.predict(parts.test.Z)[0], atol=1e-9)


@settings(max_examples=25)
@given(st.integers(0, 30), st.floats(0.0, 0.25))
def test_a_cascade_stops_at_the_first_certain_prefix_and_reads_cell_means(seed, threshold):
    audit = made_audit(60, 4, seed)
    codes, sizes = audit.coding.codes, [len(levels) for levels in audit.coding.levels]
    mean, variance = prefix_tables(codes, audit.y, codes[:5], sizes)
    for t in range(4):
        table = PatternCalibrator(list(range(t + 1))).fit(audit.Z, audit.y)
        np.testing.assert_allclose(mean[:, t], table.predict(audit.Z[:5]), atol=1e-12)
    np.testing.assert_allclose(variance, mean * (1 - mean), atol=1e-9)  # binary labels
    for row, stop in enumerate(stopping_place(variance, threshold)):
        certain = np.abs(mean[row] - 0.5) >= np.sqrt(max(0.25 - threshold, 0)) - 1e-9
        assert (
            stop == (np.flatnonzero(certain)[0] if certain.any() else 3)
            or np.isclose(variance[row], threshold, atol=1e-9).any()
        )


def test_a_dear_call_makes_the_cascade_shorter():
    audit = made_audit(400, 5)
    free, parts = fitted(juries.FrugalCascade(), audit)
    dear, _ = fitted(juries.FrugalCascade(lam=10.0), audit)
    calls = [policy.predict(parts.test.Z)[1].sum() for policy in (free, dear)]
    assert calls[1] == len(parts.test) < calls[0]
    first = audit.judges.index(free.order_[0])
    assert free.predict(parts.test.Z)[1][:, first].all()


def test_the_strong_judge_is_called_on_the_slices_it_wins():
    rng = np.random.default_rng(0)
    y, hard = rng.integers(0, 2, 800), rng.random(800) < 0.5
    generalist = np.where(rng.random(800) < 0.8, y, 1 - y)
    specialist = np.where(hard | (rng.random(800) < 0.5), y, 1 - y)
    Z = np.stack([generalist, specialist], axis=1).astype(object)
    audit = Audit(Z, y, ("generalist", "specialist"), np.where(hard, "hard", "easy").astype(object))
    policy, parts = fitted(juries.TwoJudgeThreshold(), audit)
    called = policy.predict(parts.test.Z, parts.test.slices)[1]
    assert (called.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(called[:, 1], parts.test.slices == "hard")
    dear, _ = fitted(juries.TwoJudgeThreshold(lam=1.0), audit, costs={"generalist": 5.0, "specialist": 0.1})
    assert dear.weak_ == "specialist" and not dear.predict(parts.test.Z, parts.test.slices)[1][:, 0].any()


def test_slices_that_the_labels_decide_are_refused_by_the_two_judge_router_too():
    audit = made_audit(200)
    leaky = Audit(audit.Z, audit.y, audit.judges, np.where(audit.y == 1, "good", "bad").astype(object))
    with pytest.raises(ValueError, match="made from the labels"):
        fitted(juries.TwoJudgeThreshold(), leaky)
    costs = dict.fromkeys(audit.judges, 1.0) | {"metadata": 0.0}
    for said in ({"route_key": "metadata"}, {"audit_only": True}):
        assert fitted(juries.standard_policies(**said)["two_judges"], leaky, costs=costs)[0].places_
    with pytest.raises(ValueError, match="a judge or have a price in costs; metadtaa came"):
        fitted(juries.TwoJudgeThreshold(route_key="metadtaa"), leaky, costs=costs)


@pytest.mark.parametrize("n", [40, 400])  # more columns than rows, and fewer
@pytest.mark.parametrize("stack", [juries.RidgeStack, juries.LogisticStack])
def test_the_bits_of_a_stacks_answer_do_not_depend_on_the_other_items(stack, n):
    policy, parts = fitted(stack(), made_audit(n, 9))
    guess = policy.predict(parts.test.Z)[0]
    assert [policy.predict(row[None])[0][0] for row in parts.test.Z] == guess.tolist()
    hot = one_hot(codes_like(parts.test.Z, policy.levels_), policy.sizes_)
    by_columns = policy._predict(policy.model_, policy.design_.coordinates(hot))
    np.testing.assert_allclose(guess, by_columns, atol=1e-9)
    assert len(np.unique(guess)) > 3


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from([0.6, 0.7, 0.8, 0.9, 1.0]), st.booleans()), min_size=1, max_size=80),
    st.sampled_from([0.05, 0.1, 0.3]),
)
def test_certified_thresholds_are_those_of_exact_binomial_tests(rows, alpha):
    confidence, wrong = (np.array(column) for column in zip(*rows, strict=True))
    lowest = np.inf
    for threshold in sorted({*confidence}, reverse=True):
        trusted = confidence >= threshold
        test = binomtest(int(wrong[trusted].sum()), int(trusted.sum()), alpha, alternative="less")
        if test.pvalue > 0.1:
            break
        lowest = threshold
    assert juries.certified_threshold(confidence, wrong, alpha=alpha, delta=0.1) == lowest


def test_certifying_ten_percent_takes_twenty_two_right_answers():
    for n, threshold in ((21, np.inf), (22, 0.9)):  # .9 ** 22 < .1 < .9 ** 21
        found = juries.certified_threshold(np.full(n, 0.9), np.zeros(n, dtype=bool), alpha=0.1, delta=0.1)
        assert found == threshold


def test_trust_or_escalate_keeps_its_promise_and_counts_abstentions():
    failures = []
    for seed in range(20):
        policy, parts = fitted(juries.TrustOrEscalate(alpha=0.2, delta=0.1), made_audit(1200, 4, seed), seed)
        guess, called = policy.predict(parts.test.Z)
        answered = guess != policy.mean_
        assert (~answered).sum() == policy.abstained_
        if answered.any():
            failures.append(((guess >= 0.5) != parts.test.y)[answered].mean() > 0.2 + 0.05)
        assert called[:, [parts.fit.judges.index(name) for name in policy.order_[:1]]].all()
    assert np.mean(failures) <= 0.2
    with pytest.raises(ValueError, match="strictly between"):
        juries.TrustOrEscalate(alpha=0)


def test_costs_must_name_every_judge():
    parts = split_audit(made_audit(), 0)
    with pytest.raises(ValueError, match="costs must give every judge a cost"):
        juries.FrugalCascade().fit(parts.fit, parts.validation, costs={"judge0": 1.0})


def test_own_tables_hold_cell_means_and_the_label_mean_elsewhere():
    codes = np.array([[0, 1], [0, -1], [1, 1]], dtype=np.int32)
    tables = own_tables(codes, np.array([1.0, 0.0, 0.0]), 3)
    np.testing.assert_allclose(tables, [[0.5, 0.0, 1 / 3, 1 / 3], [1 / 3, 0.5, 1 / 3, 1 / 3]])


# Ten group splits of the real pools: an independent implementation's means and standard errors, given with the method's
# specification (its last section); ours must lie within two standard errors of the role policy's there.
REAL = {"jbb": (0.094, 0.093), "llmbar": (0.198, 0.214), "judgebench": (0.139, 0.241)}


def real_audit(name: str) -> Audit:
    table = {"jbb": "jbb_judges", "llmbar": "llmbar", "judgebench": "judgebench_gpt"}[name]
    path = TIDY / f"{table}.labels.csv.gz"
    if not path.exists():
        pytest.skip(f"real judge outputs are not here: {path}")
    labels, verdicts = (pd.read_csv(path.with_name(f"{table}.{part}.csv.gz")) for part in ("labels", "verdicts"))
    judges = sorted(verdicts["judge"].unique())
    if name == "llmbar":
        judges = [judge for judge in judges if judge.endswith("/Vanilla") and "GPT-4" not in judge]
    return audit_from_tables(labels, verdicts, judges).complete()[0]


@pytest.mark.parametrize("name", REAL)
def test_single_and_flat_risks_of_real_pools_are_the_published_ones(name):
    audit = real_audit(name)
    for policy, expected in zip(("single_best", "flat_all"), REAL[name], strict=True):
        risks = []
        for seed in range(10):
            fit, parts = fitted(juries.standard_policies()[policy], audit, seed)
            risks.append(np.mean((fit.predict(parts.test.Z)[0] - parts.test.y) ** 2))
        error = np.std(risks, ddof=1) / np.sqrt(10)
        assert abs(np.mean(risks) - expected) <= 2 * np.hypot(error, error) + 0.0005


def test_policies_are_listed_once_and_under_their_names():
    listed = {*juries.bench.NOT_ROLE, *juries.bench.FULL_CALL}
    assert listed < set(POLICIES) and len(POLICIES) == 16
    assert not any(a is b for a, b in itertools.combinations(POLICIES.values(), 2))

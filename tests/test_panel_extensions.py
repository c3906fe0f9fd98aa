"""Extensions of the panel method: other calibrators, cross-fitting, cautious stopping, found slices, stable plans."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from baer_utils.calibrators import (
    Audit,
    LogisticCalibrator,
    PatternCalibrator,
    VoteCalibrator,
    split_audit,
)
from baer_utils.panels import (
    GLOBAL,
    CallPolicy,
    DiscoveringPolicy,
    RolePolicy,
    Search,
    StablePolicy,
    build_policy,
    discover_slices,
    evaluate,
    left_out_loss,
)
from tests.test_calibrators import small_audit
from tests.test_panels import BROAD_FIRST, independent_judges, with_copies
from tests.test_roles import specialist_audit, table_risk

# ---------------------------------------------------------------- calibrators


@settings(max_examples=8)
@given(st.integers(0, 500), st.booleans())
def test_a_saturated_logistic_model_without_penalty_is_the_pattern_table(seed, continuous):
    audit = small_audit(80, 2, seed)
    y = np.random.default_rng(seed).random(80) if continuous else audit.y
    table = PatternCalibrator((0, 1)).fit(audit.Z, y).predict(audit.Z)
    model = LogisticCalibrator((0, 1), penalty=1e-7, pairs=True).fit(audit.Z, y)
    np.testing.assert_allclose(model.predict(audit.Z), table, atol=2e-3)


def test_a_logistic_model_speaks_about_patterns_it_never_saw_and_not_about_unknown_symbols():
    Z = np.array([["x", "x"], ["x", "y"], ["y", "x"]] * 20, dtype=object)
    y = (Z[:, 0] == "x").astype(float)
    model = LogisticCalibrator((0, 1)).fit(Z, y)
    new = model.predict(np.array([["y", "y"], ["z", "x"], [None, "x"]], dtype=object))
    assert new[0] < 0.3 and (new[1:] == y.mean()).all()
    assert model.fallback_rate_ == pytest.approx(2 / 3)


@settings(max_examples=15)
@given(st.integers(0, 500))
def test_the_vote_curve_rises_and_keeps_the_label_mean(seed):
    audit = small_audit(90, 4, seed)
    probability = VoteCalibrator((0, 1, 3)).fit(audit.Z, audit.y).predict(audit.Z)
    votes = audit.Z[:, [0, 1, 3]].astype(float).mean(axis=1)
    order = np.argsort(votes)
    assert (np.diff(probability[order]) >= -1e-12).all()
    assert probability.mean() == pytest.approx(audit.y.mean())


def test_votes_are_read_from_symbols_and_other_texts_are_refused():
    Z = np.array([["a", 5], ["b", 1], ["split", 3], ["a", 1]], dtype=object)
    model = VoteCalibrator((0, 1)).fit(Z, [1, 0, 0.5, 0.5])
    assert [votes.tolist() for votes in model.votes_] == [[1, 0, 0.5], [0, 0.5, 1]]
    with pytest.raises(ValueError, match="votes must be"):
        VoteCalibrator((0,)).fit(np.array([["good"], ["bad"]], dtype=object), [0, 1])
    with pytest.raises(ValueError, match="finite numbers"):
        VoteCalibrator((0,)).fit(np.array([[np.inf], [0.0]], dtype=object), [1, 0])


KINDS = [
    partial(PatternCalibrator, smoothing=2.0),
    partial(LogisticCalibrator, pairs=True),
    VoteCalibrator,
]


@pytest.mark.parametrize("kind", KINDS, ids=["smoothed", "logistic", "vote"])
def test_every_calibrator_can_build_a_plan_that_survives_json(kind):
    fit, validation, test = split_audit(specialist_audit(400), 0)
    plan = build_policy(fit, validation, search=Search(calibrator=kind), seed_panel=["broad"])
    plan = plan.refit(fit.join(validation))
    again = CallPolicy.from_json(plan.to_json())
    assert (again.predict(test.Z, test.slices)[0] == plan.predict(test.Z, test.slices)[0]).all()
    assert clone(plan.tables[GLOBAL]).get_params() == plan.tables[GLOBAL].get_params()
    assert plan.predict(test.Z, test.slices)[0].std() > 0.2


def test_a_calibrator_of_ones_own_can_be_used_but_not_written():
    class Own(PatternCalibrator):
        """No other behaviour."""

    fit, validation, _ = split_audit(specialist_audit(200), 0)
    plan = build_policy(fit, validation, search=Search(calibrator=Own))
    assert plan.calls == build_policy(fit, validation).calls
    with pytest.raises(ValueError, match="Own cannot be"):
        plan.to_json()


@pytest.mark.parametrize("wrong", [{"folds": 1}, {"beam": 0}, {"calibrator": VoteCalibrator, "smoothing": 1.0}])
def test_manners_of_search_that_cannot_be_meant_are_refused(wrong):
    with pytest.raises(ValueError, match="came"):
        Search(**wrong)


def test_endless_smoothing_gives_no_gain_and_so_an_empty_plan():
    fit, validation, _ = split_audit(specialist_audit(400), 0)
    plan = build_policy(fit, validation, search=Search(smoothing=1e12))
    assert plan.global_panel == () and plan.routes == {}


# ---------------------------------------------------------------- search


@settings(max_examples=3)
@given(st.integers(0, 500))
def test_cross_fitted_gains_are_out_of_fold_over_fit_and_validation(seed):
    fit, validation, _ = split_audit(small_audit(120, 3, seed), 0)
    both = fit.join(validation)
    fold = np.unique(both.groups.astype(str), return_inverse=True)[1] % 4
    plan = build_policy(fit, validation, slices=(), tau_global=9.0, search=Search(folds=4))
    for step in plan.stopping_report.failed:
        gain = 0.0
        for k in range(4):
            parts = both.take(fold != k), both.take(fold == k)
            gain += (table_risk(*parts, []) - table_risk(*parts, [*step.judges])) * len(parts[1]) / len(both)
        assert step.gain == pytest.approx(gain, abs=1e-10)


def test_one_standard_error_is_taken_off_before_the_threshold():
    calls = {False: 0, True: 0}
    for seed in range(6):
        fit, validation, _ = split_audit(independent_judges(200, [0.8, 0.7, 0.6, 0.6, 0.55], seed), 0)
        for cautious in calls:
            plan = build_policy(fit, validation, search=Search(one_se=cautious))
            calls[cautious] += len(plan.calls)
    assert calls[True] < calls[False]
    step = plan.steps[0]
    empty, one = (
        (validation.y - PatternCalibrator(panel).fit(fit, fit.y).predict(validation)) ** 2
        for panel in ((), step.judges)
    )
    change = empty - one
    assert step.gain == pytest.approx(change.mean(), abs=1e-11)
    assert step.adjusted == pytest.approx(change.mean() - change.std(ddof=1) / np.sqrt(len(change)), abs=1e-11)


# ---------------------------------------------------------------- slices that are found


def signalled(audit: Audit, noise: bool = False) -> Audit:
    """The audit without slices, with a signal that tells the slice (or nothing) in place of the constant judge."""
    topic = np.where(audit.route_names == "hard", "legal", "other").astype(object)
    if noise:
        topic = np.random.default_rng(0).permutation(topic)
    return Audit(np.column_stack([audit.Z[:, :3], topic]), audit.y, (*audit.judges[:3], "topic"))


def test_a_region_where_the_panel_errs_is_found_routed_and_paid_for():
    fit, validation, test = split_audit(signalled(specialist_audit()), 0)
    policy = DiscoveringPolicy(["topic"], **BROAD_FIRST).fit(fit, validation)
    assert set(policy.slices_.rules.values()) == {"topic is legal", "topic is not legal"}
    assert list(policy.plan_.routes.values()) == [("special",)]
    probability, called = policy.predict(test.Z)
    assert called[:, test.judges.index("topic")].all()
    legal = test.Z[:, 3] == "legal"
    assert called[legal, 1].all() and not called[~legal, 1].any()
    without = RolePolicy(**BROAD_FIRST).fit(fit, validation).predict(test.Z)[0]
    assert ((test.y - probability) ** 2).mean() < ((test.y - without) ** 2).mean() - 0.02


def test_regions_made_of_noise_do_not_route():
    fit, validation, _ = split_audit(signalled(specialist_audit(), noise=True), 0)
    policy = DiscoveringPolicy(["topic"], seed_panel=("broad", "special")).fit(fit, validation)
    assert policy.plan_.routes == {}
    assert not policy.predict(validation.Z)[1][:, 3].any()


def test_rules_read_as_conditions_and_missing_features_have_no_slice():
    features = pd.DataFrame({"length": np.arange(100.0), "kind": ["x", "y"] * 50})
    loss = (features["length"] >= 50).astype(float) + 0.3 * (features["kind"] == "x")
    tree = discover_slices(features, loss)
    assert set(tree.rules.values()) == {
        "length <= 49.5 and kind is x", "length <= 49.5 and kind is not x",
        "length > 49.5 and kind is x", "length > 49.5 and kind is not x",
    }  # fmt: skip
    new = pd.DataFrame({"length": [70.0, np.nan], "kind": ["x", "x"]})
    assert tree.labels(new).tolist() == ["length > 49.5 and kind is x", None]
    assert set(discover_slices(features, np.ones(100)).labels(features)) == {None}
    with pytest.raises(ValueError, match="at least one column"):
        discover_slices(features[[]], loss)


@settings(max_examples=15)
@given(st.integers(0, 300))
def test_the_left_out_loss_is_what_leaving_each_item_out_gives(seed):
    audit = small_audit(25, 3, seed)
    expected = []
    for row in range(25):
        rest = np.arange(25) != row
        same = rest & (audit.Z[:, [0, 2]] == audit.Z[row, [0, 2]]).all(axis=1)
        expected.append((audit.y[row] - (audit.y[same].mean() if same.any() else audit.y.mean())) ** 2)
    np.testing.assert_allclose(left_out_loss(audit, ["j0", "j2"]), expected, atol=1e-12)


# ---------------------------------------------------------------- plans that recur


def test_a_stable_plan_keeps_what_most_halvings_ask_for():
    fit, validation, test = split_audit(specialist_audit(), 0)
    policy = StablePolicy(repeats=8, **BROAD_FIRST).fit(fit, validation, seed=1)
    assert policy.plan_.global_panel == ("broad",) and policy.plan_.routes == {"hard": ("special",)}
    assert policy.frequency_[GLOBAL, "broad"] == 8 and policy.frequency_["hard", "special"] >= 4
    role = RolePolicy(**BROAD_FIRST).fit(fit, validation)
    assert (policy.predict(test.Z, test.slices)[0] == role.predict(test.Z, test.slices)[0]).all()
    never = StablePolicy(repeats=4, tau_global=1.0, tau_slice=1.0).fit(fit, validation)
    assert never.plan_.calls == frozenset()
    with pytest.raises(ValueError, match="share"):
        StablePolicy(share=0)


@pytest.mark.parametrize("policy", [StablePolicy(repeats=4), RolePolicy(search=Search(folds=3, one_se=True, beam=2))])
def test_copies_change_nothing_for_the_extensions_either(policy):
    audit = specialist_audit(500)
    one = evaluate(audit, {"p": policy}, costs=None, seeds=range(2))
    other = evaluate(with_copies(audit, "broad"), {"p": policy}, costs=None, seeds=range(2))
    pd.testing.assert_frame_equal(one, other, check_exact=True)

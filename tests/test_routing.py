"""The router: a choice that a swap cannot touch, models compared on questions they never saw, a model kept as bytes."""

from __future__ import annotations

import itertools
import zipfile
from io import BytesIO

import numpy as np
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from baer_utils import routing
from baer_utils.evidence import run_array, summarize
from baer_utils.features import category_columns, reliability_features
from baer_utils.records import question_folds, swap_pairs, swap_runs
from baer_utils.routing import (
    MODELS,
    Reliability,
    best_available,
    confidence_switch,
    fit_reliability,
    fit_subset_lookup,
    out_of_fold_routes,
    pack_model,
    route,
    routed_score,
    unpack_model,
)
from baer_utils.routing.models import TREES, build_model, fit_model, predict_model
from tests.strategies import EXPERTS, banks, make_pairs, make_runs, same

FEW = settings(max_examples=15)
PROMISED_TREES = TREES


@pytest.fixture(autouse=True)
def small_models(monkeypatch):
    """Forests of 8 trees, 8 rounds of boosting: how many there are changes nothing that is tested here."""
    monkeypatch.setattr("baer_utils.routing.models.TREES", 8)
    monkeypatch.setattr("baer_utils.routing.models.ROUNDS", 8)


def bank_of(n: int, experts, seed: int = 0, **how):
    """(pairs, runs) of a made-up bank, sorted by pair_id."""
    pairs = make_pairs(n, seed).sort_values("pair_id").reset_index(drop=True)
    return pairs, make_runs(pairs, experts, seed, **how)


def represented(pairs, runs, experts):
    """Features, evidence and targets of a bank."""
    evidence = summarize(run_array(runs, experts, pairs["pair_id"]), experts)
    rho = reliability_features(evidence, pairs, category_columns(pairs, "table"))
    opinion = evidence.z != 0
    correct = np.where(opinion, (evidence.z * pairs["label"].to_numpy()[:, None] > 0) * 1.0, np.nan)
    return rho, evidence, correct


def specialists(n: int = 240, seed: int = 3, accuracy: float = 1.0):
    """Three experts, each right on its own subset and a coin elsewhere; the subset is one of the features."""
    rng = np.random.default_rng(seed)
    subset, y = rng.integers(0, 3, n), rng.choice([1.0, -1.0], n)
    coin = rng.choice([1.0, -1.0], (n, 3))
    right = (np.arange(3) == subset[:, None]) & (rng.random((n, 3)) < accuracy)
    z = np.where(right, y[:, None], coin) * rng.uniform(0.2, 2, (n, 3))
    identity = np.broadcast_to(np.eye(3), (n, 3, 3))
    place = np.broadcast_to(np.eye(3)[subset][:, None, :], (n, 3, 3))
    rho = np.concatenate([identity, place, np.abs(z)[:, :, None].round(9)], axis=2)
    return rho, z, y, subset, (z * y[:, None] > 0) * 1.0, [f"q{i}" for i in range(n)]


# ---------------------------------------------------------------- the swap


@settings(max_examples=25)
@given(banks(max_pairs=8), st.sampled_from(MODELS))
def test_a_swap_changes_no_choice_and_negates_every_routed_score_bit_for_bit(bank, name):
    pairs, runs, experts = bank
    rho, evidence, correct = represented(pairs, runs, experts)
    psi, turned, _ = represented(swap_pairs(pairs), swap_runs(runs), experts)
    reliability = Reliability(name, fit_model(name, rho, correct, seed=0))
    chosen = route(reliability, rho, evidence.z != 0)
    again = route(reliability, psi, turned.z != 0)
    assert same(psi, rho) and same(again, chosen)
    assert same(routed_score(turned.z, again), -routed_score(evidence.z, chosen))
    assert same(confidence_switch(turned.z), confidence_switch(evidence.z))


def test_swapping_the_training_pairs_fits_the_same_model_to_the_last_bit():
    pairs, runs = bank_of(90, EXPERTS[:3])
    rho, _, correct = represented(pairs, runs, EXPERTS[:3])
    psi, _, turned = represented(swap_pairs(pairs), swap_runs(runs), EXPERTS[:3])
    for name in MODELS:
        both = [fit_reliability(*x, pairs["group_id"], seed=1, models=(name,)) for x in ((rho, correct), (psi, turned))]
        assert pack_model(both[0].fitted) == pack_model(both[1].fitted)


@pytest.mark.parametrize("name", MODELS)
def test_with_the_model_fixed_the_order_of_the_pairs_changes_no_reliability(name):
    pairs, runs = bank_of(120, EXPERTS[:4], 2)
    rho, evidence, correct = represented(pairs, runs, EXPERTS[:4])
    reliability = Reliability(name, fit_model(name, rho, correct, seed=0))
    whole = reliability.predict(rho)
    order = np.random.default_rng(0).permutation(len(pairs))
    assert same(reliability.predict(rho[order]), whole[order])
    assert same(np.concatenate([reliability.predict(rho[i : i + 1]) for i in range(20)]), whole[:20])
    assert same(whole, whole.round(9))


# ---------------------------------------------------------------- the choice


@FEW
@given(arrays(float, (7, 4), elements=st.sampled_from([0.0, 0.2, 0.5, 0.5 + 1e-12, 0.9])), arrays(bool, (7, 4)))
def test_the_first_of_the_most_reliable_experts_with_an_opinion_speaks(reliability, available):
    chosen = best_available(reliability, available)
    for row, (k, values, has) in enumerate(zip(chosen, reliability, available, strict=True)):
        able = [j for j in range(4) if has[j]] or [0]
        assert k == max(able, key=lambda j: (values[j], -j)), row


def test_an_expert_without_an_opinion_is_chosen_only_where_nobody_has_one_and_the_score_is_then_zero():
    z = np.array([[0.0, 0.0, -0.1], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    chosen = best_available([[0.9, 0.8, 0.1], [0.1, 0.8, 0.9], [0.9, 0.0, 0.0]], z != 0)
    assert chosen.tolist() == [2, 0, 2]
    assert routed_score(z, chosen).tolist() == [-0.1, 0.0, 1.0]


@pytest.mark.parametrize("name", MODELS)
def test_planted_specialists_make_the_router_beat_every_expert_and_the_simple_rules(name):
    rho, z, y, subset, correct, groups = specialists()
    found = out_of_fold_routes(rho, correct, groups, seed=0, models=(name,))
    own = np.mean(found.chosen == subset)
    routed = np.mean(routed_score(z, found.chosen) * y > 0)
    best = (z * y[:, None] > 0).mean(axis=0).max()
    confident = np.mean(routed_score(z, confidence_switch(z)) * y > 0)
    if name == "logistic":  # identity and subset enter it as a sum, so it cannot see who is at home where
        assert own < 0.5
    else:
        least, lead = (0.45, 0.02) if name == "gradient_boosting" else (0.95, 0.2)  # a few rounds learn little
        assert own > least and routed > max(best, confident) + lead


def test_a_lookup_by_subset_finds_planted_specialists_too_and_falls_back_where_it_never_looked():
    _, z, y, subset, correct, _ = specialists(accuracy=0.8)
    names = np.array(["u", "v", "w"])[subset]
    table = fit_subset_lookup(correct[:160], names[:160])
    chosen = table.choose(names[160:], z[160:] != 0)
    assert np.mean(chosen == subset[160:]) > 0.95
    assert same(table.choose(["never"], [[True] * 3]), [np.argmax(table.overall)])
    assert same(table.choose(["u"], [[False, True, True]]), best_available([table.by_subset["u"]], [[0, 1, 1]]))
    coin = fit_subset_lookup([[1.0, np.nan], [0.0, np.nan]], ["u", "u"])
    assert coin.by_subset["u"].tolist() == [0.5, 0.5]


# ---------------------------------------------------------------- which model


def test_the_model_is_the_one_that_routes_most_unseen_questions_right_redone_by_hand():
    rho, _, _, _, correct, groups = specialists(150, accuracy=0.7)
    groups = [f"q{i // 2}" for i in range(150)]
    found = fit_reliability(rho, correct, groups, seed=4)
    fold, right = question_folds(groups, seed=4), dict.fromkeys(MODELS, 0)
    for name, held in itertools.product(MODELS, range(5)):
        fitted = fit_model(name, rho[fold != held], correct[fold != held], seed=4)
        rows = np.flatnonzero(fold == held)
        chosen = np.argmax(predict_model(fitted, rho[rows]), axis=1)
        right[name] += int(correct[rows, chosen].sum())
    assert found.accuracy_by_model == {name: n / 150 for name, n in right.items()}
    assert found.name == max(MODELS, key=lambda name: (right[name], -MODELS.index(name)))
    assert found.pairs_compared == 150
    assert same(found.predict(rho), predict_model(fit_model(found.name, rho, correct, seed=4), rho))
    inside = out_of_fold_routes(rho, correct, groups, seed=4)
    assert (inside.model, inside.accuracy_by_model) == (found.name, found.accuracy_by_model)
    for held, name in enumerate(inside.model_by_fold):
        assert name == chosen_without(held, rho, correct, fold, seed=4)
        fitted = fit_model(name, rho[fold != held], correct[fold != held], seed=4)
        assert same(inside.reliability[fold == held], predict_model(fitted, rho[fold == held]))


def chosen_without(held: int, rho, correct, fold, *, seed: int) -> str:
    """The model that routes most pairs right on the other folds, each held out in turn and one fold never seen."""
    right = dict.fromkeys(MODELS, 0)
    for name, inner in itertools.product(MODELS, set(range(5)) - {held}):
        train, rows = (fold != held) & (fold != inner), np.flatnonzero(fold == inner)
        fitted = fit_model(name, rho[train], correct[train], seed=seed)
        right[name] += int(correct[rows, np.argmax(predict_model(fitted, rho[rows]), axis=1)].sum())
    return max(MODELS, key=lambda name: (right[name], -MODELS.index(name)))


def test_models_that_are_equally_right_give_way_to_the_simplest():
    rho = np.zeros((40, 1, 2))  # one expert: whatever the model says, it speaks
    correct = np.tile([[1.0], [0.0]], (20, 1))
    groups = [f"q{i}" for i in range(40)]
    assert fit_reliability(rho, correct, groups, seed=0).name == "logistic"
    assert fit_reliability(rho, correct, groups, seed=0, models=MODELS[::-1]).name == "gradient_boosting"


def test_what_a_held_out_question_teaches_never_reaches_its_own_route():
    rho, _, _, _, correct, groups = specialists(120, accuracy=0.7)
    fold = question_folds(groups, seed=0)
    before = out_of_fold_routes(rho, correct, groups, seed=0, models=("logistic", "extra_trees"))
    turned = correct.copy()
    turned[fold == 2] = 1 - turned[fold == 2]
    after = out_of_fold_routes(rho, turned, groups, seed=0, models=("logistic", "extra_trees"))
    assert same(before.reliability[fold == 2], after.reliability[fold == 2])
    assert before.model_by_fold[2] == after.model_by_fold[2]
    assert not same(before.reliability[fold != 2], after.reliability[fold != 2])


def test_above_five_thousand_pairs_models_are_compared_on_whole_questions_and_trees_draw_five_thousand(monkeypatch):
    rho, _, _, _, correct, _ = specialists(200, accuracy=0.7)
    groups = [f"q{i // 2}" for i in range(200)]
    monkeypatch.setattr("baer_utils.routing.comparing.MOST_COMPARED", 61)
    found = fit_reliability(rho, correct, groups, seed=0)
    assert found.pairs_compared == 60  # 30 questions of two pairs; the next would be too many
    assert same(found.predict(rho), predict_model(fit_model(found.name, rho, correct, seed=0), rho))
    inside = out_of_fold_routes(rho, correct, groups, seed=0)
    assert (inside.model, inside.accuracy_by_model) == (found.name, found.accuracy_by_model)
    assert build_model("random_forest", 20_001, seed=0).max_samples == 5_000
    assert build_model("extra_trees", 20_000, seed=0).max_samples is None
    for name in MODELS[1:3]:
        forest = build_model(name, 9, seed=7)
        assert (forest.max_depth, forest.min_samples_leaf, forest.random_state, forest.n_jobs) == (5, 8, 7, 1)
        assert forest.bootstrap


def test_the_promised_forests_have_two_hundred_trees():
    assert PROMISED_TREES == 200


@pytest.mark.parametrize("value", [1.0, 0.0, np.nan])
def test_where_there_is_nothing_to_tell_apart_the_reliability_is_one_number(value):
    rho, correct = np.random.default_rng(0).random((12, 2, 3)), np.full((12, 2), value)
    for name in MODELS:
        found = fit_reliability(rho, correct, ["q"] * 12, seed=0, models=(name,))
        assert same(found.predict(rho), np.full((12, 2), 0.5 if np.isnan(value) else value))
        assert unpack_model(pack_model(found.fitted)) == found.fitted
    assert fit_reliability(rho, correct, [f"q{i}" for i in range(12)], seed=0).name == "logistic"


def test_one_question_teaches_nothing_about_itself():
    rho, _, _, _, correct, _ = specialists(6)
    found = out_of_fold_routes(rho, correct, ["q"] * 6, seed=0)
    assert same(found.reliability, np.full((6, 3), 0.5)) and (found.chosen == 0).all()
    two = out_of_fold_routes(rho, correct, ["q", "r"] * 3, seed=0)
    assert two.model_by_fold == ("logistic", "logistic")


@pytest.mark.parametrize("spoil", ["shape", "groups", "value"])
def test_arrays_that_do_not_fit_together_are_refused(spoil):
    rho, correct, groups = np.zeros((4, 2, 3)), np.zeros((4, 2)), list("qrst")
    if spoil == "shape":
        correct = np.zeros((4, 3))
    elif spoil == "groups":
        groups = groups[:3]
    else:
        correct[2, 1] = 2.0
    with pytest.raises(ValueError, match="row 2, expert 1 is 2.0" if spoil == "value" else "the shapes are"):
        fit_reliability(rho, correct, groups, seed=0)
    with pytest.raises(ValueError, match="must be one of logistic"):
        build_model("oracle", 9, seed=0)


def test_the_logistic_model_is_scikit_learns_on_standardised_rows():
    rho, _, _, _, correct, groups = specialists(60, accuracy=0.6)
    found = fit_reliability(rho, correct, groups, seed=0, models=("logistic",))
    rows, target = rho.reshape(-1, rho.shape[2]), correct.ravel()
    expected = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(rows, target)
    assert found.predict(rho).ravel() == pytest.approx(expected.predict_proba(rows)[:, 1], abs=1e-9)


# ---------------------------------------------------------------- kept as bytes


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_from_its_bytes_to_the_last_bit_and_the_same_model_gives_the_same_bytes(name):
    rho, _, _, _, correct, _ = specialists(120, accuracy=0.7)
    fitted, again = (fit_model(name, rho, correct, seed=0) for _ in range(2))
    packed = pack_model(fitted)
    assert pack_model(again) == packed != pack_model(fit_model(name, rho, 1 - correct, seed=0))
    assert same(predict_model(unpack_model(packed), rho), predict_model(fitted, rho))
    assert zipfile.ZipFile(BytesIO(packed)).testzip() is None


def test_an_archive_with_a_type_that_no_router_is_made_of_is_refused_and_nothing_of_it_is_built():
    class Trap:
        def __setstate__(self, state):
            raise AssertionError("built")

    Trap.__module__, Trap.__qualname__ = __name__, "Trap"
    with pytest.raises(ValueError, match="made of scikit-learn's own types.*Trap"):
        unpack_model(skops.io.dumps(Trap()))


def test_every_public_name_of_the_package_is_one():
    assert all(hasattr(routing, name) for name in routing.__all__)

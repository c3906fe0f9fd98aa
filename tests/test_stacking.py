import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from baer_utils.evidence import run_array, summarize
from baer_utils.features import category_columns, stack_features
from baer_utils.records import swap_pairs, swap_runs
from baer_utils.scores import antisymmetry_gap
from baer_utils.stacking import (
    GRID,
    Stack,
    choose_lambda,
    feature_scale,
    fit_nonnegative_stack,
    fit_stack,
    lambda_table,
)
from tests.strategies import EXPERTS, banks, make_pairs, make_runs, same

FITS = [fit_stack, fit_nonnegative_stack]
CATEGORY_NAMES = ["algebra", "arithmetic", "chat", "math", "in no pair"]


def phi_of(pairs, runs, experts):
    evidence = summarize(run_array(runs, experts, pairs["pair_id"]), experts)
    return stack_features(evidence.z, evidence.z_shrunk, category_columns(pairs, "table", categories=CATEGORY_NAMES))


def training(n=150, experts=EXPERTS[:3], seed=0):
    """Features and labels of a small bank with an absent category, collinear columns and real signal."""
    pairs = make_pairs(n, seed)
    return phi_of(pairs, make_runs(pairs, experts, seed, skill=0.4), experts), pairs["label"].to_numpy()


def random_stack(width, seed):
    rng = np.random.default_rng(seed)
    return Stack(rng.normal(size=width) * 10.0 ** rng.integers(-8, 3, width), rng.uniform(0.1, 10, width), 1.0)


def objective(w, phi, y, lam):
    """Eq. 6 as printed, over the sign-augmented set, in plain numpy."""
    v, t = np.vstack([phi, -phi]), np.concatenate([y, -y])
    return np.mean(np.log1p(np.exp(-t * (v @ w)))) + lam / 2 * np.sum(w**2)


def newton(phi, y, lam):
    """An independent solver: damped Newton on the plain (not augmented) objective, with explicit derivatives."""
    w = np.zeros(phi.shape[1])
    for _ in range(200):
        wrong = 1 / (1 + np.exp(y * (phi @ w)))
        gradient = lam * w - phi.T @ (y * wrong) / len(y)
        hessian = phi.T @ np.diag(wrong * (1 - wrong)) @ phi / len(y) + lam * np.eye(len(w))
        step = np.linalg.solve(hessian, gradient)
        w = w - step / (1 + np.sqrt(gradient @ step))
        if np.abs(gradient).max() < 1e-15:
            break
    return w


# ---------------------------------------------------------------- invariants of the score


@settings(max_examples=60)
@given(banks(max_experts=6), st.integers(0, 10**6))
def test_from_run_table_to_score_a_swap_negates_every_bit(bank, seed):
    pairs, runs, experts = bank
    stack = random_stack(2 * len(experts) + len(CATEGORY_NAMES), seed)
    here = stack.score(phi_of(pairs, runs, experts))
    there = stack.score(phi_of(swap_pairs(pairs), swap_runs(runs), experts))
    assert antisymmetry_gap(here, there) == 0.0
    identical = (pairs["response_a"] == pairs["response_b"]).to_numpy()
    assert same(here[identical], np.zeros(identical.sum()))


@settings(max_examples=40)
@given(banks(), st.randoms(use_true_random=False), st.integers(0, 10**6))
def test_with_the_head_fixed_permuting_pairs_and_runs_leaves_scores_identical(bank, random, seed):
    pairs, runs, experts = bank
    stack = random_stack(2 * len(experts) + len(CATEGORY_NAMES), seed)
    rows = random.sample(range(len(pairs)), len(pairs))
    shuffled_runs = runs.sample(frac=1, random_state=seed % 1000)
    there = stack.score(phi_of(pairs.iloc[rows], shuffled_runs, experts))
    assert same(there, stack.score(phi_of(pairs, runs, experts))[rows])


@pytest.mark.parametrize("width", [1, 2, 7, 8, 9, 20, 28, 36, 44, 129])
def test_the_bits_of_a_score_do_not_depend_on_the_rows_beside_it(width):
    phi = np.random.default_rng(width).normal(size=(513, width)) * 10
    stack = random_stack(width, width)
    whole = stack.score(phi)
    assert same(stack.score(np.asfortranarray(phi)), whole)
    assert same(np.concatenate([stack.score(phi[i : i + 1]) for i in range(len(phi))]), whole)
    for size in (2, 3, 64, 500):
        assert same(stack.score(phi[-size:]), whole[-size:])
    assert same(stack.score(phi[::-2]), whole[::-2])
    assert same(stack.score(-phi), -whole)


# ---------------------------------------------------------------- invariants of the fit


@pytest.mark.parametrize("fit, lam", [*itertools.product(FITS, [0.001, 1])])
def test_swapping_training_pairs_leaves_the_weights_identical(fit, lam):
    phi, y = training()
    flip = np.random.default_rng(1).choice([1.0, -1.0], len(y))
    here, there = fit(phi, y, lam), fit(flip[:, None] * phi, flip * y, lam)
    assert same(here.weights, there.weights) and same(here.scale, there.scale)


@pytest.mark.parametrize("fit, lam", [*itertools.product(FITS, [0.001, 1])])
def test_a_refit_on_permuted_rows_agrees(fit, lam):
    phi, y = training()
    order = np.random.default_rng(2).permutation(len(y))
    here, there = fit(phi, y, lam), fit(phi[order], y[order], lam)
    assert same(here.weights, there.weights)  # 1e-9 is promised; sorting the rows before the fit gives every bit
    assert same(here.score(phi), there.score(phi))


@pytest.mark.parametrize("fit", FITS)
def test_permuting_experts_permutes_weights_and_keeps_scores(fit):
    pairs = make_pairs(150)
    experts = EXPERTS[:4]
    runs, y, order = make_runs(pairs, experts, skill=0.4), pairs["label"].to_numpy(), [2, 0, 3, 1]
    phi, permuted = phi_of(pairs, runs, experts), phi_of(pairs, runs, [experts[k] for k in order])
    here, there = fit(phi, y, 0.01), fit(permuted, y, 0.01)
    columns = [*order, *(4 + k for k in order), *range(8, phi.shape[1])]
    assert np.allclose(there.weights, here.weights[columns], rtol=0, atol=1e-9)
    assert np.allclose(there.score(permuted), here.score(phi), rtol=0, atol=1e-9)


# ---------------------------------------------------------------- agreement with other solvers


@pytest.mark.parametrize("lam", GRID)
@pytest.mark.parametrize("n", [12, 150])
def test_the_fit_agrees_with_an_independent_newton_solver(lam, n):
    phi, y = training(n)
    stack = fit_stack(phi, y, lam)
    expected = newton(phi / stack.scale, y, lam)
    assert np.allclose(stack.weights, expected, rtol=0, atol=1e-8)
    assert stack.lam == lam


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from(GRID))
def test_adding_every_negative_leaves_the_objective_as_it_is(seed, lam):
    phi, y = training(20, seed=seed % 50)
    phi, w = phi / feature_scale(phi), np.random.default_rng(seed).normal(size=phi.shape[1])
    plain = np.mean(np.log1p(np.exp(-y * (phi @ w)))) + lam / 2 * np.sum(w**2)
    assert np.isclose(objective(w, phi, y, lam), plain, rtol=1e-13)


@pytest.mark.parametrize("fit, lam", [*itertools.product(FITS, GRID)])
def test_no_nearby_allowed_weights_do_better(fit, lam):
    phi, y = training(60)
    stack = fit(phi, y, lam)
    scaled, best = phi / stack.scale, objective(stack.weights, phi / stack.scale, y, lam)
    rng = np.random.default_rng(3)
    for size in (1e-5, 1e-3, 0.1):
        for _ in range(30):
            other = stack.weights + size * rng.normal(size=len(stack.weights))
            other = np.maximum(other, 0) if fit is fit_nonnegative_stack else other
            assert objective(other, scaled, y, lam) >= best - 1e-15


@pytest.mark.parametrize("lam", GRID)
def test_the_sign_constrained_stack_satisfies_its_optimality_conditions_and_agrees_with_l_bfgs_b(lam):
    phi, y = training(120)
    phi[:, 1] = -phi[:, 1]  # an expert worth inverting
    stack = fit_nonnegative_stack(phi, y, lam)
    scaled, w = phi / stack.scale, stack.weights
    gradient = lam * w - scaled.T @ (y / (1 + np.exp(y * (scaled @ w)))) / len(y)
    assert (w >= 0).all() and w[1] == 0 and (w > 0).any()
    assert np.abs(gradient[w > 0]).max() < 1e-11 and gradient.min() > -1e-11
    found = minimize(objective, np.zeros(len(w)), (scaled, y, lam), "L-BFGS-B", bounds=[(0, None)] * len(w), tol=1e-14)
    assert objective(w, scaled, y, lam) <= found.fun + 1e-12 and np.allclose(w, found.x, atol=2e-3)
    assert (fit_stack(phi, y, lam).weights < 0).any()


def test_both_stacks_are_one_where_no_expert_is_worth_inverting():
    z = np.random.default_rng(0).uniform(0.5, 2, (80, 3))
    y = np.random.default_rng(1).choice([1.0, -1.0], 80)
    phi = y[:, None] * z
    assert np.allclose(fit_stack(phi, y, 0.1).weights, fit_nonnegative_stack(phi, y, 0.1).weights, atol=1e-10)


# ---------------------------------------------------------------- scale, lambda, refusals


def test_the_scale_is_the_training_rms_and_one_for_an_absent_category():
    assert feature_scale([[3.0, 0.0], [4.0, 0.0]]).tolist() == [np.sqrt(12.5), 1.0]
    phi, y = training()
    for fit in FITS:
        stack = fit(phi, y, 0.01)
        assert np.allclose(stack.scale, feature_scale(phi), rtol=1e-14)
        assert stack.weights[-1] == 0 and stack.scale[-1] == 1  # the category that is in no pair


@pytest.mark.parametrize("factor", [1e-3, 0.3, 1e3])
def test_rescaling_a_feature_changes_no_score(factor):
    phi, y = training(40)
    scaled = phi * np.r_[factor, np.ones(phi.shape[1] - 1)]
    assert np.allclose(fit_stack(phi, y, 0.1).score(phi), fit_stack(scaled, y, 0.1).score(scaled), atol=1e-8)


def test_one_class_of_labels_is_enough():
    phi, _ = training(30)
    assert np.isfinite(fit_stack(phi, np.ones(30), 0.1).weights).all()


def test_lambda_is_chosen_by_accuracy_then_log_loss_then_the_larger():
    phi, y = training(80)
    tried = lambda_table(phi[:40], y[:40], phi[40:], y[40:])
    assert [row["lam"] for row in tried] == list(GRID)
    for row in tried:
        margin = y[40:] * fit_stack(phi[:40], y[:40], row["lam"]).score(phi[40:])
        assert row["accuracy"] == np.mean(margin > 0)
        assert np.isclose(row["log_loss"], np.mean(np.log1p(np.exp(-margin))), rtol=1e-12)
    best = sorted(tried, key=lambda row: (-row["accuracy"], row["log_loss"], -row["lam"]))[0]
    assert choose_lambda(phi[:40], y[:40], phi[40:], y[40:]) == best["lam"]


def test_equal_accuracy_falls_to_log_loss_and_equal_log_loss_to_the_larger_lambda():
    phi, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    assert choose_lambda(phi, y, phi, y) == 0.001  # all right, the surest has the smallest loss
    assert choose_lambda(phi, y, phi, -y) == 10  # all wrong, the least sure has the smallest loss
    assert choose_lambda(phi, y, np.zeros((3, 1)), np.array([1.0, -1.0, 1.0])) == 10  # no evidence: all are equal


def test_accuracy_comes_before_log_loss():
    """The large penalty is sure and wrong once, the small one right everywhere but barely: accuracy decides."""
    tables = {
        10: np.array([9.0, 9.0, 9.0, -0.01]),
        0.1: np.array([0.01, 0.01, 0.01, 0.01]),
    }

    class Fixed:
        def __init__(self, lam):
            self.lam = lam

        def score(self, phi):
            return tables[self.lam]

    chosen = choose_lambda(
        np.ones((4, 1)), np.ones(4), np.ones((4, 1)), np.ones(4), (10, 0.1), fit=lambda p, y, lam: Fixed(lam)
    )
    assert chosen == 0.1


def test_swapping_calibration_pairs_cannot_change_the_choice_even_where_scores_are_zero():
    phi, y = training(60)
    phi[30:40] = 0
    flip = np.where(np.arange(30) % 2, 1.0, -1.0)
    here = lambda_table(phi[:30], y[:30], phi[30:], y[30:])
    assert lambda_table(phi[:30], y[:30], flip[:, None] * phi[30:], flip * y[30:]) == here


@pytest.mark.parametrize("fit", FITS)
def test_a_fit_refuses_what_it_cannot_use(fit):
    phi, y = training(10)
    with pytest.raises(ValueError, match=r"row 3 is nan.*[Dd]rop sealed"):
        fit(phi, np.where(np.arange(10) == 3, np.nan, y), 1)
    with pytest.raises(ValueError, match=r"10 rows of phi.*shape \(9,\)"):
        fit(phi, y[:9], 1)
    with pytest.raises(ValueError, match="at least one"):
        fit(phi[:0], y[:0], 1)
    with pytest.raises(ValueError, match="2 values that are not finite"):
        fit(np.where(np.arange(phi.shape[1]) < 1, np.nan, phi)[:2], y[:2], 1)
    with pytest.raises(ValueError, match="lam must be positive; it is 0"):
        fit(phi, y, 0)
    with pytest.raises(ValueError, match=f"{phi.shape[1]} columns of the fit; it has 1"):
        fit(phi, y, 1).score(phi[:, :1])
    with pytest.raises(ValueError, match="grid must hold"):
        choose_lambda(phi, y, phi, y, ())

"""Which model of reliability to trust, and what each pair's route is by a model that never saw its question.

Questions are dealt to folds by hash (`records.question_folds`), all experts of a pair stay in one fold, and a model is
judged by what routing with it gets right. Inside a fold that is held out, the model is chosen on the other folds alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from baer_utils.records import question_folds, questions_in_order
from baer_utils.routing.choosing import Reliability, best_available
from baer_utils.routing.models import MODELS, MOST_COMPARED, Fitted, fit_model, predict_model


@dataclass(frozen=True)
class OutOfFold:
    """Routes of pairs by models that never saw their question.

    Attributes
    ----------
    reliability : (N, K), of every expert on every pair. chosen : (N,) column index of the expert that speaks.
    model_by_fold : name of the model chosen in each fold.
    model, accuracy_by_model, pairs_compared : what `fit_reliability` on all pairs would choose, and from which figures.
    """

    reliability: NDArray[np.float64]
    chosen: NDArray[np.int64]
    model_by_fold: tuple[str, ...]
    model: str
    accuracy_by_model: dict[str, float]
    pairs_compared: int


def fit_reliability(
    rho: ArrayLike, correct: ArrayLike, groups: Sequence[str], *, seed: int, models: Sequence[str] = MODELS
) -> Reliability:
    """Model of the probability that an expert is right, the best of those compared (BAER Eq. 7a).

    Parameters
    ----------
    rho : array (N, K, R) of candidate-invariant features, rows sorted by pair_id (forests draw rows by their place).
    correct : array (N, K): 1 where z y > 0, 0 where z y < 0, NaN where the expert has no opinion (z = 0, or missing);
        such rows teach nothing.
    groups : (N,) question of each pair.
    seed : deals the folds, and is every model's own.
    models : names to compare, the simplest first; a single one is fitted without a comparison.

    Returns
    -------
    Reliability
        fitted on all rows, by the model with the highest routed accuracy out of fold, equal ones by simplicity. There
        are min(5, questions) folds of whole questions. Pairs on which nobody has an opinion do not count. With more
        than 5,000 pairs the models are compared on at most 5,000, whole questions in hash order, and above 20,000 rows
        each tree of a forest draws 5,000. The paper compares logistic regression with tree ensembles and does not say
        which, nor how ties are broken.

    Raises
    ------
    ValueError
        for arrays that do not describe the same pairs and experts, or correct other than 1, 0 and NaN.
    """
    rho, correct = _checked(rho, correct, groups)
    if len(models) == 1:
        return Reliability(models[0], fit_model(models[0], rho, correct, seed=seed))
    fold, compared = question_folds(groups, seed=seed), _compared(groups, seed)
    right = np.zeros(len(models))
    for held in range(fold.max(initial=-1) + 1):
        for m, name in enumerate(models):
            fitted = fit_model(name, *_rows(rho, correct, compared & (fold != held)), seed=seed)
            right[m] += _right(fitted, *_rows(rho, correct, compared & (fold == held)))
    name, accuracy, count = _verdict(right, models, correct[compared])
    return Reliability(name, fit_model(name, rho, correct, seed=seed), accuracy, count)


def out_of_fold_routes(
    rho: ArrayLike, correct: ArrayLike, groups: Sequence[str], *, seed: int, models: Sequence[str] = MODELS
) -> OutOfFold:
    """Route every pair by a reliability model that was chosen and fitted without its question.

    Arguments, rules and errors are those of `fit_reliability`. In a fold the models are compared on the other folds,
    each of them held out in turn: a fit without two folds serves both of them, which halves the work and leaks nothing.
    A fold outside which there is no row has learnt nothing, and the first expert with an opinion speaks.
    """
    rho, correct = _checked(rho, correct, groups)
    fold, compared = question_folds(groups, seed=seed), _compared(groups, seed)
    n_folds = fold.max(initial=-1) + 1
    counts, fitted_without = _count(rho, correct, fold, compared, models, seed)
    reliability, names = np.zeros(correct.shape), []
    for held in range(n_folds):
        others = [other for other in range(n_folds) if other != held]
        name, _, _ = _verdict(counts[:, held, others].sum(axis=1), models, correct[compared & (fold != held)])
        fitted = fitted_without.get((name, held))
        if fitted is None:
            fitted = fit_model(name, *_rows(rho, correct, fold != held), seed=seed)
        reliability[fold == held] = predict_model(fitted, rho[fold == held])
        names.append(name)
    model, accuracy, count = _verdict(np.trace(counts, axis1=1, axis2=2), models, correct[compared])
    chosen = best_available(reliability, ~np.isnan(correct))
    return OutOfFold(reliability, chosen, tuple(names), model, accuracy if len(models) > 1 else {}, count)


def _count(
    rho: NDArray, correct: NDArray, fold: NDArray, compared: NDArray, models: Sequence[str], seed: int
) -> tuple[NDArray[np.float64], dict[tuple[str, int], Fitted]]:
    """counts[m, i, j]: pairs of fold j that model m routes right, fitted without the folds i and j; and the models
    that were fitted on every row outside a single fold. A single model needs no count."""
    n_folds = fold.max(initial=-1) + 1
    counts, kept = np.zeros((len(models), n_folds, n_folds)), {}
    for i in range(n_folds if len(models) > 1 else 0):
        for j in range(i, n_folds):
            train = _rows(rho, correct, compared & (fold != i) & (fold != j))
            for m, name in enumerate(models):
                fitted = fit_model(name, *train, seed=seed)
                for out, held in {(i, j), (j, i)}:
                    counts[m, out, held] = _right(fitted, *_rows(rho, correct, compared & (fold == held)))
                if i == j and compared.all():
                    kept[name, i] = fitted
    return counts, kept


def _rows(rho: NDArray, correct: NDArray, mask: NDArray) -> tuple[NDArray, NDArray]:
    return rho[mask], correct[mask]


def _right(fitted: Fitted, rho: NDArray, correct: NDArray) -> int:
    """Pairs that routing with a model gets right; one without any opinion counts for no model."""
    chosen = best_available(predict_model(fitted, rho), ~np.isnan(correct))
    return int(np.nansum(correct[np.arange(len(correct)), chosen]))


def _verdict(right: NDArray, models: Sequence[str], correct: NDArray) -> tuple[str, dict[str, float], int]:
    """The first model with the most pairs right, every model's accuracy, and how many pairs had an opinion."""
    count = int((~np.isnan(correct)).any(axis=1).sum())
    accuracy = {name: float(n / count) if count else float("nan") for name, n in zip(models, right, strict=True)}
    return models[int(np.argmax(right))], accuracy, count


def _compared(groups: Sequence[str], seed: int) -> NDArray[np.bool_]:
    """The pairs on which models are compared: all, or whole questions in hash order while they fit into 5,000."""
    if len(groups) <= MOST_COMPARED:
        return np.ones(len(groups), dtype=bool)
    groups = np.asarray(groups, dtype=object)
    ordered = questions_in_order(groups, seed=seed)
    names, sizes = np.unique(groups, return_counts=True)
    size_of = dict(zip(names, sizes, strict=True))
    fits = np.cumsum([size_of[name] for name in ordered]) <= MOST_COMPARED
    return np.isin(groups, [name for name, fit in zip(ordered, fits, strict=True) if fit])


def _checked(rho: ArrayLike, correct: ArrayLike, groups: Sequence[str]) -> tuple[NDArray, NDArray]:
    rho, correct = np.ascontiguousarray(rho, dtype=float), np.asarray(correct, dtype=float)
    if rho.ndim != 3 or correct.shape != rho.shape[:2] or len(groups) != len(rho):
        raise ValueError(
            "rho must be (pairs, experts, features), correct (pairs, experts) and groups one per pair; the shapes are "
            f"{rho.shape}, {correct.shape} and {(len(groups),)}. Use reliability_features on the same pairs."
        )
    wrong = ~(np.isnan(correct) | np.isin(correct, (0.0, 1.0)))
    if wrong.any():
        pair, expert = np.argwhere(wrong)[0]
        raise ValueError(
            f"correct must be 1, 0 or NaN; row {pair}, expert {expert} is {correct[pair, expert]} ({int(wrong.sum())} "
            "such). Compare the sign of z with the label; an expert with z = 0 has no opinion (NaN)."
        )
    return rho, correct

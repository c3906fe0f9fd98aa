"""The four models of reliability that are compared, and how one of them is fitted on (pair, expert) rows.

Every one is deterministic: a fixed seed, one thread, rows in the order in which they come. This file knows nothing
about folds, or about which expert is chosen in the end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

MODELS = ("logistic", "random_forest", "extra_trees", "gradient_boosting")  # the simplest first
TREES, DEPTH, LEAF = 200, 5, 8  # depth and leaf are the paper's; it does not say how many trees
ROUNDS = 100  # of boosting
MANY_ROWS = 20_000  # above so many (pair, expert) rows a tree of a forest draws a part of them
ROWS_PER_TREE = 5_000
MOST_COMPARED = 5_000  # pairs on which models are compared

Fitted = ClassifierMixin | float  # a float: every row the same, where there was nothing to tell apart


def build_model(name: str, n_rows: int, *, seed: int) -> ClassifierMixin:
    """An unfitted model by name.

    Parameters
    ----------
    name : in `MODELS`. n_rows : rows that it will be fitted on. seed : of whatever it draws.

    Returns
    -------
    - ``logistic``: L2-penalised (C = 1) on standardised features;
    - ``random_forest`` and ``extra_trees``: 200 trees of depth 5, at least 8 rows in a leaf, each on a bootstrap sample
      of all rows, or of 5,000 where there are more than 20,000;
    - ``gradient_boosting``: 100 rounds of histogram trees, same depth and leaf, never stopped early (the rows held back
      for that would be drawn without regard to questions).

    Raises
    ------
    ValueError : for another name.
    """
    if name not in MODELS:
        raise ValueError(f"a reliability model must be one of {', '.join(MODELS)}; it is {name!r}.")
    tree = {"max_depth": DEPTH, "min_samples_leaf": LEAF, "random_state": seed}
    if name == "logistic":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    if name == "gradient_boosting":
        return HistGradientBoostingClassifier(max_iter=ROUNDS, early_stopping=False, **tree)
    forest = RandomForestClassifier if name == "random_forest" else ExtraTreesClassifier
    drawn = ROWS_PER_TREE if n_rows > MANY_ROWS else None
    return forest(TREES, bootstrap=True, max_samples=drawn, n_jobs=1, **tree)


def fit_model(name: str, rho: NDArray, correct: NDArray, *, seed: int) -> Fitted:
    """A model fitted on the rows whose expert has an opinion.

    Parameters
    ----------
    rho : (N, K, R) features. correct : (N, K): 1, 0, and NaN where the expert has no opinion.

    Returns
    -------
    the fitted model; where all rows are right, or all wrong, that share, and 1/2 where there is no row.
    """
    known = ~np.isnan(correct)
    target = correct[known]
    share = float(target.mean()) if len(target) else 0.5
    if not 0 < share < 1 or not len(target):
        return share
    return build_model(name, len(target), seed=seed).fit(rho[known], target.astype(int))


def predict_model(fitted: Fitted, rho: NDArray) -> NDArray[np.float64]:
    """Probability that each expert is right on each pair, (N, K), rounded to 1e-9."""
    shape = rho.shape[:2]
    if isinstance(fitted, float):
        return np.full(shape, round(fitted, 9))
    rows = rho.reshape(-1, rho.shape[2])
    return np.round(fitted.predict_proba(rows)[:, 1], 9).reshape(shape) if len(rows) else np.zeros(shape)

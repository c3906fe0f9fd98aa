"""An odd logistic model over signed features, without an intercept: the stack (Eq. 6), free or sign-constrained.

The fit sees only the products label x features, so exchanging the responses of training pairs cannot change it; the
score is a row-wise sum, so exchanging those of a scored pair negates it bit for bit. This file knows nothing about
experts, splits or test labels: who may be fitted on which rows is the caller's duty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

GRID = (10, 1, 0.1, 0.01, 0.001)


@dataclass(frozen=True)
class Stack:
    """A fitted stack: D weights on features divided by their training RMS, and the lambda they were fitted with."""

    weights: NDArray[np.float64]
    scale: NDArray[np.float64]
    lam: float

    def score(self, phi: ArrayLike) -> NDArray[np.float64]:
        """Signed score of each row: the weighted sum of its scaled features (BAER Eq. 6b).

        Parameters
        ----------
        phi : array (N, D), columns as in the fit.

        Returns
        -------
        array (N,). A row-wise sum, never a matrix product: the bits of a score do not depend on the rows beside it.

        Raises
        ------
        ValueError
            when phi has another number of columns, or a value that is not finite.
        """
        phi = _features(phi)
        if phi.shape[1] != len(self.weights):
            raise ValueError(f"phi must have the {len(self.weights)} columns of the fit; it has {phi.shape[1]}.")
        return (phi / self.scale * self.weights).sum(axis=1)


def feature_scale(phi: ArrayLike) -> NDArray[np.float64]:
    """Training RMS of each feature, the r of Eq. 6; 1 for a feature that is zero on every row.

    Parameters
    ----------
    phi : array (N, D) of training features.

    Returns
    -------
    array (D,), positive. A category that no training row has, or an expert that never answered, keeps a scale of 1 (its
    weight is 0 at the optimum) instead of a division by zero.
    """
    rms = np.sqrt(np.mean(_features(phi) ** 2, axis=0))
    return np.where(rms > 0, rms, 1.0)


def fit_stack(phi: ArrayLike, y: ArrayLike, lam: float) -> Stack:
    """Logistic weights without an intercept, on scaled features and their negatives (BAER Eq. 6a).

    Parameters
    ----------
    phi : array (N, D) of training features. y : (N,) labels, +1 or -1. lam : positive penalty on the scaled weights.

    Returns
    -------
    Stack
        at the minimum of mean log(1 + exp(-y w.(phi / r))) + lam/2 ||w||^2. Adding every negative (-phi, -y), as the
        paper does, leaves that objective as it is; scikit-learn needs the two classes, with C = 1 / (lam x rows
        passed). The rows y phi are sorted before the fit: neither the order of the training pairs nor which of their
        responses is called *a* reaches the solver.

    Raises
    ------
    ValueError
        for labels other than +1 and -1, features that are not finite, no rows, or a lam that is not positive.
    """
    rows, scale = _training_rows(phi, y, lam)
    both = np.concatenate([rows, -rows])
    side = np.repeat([1, -1], len(rows))
    model = LogisticRegression(
        C=1 / (lam * len(both)), fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=1000
    )
    return Stack(model.fit(both, side).coef_[0].astype(float), scale, float(lam))


def fit_nonnegative_stack(phi: ArrayLike, y: ArrayLike, lam: float) -> Stack:
    """The stack with every weight held at or above zero, so that no expert and no category can be inverted.

    Arguments, objective and errors are those of `fit_stack`. Category columns are held too: bounding only the z columns
    would let the category columns do the inverting. Each Newton step solves its bounded quadratic exactly (non-negative
    least squares) and is halved until the objective falls; the objective is strictly convex, so the bounded minimum is
    unique, and the optimality conditions hold there to about 1e-12.
    """
    rows, scale = _training_rows(phi, y, lam)
    weights = np.zeros(rows.shape[1])
    for _ in range(200):
        value, gradient, hessian = _newton_terms(rows, weights, lam)
        root = np.linalg.cholesky(hessian).T
        target = nnls(root, np.linalg.solve(root.T, hessian @ weights - gradient), maxiter=100 * len(weights))[0]
        step = target - weights
        slope = float(gradient @ step)
        size = 1.0
        while slope < -1e-13 and _objective(rows, weights + size * step, lam) > value + 1e-4 * size * slope:
            size /= 2
        weights = target if size == 1.0 else weights + size * step
        if np.abs(step).max(initial=0.0) <= 1e-13 * (1 + np.abs(weights).max(initial=0.0)):
            break
    return Stack(weights, scale, float(lam))


def choose_lambda(
    phi_fit: ArrayLike,
    y_fit: ArrayLike,
    phi_cal: ArrayLike,
    y_cal: ArrayLike,
    grid: Sequence[float] = GRID,
    *,
    fit: Callable[[ArrayLike, ArrayLike, float], Stack] = fit_stack,
) -> float:
    """Penalty that serves the calibration rows best: by accuracy, then by log-loss, then the larger.

    Parameters
    ----------
    phi_fit, y_fit : features (N, D) and labels of the selection rows, where every lambda is fitted.
    phi_cal, y_cal : those of the calibration rows, where it is judged; their labels enter no weight here. The caller
        then fits once more, scale included, on both.
    grid : positive penalties. fit : `fit_stack` or `fit_nonnegative_stack`.

    Returns
    -------
    float, an element of grid. A score of exactly 0 counts as half right, so that the choice does not depend on which
    response is called *a*; log-losses are compared after rounding to 1e-12. The paper names neither rule.
    """
    tried = lambda_table(phi_fit, y_fit, phi_cal, y_cal, grid, fit=fit)
    return max(tried, key=lambda row: (row["accuracy"], -round(row["log_loss"], 12), row["lam"]))["lam"]


def lambda_table(
    phi_fit: ArrayLike,
    y_fit: ArrayLike,
    phi_cal: ArrayLike,
    y_cal: ArrayLike,
    grid: Sequence[float] = GRID,
    *,
    fit: Callable[[ArrayLike, ArrayLike, float], Stack] = fit_stack,
) -> list[dict[str, float]]:
    """What `choose_lambda` looks at: lam, calibration accuracy and calibration log-loss, one entry per penalty."""
    if not len(grid):
        raise ValueError("grid must hold at least one penalty; it is empty.")
    y_cal, table = _labels(y_cal, len(_features(phi_cal))), []
    for lam in grid:
        margin = y_cal * fit(phi_fit, y_fit, lam).score(phi_cal)
        accuracy = float(((margin > 0).sum() + 0.5 * (margin == 0).sum()) / len(margin))
        table.append({"lam": float(lam), "accuracy": accuracy, "log_loss": float(np.logaddexp(0, -margin).mean())})
    return table


# ---------------------------------------------------------------- what a fit may see


def _training_rows(phi: ArrayLike, y: ArrayLike, lam: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The products y phi / r in an order of their own, and r."""
    phi = _features(phi)
    if not lam > 0:
        raise ValueError(f"lam must be positive; it is {lam}. The grid is {GRID}.")
    rows = _labels(y, len(phi))[:, None] * phi + 0.0
    rows = rows[np.lexsort(rows.T)] if rows.shape[1] else rows
    scale = feature_scale(rows)
    return rows / scale, scale


def _features(phi: ArrayLike) -> NDArray[np.float64]:
    phi = np.ascontiguousarray(phi, dtype=float)
    if phi.ndim != 2 or not np.isfinite(phi).all():
        what = f"shape {phi.shape}" if phi.ndim != 2 else f"{int((~np.isfinite(phi)).sum())} values that are not finite"
        raise ValueError(f"phi must be a finite array of rows x features; it has {what}. Use stack_features.")
    return phi


def _labels(y: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    y = np.asarray(y, dtype=float)
    wrong = ~np.isin(y, (1.0, -1.0))
    if y.shape != (n_rows,) or not n_rows or wrong.any():
        came = f"row {int(np.flatnonzero(wrong)[0])} is {y[wrong][0]}" if wrong.any() else f"shape {y.shape}"
        raise ValueError(
            f"y must hold +1 or -1 for each of the {n_rows} rows of phi, at least one; {came}. "
            "Drop sealed and unlabelled pairs first."
        )
    return y


def _objective(rows: NDArray, weights: NDArray, lam: float) -> float:
    return float(np.logaddexp(0, -(rows @ weights)).mean() + lam / 2 * weights @ weights)


def _newton_terms(rows: NDArray, weights: NDArray, lam: float) -> tuple[float, NDArray, NDArray]:
    wrong = expit(-(rows @ weights))
    gradient = lam * weights - (rows * wrong[:, None]).mean(axis=0)
    hessian = (rows * (wrong * (1 - wrong))[:, None]).T @ rows / len(rows) + lam * np.eye(len(weights))
    return _objective(rows, weights, lam), gradient, hessian

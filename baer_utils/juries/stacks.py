"""Full-call stacks: one linear model over what every judge said, with or without what every two said together.

One-hot outputs of J judges give few hundred columns, their products thousands, more than an audit has rows. A ridge
penalty needs only the inner products of rows, and those count agreements: with m judges in agreement two rows share m
one-hot entries and m (m - 1) / 2 products. So wide designs are replaced by coordinates of the same inner products.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Ridge

from baer_utils.juries.outputs import codes_like, construction, one_hot

PENALTIES = (1000.0, 100.0, 10.0, 1.0, 0.1)  # L2, on unscaled one-hot entries, intercept free; the largest wins ties


class Design:
    """Coordinates of one-hot outputs (and of products of two judges' outputs) in which ridge penalties are exact.

    Parameters
    ----------
    hot : array (n, columns), one-hot outputs of the rows a model is fitted on. owner : the judge of each column.
    pairs : whether products of entries of two different judges are columns too.
    """

    def __init__(self, hot: np.ndarray, owner: np.ndarray, *, pairs: bool):
        self.pairs, self.hot = pairs, hot
        first, second = np.triu_indices(hot.shape[1] if pairs else 0, 1)
        apart = owner[first] != owner[second]
        self.first, self.second = first[apart], second[apart]
        self.wide = hot.shape[1] + len(self.first) > len(hot)
        if self.wide:
            values, vectors = np.linalg.eigh(self._inner(hot))
            kept = values > 1e-10 * max(values[-1], 1.0)
            self.to_coordinates = vectors[:, kept] / np.sqrt(values[kept])

    def _inner(self, hot: np.ndarray) -> np.ndarray:
        agreements = hot @ self.hot.T
        return agreements + self.pairs * agreements * (agreements - 1) / 2

    def coordinates(self, hot: np.ndarray) -> np.ndarray:
        """Rows of a new one-hot array in these coordinates, shape (n, at most the rows of the fit)."""
        return self._inner(hot) @ self.to_coordinates if self.wide else self._columns(hot)

    def score(self, hot: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Coordinates of new rows times weights, (n,): sums along rows, whose bits do not depend on the other rows."""
        if self.wide:
            return (self._inner(hot) * (self.to_coordinates @ weights)).sum(axis=1)
        return (self._columns(hot) * weights).sum(axis=1)

    def _columns(self, hot: np.ndarray) -> np.ndarray:
        return np.hstack([hot, hot[:, self.first] * hot[:, self.second]])


class _Stack:
    """Penalty and variant by validation risk, then a refit on fit and validation together."""

    def fit(self, fit, validation, *, costs=None, seed=0):
        """Choose variant and penalty on validation risk; ties go to the plain variant and the larger penalty."""
        parts = construction(fit, validation)
        self.levels_, self.sizes_ = parts.levels, parts.sizes
        owner = np.repeat(np.arange(len(parts.sizes)), parts.sizes)
        hot, held_out = one_hot(parts.fit_codes, parts.sizes), one_hot(parts.validation_codes, parts.sizes)
        tried = []
        for pairs in (False, True):
            design = Design(hot, owner, pairs=pairs)
            inside, outside = design.coordinates(hot), design.coordinates(held_out)
            for penalty in PENALTIES:
                guess = self._predict(self._train(inside, parts.fit_y, penalty), outside)
                tried.append((round(float(np.mean((guess - parts.validation_y) ** 2)), 12), pairs, -penalty))
        self.validation_risk_, self.pairs_, negative = min(tried)
        self.penalty_ = -negative
        both = np.vstack([hot, held_out])
        self.design_ = Design(both, owner, pairs=self.pairs_)
        self.model_ = self._train(self.design_.coordinates(both), parts.y, self.penalty_)
        return self

    def predict(self, Z, slices=None):
        """Probabilities clipped to [0, 1], and that every judge was called; an unseen output is an all-zero row."""
        hot, called = one_hot(codes_like(Z, self.levels_), self.sizes_), np.ones(np.shape(Z), dtype=bool)
        if isinstance(self.model_, float):
            return np.full(len(hot), self.model_), called
        return self._link(self.design_.score(hot, np.ravel(self.model_.coef_)) + self.model_.intercept_), called

    @classmethod
    def _predict(cls, model, features):
        if isinstance(model, float):
            return np.full(len(features), model)
        return cls._link(features @ np.ravel(model.coef_) + model.intercept_)


class RidgeStack(_Stack):
    """Ridge regression of y on all judges' one-hot outputs, clipped to [0, 1] (Panels section 4; full call).

    Attributes
    ----------
    penalty_, pairs_ : what validation risk chose from `PENALTIES` and from with or without pair interactions.
    """

    @staticmethod
    def _train(features, y, penalty):
        return Ridge(alpha=penalty).fit(features, y)

    @staticmethod
    def _link(score):
        return np.clip(score, 0, 1)


class LogisticStack(_Stack):
    """L2 logistic regression on all judges' one-hot outputs; a soft y counts as y ones and 1 - y zeros (full call).

    Attributes
    ----------
    penalty_, pairs_ : as for `RidgeStack`. Where all labels are equal, the model is that label.
    """

    @staticmethod
    def _train(features, y, penalty):
        rows = np.vstack([features, features])
        labels = np.repeat([1, 0], len(y))
        weights = np.concatenate([y, 1 - y])
        used = weights > 0
        if len(np.unique(labels[used])) < 2:
            return float(y.mean())
        model = LogisticRegression(C=1 / penalty, solver="newton-cholesky", tol=1e-8, max_iter=200)
        return model.fit(rows[used], labels[used], sample_weight=weights[used])

    @staticmethod
    def _link(score):
        return expit(score)

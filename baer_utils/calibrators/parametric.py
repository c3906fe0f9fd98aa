"""Calibrators for panels whose cells grow too sparse: a logistic model of the outputs, a monotone curve of their vote.

Extensions that the paper names without formulas (its section 7); a copied judge changes them, unlike the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from baer_utils.calibrators.base import PanelCalibrator

VOTES = {"a": 1.0, "b": 0.0, "split": 0.5}


class LogisticCalibrator(PanelCalibrator):
    """Logistic regression on the one-hot outputs of a panel, and on their products in pairs on request.

    Parameters
    ----------
    panel : names or places of the judges. penalty : L2, on the sum of log-losses; the intercept is free.
    pairs : add a column for every combination of the symbols of two judges.

    Attributes
    ----------
    weights_ : one per column of the design. intercept_ : in log-odds; None where there was nothing to fit.

    A label in (0, 1) counts as that share of a 1 and the rest of a 0. A judge's unseen symbol or missing output makes
    the item fall back to `mean_`; a combination of symbols that was never seen does not.
    """

    def __init__(self, panel: Sequence[str | int], *, penalty: float = 1.0, pairs: bool = False) -> None:
        self.panel = panel
        self.penalty = penalty
        self.pairs = pairs

    def _learn(self, codes: NDArray[np.int32], y: NDArray[np.float64]) -> None:
        if not self.penalty > 0:
            raise ValueError(f"penalty must be positive; it is {self.penalty}.")
        design = self._design(codes)
        self.weights_, self.intercept_ = np.zeros(design.shape[1]), None
        if design.shape[1] and 0 < self.mean_ < 1:
            share = np.concatenate([y, 1 - y])
            side = np.repeat([1, 0], len(y))
            model = LogisticRegression(C=1 / self.penalty, max_iter=1000, tol=1e-8)
            model.fit(np.concatenate([design, design])[share > 0], side[share > 0], share[share > 0])
            self.weights_, self.intercept_ = model.coef_[0], float(model.intercept_[0])

    def _values(self, codes: NDArray[np.int32]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        seen = (codes >= 0).all(axis=1)
        if self.intercept_ is None:
            return np.full(len(codes), self.mean_), seen
        odds = (self._design(codes) * self.weights_).sum(axis=1) + self.intercept_
        return np.where(seen, expit(odds), self.mean_), seen

    def _design(self, codes: NDArray[np.int32]) -> NDArray[np.float64]:
        single = [codes[:, [place]] == np.arange(size) for place, size in enumerate(self._sizes())]
        both = [(one[:, :, None] & other[:, None, :]).reshape(len(codes), -1) for one, other in combinations(single, 2)]
        columns = single + both * self.pairs
        return np.concatenate(columns, axis=1).astype(float) if columns else np.zeros((len(codes), 0))

    def to_dict(self) -> dict[str, object]:
        """The fitted model as plain values that JSON can hold."""
        return self._save() | {"weights": self.weights_.tolist(), "intercept": self.intercept_}

    @classmethod
    def from_dict(cls, saved: Mapping[str, object]) -> LogisticCalibrator:
        """The calibrator that `to_dict` described."""
        self = cls._load(saved)
        self.weights_, self.intercept_ = np.array(saved["weights"]), saved["intercept"]
        return self


class VoteCalibrator(PanelCalibrator):
    """Isotonic regression of the label on the mean vote of a panel.

    Parameters
    ----------
    panel : names or places of the judges. A vote is 1 for *a*, 0 for *b*, 1/2 for *split*; numbers are scaled to [0, 1]
        between the smallest and the largest of that judge in the fit (1/2 for a judge that gave only one number), so
        larger must mean closer to 1.

    Attributes
    ----------
    votes_ : the vote of every symbol of every judge. curve_ : (mean votes, probabilities), straight in between. A
    judge's unseen symbol or missing output makes the item fall back to `mean_`.
    """

    def __init__(self, panel: Sequence[str | int]) -> None:
        self.panel = panel

    def _learn(self, codes: NDArray[np.int32], y: NDArray[np.float64]) -> None:
        self.votes_ = [_votes(levels) for levels in self.levels_]
        self.curve_ = (np.zeros(1), np.full(1, self.mean_))
        if self.votes_:
            model = IsotonicRegression(y_min=0, y_max=1).fit(self._mean_vote(codes), y)
            self.curve_ = (model.X_thresholds_, model.y_thresholds_)

    def _values(self, codes: NDArray[np.int32]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        seen = (codes >= 0).all(axis=1)
        vote = self._mean_vote(codes) if self.votes_ else np.zeros(len(codes))
        return np.where(seen, np.interp(vote, *self.curve_), self.mean_), seen

    def _mean_vote(self, codes: NDArray[np.int32]) -> NDArray[np.float64]:
        return np.mean([vote[codes[:, place]] for place, vote in enumerate(self.votes_)], axis=0)

    def to_dict(self) -> dict[str, object]:
        """The fitted curve as plain values that JSON can hold."""
        return self._save() | {"curve": [part.tolist() for part in self.curve_]}

    @classmethod
    def from_dict(cls, saved: Mapping[str, object]) -> VoteCalibrator:
        """The calibrator that `to_dict` described."""
        self = cls._load(saved)
        self.votes_ = [_votes(levels) for levels in self.levels_]
        self.curve_ = tuple(np.array(part) for part in saved["curve"])
        return self


def _votes(levels: tuple) -> NDArray[np.float64]:
    if all(level in VOTES for level in levels):
        return np.array([VOTES[level] for level in levels])
    if any(isinstance(level, str) for level in levels):
        raise ValueError(f"votes must be numbers, or of {', '.join(VOTES)}; {levels} came. Use another calibrator.")
    number = np.array(levels, dtype=float)
    if not np.isfinite(number).all():
        raise ValueError(f"votes must be finite numbers; {levels} came. Use another calibrator.")
    span = number.max() - number.min()
    return (number - number.min()) / span if span else np.full(len(number), 0.5)

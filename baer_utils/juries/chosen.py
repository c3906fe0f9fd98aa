"""Fixed panels, the same for every item: nobody, the single best judge, all of them, the best or most diverse k.

Each chooses its judges by validation quality and nominal diversity, and reads the joint pattern of what it called in
the same calibrator as the role policy. None knows slices or conditional value: that is the difference to be measured.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from baer_utils.calibrators import Audit, PatternCalibrator
from baer_utils.juries.outputs import (
    Construction,
    by_quality,
    construction,
    own_predictions,
    own_tables,
    standalone_risk,
)
from baer_utils.panels import GLOBAL, RolePolicy


class FixedPanel:
    """A panel called on every item, calibrated on its joint pattern.

    Attributes
    ----------
    panel_ : names of the judges, in the order they were chosen. calibrator_ : their table on fit + validation.
    """

    @property
    def calls(self) -> frozenset[tuple[str, str]]:
        """(scope, judge) of every call, as in a `CallPolicy`; the scope is all items."""
        return frozenset((GLOBAL, judge) for judge in self.panel_)

    @property
    def tables(self) -> dict[str, PatternCalibrator]:
        """The table of the panel, under the scope of all items."""
        return {GLOBAL: self.calibrator_}

    @property
    def fallback_rate_(self) -> float:
        """Share of the items of the last `predict` whose pattern the table does not hold."""
        return self.calibrator_.fallback_rate_

    def fit(self, fit: Audit, validation: Audit, *, costs=None, seed: int = 0) -> FixedPanel:
        """Choose on fit and validation, then count the chosen panel's cells on both together."""
        parts = construction(fit, validation)
        places = self._choose(parts, self._size(fit, validation, costs, seed))
        self.panel_ = tuple(parts.judges[place] for place in places)
        Z = np.vstack([fit.Z, validation.Z])
        self.calibrator_ = PatternCalibrator(places).fit(Z, parts.y)
        return self

    def predict(self, Z: NDArray[np.object_], slices=None) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Probability of each item, and the mask of calls: the panel's columns, everywhere."""
        called = np.zeros(np.shape(Z), dtype=bool)
        called[:, self.calibrator_.panel] = True
        return self.calibrator_.predict(Z), called

    def _size(self, fit, validation, costs, seed) -> int:
        return len(fit.judges)

    def _choose(self, parts: Construction, size: int) -> list[int]:
        return by_quality(standalone_risk(parts), parts.judges)[:size]


class NobodyCalled(FixedPanel):
    """No call at all: the label mean of the construction items, at no cost. What every call has to beat."""

    def _size(self, fit, validation, costs, seed) -> int:
        return 0


class SingleBest(FixedPanel):
    """The judge with the lowest validation risk, read through its own table; ties by name (Panels section 4)."""

    def _size(self, fit, validation, costs, seed) -> int:
        return 1


class FlatAll(FixedPanel):
    """Every judge on every item, one table of joint patterns: the full-call endpoint (Panels section 4)."""


class TopK(FixedPanel):
    """The k judges with the lowest standalone validation risk (Panels section 4).

    Parameters
    ----------
    k : judges to call. By default as many as the stopped role policy calls on average over the construction items,
        rounded half up (the paper names no rounding): the judge budget is matched, the cost may differ. A role policy
        that calls nobody leaves an empty panel, which predicts the label mean.
    role : the role policy whose budget is matched; default thresholds.

    Attributes
    ----------
    matched_calls_ : the average that k was rounded from; k itself where it was given.
    """

    def __init__(self, k: int | None = None, *, role: RolePolicy | None = None) -> None:
        if k is not None and k < 0:
            raise ValueError(f"k must be at least 0 judges; it is {k}.")
        self.k = k
        self.role = role

    def _size(self, fit, validation, costs, seed) -> int:
        self.matched_calls_ = self.k if self.k is not None else matched_calls(fit, validation, costs, seed, self.role)
        return min(math.floor(self.matched_calls_ + 0.5), len(fit.judges))


class CorrelationDiverse(TopK):
    """From the best judge on, always the judge whose errors correlate least with those of the chosen.

    `argmin_j mean_{i in S} |corr(e_i, e_j)|`, e = y minus the judge's own table, on the fit rows. The paper names the
    baseline and no formula. Errors without any spread correlate with nothing; ties by validation risk, then name.
    """

    quality_share = 0.0

    def _choose(self, parts: Construction, size: int) -> list[int]:
        risk = standalone_risk(parts)
        order = by_quality(risk, parts.judges)
        likeness = error_correlation(parts)
        spread = risk.max() - risk.min()
        quality = (risk.max() - risk) / spread if spread else np.zeros(len(risk))
        chosen = order[:1] if size else []
        while len(chosen) < size:
            left = [place for place in order if place not in chosen]  # in order of quality, then name
            score = self.quality_share * quality[left]
            score -= (1 - self.quality_share) * likeness[np.ix_(left, chosen)].mean(axis=1)
            chosen.append(left[int(np.argmax(score.round(12)))])
        return chosen


class QualityDiverse(CorrelationDiverse):
    """As `CorrelationDiverse`, but half the score is quality: minus the validation risk, scaled to [0, 1].

    `argmax_j [ q_j / 2 - mean_{i in S} |corr(e_i, e_j)| / 2 ]`; the paper names the baseline and no formula.
    """

    quality_share = 0.5


def error_correlation(parts: Construction) -> NDArray[np.float64]:
    """|Correlation| of the judges' errors on the fit rows, (judges, judges); 0 where an error has no spread."""
    guess = own_predictions(parts.fit_codes, own_tables(parts.fit_codes, parts.fit_y, parts.width))
    error = parts.fit_y[:, None] - guess
    error = error - error.mean(axis=0)
    length = np.sqrt((error**2).sum(axis=0))
    unit = error / np.where(length > 1e-9, length, np.inf)
    return np.abs(unit.T @ unit)


def matched_calls(fit: Audit, validation: Audit, costs, seed: int, role: RolePolicy | None = None) -> float:
    """Calls per item of the stopped role policy on the construction items: the budget that others are given."""
    policy = RolePolicy() if role is None else role
    policy.fit(fit, validation, costs=costs, seed=seed)
    counts = [policy.predict(part.Z, part.slices)[1].sum(axis=1) for part in (fit, validation)]
    return float(np.concatenate(counts).mean())

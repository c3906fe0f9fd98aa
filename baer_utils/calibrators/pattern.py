"""The pattern calibrator: the mean label of the items on which a panel said exactly this.

One estimator in scikit-learn's manner. It knows nothing about which judges deserve to be in a panel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from baer_utils.calibrators.audit import Audit
from baer_utils.calibrators.cells import cell_means, cells_of
from baer_utils.calibrators.symbols import Symbol, encode, encode_as


class PatternCalibrator(RegressorMixin, BaseEstimator):
    """Calibrated probability of a joint pattern: the mean label of its cell, smoothed towards its parents on request.

    Parameters
    ----------
    panel : names (or, for arrays, column places) of the judges, in the order they were added.
    smoothing : kappa >= 0. m_S(z) = (sum y + kappa m_parent(z')) / (n_z + kappa), where the parent is the pattern
        without the last-added judge and the root is the label mean. 0 is the paper's table.

    Attributes
    ----------
    mean_ : the label mean, what an unseen pattern or a missing output is predicted as. (With kappa > 0 an unseen
        pattern backs off to its longest seen prefix, which is the formula at n_z = 0.)
    patterns_ : seen patterns, a tuple of tuples of symbols. table_ : their probabilities. count_ : their items.
    fallback_rate_ : share of the items of the last `predict` (after `fit`: of the fit itself) whose whole pattern the
        table does not hold.

    References
    ----------
    Stopping and Routing LLM Judge Panels, section 3; smoothing is an extension its section 7 names.
    """

    def __init__(self, panel: Sequence[str | int], *, smoothing: float = 0.0) -> None:
        self.panel = panel
        self.smoothing = smoothing

    def fit(self, X: ArrayLike, y: ArrayLike) -> PatternCalibrator:
        """Count the cells.

        Parameters
        ----------
        X : audit, or frame whose columns include the panel, or array (N, J), of outputs, none of the panel's missing.
        y : (N,) labels in [0, 1].

        Raises
        ------
        ValueError
            for unknown judges, missing outputs, labels outside [0, 1], no items, or negative smoothing.
        """
        outputs, y = self._outputs(X), np.asarray(y, dtype=float)
        if y.shape != (len(outputs),) or not len(y) or not ((y >= 0) & (y <= 1)).all():
            raise ValueError(
                f"y must be one label in [0, 1] per item, at least one; {y.shape} came for {len(outputs)}."
            )
        if not self.smoothing >= 0:
            raise ValueError(f"smoothing must be at least 0; it is {self.smoothing}.")
        coded = [encode(outputs[:, column]) for column in range(outputs.shape[1])]
        codes = np.stack([c for c, _ in coded], axis=1) if coded else np.zeros((len(y), 0), np.int32)
        if (codes < 0).any():
            judge = self.panel[int(np.flatnonzero((codes < 0).any(axis=0))[0])]
            raise ValueError(f"every output of the panel must be present in a fit; {judge} has missing ones. Use "
                             "Audit.complete() first.")  # fmt: skip
        self.levels_: list[tuple[Symbol, ...]] = [levels for _, levels in coded]
        self.mean_ = float(cell_means(np.zeros(len(y), np.int64), y, 1)[0][0])
        names = _names(X)
        self.n_features_in_ = np.shape(X.Z if isinstance(X, Audit) else X)[1]
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        cells = cells_of(codes, codes, self._sizes()).fit
        first, self.count_ = np.unique(cells, return_index=True, return_counts=True)[1:]
        self.codes_, self.sum_ = codes[first], np.bincount(cells, weights=y)
        self._read_table()
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probability (N,) of each item; `fallback_rate_` then says how many fell outside the table."""
        check_is_fitted(self, "table_")
        outputs = self._outputs(X)
        codes = [encode_as(outputs[:, column], levels) for column, levels in enumerate(self.levels_)]
        values, seen = self._values(np.stack(codes, axis=1) if codes else np.zeros((len(outputs), 0), np.int32))
        self.fallback_rate_ = float((~seen).mean()) if len(seen) else 0.0
        return values

    def to_dict(self) -> dict[str, object]:
        """The fitted table as plain values that JSON can hold; `from_dict` gives it back to the last bit."""
        check_is_fitted(self, "table_")
        return {
            "panel": list(self.panel), "smoothing": self.smoothing, "mean": self.mean_, "sum": self.sum_.tolist(),
            "count": self.count_.tolist(), "codes": self.codes_.tolist(), "levels": [list(x) for x in self.levels_],
            "columns": getattr(self, "feature_names_in_", np.arange(self.n_features_in_)).tolist(),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, saved: Mapping[str, object]) -> PatternCalibrator:
        """The calibrator that `to_dict` described."""
        self = cls(tuple(saved["panel"]), smoothing=saved["smoothing"])
        self.levels_ = [tuple(levels) for levels in saved["levels"]]
        self.codes_ = np.array(saved["codes"], dtype=np.int32).reshape(len(saved["sum"]), len(self.levels_))
        self.mean_, self.sum_, self.count_ = saved["mean"], np.array(saved["sum"]), np.array(saved["count"])
        self.n_features_in_ = len(saved["columns"])
        if any(isinstance(name, str) for name in saved["columns"]):
            self.feature_names_in_ = np.array(saved["columns"], dtype=object)
        self._read_table()
        return self

    def _read_table(self) -> None:
        self.table_ = self._values(self.codes_)[0]
        self.patterns_ = tuple(self._symbols(row) for row in self.codes_)
        self.fallback_rate_ = 0.0

    def _symbols(self, codes: NDArray[np.int32]) -> tuple[Symbol, ...]:
        return tuple(levels[code] for levels, code in zip(self.levels_, codes, strict=True))

    def _sizes(self) -> list[int]:
        return [len(levels) for levels in self.levels_]

    def _values(self, codes: NDArray[np.int32]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Probability of each row of codes, and whether its whole pattern is in the table."""
        value, seen = np.full(len(codes), self.mean_), np.ones(len(codes), dtype=bool)
        for depth in range(1, len(self.levels_) + 1) if self.smoothing else [len(self.levels_)]:
            cells = cells_of(self.codes_[:, :depth], codes[:, :depth], self._sizes()[:depth])
            total, count = np.bincount(cells.fit, self.sum_), np.bincount(cells.fit, self.count_)
            seen = cells.other >= 0
            own = (total[cells.other] + self.smoothing * value) / (count[cells.other] + self.smoothing)
            value = np.where(seen, own, value)
        return value, seen

    def _outputs(self, X: ArrayLike) -> NDArray[np.object_]:
        """The panel's columns of X; an array without names is read in the columns of the fit."""
        if isinstance(X, pd.DataFrame):
            unknown = [judge for judge in self.panel if judge not in X.columns]
            if unknown:
                raise ValueError(f"X must have a column for every judge of the panel; {unknown} are not in it.")
            return X[list(self.panel)].to_numpy(dtype=object)
        if isinstance(X, Audit):
            return X.Z[:, X.columns(self.panel)]
        X = np.asarray(X, dtype=object)
        if hasattr(self, "feature_names_in_") and X.shape[1:] == (self.n_features_in_,):
            place = {name: column for column, name in enumerate(self.feature_names_in_)}
            return X[:, [place[judge] for judge in self.panel]]
        if X.ndim != 2 or any(not 0 <= int(judge) < X.shape[1] for judge in self.panel):
            raise ValueError(f"X must be items x judges with the columns {list(self.panel)}; it is {X.shape}.")
        return X[:, [int(judge) for judge in self.panel]]


def _names(X: object) -> list[str] | None:
    if isinstance(X, Audit):
        return list(X.judges)
    return list(X.columns) if isinstance(X, pd.DataFrame) else None

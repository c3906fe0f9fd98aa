"""What every calibrator of a panel does alike: find the panel's columns, refuse bad input, code the outputs."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from baer_utils.calibrators.audit import Audit
from baer_utils.calibrators.cells import cell_means
from baer_utils.calibrators.symbols import encode, encode_as, named_columns


class PanelCalibrator(RegressorMixin, BaseEstimator):
    """Base of calibrators: estimators of E[y | outputs of a panel], in scikit-learn's manner.

    A subclass has a `panel` and gives `_learn(codes, y)` and `_values(codes) -> (probability, seen)`. Fitted, it has
    `mean_` (the label mean), `levels_` (the symbols of each judge), and `fallback_rate_`: the share of the items of the
    last `predict` that it could not read as a whole.
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> PanelCalibrator:
        """Learn what the panel's outputs are worth.

        Parameters
        ----------
        X : audit, or frame whose columns include the panel, or array (N, J), of outputs, none of the panel's missing.
        y : (N,) labels in [0, 1].

        Raises
        ------
        ValueError
            for unknown judges, missing outputs, labels outside [0, 1], no items, or settings out of range.
        """
        outputs, y = self._outputs(X), np.asarray(y, dtype=float)
        if y.shape != (len(outputs),) or not len(y) or not ((y >= 0) & (y <= 1)).all():
            raise ValueError(
                f"y must be a label in [0, 1] for each of {len(outputs)} items, one or more; {y.shape} came."
            )
        coded = [encode(outputs[:, column]) for column in range(outputs.shape[1])]
        codes = _stacked([codes for codes, _ in coded], len(y))
        if (codes < 0).any():
            judge = self.panel[int(np.flatnonzero((codes < 0).any(axis=0))[0])]
            raise ValueError(f"no output of the panel may be missing in a fit; {judge} has such. Use Audit.complete().")
        self.levels_ = [levels for _, levels in coded]
        self.mean_ = float(cell_means(np.zeros(len(y), np.int64), y, 1)[0][0])
        self.n_features_in_ = np.shape(X.Z if isinstance(X, Audit) else X)[1]
        names = X.judges if isinstance(X, Audit) else X.columns if isinstance(X, pd.DataFrame) else None
        if names is not None:
            self.feature_names_in_ = np.array(list(names), dtype=object)
        self._learn(codes, y)
        self.fallback_rate_ = 0.0
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probability (N,) of each item; `fallback_rate_` then says how many could not be read as a whole."""
        check_is_fitted(self, "mean_")
        if not isinstance(X, Audit | pd.DataFrame) and np.shape(X)[1:] not in ((), (self.n_features_in_,)):
            raise ValueError(
                f"X has {np.shape(X)[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input: an array must have the columns of the fit, or pass a frame or an audit."
            )
        outputs = self._outputs(X)
        codes = [encode_as(outputs[:, column], levels) for column, levels in enumerate(self.levels_)]
        values, seen = self._values(_stacked(codes, len(outputs)))
        self.fallback_rate_ = float((~seen).mean()) if len(seen) else 0.0
        return values

    def _sizes(self) -> list[int]:
        return [len(levels) for levels in self.levels_]

    def _outputs(self, X: ArrayLike) -> NDArray[np.object_]:
        """The panel's columns of X; an array without names is read in the columns of the fit."""
        if isinstance(X, pd.DataFrame):
            return named_columns(X, self.panel)
        if isinstance(X, Audit):
            return X.Z[:, X.columns(self.panel)]
        X = np.asarray(X, dtype=object)
        if hasattr(self, "feature_names_in_") and X.shape[1:] == (self.n_features_in_,):
            place = {name: column for column, name in enumerate(self.feature_names_in_)}
            return X[:, [place[judge] for judge in self.panel]]
        named = any(isinstance(judge, str) for judge in self.panel)
        if X.ndim != 2 or named or any(not 0 <= int(judge) < X.shape[1] for judge in self.panel):
            raise ValueError(f"X must be items x judges with the columns {list(self.panel)}; it is {X.shape}. An array "
                             "has places for columns: pass a frame or an audit, or places for a panel.")  # fmt: skip
        return X[:, [int(judge) for judge in self.panel]]

    def _save(self) -> dict[str, object]:
        """What `to_dict` of every calibrator holds."""
        check_is_fitted(self, "mean_")
        columns = getattr(self, "feature_names_in_", np.arange(self.n_features_in_)).tolist()
        settings = self.get_params() | {"panel": list(self.panel)}
        return {"settings": settings, "mean": self.mean_, "levels": [list(x) for x in self.levels_], "columns": columns}

    @classmethod
    def _load(cls, saved: dict[str, object]) -> PanelCalibrator:
        self = cls(**saved["settings"] | {"panel": tuple(saved["settings"]["panel"])})
        self.mean_, self.levels_ = saved["mean"], [tuple(levels) for levels in saved["levels"]]
        self.n_features_in_, self.fallback_rate_ = len(saved["columns"]), 0.0
        if any(isinstance(name, str) for name in saved["columns"]):
            self.feature_names_in_ = np.array(saved["columns"], dtype=object)
        return self


def _stacked(codes: list[NDArray[np.int32]], n_items: int) -> NDArray[np.int32]:
    return np.stack(codes, axis=1) if codes else np.zeros((n_items, 0), np.int32)

"""The pattern calibrator: the mean label of the items on which a panel said exactly this.

It knows nothing about which judges deserve to be in a panel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from baer_utils.calibrators.base import PanelCalibrator
from baer_utils.calibrators.cells import cells_of


class PatternCalibrator(PanelCalibrator):
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
    fallback_rate_ : share of the items of the last `predict` (0 after `fit`) whose whole pattern the table does not
        hold.

    References
    ----------
    Stopping and Routing LLM Judge Panels, section 3; smoothing is an extension its section 7 names.
    """

    def __init__(self, panel: Sequence[str | int], *, smoothing: float = 0.0) -> None:
        self.panel = panel
        self.smoothing = smoothing

    def _learn(self, codes: NDArray[np.int32], y: NDArray[np.float64]) -> None:
        if not 0 <= self.smoothing < np.inf:
            raise ValueError(f"smoothing must be a number of at least 0; it is {self.smoothing}.")
        cells = cells_of(codes, codes, self._sizes()).fit
        first, self.count_ = np.unique(cells, return_index=True, return_counts=True)[1:]
        self.codes_, self.sum_ = codes[first], np.bincount(cells, weights=y)
        self._read_table()

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

    def _read_table(self) -> None:
        self.table_ = self._values(self.codes_)[0]
        self.patterns_ = tuple(
            tuple(levels[code] for levels, code in zip(self.levels_, row, strict=True)) for row in self.codes_
        )

    def to_dict(self) -> dict[str, object]:
        """The fitted table as plain values that JSON can hold; `from_dict` gives it back to the last bit."""
        table = {"sum": self.sum_.tolist(), "count": self.count_.tolist(), "codes": self.codes_.tolist()}
        return self._save() | table

    @classmethod
    def from_dict(cls, saved: Mapping[str, object]) -> PatternCalibrator:
        """The calibrator that `to_dict` described."""
        self = cls._load(saved)
        self.sum_, self.count_ = np.array(saved["sum"]), np.array(saved["count"])
        self.codes_ = np.array(saved["codes"], dtype=np.int32).reshape(len(self.sum_), len(self.levels_))
        self._read_table()
        return self

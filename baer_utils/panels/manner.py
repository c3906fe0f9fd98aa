"""How gains are measured and panels are searched: the paper's way, and the extensions it names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from baer_utils.calibrators import Audit, PatternCalibrator
from baer_utils.panels.search import Grown, Rule, grow
from baer_utils.roles import EstimatorScope, FoldedScope, Scope


@dataclass(frozen=True)
class Search:
    """How gains are measured and panels are searched; the defaults are the paper's.

    smoothing : kappa of `PatternCalibrator`. calibrator : another estimator, called with the panel's names, in place of
    the pattern table. folds : cross-fit gains over this many group folds of fit and validation together; 0 for one fit
    and one validation set. one_se, beam, pairs : as in `Rule`.
    """

    smoothing: float = 0.0
    calibrator: Callable[[tuple[str, ...]], object] | None = None
    folds: int = 0
    one_se: bool = False
    beam: int = 1
    pairs: bool = False

    def __post_init__(self) -> None:
        if self.folds == 1 or self.folds < 0 or self.beam < 1 or (self.calibrator and self.smoothing):
            raise ValueError(
                f"folds must be 0 or at least 2, beam at least 1, and smoothing 0 beside a calibrator; folds "
                f"{self.folds}, beam {self.beam}, smoothing {self.smoothing} came."
            )

    def measurable(self, fit: Audit, validation: Audit) -> bool:
        """Whether panels can be tried on these items: cross-fitting needs two groups."""
        return not self.folds or len(np.unique(fit.join(validation).coding.group)) > 1

    def scope(self, fit: Audit, validation: Audit) -> object:
        """The scope in which panels are tried on these items."""
        if not self.measurable(fit, validation):
            raise ValueError(
                f"cross-fitting over {self.folds} folds needs at least 2 groups; {fit.groups[0]} came alone."
            )
        if self.folds:
            both = fit.join(validation)
            fold = _folds(both, self.folds)
            plain = replace(self, folds=0)
            return FoldedScope([plain.scope(both.take(fold != k), both.take(fold == k)) for k in range(fold.max() + 1)])
        if self.calibrator is not None:
            return EstimatorScope(fit, validation, self.calibrator)
        return Scope(fit, validation, smoothing=self.smoothing)

    def grow(
        self, name: str, fit: Audit, validation: Audit, start: Sequence[int], costs: Sequence[float], *,
        tau: float, lam: float,
    ) -> Grown:  # fmt: skip
        """The panel that this manner of search ends at, from `start` (places of judges)."""
        rule = Rule(float(tau), float(lam), one_se=self.one_se, beam=self.beam, pairs=self.pairs)
        return grow(name, self.scope(fit, validation), start, costs, rule)

    def table(self, panel: tuple[str, ...]) -> object:
        """The unfitted calibrator of a panel."""
        return self.calibrator(panel) if self.calibrator else PatternCalibrator(panel, smoothing=self.smoothing)


PAPER = Search()


def _folds(audit: Audit, folds: int) -> np.ndarray:
    """Fold of every item: groups in order, dealt round robin."""
    group = np.unique(audit.coding.group, return_inverse=True)[1]
    return group % min(folds, int(group.max()) + 1)

"""Which experts a bank can do without: panels grown under what an expert really adds to the bill.

`panels` prices a call by itself. Here a candidate is charged what it adds to the experts that are there already, so the
order of the panel and its bill agree: after direct judging its two corrections are free. This file grows and fits
panels; comparing them over splits is `comparing`'s business.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from baer_utils.calibrators import Audit, PatternCalibrator
from baer_utils.early_exit.prices import BankPrices
from baer_utils.juries import FixedPanel
from baer_utils.roles import Scope, State, adjusted, gain_of


class PruningStep(NamedTuple):
    """An expert added to a panel, or the best one left out: what it gained and what it was charged."""

    expert: str
    gain: float
    added: float
    """Tokens per pair that it adds to the panel before it."""
    alone: float
    """Tokens per pair that it costs by itself."""
    adjusted: float
    """Gain minus lam times the added tokens."""


class PrunedBank(FixedPanel):
    """The experts worth their tokens: conditional value, charged at the marginal price of the set.

    Parameters
    ----------
    prices : of the bank's sets. tau : a gain minus its charge must exceed it strictly. lam : risk that one token per
        pair is worth.
    size : so many experts (all, where there are fewer), in the same order, without a threshold; None stops where no
        candidate clears tau.

    Attributes
    ----------
    panel_ : names, in the order they were added. steps_ : one `PruningStep` per expert of the panel.
    stopped_by_ : the best candidate left out, None where none is left. calibrator_ : the panel's table.

    Notes
    -----
    Ties: the larger adjusted gain, the larger gain, the name. With lam = 0 the panel is the global panel of
    `panels.build_policy`. The bill of the panel is the sum of what its steps were charged.
    """

    def __init__(self, prices: BankPrices, *, tau: float = 0.005, lam: float = 0.0, size: int | None = None) -> None:
        self.prices, self.tau, self.lam, self.size = prices, tau, lam, size

    def fit(self, fit: Audit, validation: Audit, *, costs=None, seed: int = 0) -> PrunedBank:
        """Grow the panel on fit and validation, then count its cells on both. `costs` and `seed` have no say."""
        scope = Scope(fit, validation)
        state, steps = scope.start(), []
        self.stopped_by_ = None
        while len(steps) < min(len(fit.judges), self.size if self.size is not None else len(fit.judges)):
            step, after = self._best(scope, state)
            if self.size is None and not step.adjusted > self.tau:
                self.stopped_by_ = step
                break
            state = after
            steps.append(step)
        self.steps_ = tuple(steps)
        self.panel_ = tuple(step.expert for step in steps)
        both = fit.join(validation)
        self.calibrator_ = PatternCalibrator(fit.columns(self.panel_)).fit(both.Z, both.y)
        return self

    def _best(self, scope: Scope, state: State) -> tuple[PruningStep, State]:
        panel = [scope.judges[place] for place in state.panel]
        tried = []
        for place in np.setdiff1d(np.arange(len(scope.judges)), state.panel):
            name, after = scope.judges[place], scope.add(state, int(place))
            gain, added = gain_of(state, after), self.prices.added(panel, name)
            tried.append(
                (PruningStep(name, gain, added, self.prices.alone[name], adjusted(gain, added, self.lam)), after)
            )
        return min(tried, key=lambda pair: (-pair[0].adjusted, -pair[0].gain, pair[0].expert))

"""Juries that call everybody and trust each judge globally: a labelled one, and Dawid-Skene, which needs no label.

Both end in the same product of label-conditional rates; they differ in where the labels of that M-step come from.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from baer_utils.calibrators import Audit
from baer_utils.juries.em import dawid_skene
from baer_utils.juries.outputs import Construction, codes_like, construction
from baer_utils.juries.rates import RateProduct

# what a symbol votes for when nobody says otherwise: 1 the label 1, 0 the label 0, 1/2 neither
VOTES = {"a": 1.0, "A": 1.0, "b": 0.0, "B": 0.0, "split": 0.5, "tie": 0.5}


class ReliabilityJury:
    """Label-conditional error rates of every judge on the construction labels, and their product (Panels section 4).

    Parameters
    ----------
    smoothing : pseudo-count of each of a judge's symbols under each label.

    Notes
    -----
    Nothing is chosen on validation rows, so both parts give rates. A soft label y counts as y ones and 1 - y zeros.
    """

    def __init__(self, *, smoothing: float = 1.0) -> None:
        self.smoothing = smoothing

    def fit(self, fit: Audit, validation: Audit, *, costs=None, seed: int = 0) -> ReliabilityJury:
        """Count how each judge answers under either label."""
        parts = construction(fit, validation)
        self.levels_ = parts.levels
        pseudo = np.full((len(parts.judges), parts.width, 2), self.smoothing) * _own(parts)
        self.rates_ = RateProduct(parts.codes, parts.y, pseudo, prior_pseudo=self.smoothing)
        return self

    def predict(self, Z: NDArray[np.object_], slices=None) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Posterior of label 1, and that every judge was called; missing and unseen outputs are skipped."""
        return self.rates_.probability(codes_like(Z, self.levels_)), np.ones(np.shape(Z), dtype=bool)


class DawidSkene:
    """Dawid-Skene: the labels of the M-step come from expectation maximisation on the outputs alone.

    Parameters
    ----------
    one_coin : one accuracy per judge instead of a rate for each symbol under each label. In pairwise use only this one
        keeps P(a) = 1 - P(b) under a swap, and only where every row enters with its swap, or the prior is one half.

    Attributes
    ----------
    posterior_ : P(label = 1) of each construction item (fit first) before orientation.
    flipped_ : whether the two classes were exchanged, as the validation labels prefer.

    Notes
    -----
    Classes are the two labels. Symbols vote by `VOTES`, numbers within [0, 1] by their side of one half, other numbers
    by their place between the judge's smallest and largest one, other words by whether the fit labels beside them lie
    above the label mean (the only use of labels besides the orientation). Votes for neither say nothing while the EM
    runs; afterwards one M-step (2 pseudo-counts for the class a symbol votes for, 1 for the other) gives every symbol
    its rates. The likelihood cannot tell the classes from each other, hence the orientation. New items take one E-step.
    """

    def __init__(self, *, one_coin: bool = False) -> None:
        self.one_coin = one_coin

    def fit(self, fit: Audit, validation: Audit, *, costs=None, seed: int = 0) -> DawidSkene:
        """EM on construction outputs, one smoothed M-step, orientation by validation risk."""
        parts = construction(fit, validation)
        self.levels_ = parts.levels
        votes = symbol_votes(parts.levels, parts.fit_codes, parts.fit_y, parts.width)
        cast = votes[np.arange(len(votes)), parts.codes]
        self.posterior_ = dawid_skene(_sides(cast), one_coin=self.one_coin)
        leaning = votes[:, :-1]
        pseudo = np.stack([1.0 + (leaning < 0.5), 1.0 + (leaning > 0.5)], axis=2)
        self.rates_ = RateProduct(parts.codes, self.posterior_, pseudo * _own(parts))
        if self.one_coin:
            self.rates_.evidence = _one_coin_evidence(votes, cast, self.posterior_)
        guess = self.rates_.probability(parts.validation_codes)
        risk, turned = (np.mean((p - parts.validation_y) ** 2).round(12) for p in (guess, 1 - guess))
        self.flipped_ = bool(turned < risk)
        return self

    def predict(self, Z: NDArray[np.object_], slices=None) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Posterior of label 1 by one E-step, and that every judge was called."""
        guess = self.rates_.probability(codes_like(Z, self.levels_))
        return (1 - guess if self.flipped_ else guess), np.ones(np.shape(Z), dtype=bool)


def symbol_votes(levels, codes: NDArray[np.int32], y: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """What each symbol of each judge votes for, (judges, width + 1); 1/2, also last and for padding, is neither."""
    votes = np.full((len(levels), width + 1), 0.5)
    for judge, symbols in enumerate(levels):
        numbers = [s for s in symbols if not isinstance(s, str)]
        low, high = min([0.0, *numbers]), max([1.0, *numbers])
        if low < 0 or high > 1:
            low, high = min(numbers), max(numbers)
        for code, symbol in enumerate(symbols):
            if not isinstance(symbol, str):
                votes[judge, code] = (symbol - low) / (high - low) if high > low else 0.5
            elif symbol in VOTES:
                votes[judge, code] = VOTES[symbol]
            else:
                beside = y[codes[:, judge] == code]
                votes[judge, code] = 0.5 + 0.5 * np.sign(beside.mean() - y.mean()) if len(beside) else 0.5
    return votes


def _own(parts: Construction) -> NDArray[np.bool_]:
    """Which codes a judge has, (judges, width, 1); the others pad the table."""
    return np.arange(parts.width)[None, :, None] < np.array(parts.sizes)[:, None, None]


def _one_coin_evidence(votes, cast, posterior) -> NDArray[np.float64]:
    """Log-likelihood ratio of each symbol when a judge errs alike under both labels, (judges, width + 1)."""
    side = _sides(cast)
    agreed = ((side == 1) * posterior[:, None] + (side == 0) * (1 - posterior)[:, None]).sum(axis=0)
    skill = (agreed + 2) / ((side != 0.5).sum(axis=0) + 3)
    return np.sign(votes - 0.5) * np.log(skill / (1 - skill))[:, None]


def _sides(cast: NDArray[np.float64]) -> NDArray[np.float64]:
    """Votes as 1, 0, or 1/2 for neither."""
    return 0.5 + 0.5 * np.sign(cast - 0.5)

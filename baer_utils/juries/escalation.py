"""Trust or escalate: the cheapest judge answers where its confidence was certified, else the next one is asked.

Certified means: on validation questions, confident answers were rarely enough wrong for an exact binomial test.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from baer_utils.calibrators import Audit
from baer_utils.juries.outputs import (
    by_quality,
    codes_like,
    construction,
    cost_vector,
    own_predictions,
    own_tables,
    standalone_risk,
)


def certified_threshold(confidence: ArrayLike, wrong: ArrayLike, *, alpha: float, delta: float) -> float:
    """Lowest confidence at which P(wrong | confidence at least this) <= alpha, certified with probability 1 - delta.

    Parameters
    ----------
    confidence : (n,) of independent questions. wrong : (n,) whether the answer was wrong.

    Returns
    -------
    float
        by fixed-sequence testing from the strictest threshold down: the binomial p-value P(Bin(n_t, alpha) <= wrong_t)
        must be at most delta at every threshold passed; the last one that passes. Infinite where the first fails.
    """
    confidence, wrong = np.asarray(confidence, dtype=float), np.asarray(wrong, dtype=bool)
    thresholds, place = np.unique(confidence, return_inverse=True)
    number = np.bincount(place, minlength=len(thresholds))[::-1].cumsum()
    errors = np.bincount(place[wrong], minlength=len(thresholds))[::-1].cumsum()
    passed = int(np.cumprod(binom.cdf(errors, number, alpha) <= delta).sum())
    return float(thresholds[::-1][passed - 1]) if passed else np.inf


class TrustOrEscalate:
    """Judges in order of rising cost; the first that is confident enough answers, after the last one nobody does.

    Parameters
    ----------
    alpha : share of wrong answers that each judge may give where it answers. delta : chance that this fails.

    Attributes
    ----------
    order_ : names of the judges that are asked, by cost, then validation risk, then name. thresholds_ : their certified
        confidences. A judge without one could never answer and is never asked.
    abstained_ : items of the last `predict` that nobody answered: they are predicted as the label mean of the
        construction rows, so that their risk counts.

    Notes
    -----
    A judge's confidence is max(p, 1 - p) of its own cell on the fit rows, rounded to 1e-12; it is tested on the
    validation rows, the first item of each group only, so that questions are independent. The tables stay those of the
    fit rows: after a refit the thresholds would certify nothing. A label above one half counts as the answer 1; an
    output that was never seen has no confidence.
    """

    def __init__(self, *, alpha: float = 0.1, delta: float = 0.1) -> None:
        if not (0 < alpha < 1 and 0 < delta < 1):
            raise ValueError(f"alpha and delta must lie strictly between 0 and 1; they are {alpha} and {delta}.")
        self.alpha = alpha
        self.delta = delta

    def fit(self, fit: Audit, validation: Audit, *, costs=None, seed: int = 0) -> TrustOrEscalate:
        """Tables on the fit rows, thresholds on one validation item per group."""
        parts = construction(fit, validation)
        cost = cost_vector(costs, parts.judges)
        quality = by_quality(standalone_risk(parts), parts.judges)
        order = sorted(quality, key=lambda place: cost[place])  # stable: equal costs stay in order of quality
        self.levels_, self.mean_ = parts.levels, float(parts.y.mean())
        self.tables_ = own_tables(parts.fit_codes, parts.fit_y, parts.width)
        self.seen_ = np.stack([(parts.fit_codes == code).any(axis=0) for code in range(-1, parts.width)], axis=1)
        self.seen_[:, 0] = False  # code -1: missing, or never seen
        first = np.unique(validation.coding.group, return_index=True)[1]
        guess, confidence = self._read(parts.validation_codes[first])
        wrong = (guess >= 0.5) != (parts.validation_y[first] >= 0.5)[:, None]
        known = np.isfinite(confidence)
        found = [
            certified_threshold(confidence[rows, j], wrong[rows, j], alpha=self.alpha, delta=self.delta)
            for j, rows in enumerate(known.T)
        ]
        self.places_ = [place for place in order if np.isfinite(found[place])]
        self.order_ = tuple(parts.judges[place] for place in self.places_)
        self.thresholds_ = np.array([found[place] for place in self.places_])
        return self

    def predict(self, Z: NDArray[np.object_], slices=None) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """What the answering judge's table says, and every judge asked until then."""
        guess, confidence = (part[:, self.places_] for part in self._read(codes_like(Z, self.levels_)))
        trusted = confidence >= self.thresholds_
        answered = trusted.any(axis=1)
        self.abstained_ = int((~answered).sum())
        earlier = np.cumsum(trusted, axis=1) - trusted  # judges that already answered
        called = np.zeros(np.shape(Z), dtype=bool)
        called[:, self.places_] = earlier == 0
        answer = (guess * (trusted & (earlier == 0))).sum(axis=1)
        return np.where(answered, answer, self.mean_), called

    def _read(self, codes: NDArray[np.int32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Probability and confidence by every judge's own table, (n, judges) each."""
        guess = own_predictions(codes, self.tables_)
        confidence = np.maximum(guess, 1 - guess).round(12)
        confidence[~self.seen_[np.arange(codes.shape[1]), codes + 1]] = -np.inf
        return guess, confidence

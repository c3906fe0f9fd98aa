"""A product of label-conditional rates: how a judge answers when the label is 1, and when it is 0.

Knows codes and (soft) labels; where the labels come from, an audit or an unsupervised model, is for others to say.
Judges are taken as independent given the label, so a duplicated judge counts twice: that is this method's flaw, kept.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit


class RateProduct:
    """Posterior of a binary label from every judge's label-conditional response rates.

    Parameters
    ----------
    codes : array (n, judges) of symbol codes; -1 where the output is missing or was never seen.
    labels : array (n,), P(label = 1) of each item: 0 or 1 where audited, anything between where soft.
    pseudo : array (judges, symbols, 2), pseudo-counts of each response given label 0 and 1; 0 in both for codes that a
        judge does not have.
    prior_pseudo : pseudo-count of either label.

    Notes
    -----
    `e_j[k|c] = (sum_i T_ic [z_ij = k] + pseudo_jkc) / (sum_i T_ic [j answered i] + sum_k pseudo_jkc)`. A response that
    was never seen has the same rate under both labels, so that its factor, like a missing one, is skipped.
    """

    def __init__(self, codes: np.ndarray, labels: np.ndarray, pseudo: np.ndarray, *, prior_pseudo: float = 1.0):
        n_judges, n_symbols, _ = pseudo.shape
        weights = np.stack([1 - labels, labels], axis=1)
        counts = np.stack([_counts(codes, weights[:, c], n_symbols) for c in (0, 1)], axis=2) + pseudo
        with np.errstate(divide="ignore", invalid="ignore"):
            log_rates = np.log(counts / counts.sum(axis=1, keepdims=True))
            evidence = log_rates[:, :, 1] - log_rates[:, :, 0]
        self.evidence = np.zeros((n_judges, n_symbols + 1))  # the last column answers for code -1
        self.evidence[:, :-1] = np.where(np.isnan(evidence), 0.0, evidence)
        ones = labels.sum() + prior_pseudo
        self.prior = float(np.clip(ones / (len(labels) + 2 * prior_pseudo), 1e-10, 1 - 1e-10))

    def probability(self, codes: np.ndarray) -> np.ndarray:
        """P(label = 1), shape (n,); the prior where no judge says anything."""
        each = self.evidence[np.arange(codes.shape[1]), codes]
        return expit(logit(self.prior) + each.sum(axis=1))


def _counts(codes: np.ndarray, weights: np.ndarray, n_symbols: int) -> np.ndarray:
    """Weighted count of each symbol of each judge, shape (judges, symbols)."""
    n_judges = codes.shape[1]
    slot = codes + n_symbols * np.arange(n_judges)
    seen = codes >= 0
    spread = np.broadcast_to(weights[:, None], codes.shape)
    total = np.bincount(slot[seen], weights=spread[seen], minlength=n_judges * n_symbols)
    return total.reshape(n_judges, n_symbols)

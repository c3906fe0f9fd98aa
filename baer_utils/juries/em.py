"""Dawid and Skene's expectation maximisation for two classes: labels and error rates from votes alone.

Starts from vote shares, so it settles on the mode that agrees with the majority; which class is which label is for
others to say. The arithmetic is that of crowd-kit, on matrices in place of frames of responses.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

CLIP = 1e-10  # crowd-kit's


def dawid_skene(
    votes: NDArray[np.float64], *, one_coin: bool = False, rounds: int = 100, tol: float = 1e-5
) -> NDArray[np.float64]:
    """P(class 1) of each item by EM.

    Parameters
    ----------
    votes : array (n, judges): 1 and 0 vote for the classes, anything else (NaN, 1/2) says nothing.
    one_coin : one accuracy per judge in place of one per judge and class.
    rounds : at most so many. tol : stop when the evidence lower bound gains less per vote.

    Returns
    -------
    array (n,). The prior where nobody votes; 1/2 everywhere where nobody votes at all.

    References
    ----------
    Dawid and Skene (1979). Rates are not smoothed but clipped at 1e-10.
    """
    said = np.stack([votes == 0, votes == 1]).astype(float)  # (class voted for, n, judges)
    heard = said.any(axis=(0, 2))
    if not heard.any():
        return np.full(len(votes), 0.5)
    said = said[:, heard]
    posterior = said.sum(axis=2) / said.sum(axis=(0, 2))  # (class, n)
    rates, prior, bound = _rates(said, posterior, one_coin), posterior.mean(axis=1), -np.inf
    for _ in range(rounds):
        posterior = _posterior(said, rates, prior)
        rates, prior = _rates(said, posterior, one_coin), posterior.mean(axis=1)
        last, bound = bound, _lower_bound(said, posterior, rates, prior)
        if bound - last < tol:
            break
    out = np.full(len(votes), prior[1])
    out[heard] = posterior[1]
    return out


def _rates(said: NDArray, posterior: NDArray, one_coin: bool) -> NDArray[np.float64]:
    """Rates e[c, k, w] at which judge w votes k on items of class c."""
    counts = np.einsum("cn,knw->ckw", posterior, said)
    if one_coin:
        right = (counts[0, 0] + counts[1, 1]) / np.maximum(counts.sum(axis=(0, 1)), CLIP)
        return np.clip(np.array([[right, 1 - right], [1 - right, right]]), CLIP, 1 - CLIP)
    counts = np.maximum(counts, CLIP)
    return counts / counts.sum(axis=1, keepdims=True)


def _log_joint(said: NDArray, rates: NDArray, prior: NDArray) -> NDArray[np.float64]:
    """Log probability of each class together with an item's votes, (class, n)."""
    return np.log(np.maximum(prior, CLIP))[:, None] + np.einsum("ckw,knw->cn", np.log(rates), said)


def _posterior(said: NDArray, rates: NDArray, prior: NDArray) -> NDArray[np.float64]:
    joint = _log_joint(said, rates, prior)
    weight = np.exp(joint - joint.max(axis=0))
    return weight / weight.sum(axis=0)


def _lower_bound(said: NDArray, posterior: NDArray, rates: NDArray, prior: NDArray) -> float:
    """Evidence lower bound per vote."""
    entropy = -(posterior * np.log(np.maximum(posterior, CLIP))).sum()
    return float((posterior * _log_joint(said, rates, prior)).sum() + entropy) / said.sum()

"""The stack's features: every column negates, bit for bit, when the two responses change places (Eq. 5).

Works on arrays; it knows nothing about labels, or about what a category means.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from baer_utils.evidence import order_free_sum


def mean_evidence(z: ArrayLike) -> NDArray[np.float64]:
    """z-bar: the mean signed evidence of the bank, over all its experts.

    Parameters
    ----------
    z : array (N, K) of signed log-odds, finite; a missing expert is a 0 that counts in the mean.

    Returns
    -------
    array (N,). What speaks for *a* and what speaks for *b* are summed apart, each in sorted order, so that the result
    does not depend on the order of the experts and negates bit for bit under the swap.
    """
    z = np.asarray(z, dtype=float)
    return (order_free_sum(np.maximum(z, 0.0)) - order_free_sum(np.maximum(-z, 0.0))) / z.shape[-1]


def stack_features(z: ArrayLike, z_shrunk: ArrayLike, categories: ArrayLike) -> NDArray[np.float64]:
    """Signed features of a pair: raw and shrunk log-odds, and the mean evidence in each category (BAER Eq. 5).

    Parameters
    ----------
    z, z_shrunk : arrays (N, K) of signed log-odds; 0 where an expert is missing.
    categories : array or frame (N, G) of indicators, from `category_columns`; G may be 0.

    Returns
    -------
    C-contiguous array (N, 2K + G): the K columns of z, the K of z_shrunk, then indicator times z-bar.

    Raises
    ------
    ValueError
        when the three do not describe the same pairs, or the two evidence arrays not the same experts.
    """
    z, z_shrunk, categories = (np.asarray(block, dtype=float) for block in (z, z_shrunk, categories))
    if z.ndim != 2 or not z.shape[1] or z.shape != z_shrunk.shape or categories.shape[:1] != z.shape[:1]:
        raise ValueError(
            "z and z_shrunk must be (pairs, experts) with at least one expert, categories (pairs, categories), of the "
            f"same pairs; the shapes are {z.shape}, {z_shrunk.shape} and {categories.shape}. Align them by pair_id."
        )
    return np.ascontiguousarray(np.hstack([z, z_shrunk, categories * mean_evidence(z)[:, None]]))

"""Splits of an audit by group, 25/25/50: what a plan may be built on, and what it is judged on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from baer_utils.calibrators.audit import Audit


class Split(NamedTuple):
    """Tables are fitted on `fit`, gains are measured on `validation`, the frozen plan is judged on `test`."""

    fit: Audit
    validation: Audit
    test: Audit


def split_audit(audit: Audit, seed: int) -> Split:
    """A random split of the groups: construction = floor(G / 2), fit = floor(construction / 2), validation the rest.

    Parameters
    ----------
    audit : with at least 4 groups. seed : of the permutation of the sorted group names, so the order of the items has
        no say in it. No stratification: a group may span slices (Panels, section 6 and the sizes of its Table 14).

    Returns
    -------
    Split of three audits, items in their old order.

    Raises
    ------
    ValueError
        for fewer than 4 groups.
    """
    groups, place = np.unique(audit.coding.group, return_inverse=True)
    if len(groups) < 4:
        raise ValueError(f"an audit must have at least 4 groups to be split 25/25/50; it has {len(groups)}.")
    rank = np.empty(len(groups), dtype=np.int64)
    rank[np.random.default_rng(seed).permutation(len(groups))] = np.arange(len(groups))
    construction = len(groups) // 2
    part = np.digitize(rank[place], [construction // 2, construction])
    return Split(*(audit.take(part == number) for number in range(3)))

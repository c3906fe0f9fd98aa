"""Counting joint patterns: which cell of the pattern table every item falls into, and the mean label of each cell.

Integers only. Two judges that split the items alike give the same cells, the same sums in the same order, and
therefore the same floats: a copy changes nothing, to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DENSE = 1 << 16  # tables up to this size (or four times the items) are counted directly, larger ones by sorting


class Cells(NamedTuple):
    """Cell of every item of two sets; -1 where an output is missing, or the pattern never occurs in the first set."""

    fit: NDArray[np.int64]
    other: NDArray[np.int64]
    number: int


def one_cell(n_fit: int, n_other: int) -> Cells:
    """The empty panel: one cell that holds everything."""
    return Cells(np.zeros(n_fit, np.int64), np.zeros(n_other, np.int64), 1)


def refine(cells: Cells, fit: NDArray[np.int32], other: NDArray[np.int32], n_levels: int) -> Cells:
    """Every cell split by one more judge's outputs; numbered by their order among the patterns of the first set."""
    wide = max(n_levels, 1)
    key = np.where((cells.fit >= 0) & (fit >= 0), cells.fit * wide + fit, -1)
    looked_up = np.where((cells.other >= 0) & (other >= 0), cells.other * wide + other, -1)
    size = cells.number * wide
    if size <= max(DENSE, 4 * len(key)):
        place = np.full(size + 1, -1, dtype=np.int64)
        occurs = np.flatnonzero(np.bincount(key[key >= 0], minlength=size))
        place[occurs] = np.arange(len(occurs))
        return Cells(place[key], place[looked_up], len(occurs))
    occurs = np.unique(key[key >= 0])
    return Cells(_place(occurs, key), _place(occurs, looked_up), len(occurs))


def _place(sorted_keys: NDArray, keys: NDArray) -> NDArray[np.int64]:
    at = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return np.where(sorted_keys[at] == keys, at, -1) if len(sorted_keys) else np.full(len(keys), -1)


def cells_of(fit: NDArray[np.int32], other: NDArray[np.int32], n_levels: list[int]) -> Cells:
    """Cells of a whole panel: codes (n, k) of the two sets, judges in the order they were added."""
    cells = one_cell(len(fit), len(other))
    for column, levels in enumerate(n_levels):
        cells = refine(cells, fit[:, column], other[:, column], levels)
    return cells


def cell_means(cell: NDArray[np.int64], y: NDArray[np.float64], number: int) -> tuple[NDArray, NDArray]:
    """Mean label of each cell and the number of its items; items in cell -1 are left out."""
    inside = cell >= 0
    if not inside.all():
        cell, y = cell[inside], y[inside]
    count = np.bincount(cell, minlength=number)
    return np.bincount(cell, weights=y, minlength=number) / np.maximum(count, 1), count

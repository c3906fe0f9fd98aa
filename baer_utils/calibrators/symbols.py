"""Judge outputs as small integers: which symbols a judge has ever given, and which of them each item got.

Every count in the panel method is a count of joint patterns, so the outputs are turned into codes once and only the
codes are looked at afterwards. This file knows nothing about labels or slices' meaning.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

Symbol = str | int | float | bool


def encode(column: ArrayLike) -> tuple[NDArray[np.int32], tuple[Symbol, ...]]:
    """Code of every output of one judge, and the symbols behind the codes.

    Parameters
    ----------
    column : (N,) outputs: texts or numbers. None, NaN, NA and blank texts are missing. Values that are equal in Python
        (1, 1.0, True) are one symbol; texts are taken as they are.

    Returns
    -------
    codes (N,), -1 where missing, and the symbols in order: numbers first, by size, then texts; the order of the rows
    has no say in it.

    Raises
    ------
    ValueError
        for an output that is neither text nor number.
    """
    values = np.empty(len(column), dtype=object)
    values[:] = column if isinstance(column, np.ndarray) else list(column)
    try:
        codes, found = pd.factorize(values)
    except TypeError as error:
        raise ValueError(f"outputs must be texts or numbers; {error}. Turn each output into one symbol.") from None
    plain = [value.item() if isinstance(value, np.generic) else value for value in found]
    wrong = [value for value in plain if not isinstance(value, str | int | float)]
    if wrong:
        raise ValueError(
            f"outputs must be texts or numbers; {wrong[0]!r} ({type(wrong[0]).__name__}) came. "
            "Turn each output into one symbol."
        )
    kept = [place for place, value in enumerate(plain) if not (isinstance(value, str) and not value.strip())]
    kept.sort(key=lambda place: (isinstance(plain[place], str), plain[place]))
    rank = np.full(len(plain) + 1, -1, dtype=np.int32)
    rank[kept] = np.arange(len(kept), dtype=np.int32)
    return rank[codes], tuple(plain[place] for place in kept)


def encode_as(column: ArrayLike, levels: Sequence[Symbol]) -> NDArray[np.int32]:
    """Codes of one judge's outputs among known symbols: -1 where missing, and where the symbol is not among them."""
    values = np.empty(len(column), dtype=object)
    values[:] = column if isinstance(column, np.ndarray) else list(column)
    try:
        return pd.Index(levels, dtype=object).get_indexer(values).astype(np.int32)
    except TypeError as error:
        raise ValueError(f"outputs must be texts or numbers; {error}. Turn each output into one symbol.") from None


def named_columns(frame: pd.DataFrame, judges: Sequence[str]) -> NDArray[np.object_]:
    """The columns of a frame of outputs that the judges name, in their order; a ValueError where one is not there."""
    unknown = [judge for judge in judges if judge not in frame.columns]
    if unknown:
        raise ValueError(f"a frame of outputs must have a column for every judge; {', '.join(map(str, unknown))} "
                         f"are not among {', '.join(map(str, frame.columns))}.")  # fmt: skip
    return frame[list(judges)].to_numpy(dtype=object)


def recode(codes: NDArray[np.int32], old: Sequence[Symbol], new: Sequence[Symbol]) -> NDArray[np.int32]:
    """Codes among `old` symbols as codes among `new` ones; -1 for those that are not there."""
    if old is new or tuple(old) == tuple(new):
        return codes
    place = pd.Index(new, dtype=object).get_indexer(pd.Index(old, dtype=object)).astype(np.int32)
    return np.append(place, np.int32(-1))[codes]


def route_labels(slices: object, n_items: int) -> NDArray[np.object_]:
    """The route of every item: its slice label as text, or the first true column of a boolean frame; None for none.

    Parameters
    ----------
    slices : None, (N,) labels (None and NaN: no slice), or a boolean frame (N, F) whose columns are named in order of
        precedence: an item in several slices takes the first.
    n_items : N.

    Raises
    ------
    ValueError
        for another number of items, or a frame that is not boolean.
    """
    if slices is None:
        return np.full(n_items, None, dtype=object)
    if len(slices) != n_items:
        raise ValueError(f"slices must hold one entry for each of {n_items} items; {len(slices)} came.")
    if isinstance(slices, pd.DataFrame):
        columns_are_bool = all(map(pd.api.types.is_bool_dtype, slices.dtypes))
        if slices.shape[1] == 0 or not columns_are_bool or slices.isna().any(axis=None):
            came = dict(slices.dtypes.astype(str))
            raise ValueError(f"a frame of slices must have columns of True and False, nothing missing; {came} came. "
                             "Use .fillna(False).astype(bool).")  # fmt: skip
        inside = slices.to_numpy(dtype=bool)
        names = np.array([*map(str, slices.columns), None], dtype=object)
        return names[np.where(inside.any(axis=1), inside.argmax(axis=1), -1)]
    codes, found = pd.factorize(np.asarray(slices, dtype=object))
    return np.array([*map(str, found), None], dtype=object)[codes]

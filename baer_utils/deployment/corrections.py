"""The fitted corrections inside a frozen head: figures that a person reads, and arrays that keep every bit.

What is short (prior, mode) stands in the JSON; what is long (knots, values, ids of the pairs they were fitted on) in
the archive. This file knows how a `Debias` is taken apart and put together, and nothing about what it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from baer_utils.debias import Debias, IncreasingMap

MAPS = ("expert", "three_prompts")
PARTS = ("knots", "values", "pairs")
IDS = "prior_pairs"


def debias_figures(debias: Debias) -> dict:
    """What deployment.json says of the corrections: the short parameters, and how long the long ones are."""
    content = asdict(debias)
    maps = {name: content[name] and {part: len(content[name][part]) for part in ("knots", "pairs")} for name in MAPS}
    return content | maps | {IDS: len(debias.prior_pairs)}


def debias_arrays(debias: Debias) -> dict[str, NDArray]:
    """The long parts as arrays by name: floats, and text for ids."""
    long = {IDS: np.array(debias.prior_pairs, dtype=np.str_)}
    for name in MAPS:
        fitted = getattr(debias, name)
        if fitted is not None:
            kinds = zip(PARTS, (np.float64, np.float64, np.str_), strict=True)
            long |= {f"{name}_{part}": np.array(getattr(fitted, part), dtype=kind) for part, kind in kinds}
    return {f"debias_{name}": values for name, values in long.items()}


def restored_debias(figures: Mapping, arrays: Mapping[str, NDArray]) -> Debias:
    """The same corrections, to the last bit, from what `debias_figures` and `debias_arrays` made of them."""
    maps = {
        name: figures[name] and IncreasingMap(*(_tuple(arrays[f"debias_{name}_{part}"]) for part in PARTS))
        for name in MAPS
    }
    return Debias(**{**figures, **maps, IDS: _tuple(arrays[f"debias_{IDS}"])})


def _tuple(values: NDArray) -> tuple:
    return tuple(values.tolist())

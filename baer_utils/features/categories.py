"""Which of a benchmark's categories a pair belongs to: indicator columns, the same for a pair and its swap.

The list of a published benchmark is declared; that of anyone's own pairs is read off the pairs that are not test. This
file looks at subset, task type and split, never at a label or a response.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from baer_utils.benchmarks import CATEGORIES


def category_columns(pairs: pd.DataFrame, benchmark: str, *, categories: Sequence[str] | None = None) -> pd.DataFrame:
    """Indicator columns of a pair's subset and task type, the g(x) = c of Eq. 5.

    Parameters
    ----------
    pairs : pair table, N rows.
    benchmark : name as `load_pairs` takes it.
    categories : the frozen list, where a head is already frozen; else the list that ``CATEGORIES[benchmark]`` declares;
        else (starter sets, LLMBar, anyone's own pairs) the names that occur in the pairs that are not test: subsets,
        sorted, then task types, sorted. A task type that covers exactly the pairs of one subset is not repeated, and an
        empty name is no category.

    Returns
    -------
    frame (N, G) of 0.0 and 1.0, index pair_id, columns the names in the list's order. A pair activates the column of
    its subset and that of its task type, so up to two; a column exists whether or not a pair uses it. A name outside
    the list activates none; ``frame.attrs["unknown"]`` maps it to its number of pairs, for display only (a task type
    is counted only where the subset is not in the list either: the list may hold the subset in its place).
    """
    subset, task_type = pairs["subset"].to_numpy(), pairs["task_type"].to_numpy()
    if categories is None:
        categories = CATEGORIES.get(benchmark) or _occurring(pairs[pairs["split"] != "test"])
    names = pd.Index(list(categories), dtype=object)
    of_subset, of_type = names.get_indexer(subset), names.get_indexer(task_type)
    columns = np.zeros((len(pairs), len(names)))
    for found in (of_subset, of_type):
        columns[np.flatnonzero(found >= 0), found[found >= 0]] = 1.0
    frame = pd.DataFrame(columns, index=pd.Index(pairs["pair_id"], name="pair_id"), columns=names)
    unknown = pd.Series([*subset[of_subset < 0], *task_type[(of_subset < 0) & (of_type < 0)]], dtype=object)
    frame.attrs["unknown"] = {name: int(n) for name, n in unknown.value_counts().sort_index().items() if name}
    return frame


def _occurring(pairs: pd.DataFrame) -> list[str]:
    """Subsets, then the task types that are not exactly one subset; sorted, each name once, no empty ones."""
    subsets = sorted(set(pairs["subset"]) - {""})
    sizes = pairs["subset"].value_counts()
    types = []
    for name, rows in pairs.groupby("task_type")["subset"]:
        members = rows.unique()
        is_one_subset = len(members) == 1 and members[0] != "" and sizes[members[0]] == len(rows)
        if name and name not in subsets and not is_one_subset:
            types.append(name)
    return subsets + sorted(types)

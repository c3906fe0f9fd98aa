"""Load a benchmark, or anyone's pairs, as one checked pair table.

`load_pairs` decides which response is *a*, names the pairs, splits them by question and keeps the first `n_pairs`;
where the records come from and what their fields mean is in the files beside it. It knows nothing about judges.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from baer_utils.benchmarks import hub, sources
from baer_utils.benchmarks.categories import CATEGORIES, TASK_TYPES, UNKNOWN
from baer_utils.benchmarks.rows import TIE, Row
from baer_utils.benchmarks.table import table
from baer_utils.records import check_pairs, content_id, first_is_a, question_group, split_of, take_pairs

__all__ = ["BENCHMARKS", "CATEGORIES", "TASK_TYPES", "UNKNOWN", "load_pairs"]

BENCHMARKS = {
    "starter_correctness": partial(sources.starter, "starter_correctness"),
    "starter_preference": partial(sources.starter, "starter_preference"),
    "rewardbench": hub.rewardbench,
    "ultrafeedback": hub.ultrafeedback,
    "judgebench": sources.judgebench,
    "llmbar": sources.llmbar,
    "hh_rlhf": sources.hh_rlhf,
    "table": table,
}


def load_pairs(
    name: str,
    source: str | Path | None = None,
    *,
    seed: int = 0,
    n_pairs: int = 0,
    columns: dict[str, str] | None = None,
) -> pd.DataFrame:
    """The pair table of a benchmark, in the canonical frame: a hash, never the label, decides which response is *a*.

    Parameters
    ----------
    name : one of `BENCHMARKS`.
    source : folder, file or archive; for `rewardbench` and `ultrafeedback` also a Hub id. None or "" means the
        repository's own file for the starter sets and the Hub for those two. What is read of it is said in the
        docstring of each benchmark's function (``BENCHMARKS[name]``).
    seed : of the split.
    n_pairs : about how many pairs to keep (`records.take_pairs`); 0 keeps all.
    columns : only for `table`: {our column: the file's column}.

    Returns
    -------
    pair table (`records.check_pairs`), in the order of the source. ``group_id`` is the hash of ``instruction``; where
    upstream has no id, ``pair_id`` is the hash of instruction and responses, a repeated row getting -2, -3 ...
    ``attrs["loaded"]`` holds counts, for display only: of the source, `rows`, `ties_dropped` (upstream prefers
    neither), `repeated_ids`; of the table, `pairs`, `questions`, `unlabelled`, `blank_responses` (legal, judged as they
    are) and `unknown_categories` (pairs whose subset is not declared in `CATEGORIES`).

    Raises
    ------
    FileNotFoundError : the source, or what it should hold, is not there.
    ValueError : anything else that is not as it must be, naming file and line or row. Nothing is half-loaded.
    """
    if name not in BENCHMARKS:
        raise ValueError(f"the benchmark must be one of {', '.join(BENCHMARKS)}; it is {name!r}.")
    if columns and name != "table":
        raise ValueError(f"columns belongs to 'table'; {name} has its own names. Leave it out, or load 'table'.")
    if source is not None and not isinstance(source, (str, Path)):
        raise ValueError(f"source must be a path as text, or None; it is {source!r}.")
    rows = list(BENCHMARKS[name](source, columns) if name == "table" else BENCHMARKS[name](source))
    decided = [row for row in rows if row.label != TIE]
    if not decided:
        raise ValueError(
            f"{name}: there must be at least one pair; {source or 'the source'} has {len(rows)}, all ties."
        )
    ids, repeated = _pair_ids(decided)
    pairs = take_pairs(check_pairs(_frame(name, decided, ids, seed)), n_pairs)
    counts = {"rows": len(rows), "ties_dropped": len(rows) - len(decided), "repeated_ids": repeated}
    pairs.attrs["loaded"] = counts | _counts(name, pairs)
    return pairs


def _pair_ids(rows: list[Row]) -> tuple[list[str], int]:
    """Upstream's ids, which must be unique, or content ids with a suffix on repeats; and the number of repeats."""
    ids: list[str] = []
    first_place: dict[str, str] = {}
    copies: Counter[str] = Counter()
    for row in rows:
        pair_id = row.pair_id
        if pair_id is None:
            content = content_id(row.instruction, row.first, row.second)
            copies[content] += 1
            pair_id = content if copies[content] == 1 else f"{content}-{copies[content]}"
        elif pair_id in first_place:
            raise ValueError(
                f"{row.place}: the pair id must be unique; {pair_id!r} was seen at {first_place[pair_id]}. "
                "Rename or drop one, or load the two files apart."
            )
        first_place[pair_id] = row.place
        ids.append(pair_id)
    return ids, copies.total() - len(copies)


def _frame(name: str, rows: list[Row], ids: list[str], seed: int) -> pd.DataFrame:
    first = np.array([first_is_a(name, pair_id) for pair_id in ids])
    groups = [question_group(row.instruction) for row in rows]
    return pd.DataFrame(
        {
            "pair_id": ids,
            "group_id": groups,
            "benchmark": name,
            "subset": [row.subset for row in rows],
            "task_type": [row.task_type for row in rows],
            "instruction": [row.instruction for row in rows],
            "response_a": [row.first if is_a else row.second for row, is_a in zip(rows, first, strict=True)],
            "response_b": [row.second if is_a else row.first for row, is_a in zip(rows, first, strict=True)],
            "label": np.where(first, 1.0, -1.0) * [row.label for row in rows],
            "split": [split_of(group, seed) for group in groups],
        }
    )


def _counts(name: str, pairs: pd.DataFrame) -> dict[str, int]:
    blank = sum(int((pairs[column].str.strip() == "").sum()) for column in ("response_a", "response_b"))
    unknown = int((~pairs["subset"].isin(CATEGORIES[name])).sum()) if name in CATEGORIES else 0
    return {
        "pairs": len(pairs),
        "questions": int(pairs["group_id"].nunique()),
        "unlabelled": int(pairs["label"].isna().sum()),
        "blank_responses": blank,
        "unknown_categories": unknown,
    }

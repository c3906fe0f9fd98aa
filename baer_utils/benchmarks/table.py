"""Anyone's own pairs, under the column names that their file has."""

from __future__ import annotations

import math
from collections.abc import Iterator

from baer_utils.benchmarks.formats import DATA_SUFFIXES
from baer_utils.benchmarks.rows import FIRST, NONE, SECOND, TIE, Row, each_record, id_of, needed, text_of, value_of

TABLE_FIELDS = ("pair_id", "subset", "task_type", "instruction", "response_a", "response_b", "label")
LABELS = {
    "1": FIRST, "1.0": FIRST, "+1": FIRST, "a": FIRST, "a>b": FIRST, "response_a": FIRST,
    "-1": SECOND, "-1.0": SECOND, "2": SECOND, "2.0": SECOND, "b": SECOND, "b>a": SECOND, "response_b": SECOND,
    "tie": TIE, "a=b": TIE, "": NONE,
}  # fmt: skip


def table(source=None, columns: dict[str, str] | None = None) -> Iterator[Row]:
    """Anyone's pairs: CSV, TSV, JSONL, JSON or Parquet, with `columns` = {our name: the file's name} where they differ.

    `instruction`, `response_a` and `response_b` must be there. Without `pair_id` the id comes from the content, without
    `subset` or `task_type` it is "all", without `label` every label is null: new pairs, to be scored.
    Labels, whatever their case: 1, +1, a, A>B or response_a prefer the response in the column of `response_a`; -1, 2,
    b, B>A or response_b the other; tie and A=B are dropped; null and empty mean unknown. 0 is refused: it is a tie in
    one convention and the second response in another.
    """
    columns = dict(columns or {})
    if unknown := [name for name in columns if name not in TABLE_FIELDS]:
        raise ValueError(
            f"columns must map some of {', '.join(TABLE_FIELDS)}; it maps {', '.join(map(repr, unknown))}."
        )
    theirs = {name: columns.get(name, name) for name in TABLE_FIELDS}
    expected = "a CSV, TSV, JSONL, JSON or Parquet file of your pairs"
    source = needed("table", source, expected)
    for place, _, record in each_record(source, lambda path: path.endswith(DATA_SUFFIXES), expected):
        there = [name for name in TABLE_FIELDS if name in columns or theirs[name] in record]
        texts = [text_of(place, record, theirs[name]) for name in ("instruction", "response_a", "response_b")]
        pair_id = id_of(place, record, theirs["pair_id"]) if "pair_id" in there else None
        names = [text_of(place, record, theirs[name]) if name in there else "all" for name in ("subset", "task_type")]
        label = label_in(place, record, theirs["label"]) if "label" in there else NONE
        yield Row(place, pair_id, *names, *texts, label)


def label_in(place: str, record: dict, field: str) -> float:
    """A label in one of the spellings of `LABELS`, whatever its case; null and empty are unknown (NaN)."""
    value = value_of(place, record, field)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NONE
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        spelling = value.strip().lower() if isinstance(value, str) else f"{value:g}"
        if spelling in LABELS:
            return LABELS[spelling]
    raise ValueError(
        f"{place}: {field} must be one of 1, -1, 2, a, b, A>B, B>A, response_a, response_b, tie, A=B or empty; "
        f"it is {value!r}. Write a for the response in response_a, b for the other."
    )

"""Anyone's own verdicts in long form, under the column names that their file has."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import PurePosixPath

from baer_utils.benchmarks.formats import DATA_SUFFIXES
from baer_utils.benchmarks.rows import each_record, id_of, text_of, value_of
from baer_utils.benchmarks.table import label_in
from baer_utils.importers.verdicts import FIRST, NONE, SECOND, TIE, Verdict, status_of

FIELDS = ("pair_id", "protocol", "backbone", "view", "verdict", "log_odds", "label", "text")
VIEWS = {"ab": "ab", "ba": "ba", "net": "net", "agg": "net", "pt": "net", "": "net"}
WORDS = {
    "a": FIRST, "a>b": FIRST, "first": FIRST, "b": SECOND, "b>a": SECOND, "second": SECOND, "tie": TIE, "a=b": TIE,
    "": NONE, "none": NONE, "null": NONE, "nan": NONE,
}  # fmt: skip


def table(path, columns: dict[str, str]) -> Iterator[Verdict]:
    """Anyone's verdicts, one row each: CSV, TSV, JSONL, JSON or Parquet, whole or `.gz`.

    `columns` maps our names to the file's where they differ. `pair_id`, `protocol` (the judge) and one of `verdict` and
    `log_odds` must be there. `verdict` speaks of the response that the file's data list first, whatever was shown
    first: 1, a, A>B or first for it, 0, b, B>A or second for the other, .5, tie or A=B for neither, empty for none; a
    number between is a probability. Any other number is refused: 2 or -1 for the second response are other codes.
    `log_odds` is toward the first response, ±inf for a hard verdict. `view`: ab, ba, or net (agg, pt and empty too) for
    a judge whose orders are already combined; without the column all are net. Without `backbone` it is the file's name,
    without `label` (as in `load_pairs("table", ...)`) every label is unknown.
    """
    if unknown := [name for name in columns if name not in FIELDS]:
        raise ValueError(f"columns must map some of {', '.join(FIELDS)}; it maps {', '.join(map(repr, unknown))}.")
    theirs = {name: columns.get(name, name) for name in FIELDS}
    expected = "a CSV, TSV, JSONL, JSON or Parquet file of verdicts"
    for place, file, record in each_record(path, lambda name: name.endswith(DATA_SUFFIXES), expected):
        there = {name for name in FIELDS if name in columns or theirs[name] in record}
        field = "log_odds" if "log_odds" in there and "verdict" not in columns else "verdict"
        raw = value_of(place, record, theirs[field])
        log_odds = (_number if field == "log_odds" else _toward_first)(place, theirs[field], raw)
        view = str(value_of(place, record, theirs["view"])) if "view" in there else "net"
        if view not in VIEWS:
            raise ValueError(f"{place}: {theirs['view']} must be one of {', '.join(VIEWS)}; it is {view!r}.")
        stem = PurePosixPath(file).name.removesuffix(PurePosixPath(file).suffix)
        yield Verdict(
            place,
            id_of(place, record, theirs["pair_id"]),
            text_of(place, record, theirs["backbone"]) if "backbone" in there else stem,
            id_of(place, record, theirs["protocol"]),
            VIEWS[view],
            log_odds,
            status_of(log_odds),
            str(raw),
            text_of(place, record, theirs["text"]) if "text" in there else "",
            label_in(place, record, theirs["label"]) if "label" in there else NONE,
        )


def _toward_first(place: str, field: str, value) -> float:
    word = "" if value is None else str(value).strip().lower()
    if word in WORDS:
        return WORDS[word]
    share = _number(place, field, value)
    if not 0 <= share <= 1:
        raise ValueError(
            f"{place}: {field} must be a share between 0 (second response) and 1 (first), or one of a, b, A>B, B>A, "
            f"tie, empty; it is {value!r}. Recode it."
        )
    return FIRST if share == 1 else SECOND if share == 0 else math.log(share) - math.log1p(-share)


def _number(place: str, field: str, value) -> float:
    if value is None or value == "":
        return NONE
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{place}: {field} must be a number or empty; it is {value!r}.") from error

"""One upstream record as a `Row`, still in upstream's order of the two responses, and the checks of its fields.

It knows what a pair needs; it knows nothing about where records come from, nor about *a* and *b*.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from baer_utils.benchmarks.files import read_files
from baer_utils.benchmarks.formats import records

FIRST, SECOND, TIE, NONE = 1.0, -1.0, 0.0, math.nan  # which response upstream prefers


class Row(NamedTuple):
    """One upstream record: `pair_id` None where upstream has none, `label` toward the response listed first."""

    place: str
    pair_id: str | None
    subset: str
    task_type: str
    instruction: str
    first: str
    second: str
    label: float


def value_of(place: str, record: dict, field: str):
    """A field that must be there."""
    if field not in record:
        there = ", ".join(map(str, record)) or "none"
        raise ValueError(f"{place}: the field {field!r} must be there; the fields are {there}. Is it the right file?")
    return record[field]


def text_of(place: str, record: dict, field: str) -> str:
    """A field that must hold text that UTF-8 can write; an empty text is legal."""
    value = value_of(place, record, field)
    if not isinstance(value, str):
        came = "null" if value is None else f"{value!r} ({type(value).__name__})"
        raise ValueError(f"{place}: {field} must be text (it may be empty); it is {came}. Fill it, or drop the record.")
    if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError(f"{place}: {field} must be valid Unicode; it holds half a surrogate pair. Repair the text.")
    return value


def id_of(place: str, record: dict, field: str) -> str:
    """An id: a text that is not blank, or a whole number."""
    value = value_of(place, record, field)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value.strip():
        return text_of(place, record, field)
    raise ValueError(f"{place}: {field} must be a text or a whole number that names the pair; it is {value!r}.")


def label_of(place: str, record: dict, field: str, meaning: dict) -> float:
    """A label that must be one of the spellings in `meaning`."""
    value = value_of(place, record, field)
    if isinstance(value, (str, int)) and not isinstance(value, bool) and value in meaning:
        return meaning[value]
    raise ValueError(f"{place}: {field} must be one of {', '.join(map(repr, meaning))}; it is {value!r}.")


def each_record(source, wanted, expected) -> Iterator[tuple[str, str, dict]]:
    """(place, path of the file, record) over all wanted files."""
    for file in read_files(source, wanted, expected):
        for place, record in records(file):
            yield place, file.path, record


def needed(name: str, source, expected: str):
    """The source, or a ValueError that says what to give where there is none."""
    if not source:
        raise ValueError(f"{name} needs a source: {expected}; it is {source!r}. Use load_pairs({name!r}, 'path').")
    return source

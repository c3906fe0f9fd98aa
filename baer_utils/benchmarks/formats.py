"""From the bytes of one file to records, each with the words that say where it stands.

JSONL, JSON, CSV, TSV and Parquet. It knows nothing about benchmarks or pairs.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import PurePosixPath

from baer_utils.benchmarks.files import File

DATA_SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet")


def records(file: File) -> Iterator[tuple[str, dict]]:
    """(place, record) for each record of a file; the place names the file and the line, or the row counted from 1.

    Raises
    ------
    ValueError : bytes that are not UTF-8, a malformed line or file, a record that is not an object, a foreign format.
    """
    suffix = PurePosixPath(file.path).suffix.lower()
    if suffix not in DATA_SUFFIXES:
        raise ValueError(f"{file.place}: must be one of {', '.join(DATA_SUFFIXES)} (or .gz of it); it is {suffix!r}.")
    if suffix == ".parquet":
        numbered = enumerate(_parquet(file), start=1)
    elif suffix == ".jsonl":
        numbered = _jsonl(file)
    else:
        numbered = enumerate(
            _json(file) if suffix == ".json" else _csv(file, "\t" if suffix == ".tsv" else ","), start=1
        )
    unit = "line" if suffix == ".jsonl" else "row"
    for number, record in numbered:
        place = f"{file.place}, {unit} {number}"
        if not isinstance(record, dict):
            raise ValueError(f"{place}: must be one object with named fields; it is {type(record).__name__}.")
        yield place, record


def _text(file: File) -> str:
    try:
        return file.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = file.data[: error.start].count(b"\n") + 1
        came = f"byte 0x{file.data[error.start]:02x}"
        raise ValueError(f"{file.place}, line {line}: must be UTF-8; {came} is not. Save the file as UTF-8.") from error


def _jsonl(file: File) -> Iterator[tuple[int, object]]:
    for number, line in enumerate(_text(file).split("\n"), start=1):  # splitlines would also cut at U+2028 in a text
        if line.strip():
            try:
                yield number, json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(
                    f"{file.place}, line {number}: must be one JSON object; {error.msg} at column {error.colno}: "
                    f"{line[:60]!r}. Repair or remove the line."
                ) from error


def _json(file: File) -> list:
    try:
        content = json.loads(_text(file))
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{file.place}, line {error.lineno}: must be one JSON list of objects; {error.msg}. "
            "A file with one object a line is called .jsonl."
        ) from error
    if not isinstance(content, list):
        raise ValueError(f"{file.place}: must be one JSON list of objects; it is {type(content).__name__}.")
    return content


def _csv(file: File, delimiter: str) -> Iterator[dict]:
    """Rows of a CSV: every cell is text, "NA" and "None" too; a row must have as many cells as the header."""
    csv.field_size_limit(2**31 - 1)  # the default refuses a response of 128 kB
    reader = csv.DictReader(io.StringIO(_text(file), newline=""), delimiter=delimiter, strict=True)
    try:
        names = reader.fieldnames or []
        if len(set(names)) < len(names):
            raise csv.Error("the header names a column twice")
        for row in reader:
            if None in row or None in row.values():
                raise csv.Error("the row has more or fewer cells")
            yield row
    except csv.Error as error:
        raise ValueError(
            f"{file.place}, line {reader.reader.line_num}: each row must have one cell per column name; {error}. "
            f"Quote cells that hold {delimiter!r}, quotes or line breaks."
        ) from error


def _parquet(file: File) -> Iterator[dict]:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.ParquetFile(io.BytesIO(file.data))
        for batch in table.iter_batches(batch_size=1024):
            yield from batch.to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{file.place}: must be a whole Parquet file; {error}. Get it again.") from error

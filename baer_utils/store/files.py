"""Folders of Parquet files that are only ever added to: whole or absent, safe beside other readers and writers.

Each table is written under a name of its own beside its place and then renamed into it: a killed process leaves at most
a file that nobody reads, and two writers never touch the same one. This file knows nothing about what the tables hold.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def append_table(folder: Path, table: pa.Table, moment: str | None = None) -> None:
    """A new file whose name sorts by the time it was written, or by `moment`, the time of what it stands for."""
    moment = moment or datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    write_table(table, folder / f"{moment}-{uuid.uuid4().hex[:8]}.parquet")


def moment_of(path: Path) -> str:
    """The time in a file's name."""
    return path.name.partition("-")[0]


def table_files(folder: Path) -> list[Path]:
    """Whole files, oldest first."""
    return sorted(folder.glob("*.parquet"))


def read_tables(folder: Path) -> list[tuple[Path, pa.Table]]:
    """Every table of a folder in order of name; begun again where another process merges files meanwhile."""
    while True:
        with contextlib.suppress(FileNotFoundError):
            return [(path, read_table(path)) for path in table_files(folder)]


def remove_files(paths: list[Path]) -> None:
    """Oldest first, so that a kill in between leaves the newest, which say the same as the file merged from them."""
    for path in paths:
        path.unlink(missing_ok=True)


def read_table(path: Path) -> pa.Table:
    """One table, or an error that names the file and says what to do."""
    try:
        return pq.read_table(path)
    except (FileNotFoundError, PermissionError):
        raise
    except (pa.ArrowException, OSError) as error:
        raise ValueError(
            f"a file of the store must be whole Parquet; {path} is not ({str(error).strip()}). Delete it: all others "
            "stay good, and what it held is asked again."
        ) from error


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table beside its place, flush it to disk, then rename it: it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        pq.write_table(table, scratch, compression="zstd")
        with scratch.open("rb+") as handle:
            os.fsync(handle.fileno())
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)  # a full disk must not be kept full by what did not fit

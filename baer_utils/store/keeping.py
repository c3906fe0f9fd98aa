"""Answers and run tables on disk: one folder per judge and benchmark, in which what was paid for survives a kill."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pyarrow as pa

from baer_utils.records import RUN_KEY, about, check_runs
from baer_utils.store.files import append_table, moment_of, read_tables, remove_files, table_files

COMPACT_ABOVE = 200  # files of answers, after which they are merged into one
TEXTS = ["pair_id", "instruction", "response_a", "response_b"]
CALL_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("verb", pa.string()),
        ("log_odds", pa.float64()),
        ("label_mass", pa.float64()),
        ("log_likelihood", pa.float64()),
        ("text", pa.string()),
        ("ids", pa.list_(pa.int32())),
        ("finish_reason", pa.string()),
        ("prompt_tokens", pa.int32()),
        ("cached_tokens", pa.int32()),
        ("new_tokens", pa.int32()),
        ("seconds", pa.float64()),
    ]
)


@dataclass
class Store:
    """The answers of one judge on one benchmark, and the seal on the test labels.

    Attributes
    ----------
    folder : where everything lies: ``calls/``, ``runs/``, ``sealed/``.
    backbone, benchmark, seed, n_pairs : what the seal is for.
    seal_id : name of the seal, None before `seal`.
    pairs : the sealed pair table, None before `seal`.
    texts_id : name of the sealed pairs' ids and texts, whatever their labels; None before `seal`.
    """

    folder: Path
    backbone: str
    benchmark: str
    seed: int = 0
    n_pairs: int = 0
    seal_id: str | None = None
    pairs: pd.DataFrame | None = field(default=None, repr=False)
    texts_id: str | None = None

    def calls(self) -> dict[str, dict]:
        """Every stored answer by call key. Where two writers stored one key, the first file by name counts."""
        answers: dict[str, dict] = {}
        for _, table in read_tables(self.folder / "calls"):
            for row in table.to_pylist():
                answers.setdefault(row["key"], row)
        return answers

    def add_calls(self, rows: list[dict]) -> None:
        """Append answers, dicts with the fields of `CALL_SCHEMA`, as one new file."""
        if rows:
            append_table(self.folder / "calls", pa.Table.from_pylist(rows, schema=CALL_SCHEMA))

    def compact(self) -> None:
        """Merge the files of answers into one once there are many; safe beside other readers and writers."""
        paths = table_files(self.folder / "calls")
        if len(paths) > COMPACT_ABOVE:
            merged = pa.Table.from_pylist(list(self.calls().values()), schema=CALL_SCHEMA)
            # under the oldest name: the first file counts, and what counted before still does
            append_table(paths[0].parent, merged, moment=moment_of(paths[0]))
            remove_files(paths)

    def runs(self, tag: str = "") -> pd.DataFrame:
        """The run table written under a tag (`protocols.Settings.tag`); once sealed, of the sealed pairs only.

        Raises
        ------
        FileNotFoundError : when nothing was written under the tag for these pairs.
        """
        folder = self._runs_folder(tag)
        tables = [table.to_pandas() for _, table in read_tables(folder)]
        if not tables:
            raise FileNotFoundError(
                f"runs must be stored before they are read; {folder} has none for these pairs. "
                "Judge the pairs first (judging.judge_pairs)."
            )
        runs = _latest(tables)
        return runs if self.pairs is None else runs[about(runs, self.pairs["pair_id"])].reset_index(drop=True)

    def write_runs(self, runs: pd.DataFrame, tag: str = "") -> None:
        """Keep a run table under a tag; rows of the same run key replace what was there, all others stay.

        Before `seal` everything goes to one place; afterwards each table of pairs has its own, named by its texts, so
        that two files whose ids are 1, 2, 3 never answer for each other.
        """
        folder = self._runs_folder(tag)
        append_table(folder, pa.Table.from_pandas(check_runs(runs), preserve_index=False))
        found = read_tables(folder)
        if len(found) > 1:
            merged = pa.Table.from_pandas(_latest([table.to_pandas() for _, table in found]), preserve_index=False)
            paths = [path for path, _ in found]
            # under the newest name: the last file counts, and what another process wrote meanwhile still does
            append_table(folder, merged, moment=moment_of(paths[-1]))
            remove_files(paths)

    def own_ids(self, pairs: pd.DataFrame) -> pd.Series:
        """Ids of the pairs whose texts are the sealed ones: only their runs may be kept. All of them before `seal`."""
        return pairs["pair_id"] if self.pairs is None else pairs[TEXTS].merge(self.pairs[TEXTS], on=TEXTS)["pair_id"]

    def _runs_folder(self, tag: str) -> Path:
        return self.folder / "runs" / "-".join(filter(None, [tag or "runs", self.texts_id]))


def open_store(
    backbone: str, benchmark: str, *, seed: int = 0, n_pairs: int = 0, root: str | Path | None = None
) -> Store:
    """Open (or begin) the store of one judge on one benchmark.

    Parameters
    ----------
    backbone : full name of the judge, `Backbone.name`.
    benchmark : name of the benchmark.
    seed, n_pairs : split seed and size of the pair table; part of the seal.
    root : by default the folder that BAER_STORE names, else ``outputs/store`` of the repository.
    """
    root = Path(root or os.environ.get("BAER_STORE") or Path(__file__).parents[2] / "outputs" / "store")
    return Store(root / _slug(backbone) / _slug(benchmark), backbone, benchmark, seed, n_pairs)


def _latest(tables: list[pd.DataFrame]) -> pd.DataFrame:
    rows = pd.concat(tables).drop_duplicates(RUN_KEY, keep="last")
    return check_runs(rows.sort_values(RUN_KEY))


def _slug(name: str) -> str:
    """A folder name for any text: readable, and distinct where the text had to be changed."""
    plain = re.sub(r"[^A-Za-z0-9._@=-]+", "_", name)
    return plain if plain == name else f"{plain[:80]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"

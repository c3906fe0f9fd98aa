"""Answers, run tables and sealed labels on disk: what was paid for survives a kill, and what is sealed stays sealed.

One folder per backbone and benchmark. Answers are appended as small Parquet files, each written whole under a name of
its own and then renamed into place: a killed process leaves at most a file that nobody reads, and two writers never
touch the same one. The seal guards against accident, not malice: the labels lie in a plain file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from baer_utils.records import RUN_KEY, check_runs

COMPACT_ABOVE = 200  # files of answers, after which they are merged into one
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
    """

    folder: Path
    backbone: str
    benchmark: str
    seed: int = 0
    n_pairs: int = 0
    seal_id: str | None = None
    pairs: pd.DataFrame | None = field(default=None, repr=False)

    def calls(self) -> dict[str, dict]:
        """Every stored answer by call key. Where two writers stored one key, the first file by name counts."""
        answers: dict[str, dict] = {}
        for path in self._call_files():
            try:
                rows = pq.read_table(path).to_pylist()
            except FileNotFoundError:  # merged by another process meanwhile: begin again, the rows are elsewhere
                return self.calls()
            for row in rows:
                answers.setdefault(row["key"], row)
        return answers

    def add_calls(self, rows: list[dict]) -> None:
        """Append answers, dicts with the fields of `CALL_SCHEMA`, as one new file."""
        if rows:
            path = self.folder / "calls" / f"{_now()}-{uuid.uuid4().hex[:8]}.parquet"
            _write(pa.Table.from_pylist(rows, schema=CALL_SCHEMA), path)

    def compact(self) -> None:
        """Merge the files of answers into one once there are many; safe beside other readers and writers."""
        paths = self._call_files()
        if len(paths) > COMPACT_ABOVE:
            self.add_calls(list(self.calls().values()))
            for path in paths:
                path.unlink(missing_ok=True)

    def _call_files(self) -> list[Path]:
        return sorted((self.folder / "calls").glob("*.parquet"))

    def runs(self, tag: str = "") -> pd.DataFrame:
        """The run table written under a tag (`protocols.Settings.tag`); of the sealed pairs only, once sealed."""
        path = self._runs_path(tag)
        if not path.exists():
            raise FileNotFoundError(f"no runs are stored at {path}. Judge the pairs first (judging.judge_pairs).")
        runs = check_runs(_read(path))
        return runs if self.pairs is None else runs[runs["pair_id"].isin(self.pairs["pair_id"])].reset_index(drop=True)

    def write_runs(self, runs: pd.DataFrame, tag: str = "") -> None:
        """Keep a run table under a tag; rows of the same run key replace what was there."""
        path = self._runs_path(tag)
        table = check_runs(runs)
        if path.exists():
            table = pd.concat([_read(path), table]).drop_duplicates(RUN_KEY, keep="last")
        _write(table.sort_values(RUN_KEY).reset_index(drop=True), path)

    def _runs_path(self, tag: str) -> Path:
        return self.folder / "runs" / f"{tag or 'runs'}.parquet"


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
    root = Path(root or os.environ.get("BAER_STORE") or Path(__file__).parents[1] / "outputs" / "store")
    return Store(root / _slug(backbone) / _slug(benchmark), backbone, benchmark, seed, n_pairs)


# ---------------------------------------------------------------- the seal


def seal(pairs: pd.DataFrame, store: Store) -> pd.DataFrame:
    """Replace test labels by null and put them away once, before anything is fitted.

    Parameters
    ----------
    pairs : pair table, as `benchmarks.load_pairs` gives it.
    store : the condition's store; it remembers the seal and the sealed pairs.

    Returns
    -------
    pair table whose test labels are null. The labels lie in ``sealed/<seal>.parquet``, written only where that file is
    missing: an existing one is neither read nor rewritten. The seal is named by the labels' SHA-256, the backbone, the
    split seed and N_PAIRS.
    """
    test = pairs["split"] == "test"
    labels = pairs.loc[test, ["pair_id", "label"]].sort_values("pair_id").reset_index(drop=True)
    store.seal_id = _seal_id(labels, store)
    path = _sealed_path(store)
    if not path.exists():
        _write(labels, path)
    sealed = pairs.copy()
    sealed["label"] = sealed["label"].where(~test)
    store.pairs = sealed
    return sealed


def sealed_labels(store: Store) -> pd.Series:
    """The test labels by pair id, read from the sealed file.

    Raises
    ------
    ValueError : when nothing was sealed yet, or the file's labels are not those that the seal was named by.
    """
    if store.seal_id is None:
        raise ValueError("the store must be sealed before its labels are opened; call store.seal(pairs, store) first.")
    path = _sealed_path(store)
    try:
        labels = _read(path)
        named = _seal_id(labels, store)
    except Exception as error:
        raise ValueError(
            f"sealed labels must be readable; {path} is not ({error}). Delete it and seal again."
        ) from error
    if named != store.seal_id:
        raise ValueError(
            f"sealed labels must match their seal {store.seal_id}; those in {path} give {named}: the file was changed. "
            "Delete it and seal the original pairs again."
        )
    return labels.set_index("pair_id")["label"]


def openings(store: Store) -> list[dict]:
    """Every opening of this seal so far, oldest first."""
    path = _log_path(store)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def record_opening(store: Store, entry: dict) -> None:
    """Add one opening to the log beside the sealed labels, with the time; the log is only ever appended to."""
    path = _log_path(store)
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps({"time": datetime.now(UTC).isoformat(timespec="seconds"), **entry}, sort_keys=True)
    with path.open("a") as handle:
        handle.write(line + "\n")


def _sealed_path(store: Store) -> Path:
    return store.folder / "sealed" / f"{store.seal_id}.parquet"


def _log_path(store: Store) -> Path:
    if store.seal_id is None:
        raise ValueError("openings belong to a seal, and this store has none yet; call store.seal(pairs, store) first.")
    return store.folder / "sealed" / f"{store.seal_id}.openings.jsonl"


def _seal_id(labels: pd.DataFrame, store: Store) -> str:
    rows = [[str(pair), None if pd.isna(label) else float(label)] for pair, label in labels.to_numpy(dtype=object)]
    labels_sha = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
    return hashlib.sha256(json.dumps([labels_sha, store.backbone, store.seed, store.n_pairs]).encode()).hexdigest()[:16]


# ---------------------------------------------------------------- files


def _slug(name: str) -> str:
    """A folder name for any text: readable, and distinct where the text had to be changed."""
    plain = re.sub(r"[^A-Za-z0-9._@=-]+", "_", name)
    return plain if plain == name else f"{plain[:80]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")


def _read(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path)


def _write(table: pd.DataFrame | pa.Table, path: Path) -> None:
    """Write a table beside its place, flush it to disk, then rename it: it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
    if isinstance(table, pd.DataFrame):
        table = pa.Table.from_pandas(table, preserve_index=False)
    pq.write_table(table, scratch, compression="zstd")
    with scratch.open("rb+") as handle:
        os.fsync(handle.fileno())
    os.replace(scratch, path)

"""Sealed test labels: put away before anything is fitted, opened once, every opening logged.

The seal guards against accident, not malice: the labels lie in a plain file beside the answers.
"""

from __future__ import annotations

import hashlib
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa

from baer_utils.store.files import write_table
from baer_utils.store.keeping import TEXTS, Store


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
    split seed and N_PAIRS. What this store has sealed already comes back as it is: a notebook cell may run twice.
    """
    if store.pairs is not None and pairs.equals(store.pairs):
        return pairs
    test = pairs["split"] == "test"
    labels = pairs.loc[test, ["pair_id", "label"]].sort_values("pair_id").reset_index(drop=True)
    store.seal_id = _seal_id(labels, store)
    path = _sealed_path(store)
    if not path.exists():
        write_table(pa.Table.from_pandas(labels, preserve_index=False), path)
    sealed = pairs.copy()
    sealed["label"] = sealed["label"].where(~test)
    store.pairs, store.texts_id = sealed.copy(), _texts_id(sealed)
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
        labels = pd.read_parquet(path)
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
    """Every opening of this seal so far, oldest first.

    Raises
    ------
    ValueError : when a line of the log is not whole, as a process leaves it that dies while it writes.
    """
    path = _log_path(store)
    entries = []
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], start=1):
        try:
            entries.append(json.loads(line))
        except ValueError as error:
            raise ValueError(
                f"every line of the log of openings must be whole; line {number} of {path} is {line[:80]!r}. The "
                "process that wrote it died before it showed a report: delete that line, and open again."
            ) from error
    return entries


def record_opening(store: Store, entry: dict) -> None:
    """Add one opening to the log beside the sealed labels, with the time; the log is only ever appended to."""
    path = _log_path(store)
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps({"time": datetime.now(UTC).isoformat(timespec="seconds"), **entry}, sort_keys=True)
    with path.open("a") as handle:
        handle.write(line + "\n")
        handle.flush()
        os.fsync(handle.fileno())


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


def _texts_id(pairs: pd.DataFrame) -> str:
    digest = hashlib.sha256()
    for row in sorted(pairs[TEXTS].itertuples(index=False, name=None)):
        digest.update(json.dumps(row).encode())
    return digest.hexdigest()[:12]

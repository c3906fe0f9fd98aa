"""The two files of a frozen head as bytes: written whole, read back only if nothing in them changed.

`deployment.json` is sorted, indented JSON that a person can read; `arrays.npz` holds arrays without pickle. The head's
SHA-256 covers the meaning of both, and their bytes are checked too, so that not even a blank can change unseen. This
file knows nothing about what the content means.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

JSON_NAME, ARRAYS_NAME = "deployment.json", "arrays.npz"


def write_frozen(folder: Path, content: dict, arrays: dict[str, NDArray]) -> None:
    """Write content and arrays to the two files of a folder, each whole or not at all."""
    packed = _packed(arrays)
    record = {
        "sha256": head_sha256(content, arrays),
        "arrays_sha256": hashlib.sha256(packed).hexdigest(),
        "content": content,
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / ARRAYS_NAME, packed)
    write_whole(folder / JSON_NAME, _rendered(record))


def read_frozen(folder: Path) -> tuple[str, dict, dict[str, NDArray]]:
    """The name, content and arrays in a folder.

    Raises
    ------
    FileNotFoundError : when either file is missing.
    ValueError : when one byte of either differs from what was frozen.
    """
    for name in (JSON_NAME, ARRAYS_NAME):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"a frozen head needs {name}; {folder} has none. Freeze the head first.")
    written, packed = ((folder / name).read_bytes() for name in (JSON_NAME, ARRAYS_NAME))
    try:
        record = json.loads(written)
        intact = _rendered(record) == written and hashlib.sha256(packed).hexdigest() == record["arrays_sha256"]
        arrays = _unpacked(packed) if intact else {}
        if intact and head_sha256(record["content"], arrays) == record["sha256"]:
            return record["sha256"], record["content"], arrays
    except (ValueError, KeyError, TypeError, OSError):
        pass  # not even JSON or an archive any more: refused below, in the same words
    raise ValueError(
        f"a frozen head must be byte for byte what was frozen; {JSON_NAME} or {ARRAYS_NAME} in {folder} was changed "
        "after the freeze. Restore them, or freeze again from development data."
    )


def canonical_json(value: object) -> str:
    """JSON with sorted keys, no spaces and shortest round-trip floats; NaN is written as null, infinity refused."""
    return json.dumps(plain_values(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def plain_values(value: object) -> object:
    """The same value in JSON's own types: tuples as lists, NumPy scalars as numbers, NaN as None."""
    if isinstance(value, dict):
        return {str(key): plain_values(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and np.isnan(value) else value


def head_sha256(content: dict, arrays: dict[str, NDArray]) -> str:
    """Name of a head: SHA-256 over its canonical JSON, then each array's name, type, shape and bytes, by name."""
    digest = hashlib.sha256(canonical_json(content).encode())
    for name in sorted(arrays):
        digest.update(f"\n{name} {arrays[name].dtype.str} {arrays[name].shape}\n".encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()


def _rendered(record: dict) -> bytes:
    text = json.dumps(record, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode("utf-8", "surrogatepass")


def _packed(arrays: dict[str, NDArray]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _unpacked(packed: bytes) -> dict[str, NDArray]:
    with np.load(io.BytesIO(packed), allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def write_whole(path: Path, data: bytes) -> None:
    """Write a file beside its place and rename it: it is there whole or not at all."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}.part")
    scratch.write_bytes(data)
    os.replace(scratch, path)

"""Which model this is: where its files are, how long its context is, and a digest that changes when its weights do."""

from __future__ import annotations

import hashlib
from pathlib import Path

UNSTATED_CONTEXT = 2048  # tokens, for a model that names no limit (ALiBi, state spaces): what such models trained on
DIGEST_WHOLE = 2**28  # bytes up to which a model's file is read whole for its name


def source_of(model: str | Path) -> dict:
    """What `from_pretrained` must be told to load a Hub id, a folder, or a ``.gguf`` file."""
    path = Path(model)
    if path.suffix == ".gguf":
        return {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    return {"pretrained_model_name_or_path": str(model)}


def context_of(config, tokenizer) -> int:
    """Most tokens a model can take: what its config says, else its tokenizer, else `UNSTATED_CONTEXT`."""
    stated = getattr(config, "max_position_embeddings", None) or tokenizer.model_max_length
    return int(stated) if stated and stated < 10**9 else UNSTATED_CONTEXT  # "none" is 10**30 in a tokenizer


def digest_of(path: Path) -> str:
    """Twelve hex digits of a model's files: names, sizes, small files whole, of large ones 64 KiB in every MiB.

    A layer that was trained on changes all over, so it is seen; one byte changed by hand in a large file may not be.
    """
    files = [path] if path.is_file() else sorted(f for f in path.iterdir() if f.is_file())
    total = hashlib.sha256()
    for file in files:
        size = file.stat().st_size
        total.update(f"{file.name}|{size}|".encode())
        with file.open("rb") as handle:
            if size <= DIGEST_WHOLE:
                total.update(handle.read())
                continue
            for start in (*range(0, size, 2**20), size - 2**16):
                handle.seek(start)
                total.update(handle.read(2**16))
    return total.hexdigest()[:12]

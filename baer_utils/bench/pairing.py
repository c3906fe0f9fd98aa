"""Two things timed side by side: order alternated, medians, spread, and the machine they were timed on."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median

PACKAGES = ("torch", "transformers", "baer-utils")


def timed(work: Callable[[], object]) -> tuple[float, object]:
    """Seconds that `work` took, and what it returned."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def side_by_side(
    ours: Callable[[int], float], theirs: Callable[[int], float], pairings: int, kept: Path | None = None
) -> dict:
    """Ratio of two rates, `theirs` over `ours` in the same unit of time per work.

    Parameters
    ----------
    ours, theirs : the number of a pairing to seconds per unit of work.
    pairings : how often; every second one begins with the other side.
    kept : JSON file of the pairings measured so far, for what takes an hour: they are not measured again.

    Returns
    -------
    dict with the median ratio, its smallest and largest value, and every measured time.
    """
    rows = json.loads(kept.read_text()) if kept and kept.exists() else []
    for number in range(len(rows), pairings):
        first = {"theirs": theirs(number)} if number % 2 else {}
        row = first | {"ours": ours(number)}
        rows.append(row if number % 2 else row | {"theirs": theirs(number)})
        if kept:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(rows))
    ratios = [row["theirs"] / row["ours"] for row in rows]
    return {
        "ratio": round(median(ratios), 3),
        "least": round(min(ratios), 3),
        "most": round(max(ratios), 3),
        "ours_seconds": [round(row["ours"], 4) for row in rows],
        "theirs_seconds": [round(row["theirs"], 4) for row in rows],
    }


def machine() -> dict:
    """When and on what something was measured."""
    import torch

    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {torch.get_num_threads()} threads, "
        f"Python {platform.python_version()}",
        "versions": {name: version(name) for name in PACKAGES},
    }

"""Two things timed side by side: order alternated, medians, spread, and the machine they were timed on."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from statistics import median

from baer_utils.bench.sitting import Sitting

PACKAGES = ("torch", "transformers", "baer-utils")


def timed(work: Callable[[], object]) -> tuple[float, object]:
    """Seconds that `work` took, and what it returned."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def side_by_side(
    ours: Callable[[int], float],
    theirs: Callable[[int], float],
    pairings: int,
    sitting: Sitting,
    step: str = "pairing",
) -> dict:
    """Ratio of two rates, `theirs` over `ours` in the same unit of time per work.

    Parameters
    ----------
    ours, theirs : the number of a pairing to seconds per unit of work.
    pairings : how often; every second one begins with the other side.
    sitting : keeps each pairing once both sides are measured; what it has is not measured again.
    step : what it calls a pairing.

    Returns
    -------
    dict with the median ratio, its smallest and largest value, and every measured time.
    """

    def both(number: int) -> dict:
        first = {"theirs": theirs(number)} if number % 2 else {}
        row = first | {"ours": ours(number)}
        return row if number % 2 else row | {"theirs": theirs(number)}

    rows = [sitting.once(f"{step} {n + 1}", lambda n=n: both(n)) for n in range(pairings)]
    ratios = [row["theirs"] / row["ours"] for row in rows]
    return {
        "ratio": round(median(ratios), 3),
        "least": round(min(ratios), 3),
        "most": round(max(ratios), 3),
        "ours_seconds": [_short(row["ours"]) for row in rows],
        "theirs_seconds": [_short(row["theirs"]) for row in rows],
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


def _short(seconds: float) -> float:
    return float(f"{seconds:.4g}")

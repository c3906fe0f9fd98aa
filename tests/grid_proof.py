"""A grid on a real notebook with two runs that cannot succeed: the others do, and a rerun does only those two."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

REPOSITORY = Path(__file__).parents[1]
FILE = """
conditions:
  - {N_PAIRS: 16}
  - {N_PAIRS: 20}
  - {N_PAIRS: 24}
  - {N_PAIRS: 28}
  - {N_PAIRS: 32, SEED: 0}
  - {BENCHMARK: starter_preference, N_PAIRS: 16}
  - {BENCHMARK: starter_preference, N_PAIRS: 20}
  - {CLIP: 0.01, N_PAIRS: 16}
  - {CLIP: 0.05, N_PAIRS: 16}
  - {CLIP: 0.001, N_PAIRS: 16}
  - {BENCHMARK: no_such_benchmark}
  - {CLIP: -1.0, N_PAIRS: 16}
notebooks: ["02"]
workers: 2
"""


def grid() -> dict:
    """Twelve runs of notebook 02, two of them sabotaged, from recorded answers; then the same command again."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        (place / "grid.yml").write_text(f"{FILE}out: {place / 'out'}\n")
        first, states = _run(place)
        made = {copy: copy.stat().st_mtime_ns for copy in place.glob("out/*/02_*.ipynb") if "partial" not in copy.name}
        second, again = _run(place)
        kept = {copy: copy.stat().st_mtime_ns for copy in made}
        assert first["code"] == second["code"] == 1, "a grid with failed runs must end with exit code 1"
        failed = states[states["status"] != "complete"]
        assert len(states) == 12 and len(failed) == 2 and len(made) == 10, f"ten of twelve must succeed: {states}"
        assert failed["stopped"].str.startswith("code cell").all(), "a failing run must be reported with its cell"
        assert kept == made and second["lines"] == 2, "the rerun must do only the two that failed"
        assert list(again["status"]) == list(states["status"])
        sizes = [copy.stat().st_size for copy in made]
        return {
            "runs": len(states), "failed": failed[["stopped", "error"]].to_dict("records"),
            "seconds": first["seconds"], "seconds_again": second["seconds"], "largest_copy_bytes": max(sizes),
        }  # fmt: skip


def _run(place: Path) -> tuple[dict, pd.DataFrame]:
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "baer_utils", "grid", "book", str(place / "grid.yml")],
        cwd=REPOSITORY, env={**os.environ, "BAER_STORE": str(place / "store")}, capture_output=True, text=True,
    )  # fmt: skip
    seen = {"code": done.returncode, "seconds": round(time.monotonic() - start, 1)}
    seen["lines"] = sum(line.startswith("[") for line in done.stdout.splitlines())
    return seen, pd.read_csv(place / "out" / "runs.csv", keep_default_na=False)
